"""The table of values in charts/krane/README.md, from the comments in values.yaml.

usage: chart_values.py [--update]   (without: fails when the table is not as values.yaml says)

A comment above a key tells about it; a table that is told about has a row of its own.
"""

import sys
from pathlib import Path

import yaml

VALUES = Path("charts/krane/values.yaml")
README = Path("charts/krane/README.md")
BEGIN, END = "<!-- values: begin -->\n", "<!-- values: end -->\n"


def comments(text):
    """What is said above each key, by its path."""
    found, path, lines, last = {}, [], [], 0
    for line in text.splitlines():
        stripped = line.strip()
        indent = (len(line) - len(line.lstrip())) // 2
        if not stripped:
            lines = []
        elif stripped.startswith("#"):
            # Examples are indented deeper than what is said about the next key.
            lines = [] if indent != last else lines
            lines.append(stripped.lstrip("# "))
            last = indent
        elif not stripped.startswith("-") and ":" in stripped:
            path = path[:indent] + [stripped.split(":")[0]]
            found[".".join(path)] = " ".join(lines)
            lines = []
    return found


def rows(table, said, path=""):
    for key, value in table.items():
        here = f"{path}.{key}" if path else key
        if isinstance(value, dict) and value:
            if said.get(here):
                yield here, None, said[here]
            yield from rows(value, said, here)
        else:
            yield here, value, said.get(here, "")


def shown(value):
    return "" if value is None else f"`{yaml.safe_dump(value, default_flow_style=True).removesuffix(chr(10)).removesuffix('...').strip()}`"


def table():
    text = VALUES.read_text()
    lines = ["| value | default | what |", "|---|---|---|"]
    for key, value, what in rows(yaml.safe_load(text), comments(text)):
        lines.append(f"| `{key}` | {shown(value)} | {what.replace('|', chr(92) + '|')} |")
    return "\n".join(lines) + "\n"


def main():
    text = README.read_text()
    head, rest = text.split(BEGIN)
    old, tail = rest.split(END)
    if old == table():
        return
    if sys.argv[1:] != ["--update"]:
        sys.exit("error: the values in charts/krane/README.md are not those of values.yaml: scripts/chart --update")
    README.write_text(head + BEGIN + table() + END + tail)


main()
