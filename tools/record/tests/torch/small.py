# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Small training steps, each with one thing that is special."""

import torch
from torch import nn


def making(extra=lambda batch, loss, x, kept: None, optimizer=torch.optim.SGD, model=None):
    """A make_step whose step calls `extra` between backward() and the optimizer."""

    def make_step(batch):
        net = model() if model else nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
        updates = optimizer(net.parameters(), lr=0.1)
        images = torch.zeros(batch, 16)
        kept = []

        def step(x):
            loss = net(x).square().mean()
            loss.backward()
            extra(batch, loss, x, kept)
            updates.step()
            updates.zero_grad()

        return step, (images,)

    return make_step
