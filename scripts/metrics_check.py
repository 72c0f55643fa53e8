"""Dashboards and alerts against a real Prometheus that scrapes two real processes: `krane-demo`, which works, and a `krane run`
that reaches neither API server nor control plane, because the demo has no client of either.

usage: metrics_check.py KRANE PROMETHEUS
"""

import contextlib
import json
import math
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import yaml

CHART = Path("charts/krane")
METRIC = re.compile(r"\b(?:krane|rest_client|controller_runtime|workqueue|leader_election)_[a-z_]+")
SELECTOR = re.compile(rf"({METRIC.pattern})(\{{[^}}]*\}})?")
DEADLINE = time.monotonic() + 85
RUNNING = {}
# What a krane that reaches nothing is for: these begin to count their `for` within seconds.
PENDING = {"KraneNoLeader", "KraneApiServerFails"}

KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: none, user: {}}]
contexts: [{name: none, context: {cluster: none, user: none, namespace: krane}}]
current-context: none
"""

KRANE = """
region = "us-east-1"
platform = "aws"
rpc_port = %d
[control]
url = "http://127.0.0.1:9"
token = "only for this check"
[vault]
url = "http://127.0.0.1:9"
token = "only for this check"
[scheduler]
token = "only for this check"
[lease]
enabled = true
[admin]
listen = ""
[observability.metrics]
prometheus_port = %d
"""


def fail(message):
    sys.exit(f"error: {message}")


def until(what, look, *arguments):
    """What `look` finds, as soon as it finds something. It may say what is missing, as a string in an error."""
    missing = ""
    while time.monotonic() < DEADLINE:
        for name, (child, output) in RUNNING.items():
            if child.poll() is not None:
                fail(f"{name} ended with {child.returncode}: {output.read_text()[-2000:]}")
        try:
            if found := look(*arguments):
                return found
        except (OSError, LookupError) as error:
            missing = f": {error}"
        time.sleep(0.2)
    fail(f"not within the time: {what}{missing}")


def free_ports(number):
    """Free at this moment; all are held until the last one is known, so that they differ."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)]
        return [it.getsockname()[1] for it in sockets]


@contextlib.contextmanager
def process(name, folder, command, **options):
    """Its output in a file, shown when it ends by itself."""
    output = folder / f"{name}.log"
    with output.open("w") as file:
        child = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, **options)
    RUNNING[name] = (child, output)
    try:
        yield output
    finally:
        child.terminate()
        try:
            child.wait(20)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def get(address):
    with urllib.request.urlopen(address, timeout=10) as answer:
        return answer.read().decode()


class Prometheus:
    def __init__(self, port):
        self.address = f"http://127.0.0.1:{port}"

    def ask(self, path, **query):
        """The data of an answer; an error's text as a LookupError."""
        try:
            answer = json.loads(get(f"{self.address}/api/v1/{path}?{urllib.parse.urlencode(query)}"))
        except urllib.error.HTTPError as error:
            raise LookupError(error.read().decode()) from error
        return answer["data"]

    def series(self, query):
        return self.ask("query", query=query)["result"]

    def values(self, query):
        """The newest value of each series, without those that are no number."""
        values = (float(series["value"][1]) for series in self.series(query))
        return [value for value in values if not math.isnan(value)]


def rules():
    files = sorted((CHART / "files/alerts").glob("*.yaml"))
    return [rule for file in files for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]]


def panels():
    """Every query with the dashboard and panel that asks it, as Grafana sends it with all variables at All."""
    for file in sorted((CHART / "dashboards").glob("*.json")):
        for panel in json.loads(file.read_text())["panels"]:
            for target in panel.get("targets", []):
                query = target["expr"].replace("$namespace", "krane").replace("$job", "(krane|dark)").replace("$instance", ".+")
                query = query.replace("$__rate_interval", "15s")
                yield file.stem, panel["title"], query


def families(text):
    """Name and help of each family of a scrape."""
    helps = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.M))
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    return {name: helps.get(name, "") for name in kinds}, kinds


def asked():
    queries = [query for *_, query in panels()] + [rule["expr"] for rule in rules()]
    return {name for query in queries for name in METRIC.findall(query)}


def check_scrapes(addresses):
    """Every name in use is there, and every family says what it is."""

    def all_there():
        scraped = {}
        for address in addresses:
            helps, kinds = families(get(address))
            silent = [name for name, text in helps.items() if not text.strip()]
            if silent:
                fail(f"{address}: {silent} have no help")
            scraped |= kinds
        names = set(scraped)
        for name, kind in scraped.items():
            if kind == "histogram":
                names |= {f"{name}_{part}" for part in ("bucket", "count", "sum")}
        if missing := sorted(asked() - names):
            raise LookupError(f"nobody has {missing}")
        return scraped

    return until("every metric that dashboards and alerts name", all_there)


def check_alerts(prometheus):
    def evaluated():
        loaded = {rule["name"]: rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]}
        if waiting := sorted(name for name, rule in loaded.items() if rule["health"] == "unknown"):
            raise LookupError(f"{waiting} are not evaluated")
        return loaded

    loaded = until("an evaluation of every alert", evaluated)
    if loaded.keys() != {rule["alert"] for rule in rules()}:
        fail("Prometheus has not loaded every alert")
    for name, rule in loaded.items():
        if rule["health"] != "ok" or rule.get("lastError"):
            fail(f"{name}: {rule.get('lastError')}")

    # A label that no series has would never fire; codes are left out, for those of failures are seldom there.
    selectors = {(name, re.sub(r',? *code[!=~]+"[^"]*"', "", labels or "")) for rule in rules() for name, labels in SELECTOR.findall(rule["expr"])}
    for name, labels in sorted(selectors):
        until(f"a series of {name}{labels}", prometheus.series, name + labels.replace("{, ", "{"))

    def begun():
        begun = {it["labels"]["alertname"] for it in prometheus.ask("alerts")["alerts"] if it["labels"].get("job") == "dark"}
        if missing := sorted(PENDING - begun):
            raise LookupError(f"{missing} are not pending")
        return True

    until("alerts of a krane that reaches nothing", begun)


def check_panels(prometheus):
    queries = list(panels())
    for board, title, query in queries:
        # With no filter for what is worth showing, a query that finds no series asks for what is not there.
        bare = re.sub(r" > 0$", "", query)
        until(f"an answer to {title} of {board}: {query}", prometheus.series, bare)
        end = time.time()
        try:
            prometheus.ask("query_range", query=query, start=end - 60, end=end, step=5)
        except LookupError as error:
            fail(f"{title} of {board}: {error}: {query}")
        if board == "overview":
            until(f"data for {title} of the overview: {query}", prometheus.values, query)
    for label in ("namespace", "job", "instance"):
        if not prometheus.ask(f"label/{label}/values", **{"match[]": "krane_build_info"}):
            fail(f"the variable {label} has no values")
    return len(queries)


def check_runbook(krane):
    text = Path("docs/runbook.md").read_text()
    for verb in sorted(set(re.findall(r"(?:-- /|`)krane ([a-z][a-z-]+(?: verify)?)", text))):
        if subprocess.run([krane, *verb.split(), "--help"], capture_output=True).returncode:
            fail(f"the runbook calls krane {verb}, which there is not")


def main():
    krane, program = sys.argv[1:]
    check_runbook(krane)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        rpc, metrics, port = free_ports(3)
        demo = stack.enter_context(process("demo", folder, [Path(krane).with_name("krane-demo"), "--json", "--for", "100s"]))
        (folder / "kubeconfig").write_text(KUBECONFIG)
        (folder / "krane.toml").write_text(KRANE % (rpc, metrics))
        environment = {"PATH": os.environ["PATH"], "KUBECONFIG": str(folder / "kubeconfig")}
        stack.enter_context(process("krane", folder, [krane, "run", "--config", folder / "krane.toml"], env=environment))
        started = json.loads(until("the demo's first line", lambda: demo.read_text().partition("\n")[0]))
        addresses = {"krane": started["metrics"], "dark": f"http://127.0.0.1:{metrics}/metrics"}

        scrapes = [
            {"job_name": job, "static_configs": [{"targets": [urllib.parse.urlsplit(address).netloc], "labels": {"namespace": "krane"}}]}
            for job, address in addresses.items()
        ]
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(CHART.resolve() / "files/alerts/*.yaml")],
            "scrape_configs": scrapes,
        }
        (folder / "prometheus.yml").write_text(json.dumps(config))
        command = [program, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
        command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
        stack.enter_context(process("prometheus", folder, command))
        prometheus = Prometheus(port)

        def up():
            targets = prometheus.ask("targets")["activeTargets"]
            if down := [it["lastError"] or it["scrapeUrl"] for it in targets if it["health"] != "up"]:
                raise LookupError(f"not up: {down}")
            return len(targets) == len(addresses)

        until("both targets up", up)
        # A call with a wrong token, for the queries about calls that were not done.
        call = urllib.request.Request(f"http://127.0.0.1:{rpc}/krane.v1.SchedulerService/DeleteDeployment", data=b"{}")
        call.add_header("Content-Type", "application/json")
        try:
            urllib.request.urlopen(call, timeout=10).close()
            fail("a call of the scheduler without a token was taken")
        except urllib.error.HTTPError as error:
            if error.code != 401:
                fail(f"a call without a token ended with {error.code}")

        scraped = check_scrapes(addresses.values())
        check_alerts(prometheus)
        number = check_panels(prometheus)
    print(f"{len(scraped)} metrics, {len(asked())} names in use, {len(rules())} alerts and {number} queries of panels evaluated")


main()
