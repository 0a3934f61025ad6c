# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""A recurrent highway network that predicts words (Zilly and others 2017, equations 7 to 9), for 10,000 words.

sluice-record examples/rhn.py:make_step --verify 32,13 -o rhn.trace
"""

import torch
from torch import nn

WORDS = 10_000
WIDTH = 830  # of the paper's network for Penn Treebank, as is the depth
DEPTH = 10
STEPS = 35
DROPOUT = 0.25


class HighwayStep(nn.Module):
    """One step in time: the state goes through `DEPTH` highway layers; the input reaches the first."""

    def __init__(self, width: int, depth: int):
        super().__init__()
        self.width = width
        self.input = nn.Linear(width, 2 * width)
        self.state = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(depth))

    def forward(self, x, state):
        for depth, layer in enumerate(self.state):
            both = layer(state) + self.input(x) if depth == 0 else layer(state)
            change, gate = both.split(self.width, dim=1)
            change, gate = torch.tanh(change), torch.sigmoid(gate)
            # The carry gate is 1 - gate.
            state = torch.addcmul(state, change - state, gate)
        return state


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.highway = HighwayStep(WIDTH, DEPTH)
        self.drop = nn.Dropout(DROPOUT)
        self.output = nn.Linear(WIDTH, WORDS)

    def forward(self, words):
        inputs = self.drop(self.embedding(words))
        state = inputs.new_zeros(words.shape[0], WIDTH)
        states = []
        for x in inputs.unbind(1):
            state = self.highway(x, state)
            states.append(state)
        return self.output(self.drop(torch.stack(states, 1)))


def make_step(batch: int):
    # The default device is "cuda" in here. Nothing has values: no weights, no data, no memory.
    model = Network().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    words, following = (torch.zeros(batch, STEPS, dtype=torch.int64) for _ in range(2))

    def step(words, following):
        scores = model(words)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), following.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step, (words, following)
