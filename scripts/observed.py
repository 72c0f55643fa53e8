"""What it costs to be looked at: CPU of `krane-demo` with nobody looking and with everybody looking, in alternating rounds.

usage: scripts/observed [KRANE]     (a release build tells the truth; without one `cargo build --release` is run)

The demo keeps a crowd of apps that the control plane changes all the time. Looking is: a browser that follows the page and fetches
the parts that changed, traces with their default sampling to a collector, Prometheus every 15 s as the chart asks for, and an
operator's `krane status` every 5 s. Both rounds of a pair play the same story. Prints CPU seconds, those for each state that the
control plane sent, and the median of the ratios of the latter. Exits with 1 when that is over the limit.
"""

import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

import grpc

ROUNDS, SECONDS, APPS, CHANGES = 5, 30, 500, 100
LIMIT = 1.05
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


class Seen:
    """What the observers got: a round in which they got nothing would prove nothing."""

    def __init__(self):
        self.parts = self.scrapes = self.statuses = self.exports = self.bytes = 0

    def __str__(self):
        return (
            f"{self.parts} parts of the page, {self.scrapes} scrapes, {self.statuses} times status, "
            f"{self.exports} exports of {self.bytes // 1000} kB of spans"
        )

    def is_complete(self):
        return all((self.parts, self.scrapes, self.statuses, self.exports))


class Viewer(threading.Thread):
    """A page that is open: the stream of events, and whatever part it says has changed, once a second at most."""

    def __init__(self, url, seen):
        super().__init__(daemon=True)
        self.url, self.seen = url, seen

    def run(self):
        last = {}
        try:
            with urllib.request.urlopen(self.url + "api/v1/stream", timeout=SECONDS * 2) as stream:
                for line in stream:
                    if line.startswith(b"data:") and b'"parts"' in line:
                        for part in json.loads(line[5:])["parts"]:
                            if time.monotonic() - last.get(part, 0) >= 1:
                                last[part] = time.monotonic()
                                get(self.url + f"parts/{part}")
                                self.seen.parts += 1
        except OSError:
            pass  # the demo is over


def collector(seen):
    """Takes all spans and looks at none."""

    def export(request, _context):
        seen.exports += 1
        seen.bytes += len(request)
        return b""

    class Handler(grpc.GenericRpcHandler):
        def service(self, details):
            return grpc.unary_unary_rpc_method_handler(export) if details.method == EXPORT else None

    server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers([Handler()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, f"http://127.0.0.1:{port}"


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read()


def every(seconds, stop, work):
    def loop():
        while not stop.wait(seconds):
            try:
                work()
            except (OSError, subprocess.SubprocessError):
                return

    threading.Thread(target=loop, daemon=True).start()


def play(krane, seed, seen):
    """CPU seconds and states of one demo; with observers, if there is somebody to see for."""
    env, server = dict(os.environ), None
    if seen:
        server, env["KRANE__OBSERVABILITY__TRACING__ENDPOINT"] = collector(seen)
    arguments = ["--seed", seed, "--for", f"{SECONDS}s", "--apps", APPS, "--changes", CHANGES, "--json"]
    demo = subprocess.Popen([pathlib.Path(krane).with_name("krane-demo"), *map(str, arguments)], stdout=subprocess.PIPE, text=True, env=env)
    stop = threading.Event()

    def status(at):
        subprocess.run([krane, "status", "--admin", at], capture_output=True, check=True)
        seen.statuses += 1

    def scrape(url):
        get(url)
        seen.scrapes += 1

    for line in demo.stdout:
        told = json.loads(line)
        if told["event"] == "started" and seen:
            page, metrics = told["page"], told["metrics"]
            Viewer(page, seen).start()
            every(5, stop, lambda: status(page.removeprefix("http://").strip("/")))
            every(15, stop, lambda: scrape(metrics))
    _, status_code, usage = os.wait4(demo.pid, 0)
    stop.set()
    if server:
        server.stop(None)
    demo.returncode = os.waitstatus_to_exitcode(status_code)
    if demo.returncode:
        sys.exit(f"the demo ended with {demo.returncode}")
    return usage.ru_utime + usage.ru_stime, told["states_sent"]


def main():
    krane = sys.argv[1]
    ratios = []
    for seed in range(ROUNDS):
        cpu, states = play(krane, seed, None)
        seen = Seen()
        cpu_observed, states_observed = play(krane, seed, seen)
        if not seen.is_complete():
            sys.exit(f"nobody looked: {seen}")
        ratios.append(cpu_observed / states_observed / (cpu / states))
        print(
            f"round {seed + 1}: {cpu:.2f} s of CPU for {states} states alone, {cpu_observed:.2f} s for {states_observed} observed, "
            f"ratio for each {ratios[-1]:.3f} ({seen})",
            flush=True,
        )
    median = statistics.median(ratios)
    print(f"median ratio {median:.3f}, limit {LIMIT}")
    sys.exit(median > LIMIT)


main()
