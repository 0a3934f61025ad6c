# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Models of known libraries: what is made of a name, and what a wrong one is told."""

import collections

import pytest
import torch

from sluice_record import RecordError, record
from sluice_record.cli import main
from sluice_record.workloads import Options, workload


@pytest.mark.parametrize(
    ("library", "model", "options", "text"),
    [
        ("torchvision", "resnet19", Options(), "torchvision has no model 'resnet19'; it has resnet"),
        ("transformers", "bertt", Options(), "transformers has no model 'bertt'; it has .*bert"),
        ("torchvision", "resnet18", Options(optimizer="lion"), "optimizer 'lion': there are sgd, adam, adamw"),
        ("torchvision", "resnet18", Options(tokens=3), "--tokens: models of torchvision have none"),
        ("torchvision", "resnet18", Options(config={"a": "1"}), "--config: models of torchvision have none"),
        ("transformers", "bert", Options(side=32), "--side: models of transformers have none"),
        ("sluice_gone", "a", Options(), "sluice_gone is not installed; `pip install sluice_gone`"),
    ],
)
def test_what_is_not_there_is_told(library, model, options, text):
    with pytest.raises(RecordError, match=text):
        workload(library, model, options)


def test_a_model_without_a_language_task_is_told():
    with pytest.raises(RecordError, match="transformers:vit is no language model"):
        workload("transformers", "vit", Options(config={"num_hidden_layers": "1"}))(1)


def test_the_configuration_is_applied_and_noted():
    made = workload("transformers", "gpt2", Options(tokens=8, config={"n_layer": "1", "n_embd": "48", "n_head": "4"}))
    model = made.build()
    assert (model.config.n_layer, model.config.n_embd) == (1, 48)
    assert made.notes["config"] == "n_layer=1 n_embd=48 n_head=4"
    assert made.notes["head"] == "GPT2LMHeadModel"
    assert [tuple(t.shape) for t in made.inputs(model, 2)] == [(2, 8), (2, 8)]


def test_gradients_of_several_batches_are_added_up_before_a_step():
    def operators(accumulate):
        made = workload("torchvision", "squeezenet1_1", Options(side=64, accumulate=accumulate))
        trace = record(made, name="squeezenet", batches=(2, 4), check=(3,), notes=made.notes)
        phases = collections.Counter(op.phase for op in trace.sequence.operators())
        return phases, trace.held("persistent", 2), trace.header.get("gradient_accumulation_steps")

    once, held_once, note_once = operators(1)
    thrice, held_thrice, note_thrice = operators(3)
    assert (note_once, note_thrice) == (None, "3")
    # Each loss is divided by their number.
    assert thrice["forward"] == 3 * (once["forward"] + 1)
    assert thrice["backward"] > 3 * once["backward"]
    assert thrice["optimizer"] == once["optimizer"]
    assert held_thrice == held_once


def test_a_real_step_learns():
    """The steps are trainings: on real tensors of the CPU they change every weight that has a gradient."""
    made = workload("torchvision", "squeezenet1_1", Options(side=64))
    model = made.build().train()
    made.build = lambda: model
    before = [weight.detach().clone() for weight in model.parameters()]
    step, (images, labels) = made(2)
    step(torch.rand_like(images), labels)
    changed = [not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True)]
    assert sum(changed) > len(changed) / 2


def test_the_command_writes_to_stdout_and_says_what_it_cannot_write(capsys, tmp_path):
    arguments = [
        "torchvision:squeezenet1_1",
        "--side",
        "64",
        "--batches",
        "2,4",
        "--verify",
        "3",
        "--note",
        "dtype=float32",
    ]
    assert main([*arguments, "-o", "-"]) == 0
    written = capsys.readouterr()
    assert written.out.startswith("# sluice-trace 1\n# model=squeezenet1_1\n")
    assert "# dtype=float32\n" in written.out and "# input_shape=3x64x64\n" in written.out
    assert written.err.startswith("squeezenet1_1: ") and "at batch 3" in written.err
    assert main([*arguments, "-o", str(tmp_path / "no" / "folder")]) == 1
    assert "cannot be written: No such file or directory" in capsys.readouterr().err
