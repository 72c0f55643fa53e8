# The list of commands. Each is a script that also runs by itself: no need for `just`.

# List the commands
default:
    @just --list --unsorted

# The whole agent on a cluster and a control plane in memory; Ctrl-C ends it
demo *ARGS:
    cargo run --locked --package krane-demo -- {{ARGS}}

# krane on a real Kubernetes control plane, told step by step; Ctrl-C ends it
demo-real *ARGS:
    scripts/demo-real {{ARGS}}

# The chart installed on a real Kubernetes control plane, and krane run as it says; Ctrl-C ends it
install-real *ARGS:
    scripts/install-real {{ARGS}}

# Every test that needs no Kubernetes control plane
test *ARGS:
    scripts/test {{ARGS}}

# The domain crate only, not optimized: seconds after an edit
test-domain *ARGS:
    cargo test --locked --config profile.dev.package.krane-domain.opt-level=0 -p krane-domain --lib {{ARGS}}

# The whole agent in a world in memory, with seeded faults
sim *ARGS:
    scripts/sim {{ARGS}}

# The simulation finds every defect of tests/sim/defects, planted in a copy of the code
defects *ARGS:
    scripts/defects {{ARGS}}

# Whatever reads bytes from outside against hostile input, 5 s per target; KRANE_FUZZ_SECONDS=600 for longer
fuzz *ARGS:
    scripts/fuzz {{ARGS}}

# krane against a real Kubernetes control plane on this machine
e2e *ARGS:
    scripts/e2e {{ARGS}}

# 200 pauses, kills and partitions of two processes on one Lease; KRANE_LEASE_SEED repeats a run
lease-nightly:
    KRANE_LEASE_FAULTS="${KRANE_LEASE_FAULTS:-200}" scripts/e2e lease::chaos --nocapture

# Latencies, writes and throughput on a real Kubernetes control plane, with their targets
bench *ARGS:
    scripts/bench {{ARGS}}

# What the other controllers notice when one is broken, in both worlds
isolation:
    scripts/isolation

# The vault's adapters against programs of others: connect-go, an S3 server
peers *ARGS:
    scripts/peers {{ARGS}}

# The live page of `krane-demo` in headless Chromium
page *ARGS:
    scripts/page {{ARGS}}

# Types of the cluster in memory against the modules of Kubernetes; --write writes them
sim-schema *ARGS:
    scripts/sim-schema {{ARGS}}

# Everything a change must pass, from a clean clone
test-all:
    scripts/test-all

# The same, as CI calls it
ci:
    .ci/run

# Long property runs, repeated e2e, advisories
test-nightly:
    scripts/nightly

# clippy, shellcheck, hadolint
lint:
    scripts/lint

# Format check
fmt-check:
    cargo fmt --all --check

# Format
fmt:
    cargo fmt --all

# Licences, bans, double versions, sources
deny *ARGS:
    scripts/deny {{ARGS}}

# rustdoc with warnings denied
doc *ARGS:
    scripts/doc {{ARGS}}

# Each crate by itself, and what its manifest must not reach
check-crates:
    scripts/check-crates

# Chart: lint, schema samples, rendered goldens, Kubernetes schemas, alerts, dashboards
chart *ARGS:
    scripts/chart {{ARGS}}

# What it costs to be looked at: CPU of `krane-demo` with and without
observed *ARGS:
    scripts/observed {{ARGS}}

# Dashboards and alerts against a real Prometheus that scrapes `krane-demo`
metrics *ARGS:
    scripts/metrics {{ARGS}}

# The Dockerfile, built by buildah without a daemon, and started; skipped without buildah, and not part of test-all
image:
    scripts/image

# The binary reads what the chart writes
chart-config:
    scripts/chart-config
