# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Writes a JSON schema for each kind of Kubernetes's API, for kubeconform, from the API's own description, and for the
kinds of others from the resources that define them.

Usage: schemas.py SWAGGER_JSON FOLDER [DEFINITION.yaml ...]
They are strict: a field that the API does not know is an error.
"""

import json
import pathlib
import sys

import yaml

KINDS = "x-kubernetes-group-version-kind"
# What the description calls a text, and may be written otherwise.
LOOSE = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": ["string", "integer"],
    "io.k8s.apimachinery.pkg.api.resource.Quantity": ["string", "number"],
}


def converted(node):
    """A definition without what is for people, strict where it names its fields."""
    if isinstance(node.get("$ref"), str):
        return {"$ref": "#/definitions/" + node["$ref"].rsplit("/", 1)[1]}
    result = {}
    for key, value in node.items():
        if key == "properties":
            result[key] = {name: converted(field) for name, field in value.items()}
        elif key == "items" or (key == "additionalProperties" and isinstance(value, dict)):
            result[key] = converted(value)
        elif key in ("type", "required", "enum", "additionalProperties"):
            result[key] = value
    if "properties" in result:
        result.setdefault("additionalProperties", False)
    return result


def references(node):
    if isinstance(node, dict):
        # There is a field of that name, too.
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].rsplit("/", 1)[1]
        for value in node.values():
            yield from references(value)


def reachable(name, definitions):
    found, left = set(), [name]
    while left:
        at = left.pop()
        if at not in found:
            found.add(at)
            left.extend(references(definitions[at]))
    return found - {name}


def write(folder, group, version, kind, schema):
    schema = {**schema, "properties": {**schema["properties"], "apiVersion": {"enum": [f"{group}/{version}" if group else version]},
                                       "kind": {"enum": [kind]}}}
    schema["required"] = sorted({*schema.get("required", []), "apiVersion", "kind"})
    # As kubeconform asks for it.
    file = "-".join(part for part in (kind, group.split(".")[0], version) if part).lower()
    (folder / f"{file}.json").write_text(json.dumps(schema))


def of_others(file):
    """(group, version, kind, schema) of each version that a CustomResourceDefinition has."""
    spec = yaml.load(file.read_text(), yaml.CSafeLoader)["spec"]
    for version in spec["versions"]:
        schema = converted(version["schema"]["openAPIV3Schema"])
        # Described as any object, and by Kubernetes itself.
        schema["properties"]["metadata"] = {"type": "object"}
        yield spec["group"], version["name"], spec["names"]["kind"], schema


def main(swagger, folder, *others):
    raw = json.loads(pathlib.Path(swagger).read_text())["definitions"]
    definitions = {name: {"type": LOOSE[name]} if name in LOOSE else converted(node) for name, node in raw.items()}
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    for name, node in raw.items():
        kinds = node.get(KINDS, [])
        # Those of all groups (DeleteOptions) are no objects that somebody would apply.
        if len(kinds) != 1 or "apiVersion" not in node.get("properties", {}):
            continue
        schema = {**definitions[name], "definitions": {each: definitions[each] for each in reachable(name, definitions)}}
        write(folder, *(kinds[0][key] for key in ("group", "version", "kind")), schema)
    for file in others:
        for each in of_others(pathlib.Path(file)):
            write(folder, *each)


if __name__ == "__main__":
    main(*sys.argv[1:])
