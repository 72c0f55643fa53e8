"""Makes the Grafana dashboards of the chart from scripts/dashboards.

usage: dashboards.py            writes charts/krane/dashboards
       dashboards.py --check    fails when they differ

`$of` in a query stands for the variables that every query is narrowed by, `$writes` for "of the process that writes": one that
does no more keeps its last numbers.
"""

import json
import sys
from pathlib import Path

import yaml

SOURCE = Path("scripts/dashboards")
TARGET = Path("charts/krane/dashboards")
RUNBOOK = "https://github.com/krane-agent/krane/blob/main/docs/runbook.md"
DATASOURCE = {"type": "prometheus", "uid": "$datasource"}
WRITES = "and on (namespace, job, instance) krane_lease_held{$of} == 1"
OF = 'namespace=~"$namespace", job=~"$job", instance=~"$instance"'


def variables():
    source = {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "refresh": 1,
        "hide": 0,
        "current": {},
        "regex": "",
        "options": [],
    }
    return [
        source,
        variable("namespace", ""),
        variable("job", 'namespace=~"$namespace"'),
        variable("instance", 'namespace=~"$namespace", job=~"$job"'),
    ]


def variable(name, within):
    metric = f"krane_build_info{{{within}}}" if within else "krane_build_info"
    query = f"label_values({metric}, {name})"
    return {
        "name": name,
        "label": name.capitalize(),
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "refresh": 2,
        "includeAll": True,
        # No allValue: All are those of krane, for other programs have requests and queues of the same names.
        "multi": True,
        "hide": 0,
        "sort": 1,
        "current": {"text": "All", "value": "$__all"},
    }


def target(panel, number, it):
    is_instant = panel["type"] in ("stat", "table")
    made = {
        "refId": chr(ord("A") + number),
        "datasource": DATASOURCE,
        "expr": it["expr"].replace("$writes", WRITES).replace("$of", OF),
        "legendFormat": it.get("legend", ""),
        "editorMode": "code",
        "instant": is_instant,
        "range": not is_instant,
    }
    return made | ({"format": "table"} if panel["type"] == "table" else {})


def thresholds(steps):
    return {"mode": "absolute", "steps": [{"color": color, "value": value} for color, value in steps.items()]}


def overrides(panel):
    for number, it in enumerate(panel["targets"]):
        properties = []
        if panel["type"] == "table":
            properties.append({"id": "displayName", "value": it["legend"]})
            if "steps" in it:
                properties.append({"id": "thresholds", "value": thresholds(it["steps"])})
                properties.append({"id": "custom.cellOptions", "value": {"type": "color-background"}})
            matcher = {"id": "byName", "options": f"Value #{chr(ord('A') + number)}"}
        else:
            if "unit" in it:
                properties.append({"id": "unit", "value": it["unit"]})
            if "axis" in it:
                properties.append({"id": "custom.axisPlacement", "value": it["axis"]})
            matcher = {"id": "byFrameRefID", "options": chr(ord("A") + number)}
        if properties:
            yield {"matcher": matcher, "properties": properties}


def options(panel):
    if panel["type"] == "stat":
        return {
            "colorMode": "background" if panel.get("background") else "none",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "textMode": "value_and_name" if any("legend" in it for it in panel["targets"]) else "value",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        }
    if panel["type"] == "table":
        return {"showHeader": True, "cellHeight": "sm"}
    legend = {"displayMode": "list", "placement": "bottom", "showLegend": True}
    if panel["type"] == "state-timeline":
        return {"showValue": "never", "mergeValues": True, "rowHeight": 0.9, "alignValue": "left", "legend": legend, "tooltip": {"mode": "single"}}
    return {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}


def custom(panel):
    if panel["type"] == "timeseries":
        return {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "never", "spanNulls": False, "axisSoftMin": 0}
    if panel["type"] == "state-timeline":
        return {"lineWidth": 0, "fillOpacity": 80}
    return {}


def panel_of(number, panel, at):
    about = f"{panel['shows']} Normal: {panel['normal']} If not: {panel['otherwise']}"
    words = {value: {"text": text, "index": index} for index, (value, text) in enumerate(panel.get("words", {}).items())}
    made = {
        "id": number,
        "type": panel["type"],
        "title": panel["title"],
        "description": about,
        "datasource": DATASOURCE,
        "gridPos": at,
        "targets": [target(panel, index, it) for index, it in enumerate(panel["targets"])],
        "fieldConfig": {
            "defaults": {
                "unit": panel.get("unit", "short"),
                "thresholds": thresholds(panel.get("steps", {"blue": None})),
                "color": {"mode": "palette-classic" if panel["type"] == "timeseries" else "thresholds"},
                "mappings": [{"type": "value", "options": words}] if words else [],
                "noValue": "none",
                "custom": custom(panel),
            },
            "overrides": list(overrides(panel)),
        },
        "options": options(panel),
        "links": [{"title": "Runbook", "url": f"{RUNBOOK}#{panel.get('runbook', 'first')}", "targetBlank": True}],
    }
    if panel["type"] == "table":
        hidden = {"excludeByName": {"Time": True}}
        made["transformations"] = [{"id": "merge", "options": {}}, {"id": "organize", "options": hidden}]
    return made


def panels(rows):
    """Rows one below the other; in a row from left to right, and a new line where the width of 24 is full."""
    number = y = 0
    for row in rows:
        number += 1
        yield {"id": number, "type": "row", "title": row["title"], "collapsed": False, "gridPos": {"x": 0, "y": y, "w": 24, "h": 1}, "panels": []}
        y += 1
        x = height = 0
        for panel in row["panels"]:
            width = panel.get("width", 8)
            if x + width > 24:
                x, y, height = 0, y + height, 0
            number += 1
            at = {"x": x, "y": y, "w": width, "h": panel.get("height", 7)}
            yield panel_of(number, panel, at)
            x, height = x + width, max(height, at["h"])
        y += height


def dashboard(source):
    others = {
        "type": "dashboards",
        "title": "krane",
        "tags": ["krane"],
        "asDropdown": False,
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
    }
    runbook = {"type": "link", "title": "Runbook", "url": RUNBOOK, "icon": "doc", "tags": [], "targetBlank": True}
    return {
        "uid": source["uid"],
        "title": source["title"],
        "description": source["description"],
        "tags": ["krane"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "links": [others, runbook],
        "templating": {"list": variables()},
        "panels": list(panels(source["rows"])),
    }


def main():
    made = {f"{file.stem}.json": json.dumps(dashboard(yaml.safe_load(file.read_text())), indent=1) + "\n" for file in sorted(SOURCE.glob("*.yaml"))}
    if "--check" not in sys.argv:
        TARGET.mkdir(exist_ok=True)
        for file in TARGET.glob("*.json"):
            file.unlink()
        for name, text in made.items():
            (TARGET / name).write_text(text)
        return
    there = {file.name: file.read_text() for file in TARGET.glob("*.json")}
    if there != made:
        differ = sorted(name for name in there.keys() | made.keys() if there.get(name) != made.get(name))
        sys.exit(f"error: {differ} differ from scripts/dashboards: run scripts/dashboards.py")


if __name__ == "__main__":
    main()
