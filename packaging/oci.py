#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Writes a container image as an OCI archive: a tar that `ctr images import`, `podman load` and `skopeo` read.

Usage: packaging/oci.py OUT.tar --name NAME:TAG --layer DIR_OR_TAR [--layer DIR_OR_TAR]... [--env NAME=VALUE]...
                        [--label NAME=VALUE]... [--user USER] [--entrypoint JSON] [--cmd JSON] [--architecture NAME]

Prints the image's full name and digest. The same input gives the same digest, whoever makes it, when and where: files
are sorted, have no dates and belong to root. As what was another user's would be root's, nothing stays set-user-ID.
Device nodes and sockets are left out: who runs a container makes its own.

The layers are not compressed, because what a compressor writes depends on its version.
"""
import argparse
import contextlib
import dataclasses
import hashlib
import io
import json
import os
import pathlib
import platform
import re
import stat
import sys
import tarfile
import tempfile
import typing

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
NAME = re.compile(rf"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?{COMPONENT}(?:/{COMPONENT})*:[A-Za-z0-9_][A-Za-z0-9._-]{{0,127}}")


class Refused(Exception):
    """What was given cannot become an image; the text names the argument and what is allowed."""


@dataclasses.dataclass
class Entry:
    """One name of a layer."""
    name: str
    kind: bytes  # tarfile's DIRTYPE, SYMTYPE or REGTYPE
    mode: int
    target: str = ""  # of a link
    size: int = 0
    same: object = None  # files with the same value are one file with several names
    open: typing.Callable[[], typing.BinaryIO] | None = None


def folder_entries(root):
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            info = os.lstat(path)
            inside = os.path.relpath(path, root)
            mode = stat.S_IMODE(info.st_mode)
            if stat.S_ISLNK(info.st_mode):
                yield Entry(inside, tarfile.SYMTYPE, mode, target=os.readlink(path))
            elif stat.S_ISDIR(info.st_mode):
                yield Entry(inside, tarfile.DIRTYPE, mode)
            elif stat.S_ISREG(info.st_mode):
                yield Entry(inside, tarfile.REGTYPE, mode, size=info.st_size, same=(info.st_dev, info.st_ino),
                            open=lambda path=path: open(path, "rb"))


def inside_name(name, what):
    """A name of a tar without what is in front of it; empty for the root itself."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise Refused(f"--layer '{what}': has the name '{name}'; allowed are names below the root")
    return "/".join(parts)


def tar_entries(tar, what):
    found = {}  # of a name that is there twice the last one counts
    for member in tar:
        name = inside_name(member.name, what)
        if not name:
            continue
        found.pop(name, None)
        if member.issym():
            found[name] = Entry(name, tarfile.SYMTYPE, member.mode, target=member.linkname)
        elif member.isdir():
            found[name] = Entry(name, tarfile.DIRTYPE, member.mode)
        elif member.isreg():
            found[name] = Entry(name, tarfile.REGTYPE, member.mode, size=member.size, same=name,
                                open=lambda member=member: tar.extractfile(member))
        elif member.islnk():
            first = found.get(inside_name(member.linkname, what))
            if first is None:
                raise Refused(f"--layer '{what}': '{name}' is a link to '{member.linkname}', which does not stand before it")
            found[name] = dataclasses.replace(first, name=name)
    return found.values()


@contextlib.contextmanager
def entries_of(source):
    """What is in a folder or a tar."""
    if os.path.isdir(source):
        yield folder_entries(source)
        return
    try:
        tar = tarfile.open(source, "r:")
    except (OSError, tarfile.TarError) as error:
        raise Refused(f"--layer '{source}': {error}; allowed is a folder or a tar that is not compressed") from error
    with tar:
        yield tar_entries(tar, source)


def write_layer(source, file):
    """The layer as a tar: "a" before "a/b", no dates, root's."""
    first_names = {}
    with entries_of(source) as entries, tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as layer:
        for entry in sorted(entries, key=lambda entry: os.fsencode(entry.name)):
            header = tarfile.TarInfo(entry.name)
            header.type, header.linkname = entry.kind, entry.target
            # Everybody's sticky folders stay what they are.
            header.mode = 0o777 if entry.kind == tarfile.SYMTYPE else entry.mode & 0o1777
            if entry.kind != tarfile.REGTYPE:
                layer.addfile(header)
            elif entry.same in first_names:
                header.type, header.linkname = tarfile.LNKTYPE, first_names[entry.same]
                layer.addfile(header)
            else:
                first_names[entry.same] = entry.name
                header.size = entry.size
                with entry.open() as content:
                    layer.addfile(header, content)


def encode(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def blob(media_type, data):
    return {"mediaType": media_type, "digest": "sha256:" + hashlib.sha256(data).hexdigest(), "size": len(data)}


def full_name(name):
    """NAME:TAG as containerd keeps it: with a domain, Docker's where none is named."""
    first, slash, _ = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return name
    return "docker.io/" + (name if slash else "library/" + name)


def config_of(options):
    config = {}
    for key, value in (("Env", options.env), ("User", options.user), ("Entrypoint", options.entrypoint),
                       ("Cmd", options.cmd), ("Labels", dict(label.split("=", 1) for label in options.label))):
        if value:
            config[key] = value
    return config


def write_image(options, out):
    """The archive; returns the image's digest."""
    with contextlib.ExitStack() as stack:
        layers = []
        for source in options.layer:
            file = stack.enter_context(tempfile.TemporaryFile(dir=options.out.parent))
            write_layer(source, file)
            size = file.tell()
            file.seek(0)
            digest = "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
            layers.append(({"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": digest, "size": size}, file))
        system = {"architecture": options.architecture, "os": "linux"}
        config = encode({**system, "config": config_of(options), "rootfs": {
            "type": "layers", "diff_ids": [layer["digest"] for layer, _ in layers]}})
        config_blob = blob("application/vnd.oci.image.config.v1+json", config)
        manifest = encode({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                           "config": config_blob, "layers": [layer for layer, _ in layers]})
        manifest_blob = blob("application/vnd.oci.image.manifest.v1+json", manifest)
        name = full_name(options.name)
        index = encode({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [
            {**manifest_blob, "platform": system, "annotations": {
                "io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rsplit(":", 1)[1]}}]})

        files = {"oci-layout": io.BytesIO(encode({"imageLayoutVersion": "1.0.0"})), "index.json": io.BytesIO(index)}
        for described, file in ((config_blob, io.BytesIO(config)), (manifest_blob, io.BytesIO(manifest)), *layers):
            files["blobs/" + described["digest"].replace(":", "/")] = file
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for path, file in sorted(files.items()):
                header = tarfile.TarInfo(path)
                header.size = file.seek(0, io.SEEK_END)
                file.seek(0)
                archive.addfile(header, file)
        return manifest_blob["digest"]


def pair(text):
    name, equals, _ = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"'{text}'; allowed is NAME=VALUE")
    return text


def image_name(text):
    if not NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"'{text}'; allowed is NAME:TAG, the name in lower case, for example sluice:0.1.0 or example.org/team/sluice:0.1.0")
    return text


def words(text):
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise argparse.ArgumentTypeError(f"""'{text}'; allowed is a JSON list of words, for example ["sluice", "--help"]""")
    return value


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path, metavar="OUT.tar", help="the archive")
    parser.add_argument("--name", type=image_name, required=True, metavar="NAME:TAG", help="what the image is called")
    parser.add_argument("--layer", action="append", required=True, metavar="DIR_OR_TAR",
                        help="what a layer holds; a later one covers those before it")
    parser.add_argument("--env", action="append", type=pair, default=[], metavar="NAME=VALUE", help="a variable")
    parser.add_argument("--label", action="append", type=pair, default=[], metavar="NAME=VALUE", help="a label")
    parser.add_argument("--user", help="who runs the program (root)")
    parser.add_argument("--entrypoint", type=words, metavar="JSON", help="the program, as a list")
    parser.add_argument("--cmd", type=words, metavar="JSON", help="its arguments, or the program where there is no entrypoint")
    parser.add_argument("--architecture", choices=sorted(ARCHITECTURES.values()),
                        default=ARCHITECTURES.get(platform.machine()), help="of the programs (this machine's)")
    options = parser.parse_args(argv)
    if options.architecture is None:
        parser.error(f"argument --architecture: has to be given on {platform.machine()}")
    if not options.out.parent.is_dir() or options.out.is_dir():
        parser.error(f"argument OUT.tar: '{options.out}'; allowed is a file in a folder that is there")
    return options


def main(argv=None):
    options = arguments(argv)
    partial = options.out.with_name(f"{options.out.name}.partial.{os.getpid()}")
    try:
        with open(partial, "wb") as out:
            digest = write_image(options, out)
        partial.replace(options.out)
    except Refused as error:
        print(f"oci.py: {error}", file=sys.stderr)
        return 2
    finally:
        partial.unlink(missing_ok=True)
    print(f"{full_name(options.name)}@{digest}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
