# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""ResNet-110 for pictures of 32x32 (He and others 2016, "Deep residual learning", section 4.2), after its paper.

sluice-record examples/resnet110.py:make_step --verify 32,13 -o resnet110.trace
"""

import torch
from torch import nn

BLOCKS = 18  # at each of three sizes: 6 * 18 + 2 = 110 layers
WIDTHS = (16, 32, 64)
CLASSES = 10


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.stride = 1 if inputs == outputs else 2
        self.pad = outputs - inputs
        self.first = nn.Conv2d(inputs, outputs, 3, self.stride, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        out = self.relu(self.first_norm(self.first(x)))
        out = self.second_norm(self.second(out))
        # Option A of the paper: every other pixel, and zeros for the channels that are new.
        short = x if self.pad == 0 else nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 0, self.pad))
        out += short
        return self.relu(out)


def resnet110() -> nn.Module:
    layers = [nn.Conv2d(3, WIDTHS[0], 3, padding=1, bias=False), nn.BatchNorm2d(WIDTHS[0]), nn.ReLU(inplace=True)]
    width = WIDTHS[0]
    for wider in WIDTHS:
        for _ in range(BLOCKS):
            layers.append(Block(width, wider))
            width = wider
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, CLASSES))


def make_step(batch: int):
    # The default device is "cuda" in here. Nothing has values: no weights, no data, no memory.
    model = resnet110().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    pictures, labels = torch.zeros(batch, 3, 32, 32), torch.zeros(batch, dtype=torch.int64)

    def step(pictures, labels):
        scores = model(pictures)
        loss = nn.functional.cross_entropy(scores, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step, (pictures, labels)
