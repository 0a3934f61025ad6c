#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""A training of a ResNet with PyTorch, unchanged between all ways to run it. Knows nothing of Sluice.

Prints one JSON object: how long the iterations took (without start and the first one) and when each ended (CLOCK_MONOTONIC,
which is one for all processes of a machine), what was allocated at most, and the losses bit by bit. Needs PyTorch alone.
"""
import argparse
import json
import os
import struct
import sys
import time

import torch
from torch import nn

LAYERS = {"resnet50": (3, 4, 6, 3), "resnet101": (3, 4, 23, 3)}
CLASSES = 1000
WAYS = ("eager", "compile", "graph")


class Bottleneck(nn.Module):
    def __init__(self, inner, channels, stride):
        super().__init__()
        outer = 4 * channels
        self.body = nn.Sequential(
            nn.Conv2d(inner, channels, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(inplace=True),
            nn.Conv2d(channels, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(inplace=True),
            nn.Conv2d(channels, outer, 1, bias=False), nn.BatchNorm2d(outer))
        same = stride == 1 and inner == outer
        self.side = nn.Identity() if same else nn.Sequential(
            nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x):
        return torch.relu(self.body(x) + self.side(x))


class Mean(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


def resnet(layers):
    parts = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    # The mean, where the paper has the maximum: the gradient of the maximum is not the same bits in every run.
    parts.append(nn.AvgPool2d(3, 2, 1))
    inner = 64
    for stage, count in enumerate(layers):
        channels = 64 << stage
        for i in range(count):
            parts.append(Bottleneck(inner, channels, 2 if stage > 0 and i == 0 else 1))
            inner = 4 * channels
    return nn.Sequential(*parts, Mean(), nn.Linear(inner, CLASSES))


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=sorted(LAYERS), default="resnet50")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--image", type=int, default=224)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--way", choices=WAYS, default="eager")
    parser.add_argument("--when", metavar="FILE", help="not before this file exists: PyTorch takes its time to load")
    return parser.parse_args()


def main():
    options = arguments()
    if options.when is not None:
        with open(options.when + ".loaded", "w"):
            pass
        while not os.path.exists(options.when):
            time.sleep(0.01)
    # The same bits in every run: otherwise nobody could say that sharing changed nothing.
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.backends.cudnn.benchmark = False
    torch.manual_seed(options.seed)
    device = torch.device("cuda")
    model = resnet(LAYERS[options.model]).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, foreach=True)
    criterion = nn.CrossEntropyLoss()
    images = torch.randn(options.batch, 3, options.image, options.image, device=device)
    labels = torch.randint(CLASSES, (options.batch,), device=device)

    def step():
        optimizer.zero_grad(set_to_none=options.way != "graph")
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    if options.way == "compile":
        model.forward = torch.compile(model.forward, mode="reduce-overhead")
    once = captured(step) if options.way == "graph" else step
    losses, times, ends = [], [], []
    for _ in range(options.iterations):
        begin = time.monotonic()
        losses.append(float(once()))
        ends.append(time.monotonic())
        times.append(ends[-1] - begin)
    torch.cuda.synchronize()
    steady = times[min(3, len(times) - 1):]
    print(json.dumps({
        "iteration_s": sorted(steady)[len(steady) // 2], "iterations_s": sum(times), "first_iteration_s": times[0],
        "ends_s": [round(end, 6) for end in ends],
        "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(),
        "losses": [struct.pack(">d", loss).hex() for loss in losses], "last_loss": losses[-1],
        "torch": torch.__version__, "allocator": torch.cuda.get_allocator_backend()}))


def captured(step):
    """The step as a CUDA graph, as PyTorch's documentation has it."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()

    def replay():
        graph.replay()
        return loss
    return replay


if __name__ == "__main__":
    try:
        main()
    except torch.cuda.OutOfMemoryError as error:
        sys.exit("out of memory: " + str(error).splitlines()[0])
