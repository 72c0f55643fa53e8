"""Writes what the cluster in memory knows of Kubernetes' types: fields, list keys, atomic values, dropped zeros.

Reads the OpenAPI documents and Go types of the Kubernetes modules that tests/cluster builds, and Cilium's CRD, from the Go module
cache; scripts/sim-schema puts them there and runs this. `--check` compares instead of writing.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "sim/src/cluster/schema/types.json"
KINDS = {  # kind: (OpenAPI document, definition)
    "ConfigMap": ("api__v1", "io.k8s.api.core.v1.ConfigMap"),
    "Deployment": ("apis__apps__v1", "io.k8s.api.apps.v1.Deployment"),
    "HorizontalPodAutoscaler": ("apis__autoscaling__v2", "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler"),
    "Lease": ("apis__coordination.k8s.io__v1", "io.k8s.api.coordination.v1.Lease"),
    "Namespace": ("api__v1", "io.k8s.api.core.v1.Namespace"),
    "Pod": ("api__v1", "io.k8s.api.core.v1.Pod"),
    "PodDisruptionBudget": ("apis__policy__v1", "io.k8s.api.policy.v1.PodDisruptionBudget"),
    "ReplicaSet": ("apis__apps__v1", "io.k8s.api.apps.v1.ReplicaSet"),
    "Secret": ("api__v1", "io.k8s.api.core.v1.Secret"),
    "Service": ("api__v1", "io.k8s.api.core.v1.Service"),
    "ServiceAccount": ("api__v1", "io.k8s.api.core.v1.ServiceAccount"),
}
GO_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.M | re.S)
GO_FIELD = re.compile(r"^\s*\w+\s+(\S+)\s+`[^`]*json:\"(\w+)(?:,([^\"]*))?\"", re.M)


def modules() -> Path:
    return Path(subprocess.run(["go", "env", "GOMODCACHE"], check=True, capture_output=True, text=True).stdout.strip())


def version(module: str) -> str:
    text = (ROOT / "tests/cluster/go/go.mod").read_text()
    # What a module is replaced with is what is built.
    found = re.search(rf"k8s.io/{module} => k8s.io/{module} (\S+)", text) or re.search(rf"k8s.io/{module} (\S+)", text)
    return found.group(1) if found else sys.exit(f"error: tests/cluster/go/go.mod does not name k8s.io/{module}")


class Builtin:
    """Types of the OpenAPI documents; pointers and omitted zeros, which those do not show, from the Go types."""

    def __init__(self) -> None:
        cache = modules()
        documents = cache / f"k8s.io/kubernetes@{version('kubernetes')}/api/openapi-spec/v3"
        self.cache, self.documents, self.types, self.definitions = cache, documents, {}, {}
        self.go: dict[str, dict[str, tuple[str, str]]] = {}

    def go_fields(self, name: str) -> dict[str, tuple[str, str]]:
        """The Go types and JSON options of a definition's fields."""
        if name.startswith("io.k8s.api."):
            _, _, _, group, api_version, kind = name.split(".", 5)
            folder = self.cache / f"k8s.io/api@{version('api')}" / group / api_version
        else:
            *path, kind = name.removeprefix("io.k8s.apimachinery.").split(".")
            folder = self.cache / f"k8s.io/apimachinery@{version('apimachinery')}" / "/".join(path)
        if str(folder) not in self.go:
            structs = {}
            for file in folder.glob("*.go"):
                for struct, body in GO_STRUCT.findall(file.read_text()):
                    structs[struct] = {field: (type_, options) for type_, field, options in GO_FIELD.findall(body)}
            self.go[str(folder)] = structs
        return self.go[str(folder)].get(kind, {})

    def add(self, document: str, root: str) -> None:
        text = (self.documents / f"{document}_openapi.json").read_text()
        self.definitions = json.loads(text)["components"]["schemas"]
        pending = [root]
        while pending:
            name = pending.pop()
            if name in self.types or "properties" not in self.definitions[name]:
                continue
            go = self.go_fields(name)
            fields = {}
            for field, schema in sorted(self.definitions[name]["properties"].items()):
                type_, found = self.type(schema)
                pending += found
                go_type, options = go.get(field, ("", ""))
                entry = [type_]
                is_struct = isinstance(type_, dict) and "r" in type_
                if is_struct and schema.get("default") == {} and "omitzero" not in options:
                    entry.append("always")
                elif "omitempty" in options and not go_type.startswith("*") and not is_struct:
                    entry.append("omitted")
                elif "omitempty" not in options and go_type.startswith("[]"):
                    entry.append("null")
                if schema.get("default") not in (None, {}):
                    entry += [""] * (2 - len(entry)) + [schema["default"]]
                fields[field] = entry
            self.types[name] = {"fields": fields}
            if self.definitions[name].get("x-kubernetes-map-type") == "atomic":
                self.types[name]["atomic"] = True

    def type(self, schema: dict) -> tuple[object, list[str]]:
        reference = schema.get("$ref") or next((s["$ref"] for s in schema.get("allOf", []) if "$ref" in s), None)
        atomic = {"a": True} if schema.get("x-kubernetes-map-type") == "atomic" else {}
        if reference:
            name = reference.rsplit("/", 1)[1]
            definition = self.definitions[name]
            if "properties" in definition:
                return {"r": name} | atomic, [name]
            if name.endswith(".Quantity"):
                return "quantity", []
            if name.endswith(".IntOrString"):
                return "intOrString", []
            return ("any" if definition.get("type") == "object" else self.type(definition)[0]), []
        if schema["type"] == "array":
            item, found = self.type(schema["items"])
            return {"l": item} | list_kind(schema), found
        if schema["type"] == "object":
            if "additionalProperties" not in schema:
                return "any", []
            value, found = self.type(schema["additionalProperties"])
            return {"m": value} | atomic, found
        if schema.get("format") == "byte":
            return "bytes", []
        return schema["type"], []


def list_kind(schema: dict) -> dict:
    kind = schema.get("x-kubernetes-list-type", "atomic")
    if kind == "map":
        return {"k": schema["x-kubernetes-list-map-keys"]}
    return {"u": True} if kind == "set" else {}


class Custom:
    """Types of a CRD; equal ones once, named by the first path they are found at."""

    def __init__(self) -> None:
        self.types, self.names = {}, {}

    def type(self, schema: dict, path: str) -> object:
        atomic = {"a": True} if schema.get("x-kubernetes-map-type") == "atomic" else {}
        if schema.get("x-kubernetes-int-or-string"):
            return "intOrString"
        if schema.get("type") == "array":
            return {"l": self.type(schema["items"], path)} | list_kind(schema)
        if schema.get("type") != "object":
            return schema.get("type", "any")
        if "additionalProperties" in schema:
            return {"m": self.type(schema["additionalProperties"], path)} | atomic
        if "properties" not in schema:
            return "any"
        fields = {}
        for name, field in sorted(schema["properties"].items()):
            entry = [self.type(field, f"{path}.{name}")]
            if "default" in field:
                entry += ["", field["default"]]
            fields[name] = entry
        content = json.dumps(fields, sort_keys=True)
        if content not in self.names:
            self.names[content] = path
            self.types[path] = {"fields": fields}
        return {"r": self.names[content]} | atomic


def cilium() -> dict:
    text = (ROOT / "tests/cluster/go/cilium-crd/go.mod").read_text()
    found = re.search(r"github.com/cilium/cilium (\S+)", text).group(1)
    file = modules() / f"github.com/cilium/cilium@{found}" / "pkg/k8s/apis/cilium.io/client/crds/v2/ciliumnetworkpolicies.yaml"
    crd = yaml.safe_load(file.read_text())
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    custom = Custom()
    root = custom.type(schema, "CiliumNetworkPolicy")["r"]
    custom.types[root]["fields"]["metadata"] = [{"r": "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]
    return custom.types


def main() -> int:
    builtin = Builtin()
    for document, definition in KINDS.values():
        builtin.add(document, definition)
    kinds = {kind: definition for kind, (_, definition) in KINDS.items()} | {"CiliumNetworkPolicy": "CiliumNetworkPolicy"}
    lines = [f'{{"kinds": {json.dumps(kinds, sort_keys=True)},', '"types": {']
    types = builtin.types | cilium()
    entries = [f"{json.dumps(name)}: {json.dumps(types[name], sort_keys=True, separators=(',', ':'))}" for name in sorted(types)]
    text = "\n".join([*lines, ",\n".join(entries), "}}", ""])
    if "--check" in sys.argv:
        if OUTPUT.read_text() != text:
            print(f"error: {OUTPUT} is not what scripts/sim-schema --write makes of the modules", file=sys.stderr)
            return 1
        return 0
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
