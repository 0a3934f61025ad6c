# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""The recorder against real iterations on the CPU, under PyTorch's profiler.

A CPU takes other kernels than a GPU: this judges lifetimes, the order of events and gradients that are added in place.
The real run has no dispatch mode; temporaries inside kernels come on top of what is recorded.
"""

import gc

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from sluice_record.iteration import Iterations
from sluice_record.recording import Alloc, Free

LARGE = 4096  # bytes; kernels order their smallest outputs differently on a CPU
BATCH = 4


class Block(nn.Module):
    """Convolutions with a way around them: two gradients meet where it begins."""

    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return x + self.second(torch.relu(self.norm(self.first(x))))


def convolutions(batch):
    model = nn.Sequential(nn.Conv2d(3, 16, 3), Block(16), Block(16), nn.Flatten(), nn.Linear(16 * 16 * 16, 10))
    return model, torch.zeros(batch, 3, 18, 18)


def words(batch):
    embedding = nn.Embedding(100, 64)
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    layer._sa_block = lambda x, *_, **__: torch.tanh(x) * x.softmax(-1)  # a CPU takes another kernel for attention
    return nn.Sequential(embedding, layer), torch.zeros(batch, 24, dtype=torch.int64)


def making(build):
    def make_step(batch):
        model, images = build(batch)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=True)

        def step(images):
            outputs = model(images)
            loss = outputs.square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

        return step, (images,)

    return make_step


def real(make_step):
    """Signed sizes of all allocations and frees of the third iteration."""
    step, inputs = make_step(BATCH)
    for _ in range(2):
        step(*inputs)
    gc.collect()
    gc.disable()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as run:
        step(*inputs)
    gc.enable()
    events = [e for e in run.profiler.kineto_results.events() if e.name() == "[memory]"]
    return [event.nbytes() for event in sorted(events, key=lambda e: e.start_ns())]


def recorded(make_step):
    iterations = Iterations(make_step, device="cpu")
    with iterations.ready():
        recording = iterations.record(BATCH)
    events = recording.sequence.events
    changes = [(event, recording.sizes[event.block]) for event in events if isinstance(event, Alloc | Free)]
    return [size if isinstance(event, Alloc) else -size for event, size in changes]


def peak(changes):
    load = highest = 0
    for change in changes:
        load += change
        highest = max(highest, load)
    return highest


@pytest.mark.parametrize("build", [convolutions, words])
def test_large_blocks_come_and_go_as_in_a_real_run(build):
    make_step = making(build)
    ours, theirs = recorded(make_step), real(make_step)
    large = [change for change in ours if abs(change) >= LARGE]
    assert len(large) > 20
    rest = iter(theirs)
    for place, change in enumerate(large):
        assert change in rest, f"event {place} of {len(large)}, {change} bytes, is not in the real run in this order"
    assert peak(ours) <= peak(theirs) <= 1.25 * peak(ours)
