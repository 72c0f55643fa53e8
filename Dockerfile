# docker build -t krane --build-arg KRANE_BUILD_SHA="$(git rev-parse --short=12 HEAD)" \
#     --build-arg KRANE_CREATED="$(git log -1 --format=%cI)" .
ARG RUST_VERSION=1.95.0

FROM rust:${RUST_VERSION}-bookworm AS build
# The image has the toolchain already; without this rustup would fetch the lint components of rust-toolchain.toml.
ARG RUST_VERSION
ENV RUSTUP_TOOLCHAIN=${RUST_VERSION}
# One writes the list of crates into the program, for scanners; the other into a file, for people.
RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    cargo install --locked cargo-auditable@0.7.7 cargo-cyclonedx@0.5.9
WORKDIR /src
COPY . .
ARG KRANE_BUILD_SHA=unknown
RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    --mount=type=cache,target=/src/target,sharing=locked \
    KRANE_BUILD_SHA="${KRANE_BUILD_SHA}" \
    CARGO_PROFILE_RELEASE_STRIP=debuginfo \
    cargo auditable build --release --locked --package krane --bin krane \
    && cargo cyclonedx --format json \
    && install -D target/release/krane /out/krane \
    && install -m 644 krane.cdx.json /out/sbom.cdx.json

FROM gcr.io/distroless/cc-debian12:nonroot
ARG KRANE_BUILD_SHA=unknown
ARG KRANE_CREATED=""
ARG KRANE_VERSION=0.1.0
LABEL org.opencontainers.image.title="krane" \
      org.opencontainers.image.description="Keeps one Kubernetes cluster equal to what the control plane wants, and reports what really runs" \
      org.opencontainers.image.source="https://github.com/krane-agent/krane" \
      org.opencontainers.image.documentation="https://github.com/krane-agent/krane/blob/main/README.md" \
      org.opencontainers.image.version="${KRANE_VERSION}" \
      org.opencontainers.image.revision="${KRANE_BUILD_SHA}" \
      org.opencontainers.image.created="${KRANE_CREATED}" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0" \
      org.opencontainers.image.base.name="gcr.io/distroless/cc-debian12:nonroot"
COPY --from=build /out/krane /krane
COPY --from=build /out/sbom.cdx.json /sbom.cdx.json
COPY LICENSE-MIT LICENSE-APACHE /licenses/
USER 65532:65532
EXPOSE 8070 9090 8081
ENTRYPOINT ["/krane"]
CMD ["run"]
