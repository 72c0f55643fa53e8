"""Runs the parts of scripts/test-all, side by side where they do not disturb each other.

A lane runs its parts one after the other, in the order of the list. Lanes run side by side; the nicer one waits when both want
a core. A part starts when all parts are done that it comes after. All parts run, also after one has failed.
"""

import argparse
import dataclasses
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

LIMIT = 80 * 60  # seconds for all parts
# What a machine says of itself stays; everything else of these is for one run by hand, and would leave things out.
KEPT = ("KRANE_TOOLS", "KRANE_TESTCLUSTER_CACHE", "KRANE_TESTCLUSTER_BIN", "KRANE_TESTCLUSTER_KEEP")
OURS = ("KRANE_", "INSTA_", "PROPTEST_")
# These would change what a check means: accept what is there, allow what is denied, run another program than the tests.
LENIENT = re.compile(r"BLESS|RUSTFLAGS|RUSTDOCFLAGS|CARGO_(ENCODED_\w+|BUILD_RUST\w*FLAGS|TARGET_\w+_(RUNNER|RUST\w*FLAGS))")
CHECKS = pathlib.Path("tests/it/check.rs")
TARGET = os.environ.get("CARGO_TARGET_DIR") or "target"
GRACE = 20  # seconds between asking a part to end and killing it
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
RESULT = r"^test result: \S+ (\d+) passed; (\d+) failed;"
HEAD_START = 10  # seconds in which the others find that cargo has nothing to compile, before one keeps it for minutes


@dataclasses.dataclass(frozen=True)
class Lane:
    name: str
    nice: int


# What computes little and waits most of the time comes first; what only computes takes the time that is left.
LIGHT = Lane("light", 0)
CLUSTER = Lane("cluster", 4)
COMPILE = Lane("compile", 8)
GO = Lane("go", 6)
SIMULATION = Lane("simulation", 19)
# What compares times: nothing runs beside it, and it comes last.
ALONE = Lane("alone", 0)


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    command: str
    lane: Lane
    after: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    is_long: bool = False  # keeps cargo from all others while it runs
    programs: int = 0  # test programs in which at least one test has to pass


def parts() -> list[Part]:
    built, harness, helm = "build of the tests", "build of the harness", "helm"
    # What compares times with the clock of the machine.
    timed = [
        "attacks::answers_that_are_not_taken_cost_no_more_memory_than_is_computed",
        "attacks::senders_with_all_connections_do_not_keep_probes_out",
        "decrypts::a_thousand_decrypts_in_a_second_of_twenty_variables_each_are_answered_and_a_flood_is_not",
        "story::a_demo_of_ten_seconds_ends_with_everything_in_place_and_reported",
        # `krane check` gives each of its steps a few seconds, and says so when they are over.
        *(f"check::{name}" for name in re.findall(r"#\[tokio::test\]\nasync fn (\w+)", CHECKS.read_text())),
    ]
    skipped = " ".join(f"--skip {name}" for name in timed)
    return [
        Part("format", "cargo fmt --all --check", LIGHT),
        Part("tools", "scripts/tools python deny prometheus", LIGHT),
        Part("licenses, bans, sources", "scripts/deny", LIGHT, ("tools",)),
        Part(harness, "cargo build --locked --workspace --bin krane-testcluster", COMPILE),
        Part(built, "scripts/build", COMPILE, (harness,)),
        Part("build of the test cluster", f"{shlex.quote(TARGET)}/debug/krane-testcluster build", GO, (harness,)),
        Part(helm, "scripts/tools helm helm-unittest", GO),
        Part("S3 server", "scripts/tools s3", GO),
        Part("real-cluster tests", "scripts/e2e --beside", CLUSTER, (built, "build of the test cluster", helm), programs=2),
        Part(
            "unit and in-memory tests",
            f"scripts/test --no-fail-fast --exclude krane-testsim -- --exact {skipped}",
            LIGHT,
            (built,),
            programs=25,
        ),
        Part(
            "simulation",
            f"scripts/sim --exact {skipped}",
            SIMULATION,
            (built,),
            (("KRANE_SEEDS", "5000"), ("KRANE_SWEEP", "core")),
            programs=1,
        ),
        Part("lint", "scripts/lint", COMPILE, (built, "build of the test cluster", helm, "tools"), is_long=True),
        Part("docs", "scripts/doc", COMPILE, ("lint",), is_long=True),
        Part("chart", "scripts/chart", LIGHT, ("tools", helm)),
        Part("chart against the binary", "scripts/chart-config", LIGHT, (built, "docs")),
        Part("metrics, dashboards, alerts", "scripts/metrics --built", LIGHT, (built, "tools")),
        Part("programs of others", "scripts/peers", LIGHT, (built, "S3 server", "docs"), programs=1),
        Part("types of the cluster in memory", "scripts/sim-schema", LIGHT, ("build of the test cluster", "tools")),
        Part("hostile input", "scripts/fuzz", COMPILE, (built, "docs")),
        Part("planted defects", "scripts/defects", COMPILE, (built, "hostile input"), is_long=True, programs=1),
        Part("real-cluster tests that compare times", "scripts/e2e --alone", ALONE, ("real-cluster tests",), programs=1),
        Part("page in a browser", "scripts/page --built", ALONE, (built,), (("KRANE_PAGE_REQUIRED", "1"),)),
        Part(
            "timed tests",
            f"scripts/test --test it --test demo --test suites -- --nocapture --exact {' '.join(timed)}",
            ALONE,
            (built,),
            programs=3,
        ),
    ]


class Run:
    """One part, running or done."""

    def __init__(self, part: Part, folder: pathlib.Path, began: float) -> None:
        self.part = part
        self.began = began
        self.ended = began
        self.cpu = 0.0
        self.status: int | None = None
        self.output = folder / re.sub(r"\W+", "-", part.name)
        self.file = self.output.open("wb")
        # A session of its own, so that whatever the part leaves behind ends with it.
        self.process = subprocess.Popen(
            ["nice", "-n", str(part.lane.nice), *shlex.split(part.command)],
            stdin=subprocess.DEVNULL,
            stdout=self.file,
            stderr=subprocess.STDOUT,
            env={**environment(), **dict(part.env)},
            start_new_session=True,
        )
        be_nice(self.process.pid, part.lane.nice)

    def signal(self, number: int) -> None:
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def poll(self) -> bool:
        pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
        if pid == 0:
            return False
        self.status = os.waitstatus_to_exitcode(status)
        self.process.returncode = self.status
        self.cpu = usage.ru_utime + usage.ru_stime
        self.ended = time.monotonic()
        self.signal(signal.SIGKILL)
        self.file.close()
        return True

    def seconds(self) -> float:
        return self.ended - self.began

    def text(self) -> str:
        return self.output.read_text(errors="replace")


def be_nice(session: int, nice: int) -> None:
    """Linux may share the time between sessions first (sched_autogroup_enabled); niceness of processes counts within one alone."""
    try:
        pathlib.Path(f"/proc/{session}/autogroup").write_text(str(nice))
    except OSError:
        pass  # no such groups here, or the part has ended already: then the processes' own niceness is all there is


def environment() -> dict[str, str]:
    def is_kept(name: str) -> bool:
        return name in KEPT or not (name.startswith(OURS) or LENIENT.fullmatch(name))

    return {name: value for name, value in os.environ.items() if is_kept(name)}


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60:d}:{int(seconds) % 60:02d}"


class Plan:
    """What has run, runs, and is still to come."""

    def __init__(self, wanted: list[Part], folder: pathlib.Path) -> None:
        self.waiting = wanted
        self.folder = folder
        self.running: list[Run] = []
        self.done: dict[str, Run] = {}
        self.began = time.monotonic()

    def elapsed(self) -> float:
        return time.monotonic() - self.began

    def is_ready(self, part: Part, earlier: list[Part]) -> bool:
        if any(name not in self.done for name in part.after):
            return False
        if part.lane is ALONE:
            return not self.running and not earlier
        latest = max((run.began for run in self.running), default=0)
        if part.is_long and time.monotonic() - latest < HEAD_START:
            return False
        lanes = {run.part.lane for run in self.running}
        # The first that is ready, not the first of the list: nothing of a lane waits for what waits itself.
        return part.lane not in lanes and ALONE not in lanes

    def start(self) -> None:
        earlier: list[Part] = []
        for part in list(self.waiting):
            if self.is_ready(part, earlier):
                self.waiting.remove(part)
                self.running.append(Run(part, self.folder, time.monotonic()))
                tell(f"{clock(self.elapsed()):>6}  {part.name}: {part.command}")
            else:
                earlier.append(part)

    def reap(self) -> None:
        for run in [run for run in self.running if run.poll()]:
            self.running.remove(run)
            self.done[run.part.name] = run
            tell(f"\n== {run.part.name}: {run.part.command}")
            sys.stdout.write(run.text())
            tell(f"{clock(self.elapsed()):>6}  {run.part.name}: {verdict(run)}, {clock(run.seconds())}")

    def stop(self) -> None:
        # A second signal must not leave anything behind.
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        for run in self.running:
            run.signal(signal.SIGTERM)
        until = time.monotonic() + GRACE
        while any(not run.poll() for run in self.running if run.status is None) and time.monotonic() < until:
            time.sleep(0.1)
        for run in self.running:
            run.signal(signal.SIGKILL)

    def run(self) -> None:
        try:
            while self.waiting or self.running:
                if self.elapsed() > LIMIT:
                    break
                self.start()
                time.sleep(0.2)
                self.reap()
        finally:
            self.stop()

    def critical_path(self) -> list[Run]:
        """The parts that could not have been done sooner: backwards from the last, what each waited for."""
        path: list[Run] = []
        last = max(self.done.values(), key=lambda run: run.ended, default=None)
        while last:
            path.insert(0, last)
            began, lane = last.began, last.part.lane
            held = [
                run
                for run in self.done.values()
                if run.ended <= began and (run.part.name in last.part.after or lane in (run.part.lane, ALONE))
            ]
            last = max(held, key=lambda run: run.ended, default=None)
        return path


def tell(line: str) -> None:
    print(line, flush=True)


def verdict(run: Run) -> str:
    if run.status:
        return f"FAILED ({run.status})"
    results = re.findall(RESULT, run.text(), re.MULTILINE)
    if any(int(failed) for _, failed in results):
        return "FAILED (says a test program, and its part does not)"
    programs = sum(1 for passed, _ in results if int(passed))
    if programs < run.part.programs:
        return f"FAILED (tests passed in {programs} programs, not in {run.part.programs})"
    skipped = re.search(r"^skipped:.*", run.text(), re.MULTILINE)
    return skipped[0] if skipped else "ok"


def report(plan: Plan) -> bool:
    """Prints what was done. Whether all of it is well."""
    tell("\n== minutes per part: begun, took, CPU")
    for run in sorted(plan.done.values(), key=lambda run: run.began):
        begun = clock(run.began - plan.began)
        tell(f"{run.part.name:<34} {begun:>6} {clock(run.seconds()):>6} {clock(run.cpu):>6}  {verdict(run)}")
    for run in plan.running:
        tell(f"\n== {run.part.name}: {run.part.command}\n{run.text()}")
    missing = [run.part.name for run in plan.running] + [part.name for part in plan.waiting]
    for name in missing:
        tell(f"{name:<34} not done: out of time")
    cpu = sum(run.cpu for run in plan.done.values())
    tell(f"{'in all':<34} {'':>6} {clock(plan.elapsed()):>6} {clock(cpu):>6}  of at most {clock(LIMIT)}")
    for line in sorted({line for run in plan.done.values() for line in re.findall(r"^not proved: .*", run.text(), re.MULTILINE)}):
        tell(line)
    path = " > ".join(f"{run.part.name} {clock(run.seconds())}" for run in plan.critical_path())
    tell(f"critical path: {path}")
    failed = [run.part.name for run in plan.done.values() if verdict(run) != "ok"] + missing
    if failed:
        tell(f"failed: {'; '.join(failed)}")
    counts = [0, 0]
    for run in plan.done.values():
        for passed, lost in re.findall(RESULT, run.text(), re.MULTILINE):
            counts[0] += int(passed)
            counts[1] += int(lost)
    tell(f"{counts[0]} passed, {counts[1]} failed")
    return not failed


def chosen(names: list[str]) -> list[Part]:
    """All parts, or those named and what they come after."""
    listed = parts()
    every = {part.name: part for part in listed}
    if not listed or len(every) < len(listed):
        sys.exit("error: no parts, or two of one name")
    unknown = [name for name in names if name not in every]
    if unknown:
        sys.exit(f"error: no part '{unknown[0]}'; there are: {'; '.join(every)}")
    wanted, open_names = set(), list(names or every)
    while open_names:
        name = open_names.pop()
        if name not in wanted:
            wanted.add(name)
            open_names.extend(every[name].after)
    return [part for part in every.values() if part.name in wanted]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="*", help="only these parts, and what they come after")
    parser.add_argument("--keep", metavar="FOLDER", help="keep the output of each part there")
    options = parser.parse_args()
    for number in SIGNALS:
        signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    with tempfile.TemporaryDirectory(prefix="krane-test-all-") as temporary:
        folder = pathlib.Path(options.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        plan = Plan(chosen(options.part), folder)
        plan.run()
        if not report(plan):
            sys.exit(1)


if __name__ == "__main__":
    main()
