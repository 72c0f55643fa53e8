"""Cross-checks of rendered charts that no schema knows: names that must meet, keys that must exist, queries that must parse
and ask for what there is.

usage: chart_check.py FOLDER   (of rendered manifests, one file per set of values)
"""

import json
import re
import sys
import tomllib
from pathlib import Path

import promql_parser
import yaml

CHART = Path("charts/krane")
# Those that the program may have; other words of a query are functions and labels.
METRIC = re.compile(r"\b(?:krane|rest_client|controller_runtime|workqueue|leader_election)_[a-z_]+")
RUNBOOK = "https://github.com/krane-agent/krane/blob/main/docs/runbook.md"
DASHBOARDS = ["actors", "kubernetes-api", "overview", "reconcile", "secrets", "streams"]
errors = []


def check(condition, message):
    if not condition:
        errors.append(message)


def flat(table, path=""):
    for key, value in table.items():
        here = f"{path}.{key}" if path else key
        if isinstance(value, dict):
            yield from flat(value, here)
        else:
            yield here


def secretless(path):
    return path.removesuffix("_file") if not path.endswith(".ca_file") else path


def dashboards():
    return sorted((CHART / "dashboards").glob("*.json"))


def known_keys():
    """The keys of config/default.toml, those in comments too; a secret under its plain name."""
    section, keys = "", set()
    for line in Path("config/default.toml").read_text().splitlines():
        line = re.sub(r"^# ?", "", line)
        if header := re.match(r"\[([a-z0-9_.]+)\]", line):
            section = header[1] + "."
        elif key := re.match(r"([a-z0-9_]+) = ", line):
            keys.add(secretless(section + key[1]))
    return keys


def schema_keys(schema, path=""):
    for key, value in schema["properties"].items():
        here = f"{path}.{key}" if path else key
        if "properties" in value:
            yield from schema_keys(value, here)
        else:
            yield here


def selects(selector, labels):
    return selector.items() <= labels.items()


def check_manifests(name, objects, keys):
    def of(kind):
        return [o for o in objects if o["kind"] == kind]

    identities = [(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in objects]
    check(len(identities) == len(set(identities)), f"{name}: an object is there twice")

    (deployment,) = of("Deployment")
    template = deployment["spec"]["template"]
    labels, pod = template["metadata"]["labels"], template["spec"]
    container = pod["containers"][0]
    ports = {port["name"] for port in container["ports"]}
    check(selects(deployment["spec"]["selector"]["matchLabels"], labels), f"{name}: Deployment does not select its pods")
    check(
        set(deployment["spec"]["selector"]["matchLabels"]) == {"app.kubernetes.io/name", "app.kubernetes.io/instance"},
        f"{name}: the Deployment's selector is immutable and must stay as it is",
    )
    for kind, pointer in {"startupProbe": "startup", "readinessProbe": "ready", "livenessProbe": "live"}.items():
        probe = container[kind].get("httpGet", container[kind].get("tcpSocket"))
        check(probe["port"] in ports, f"{name}: {kind} names no port of the container")
        check("path" not in probe or probe["path"] == f"/health/{pointer}", f"{name}: {kind} asks {probe.get('path')}")
    check({m["name"] for m in container["volumeMounts"]} == {v["name"] for v in pod["volumes"]}, f"{name}: volumes and mounts differ")

    for service in of("Service"):
        check(selects(service["spec"]["selector"], labels), f"{name}: Service selects no pod")
        check({port["targetPort"] for port in service["spec"]["ports"]} <= ports, f"{name}: Service port without a container port")
    for budget in of("PodDisruptionBudget"):
        check(selects(budget["spec"]["selector"]["matchLabels"], labels), f"{name}: PodDisruptionBudget selects no pod")
    for policy in of("NetworkPolicy"):
        check(selects(policy["spec"]["podSelector"]["matchLabels"], labels), f"{name}: NetworkPolicy selects no pod")
    for monitor in of("ServiceMonitor"):
        service = of("Service")[0]
        check(selects(monitor["spec"]["selector"]["matchLabels"], service["metadata"]["labels"]), f"{name}: ServiceMonitor selects no Service")
        check(monitor["spec"]["endpoints"][0]["port"] in {p["name"] for p in service["spec"]["ports"]}, f"{name}: ServiceMonitor names no port")
    for monitor in of("PodMonitor"):
        check(selects(monitor["spec"]["selector"]["matchLabels"], labels), f"{name}: PodMonitor selects no pod")
        check(monitor["spec"]["podMetricsEndpoints"][0]["port"] in ports, f"{name}: PodMonitor names no port")

    check(not of("Secret"), f"{name}: Secrets are only ever named")
    for test in of("Pod"):
        (asks,) = test["spec"]["containers"]
        check(not selects(deployment["spec"]["selector"]["matchLabels"], test["metadata"]["labels"]), f"{name}: the test is taken for krane")
        check(asks["args"][1:] == container["args"][1:], f"{name}: the test reads another configuration")
        for field in ("image", "env", "envFrom", "volumeMounts", "securityContext"):
            check(asks.get(field) == container.get(field), f"{name}: the test has another {field}")
        for field in ("serviceAccountName", "volumes", "securityContext"):
            check(test["spec"].get(field) == pod.get(field), f"{name}: the test has another {field}")
    for policy in of("CiliumNetworkPolicy"):
        check(selects(policy["spec"]["endpointSelector"]["matchLabels"], labels), f"{name}: CiliumNetworkPolicy selects no pod")

    account = (pod["serviceAccountName"], deployment["metadata"]["namespace"])
    for binding in of("ClusterRoleBinding") + of("RoleBinding"):
        role = (binding["roleRef"]["kind"], binding["metadata"].get("namespace"), binding["roleRef"]["name"])
        check(role in identities, f"{name}: {binding['metadata']['name']} binds a role that is not there")
        check([(s["name"], s["namespace"]) for s in binding["subjects"]] == [account], f"{name}: {binding['metadata']['name']} binds another account")

    source = {f"krane-{file.name}": json.loads(file.read_text()) for file in dashboards()}
    shipped = [o["data"] for o in of("ConfigMap") if source.keys() & o.get("data", {}).keys()]
    arrived = [{key: json.loads(text) for key, text in data.items()} for data in shipped]
    check(all(data == source for data in arrived), f"{name}: dashboards arrive changed")

    (text,) = [o["data"]["krane.toml"] for o in of("ConfigMap") if "krane.toml" in o.get("data", {})]
    config = set(map(secretless, flat(tomllib.loads(text))))
    check(config <= keys, f"{name}: krane knows no {sorted(config - keys)}")
    mounted = {
        f"/var/run/secrets/krane/{item['path']}"
        for volume in pod["volumes"]
        for source in volume.get("projected", {}).get("sources", [])
        for item in source["secret"]["items"]
    }
    named = set(re.findall(r'"(/var/run/secrets/krane/[^"]+)"', text))
    check(mounted == named, f"{name}: mounted {sorted(mounted)}, configured {sorted(named)}")
    return config


def rules(objects):
    """Who may do what where, whatever the roles are called."""
    return sorted(
        json.dumps([o["kind"], o["metadata"]["labels"]["krane.unkey.com/rbac-switch"], o["rules"]], sort_keys=True)
        for o in objects
        if o["kind"] in ("ClusterRole", "Role") and "krane.unkey.com/rbac-switch" in o["metadata"]["labels"]
    )


def policy(objects):
    """What the admission policy says, without names of a release."""
    (found,) = [o["spec"] for o in objects if o["kind"] == "ValidatingAdmissionPolicy"]
    found = json.loads(json.dumps(found))
    found["matchConditions"][0].pop("expression")
    settings = [variable.pop("expression") for variable in found["variables"][:2]]
    check(all(settings), "the admission policy knows krane's namespace and the reserved ones")
    return found


def registered():
    """The metrics that the program registers."""
    folders = ("actors", "admin", "edge", "server", "settings", "src", "telemetry")
    sources = (file.read_text() for folder in folders for file in Path(folder).rglob("*.rs") if "tests" not in str(file))
    return {name for source in sources for name in re.findall(rf'"({METRIC.pattern})",', source)}


def check_query(where, query, metrics):
    try:
        promql_parser.parse(query)
    except ValueError as error:
        errors.append(f"{where}: {error}: {query}")
    asked = set(METRIC.findall(query))
    check(asked or "ALERTS{" in query, f"{where} asks for no metric of krane")
    unknown = {name for name in asked if not {name, re.sub("_(bucket|count|sum)$", "", name)} & metrics}
    check(not unknown, f"{where} asks for {sorted(unknown)}, which nobody registers")


def anchors(page="docs/runbook.md"):
    headings = re.findall(r"^#+ (.+)$", Path(page).read_text(), re.M)
    return {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def alerts():
    files = sorted((CHART / "files/alerts").glob("*.yaml"))
    return [group for file in files for group in yaml.safe_load(file.read_text())["groups"]]


def check_alerts(metrics, shipped):
    check(all(rule["spec"]["groups"] == alerts() for rule in shipped), "alerts: they arrive changed")
    rules = [rule for group in alerts() for rule in group["rules"]]
    names = [rule["alert"] for rule in rules]
    check(len(names) == len(set(names)), "alerts: a name is there twice")
    for rule in rules:
        name, notes = rule["alert"], rule["annotations"]
        check_query(f"alert {name}", rule["expr"], metrics)
        check("for" in rule, f"alert {name}: for how long?")
        check(rule["labels"]["severity"] in ("critical", "warning"), f"alert {name}: whom does it wake?")
        check(notes.keys() == {"summary", "description", "runbook_url"}, f"alert {name}: annotations are {sorted(notes)}")
        check(notes["runbook_url"] == f"{RUNBOOK}#{name.lower()}", f"alert {name}: its page is {notes['runbook_url']}")
        check(name.lower() in anchors(), f"alert {name}: the runbook has no section")
        marks = re.findall(r"> [0-9.]+ # threshold", rule["expr"])
        check(len(marks) == rule["expr"].count("# threshold") <= 1, f"alert {name}: a threshold is a number behind >")
    sections = set(re.findall(r"^### (.+)$", Path("docs/runbook.md").read_text(), re.M))
    for page, anchor in re.findall(r"\]\(([a-z.]*)#([a-z0-9-]+)\)", Path("docs/runbook.md").read_text()):
        check(anchor in anchors(f"docs/{page or 'runbook.md'}"), f"runbook: no {anchor} in {page or 'itself'}")
    check(sections == set(names), f"runbook: {sorted(sections ^ set(names))} has no alert or no section")


def check_changed_alerts(objects):
    """What tests/values/alerts.yaml asks for."""
    (rule,) = [o for o in objects if o["kind"] == "PrometheusRule"]
    rules = {rule["alert"]: rule for group in rule["spec"]["groups"] for rule in group["rules"]}
    plain = {rule["alert"]: rule for group in alerts() for rule in group["rules"]}
    check(rules.keys() == plain.keys() - {"KraneKindMissing"} | {"KraneOld"}, "alerts: one is to be left out, one is an operator's own")
    mailbox, hold, denied = (rules[name] for name in ("KraneMailboxFull", "KraneObjectsOnHold", "KraneSecretsDenied"))
    check("> 0.95 # threshold" in mailbox["expr"] and mailbox["for"] == "10m", "alerts: KraneMailboxFull has its old numbers")
    check(mailbox["labels"]["severity"] == "critical", "alerts: KraneMailboxFull has its old severity")
    check(hold == plain["KraneObjectsOnHold"] | {"for": "8h"}, "alerts: more or less than `for` of KraneObjectsOnHold is changed")
    check("> 100 # threshold\n" in denied["expr"], "alerts: KraneSecretsDenied has its old number")


def check_dashboard(file, metrics):
    name, board = f"dashboard {file.stem}", json.loads(file.read_text())
    uid = "krane-agent" if file.stem == "overview" else f"krane-{file.stem}"
    check(board["uid"] == uid, f"{name}: the uid is part of people's links and must stay")
    variables = [v["name"] for v in board["templating"]["list"]]
    check(variables == ["datasource", "namespace", "job", "instance"], f"{name}: variables are {variables}")
    ids = [panel["id"] for panel in board["panels"]]
    check(len(ids) == len(set(ids)), f"{name}: a panel id is there twice")
    taken = set()
    for panel in board["panels"]:
        title, at = panel["title"], panel["gridPos"]
        cells = {(at["x"] + i, at["y"] + j) for i in range(at["w"]) for j in range(at["h"])}
        check(not cells & taken and at["x"] + at["w"] <= 24, f"{name}: {title} lies on another panel")
        taken |= cells
        if panel["type"] == "row":
            continue
        for link in panel["links"]:
            page, _, anchor = link["url"].partition("#")
            check(page == RUNBOOK and anchor in anchors(), f"{name}: {title} links to no section of the runbook")
        for target in panel["targets"]:
            check(target["datasource"] == {"type": "prometheus", "uid": "$datasource"}, f"{name}: {title} has a fixed data source")
            used = set(re.findall(r"\$(\w+)", target["expr"])) - {"__rate_interval"}
            check(used == {"namespace", "job", "instance"} or "ALERTS{" in target["expr"], f"{name}: {title} is narrowed by {sorted(used)}")
            query = target["expr"].replace("$__rate_interval", "5m")
            check_query(f"{name}: {title}", re.sub(r"\$\w+", "x", query), metrics)


def main():
    folder = Path(sys.argv[1])
    keys = known_keys()
    written = set()
    everything = []
    for file in sorted(folder.glob("*.yaml")):
        objects = [o for o in yaml.safe_load_all(file.read_text()) if o]
        written |= check_manifests(file.stem, objects, keys)
        if file.stem == "everything":
            everything = objects
        if file.stem == "alerts":
            check_changed_alerts(objects)
    settable = set(schema_keys(json.loads((CHART / "values.schema.json").read_text())["properties"]["config"]))
    check(settable <= keys, f"values.schema.json: krane knows no {sorted(settable - keys)}")
    # An id per process cannot come from a file that all processes share.
    missing = keys - settable - written - {"instance_id"}
    check(not missing, f"the chart cannot set {sorted(missing)}")

    source = list(yaml.safe_load_all((CHART / "files/rbac.yaml").read_text()))
    check(rules(everything) == rules(source), "the chart grants other rights than files/rbac.yaml")
    shipped = list(yaml.safe_load_all((CHART / "files/admission-policy.yaml").read_text()))
    check(policy(everything) == policy(shipped), "the chart refuses other things than files/admission-policy.yaml")
    metrics = registered()
    check_alerts(metrics, [o for o in everything if o["kind"] == "PrometheusRule"])
    check([file.stem for file in dashboards()] == DASHBOARDS, f"dashboards are {[file.stem for file in dashboards()]}")
    for file in dashboards():
        check_dashboard(file, metrics)
    for error in errors:
        print(f"error: {error}", file=sys.stderr)
    sys.exit(bool(errors))


main()
