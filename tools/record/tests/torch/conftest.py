# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""What the tests with PyTorch share."""

import os
import pathlib
import shlex
import subprocess

import pytest
import torch

REPOSITORY = pathlib.Path(__file__).resolve().parents[4]


def body(path):
    """A trace without its header."""
    return [line for line in pathlib.Path(path).read_text().splitlines() if not line.startswith("# ")]


@pytest.fixture
def traces():
    """The folder of recorded traces, which are those of one version of each library."""
    if not torch.__version__.startswith("2.11.0+"):
        pytest.skip(f"data/traces was recorded with torch 2.11.0, not {torch.__version__}")
    return REPOSITORY / "data" / "traces"


@pytest.fixture
def read():
    """Gives a file to the project's own reader, and to the simulator when it is named too."""
    reader = shlex.split(os.environ.get("SLUICE_TRACE_READER", ""))
    if not reader:
        pytest.skip("SLUICE_TRACE_READER does not say which program reads traces")

    simulator = shlex.split(os.environ.get("SLUICE_SIMULATOR", ""))

    def check(path):
        commands = [[*reader, path]]
        if simulator:
            commands.append([*simulator, f"{path}:2"])
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 0, done.stderr

    return check
