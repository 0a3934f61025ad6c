#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Reads an OCI archive; shares no code with what writes it.

Usage: tests/image/archive.py check ARCHIVE               every blob is what its name and its descriptors say
       tests/image/archive.py unpack ARCHIVE DIR          the layers, one over the other
       tests/image/archive.py dockerfile ARCHIVE FILE     the last stage of FILE says the same as the archive's config
"""
import hashlib
import io
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tarfile


class Wrong(Exception):
    """What is wrong with an archive."""


class Archive:
    def __init__(self, path):
        self._tar = tarfile.open(fileobj=io.BytesIO(pathlib.Path(path).read_bytes()), mode="r:")
        self.names = self._tar.getnames()
        layout = json.loads(self.file("oci-layout"))
        if layout != {"imageLayoutVersion": "1.0.0"}:
            raise Wrong(f"oci-layout is {layout}")
        self.index = json.loads(self.file("index.json"))
        self.descriptors = list(self.index["manifests"])
        if len(self.descriptors) != 1:
            raise Wrong(f"{len(self.descriptors)} images")
        self.manifest = json.loads(self.blob(self.descriptors[0]))
        self.descriptors += [self.manifest["config"], *self.manifest["layers"]]
        self.config = json.loads(self.blob(self.manifest["config"]))

    def file(self, name):
        try:
            return self._tar.extractfile(name).read()
        except KeyError as error:
            raise Wrong(f"{name} is missing") from error

    def blob(self, descriptor):
        return self.file("blobs/" + descriptor["digest"].replace(":", "/"))

    def layer(self, number):
        """A layer as a tar that is open."""
        name = "blobs/" + self.manifest["layers"][number]["digest"].replace(":", "/")
        return tarfile.open(fileobj=self._tar.extractfile(name), mode="r:")

    def check(self):
        for descriptor in self.descriptors:
            data = self.blob(descriptor)
            if len(data) != descriptor["size"]:
                raise Wrong(f"{descriptor['digest']} has {len(data)} bytes, not {descriptor['size']}")
            if "sha256:" + hashlib.sha256(data).hexdigest() != descriptor["digest"]:
                raise Wrong(f"{descriptor['digest']} is not the digest of its content")
        expected = {"oci-layout", "index.json"} | {"blobs/" + d["digest"].replace(":", "/") for d in self.descriptors}
        if sorted(expected) != self.names:
            raise Wrong(f"holds {self.names}, not {sorted(expected)}")
        layers = [layer["digest"] for layer in self.manifest["layers"]]
        # They are not compressed, so that a layer is its own content.
        if self.config["rootfs"] != {"type": "layers", "diff_ids": layers}:
            raise Wrong(f"the config speaks of other layers: {self.config['rootfs']}")


def unpack(archive, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for layer in archive.manifest["layers"]:
        # tar, because it replaces what is there and knows every kind of link.
        subprocess.run(["tar", "--extract", "--file=-", "--directory", folder, "--same-permissions", "--no-same-owner"],
                       input=archive.blob(layer), check=True)


def last_stage(text):
    """What the last stage of a Dockerfile puts into the image's config."""
    config = {"Env": [], "Labels": {}}
    text = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in text.replace("\\\n", " ").splitlines():
        word, _, rest = line.partition(" ")
        if word == "FROM":
            config = {"Env": [], "Labels": {}}
        elif word == "ENV":
            config["Env"] += shlex.split(rest)
        elif word == "LABEL":
            config["Labels"].update(pair.split("=", 1) for pair in shlex.split(rest))
        elif word == "USER":
            config["User"] = rest.strip()
        elif word in ("CMD", "ENTRYPOINT"):
            config[word.capitalize()] = json.loads(rest)
        elif not re.fullmatch("RUN|COPY|WORKDIR|", word):
            raise Wrong(f"{word} in the Dockerfile is not known here")
    return config


def main():
    what, path, *rest = sys.argv[1:]
    try:
        archive = Archive(path)
        if what == "check":
            archive.check()
        elif what == "unpack":
            unpack(archive, pathlib.Path(rest[0]))
        else:
            said = last_stage(pathlib.Path(rest[0]).read_text())
            if said != archive.config["config"]:
                raise Wrong(f"the Dockerfile says {said}, the image {archive.config['config']}")
    except Wrong as error:
        print(f"{path}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
