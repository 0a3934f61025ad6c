#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Without a GPU tests/gpu/run must say so on its first line, write it into its JSON, and end with 77."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

if os.path.exists("/dev/nvidiactl"):
    print("SKIPPED: this machine has an NVIDIA GPU")
    sys.exit(77)

with tempfile.TemporaryDirectory() as scratch:
    file = pathlib.Path(scratch) / "result.json"
    done = subprocess.run([sys.executable, sys.argv[1], "--json", file], capture_output=True, text=True)
    result = json.loads(file.read_text())
assert done.returncode == 77, done
assert done.stdout.startswith("SKIPPED: no NVIDIA GPU"), done.stdout
assert result["skipped"].startswith("no NVIDIA GPU") and result["cases"] == [], result
