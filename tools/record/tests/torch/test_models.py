# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""The command on whole models: the reader takes what it writes, and data/traces comes out again."""

import subprocess
import sys

import pytest

from conftest import REPOSITORY, body

EXAMPLES = REPOSITORY / "tools" / "record" / "examples"


def recorded(folder, *arguments):
    output = folder / "out.trace"
    # As a user runs it: the process starts with nothing of ours in it.
    done = subprocess.run(
        [sys.executable, "-m", "sluice_record", *map(str, arguments), "-o", output],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return output


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("resnet50", "torchvision:resnet50"),
        ("inception_v3", "torchvision:inception_v3"),
        ("bert-base", f"{EXAMPLES / 'bert_pretraining.py'}:make_step"),
        ("resnet110", f"{EXAMPLES / 'resnet110.py'}:make_step"),
    ],
)
def test_data_traces_come_out_again(name, target, traces, read, tmp_path):
    output = recorded(tmp_path, target, "--name", name)
    read(output)
    assert body(output) == body(traces / f"{name}.trace")
    assert f"# model={name}\n" in output.read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ("torchvision:vit_b_16", "--optimizer", "adamw", "--side", "224"),
        ("transformers:gpt2", "--tokens", "64", "--config", "n_layer=2"),
    ],
)
def test_models_with_attention_are_read(arguments, read, tmp_path):
    output = recorded(tmp_path, *arguments)
    read(output)
    text = output.read_text()
    assert "# stand_ins=memory-efficient attention\n" in text
    for phase in ("forward", "backward", "optimizer"):
        assert f" {phase} " in text
