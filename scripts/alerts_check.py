"""Runs the cases of charts/krane/tests/alerts with promtool: every alert fires in one at least, and stays silent in one.

usage: alerts_check.py PROMTOOL
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

CHART = Path("charts/krane")
USUAL = {"namespace": "krane", "job": "krane"}


def name_with_labels(series):
    """`krane_lease_held{instance="b"}` with the labels that every series has."""
    name, _, labels = series.partition("{")
    labels = dict(re.findall(r'(\w+)="([^"]*)"', labels))
    labels = USUAL | {"instance": "a"} | labels
    return name + "{" + ", ".join(f'{key}="{value}"' for key, value in labels.items()) + "}"


def samples(values):
    """promtool reads 0x25 as a hexadecimal number."""
    return re.sub(r"(?<!\S)0x", "0+0x", values)


def expected(rule, alert):
    labels = USUAL | {key: value for key, value in alert.items() if key != "summary"} | rule["labels"]
    return {
        "exp_labels": {key: value for key, value in labels.items() if value},
        "exp_annotations": rule["annotations"] | {"summary": alert["summary"]},
    }


def input_series(case):
    """Every process of this release writes, unless the case says otherwise."""
    series = {name_with_labels(name): samples(values) for name, values in case["series"].items()}
    ours = {name[name.index("{") :] for name in map(name_with_labels, case["series"])}
    instances = {found[1] for labels in ours if (found := re.match(r'\{namespace="krane", job="krane", instance="(.*?)"', labels))}
    writers = {name_with_labels(f'krane_lease_held{{instance="{instance}"}}'): "1x1000" for instance in instances}
    return writers | series


def test_of(rule, case):
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in input_series(case).items()],
        "alert_rule_test": [
            {
                "eval_time": case["at"],
                "alertname": rule["alert"],
                "exp_alerts": [expected(rule, alert) for alert in case.get("alerts", [])],
            }
        ],
    }


def flaws(file, rules, cases):
    for name in rules.keys() ^ cases.keys():
        yield f"{file}: {name} has {'no rule' if name in cases else 'no cases'}"
    for name, sides in cases.items():
        for side in ("fires", "silent"):
            if not sides.get(side):
                yield f"{file}: {name} has no case in which it {'fires' if side == 'fires' else 'stays silent'}"
        for case in sides.get("fires", []):
            if not case.get("alerts"):
                yield f"{file}: a case of {name} fires and tells nobody"
        for case in sides.get("silent", []):
            if "alerts" in case or not case["series"]:
                yield f"{file}: a case of {name} is not silent, or for want of series only"


def main():
    promtool = sys.argv[1]
    files = sorted((CHART / "files/alerts").glob("*.yaml"))
    errors, number = [], 0
    subprocess.run([promtool, "check", "rules", *files], check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            rules = {rule["alert"]: rule for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]}
            beside = CHART / "tests/alerts" / file.name
            # All strings: 0x25 is a hexadecimal number to YAML, too.
            cases = yaml.load(beside.read_text(), yaml.BaseLoader) if beside.is_file() else {}
            errors += flaws(beside, rules, cases)
            tests = [
                test_of(rules[name], case)
                for name, sides in cases.items()
                if name in rules
                for side in ("fires", "silent")
                for case in sides.get(side, [])
            ]
            number += len(tests)
            # JSON is YAML to promtool.
            Path(folder, file.name).write_text(json.dumps({"rule_files": [str(file.resolve())], "evaluation_interval": "1m", "tests": tests}))
        run = subprocess.run([promtool, "test", "rules", *sorted(Path(folder).iterdir())], capture_output=True, text=True)
        if run.returncode:
            errors.append(run.stdout + run.stderr)
    for error in errors:
        print(f"error: {error}", file=sys.stderr)
    if errors:
        sys.exit(1)
    print(f"{number} cases of alerts")


main()
