#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""What packaging/oci.py writes, read by code of its own (archive.py)."""
import contextlib
import io
import os
import pathlib
import sys
import tarfile
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "packaging")]
import archive  # noqa: E402
import oci  # noqa: E402


class OciTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.work = pathlib.Path(scratch.name)

    def folder(self, name, files):
        """A folder with these files, made in this order."""
        root = self.work / name
        for path, content in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(content)
        return root

    def tar(self, name, members):
        """A tar of (name, type, content or target)."""
        path = self.work / name
        with tarfile.open(path, "w") as tar:
            for member, kind, content in members:
                header = tarfile.TarInfo(member)
                header.type, header.mode = kind, 0o755
                if kind == tarfile.REGTYPE:
                    header.size = len(content)
                else:
                    header.linkname = content
                tar.addfile(header, io.BytesIO(content.encode()))
        return path

    def image(self, *arguments, out="image.tar", name="sluice:1"):
        """Writes an image; the archive and what was printed."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            self.assertEqual(oci.main([str(self.work / out), "--name", name, *map(str, arguments)]), 0)
        read = archive.Archive(self.work / out)
        read.check()
        return read, printed.getvalue().strip()

    def refused(self, *arguments):
        """What is said of arguments that are not allowed."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            try:
                status = oci.main([str(argument) for argument in arguments])
            except SystemExit as ended:
                status = ended.code
        self.assertEqual(status, 2)
        self.assertFalse(list(self.work.glob("image.tar*")))
        return said.getvalue()

    def test_same_input_same_digest(self):
        one = self.folder("one", {"a/x": "1", "a/y": "2", "b": "3"})
        two = self.folder("two", {"b": "3", "a/y": "2", "a/x": "1"})
        os.utime(two / "b", (1, 1))
        _, first = self.image("--layer", one, out="first.tar")
        _, second = self.image("--layer", two, out="second.tar")
        self.assertEqual(first, second)
        self.assertEqual((self.work / "first.tar").read_bytes(), (self.work / "second.tar").read_bytes())

    def test_other_input_other_digest(self):
        one = self.folder("one", {"a": "1"})
        _, first = self.image("--layer", one)
        (one / "a").chmod(0o600)
        _, second = self.image("--layer", one)
        (one / "a").write_text("2")
        _, third = self.image("--layer", one)
        self.assertEqual(len({first, second, third}), 3)

    def test_tar_and_folder_are_one_layer(self):
        root = self.folder("root", {"bin/sh": "shell", "etc/deep/er": "x"})
        (root / "link").symlink_to("bin/sh")
        os.link(root / "bin/sh", root / "bin/ash")
        with tarfile.open(self.work / "root.tar", "w") as tar:
            tar.add(root, arcname=".")
        _, of_folder = self.image("--layer", root)
        _, of_tar = self.image("--layer", self.work / "root.tar")
        self.assertEqual(of_folder, of_tar)

    def test_layers_in_order_and_the_last_covers(self):
        base = self.folder("base", {"etc/name": "base", "etc/kept": "base"})
        ours = self.folder("ours", {"etc/name": "ours"})
        read, _ = self.image("--layer", base, "--layer", ours)
        self.assertEqual(read.layer(0).getnames(), ["etc", "etc/kept", "etc/name"])
        self.assertEqual(read.layer(1).getnames(), ["etc", "etc/name"])
        archive.unpack(read, self.work / "unpacked")
        self.assertEqual((self.work / "unpacked/etc/name").read_text(), "ours")
        self.assertEqual((self.work / "unpacked/etc/kept").read_text(), "base")
        read, _ = self.image("--layer", ours, "--layer", base)
        archive.unpack(read, self.work / "turned")
        self.assertEqual((self.work / "turned/etc/name").read_text(), "base")

    def test_root_without_dates_or_set_id(self):
        root = self.folder("root", {"su": "x", "tmp/x": "x"})
        (root / "su").chmod(0o6755)
        (root / "tmp").chmod(0o1777)
        members = {member.name: member for member in self.image("--layer", root)[0].layer(0)}
        self.assertEqual(members["su"].mode, 0o755)
        self.assertEqual(members["tmp"].mode, 0o1777)
        for member in members.values():
            self.assertEqual((member.uid, member.gid, member.uname, member.gname, member.mtime), (0, 0, "", "", 0))

    def test_hard_links_are_one_file(self):
        # Sorted, the link stands before what it is a link to.
        layer = self.tar("base.tar", [("z", tarfile.REGTYPE, "content"), ("a", tarfile.LNKTYPE, "z"),
                                      ("m", tarfile.LNKTYPE, "a")])
        members = list(self.image("--layer", layer)[0].layer(0))
        self.assertEqual([(member.name, member.islnk(), member.linkname) for member in members],
                         [("a", False, ""), ("m", True, "a"), ("z", True, "a")])

    def test_of_a_name_twice_the_last_counts(self):
        layer = self.tar("base.tar", [("a", tarfile.REGTYPE, "old"), ("./a", tarfile.REGTYPE, "new")])
        read, _ = self.image("--layer", layer)
        self.assertEqual(read.layer(0).extractfile("a").read(), b"new")

    def test_device_nodes_are_left_out(self):
        layer = self.tar("base.tar", [("dev", tarfile.DIRTYPE, ""), ("dev/null", tarfile.CHRTYPE, "")])
        self.assertEqual(self.image("--layer", layer)[0].layer(0).getnames(), ["dev"])
        root = self.folder("root", {"a": ""})
        os.mkfifo(root / "pipe")
        self.assertEqual(self.image("--layer", root)[0].layer(0).getnames(), ["a"])

    def test_config(self):
        read, _ = self.image("--layer", self.folder("root", {"a": ""}), "--env", "PATH=/bin", "--env", "A=b=c", "--user", "65532",
                             "--label", "one=1", "--cmd", '["sluice", "--help"]', "--architecture", "arm64")
        self.assertEqual(read.config["config"], {"Env": ["PATH=/bin", "A=b=c"], "User": "65532", "Labels": {"one": "1"},
                                                 "Cmd": ["sluice", "--help"]})
        self.assertEqual((read.config["os"], read.config["architecture"]), ("linux", "arm64"))

    def test_names(self):
        root = self.folder("root", {"a": ""})
        for given, full in (("sluice:1", "docker.io/library/sluice:1"), ("team/sluice:1", "docker.io/team/sluice:1"),
                            ("example.org/sluice:1", "example.org/sluice:1"), ("localhost/sluice:1", "localhost/sluice:1"),
                            ("example:5000/a/b:1.2", "example:5000/a/b:1.2")):
            read, printed = self.image("--layer", root, name=given)
            annotations = read.index["manifests"][0]["annotations"]
            self.assertEqual(annotations["io.containerd.image.name"], full)
            self.assertEqual(annotations["org.opencontainers.image.ref.name"], given.rsplit(":", 1)[1])
            self.assertEqual(printed, f"{full}@{read.index['manifests'][0]['digest']}")

    def test_bad_arguments_are_named(self):
        out, root = self.work / "image.tar", self.folder("root", {"a": ""})
        good = (out, "--name", "sluice:1", "--layer", root)
        for name in ("sluice", "Sluice:1", "sluice:", ":1", "a b:1", "sluice:1/2", "-a:1", "sluice:1\n"):
            said = self.refused(out, "--layer", root, f"--name={name}")
            self.assertIn("--name", said)
            self.assertIn("allowed is NAME:TAG", said)
        self.assertIn("--name", self.refused(out, "--layer", root))
        self.assertIn("--layer", self.refused(out, "--name", "sluice:1"))
        for flag, value, allowed in (("--env", "A", "NAME=VALUE"), ("--env", "=b", "NAME=VALUE"), ("--label", "x", "NAME=VALUE"),
                                     ("--cmd", "sluice", "JSON list"), ("--cmd", "[1]", "JSON list"),
                                     ("--entrypoint", '"a"', "JSON list"), ("--architecture", "pdp11", "amd64")):
            said = self.refused(*good, flag, value)
            self.assertIn(flag, said)
            self.assertIn(allowed, said)
        self.assertIn("OUT.tar", self.refused(self.work / "none/image.tar", *good[1:]))
        self.assertIn("OUT.tar", self.refused(self.work, *good[1:]))

    def test_bad_layers_are_named(self):
        out = (self.work / "image.tar", "--name", "sluice:1", "--layer")
        text = self.folder("root", {"a": "no tar"}) / "a"
        with tarfile.open(self.work / "base.tar.gz", "w:gz") as tar:
            tar.add(text, arcname="a")
        for layer in (self.work / "none", text, self.work / "base.tar.gz"):
            said = self.refused(*out, layer)
            self.assertIn(f"--layer '{layer}'", said)
            self.assertIn("allowed is a folder or a tar that is not compressed", said)
        self.assertIn("'../a'", self.refused(*out, self.tar("up.tar", [("../a", tarfile.REGTYPE, "")])))
        self.assertIn("'a' is a link to 'b'", self.refused(*out, self.tar("link.tar", [("a", tarfile.LNKTYPE, "b")])))

    def test_a_failure_leaves_the_last_image(self):
        root = self.folder("root", {"a": ""})
        self.image("--layer", root, out="kept.tar")
        before = (self.work / "kept.tar").read_bytes()
        self.refused(self.work / "kept.tar", "--name", "sluice:1", "--layer", root, "--layer", self.work / "none")
        self.assertEqual((self.work / "kept.tar").read_bytes(), before)
        self.assertEqual(sorted(path.name for path in self.work.iterdir()), ["kept.tar", "root"])


class ArchiveTest(unittest.TestCase):
    """The reader can fail."""

    def test_wrong_content_is_found(self):
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch, "image.tar")
            pathlib.Path(scratch, "root").mkdir()
            pathlib.Path(scratch, "root/a").write_text("content")
            with contextlib.redirect_stdout(io.StringIO()):
                oci.main([str(path), "--name", "sluice:1", "--layer", str(pathlib.Path(scratch, "root"))])
            archive.Archive(path).check()
            path.write_bytes(path.read_bytes().replace(b"content", b"tampers"))
            with self.assertRaisesRegex(archive.Wrong, "not the digest of its content"):
                archive.Archive(path).check()

    def test_last_stage(self):
        said = archive.last_stage('FROM a AS b\nUSER 1\nFROM c\n# USER 2\nLABEL one="1" \\\n  two="2 3"\nENV A=b\nCMD ["x", "y"]\n')
        self.assertEqual(said, {"Env": ["A=b"], "Labels": {"one": "1", "two": "2 3"}, "Cmd": ["x", "y"]})
        with self.assertRaises(archive.Wrong):
            archive.last_stage("FROM a\nVOLUME /x\n")


if __name__ == "__main__":
    unittest.main()
