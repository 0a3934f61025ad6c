# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""A translator after GNMT (Wu and others 2016, section 3): LSTM layers, the lowest of the encoder in both directions,
residual connections from the third layer on, and attention by the decoder's lowest layer.

Four layers of 1,024, as its smaller public versions have, and 24 words, which keeps the file small.

sluice-record examples/gnmt.py:make_step --verify 32,13 -o gnmt.trace
"""

import torch
from torch import nn

WORDS = 32_000
WIDTH = 1024
LAYERS = 4
LENGTH = 24  # of both sentences
DROPOUT = 0.2


class Layer(nn.Module):
    """An LSTM that runs word by word, as it must where attention feeds it."""

    def __init__(self, inputs: int, backward: bool = False):
        super().__init__()
        self.cell = nn.LSTMCell(inputs, WIDTH)
        self.backward = backward

    def forward(self, inputs):
        state, outputs = None, []
        for x in reversed(inputs) if self.backward else inputs:
            state = self.cell(x, state)
            outputs.append(state[0])
        return outputs[::-1] if self.backward else outputs


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.forwards, self.backwards = Layer(WIDTH), Layer(WIDTH, backward=True)
        self.second = Layer(2 * WIDTH)
        self.upper = nn.ModuleList(Layer(WIDTH) for _ in range(LAYERS - 2))

    def forward(self, inputs):
        both = [torch.cat(pair, 1) for pair in zip(self.forwards(inputs), self.backwards(inputs), strict=True)]
        outputs = self.second(both)
        for layer in self.upper:
            outputs = [a + b for a, b in zip(layer(outputs), outputs, strict=True)]
        return torch.stack(outputs, 1)


class Attention(nn.Module):
    """Additive, with one vector of weights."""

    def __init__(self):
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH, bias=False)
        self.weight = nn.Linear(WIDTH, 1, bias=False)

    def forward(self, state, keys, values):
        scores = self.weight(torch.tanh(keys + self.query(state).unsqueeze(1)))
        return (torch.softmax(scores, 1) * values).sum(1)


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(WORDS, WIDTH), nn.Embedding(WORDS, WIDTH)
        self.encoder, self.attention = Encoder(), Attention()
        self.keys = nn.Linear(WIDTH, WIDTH, bias=False)
        self.lowest = nn.LSTMCell(2 * WIDTH, WIDTH)
        self.upper = nn.ModuleList(nn.LSTMCell(2 * WIDTH, WIDTH) for _ in range(LAYERS - 1))
        self.drop = nn.Dropout(DROPOUT)
        self.output = nn.Linear(WIDTH, WORDS)

    def forward(self, source, target):
        values = self.encoder(list(self.drop(self.source(source)).unbind(1)))
        keys = self.keys(values)
        context = values.new_zeros(values.shape[0], WIDTH)
        states, tops = [None] * LAYERS, []
        for word in self.drop(self.target(target)).unbind(1):
            states[0] = self.lowest(torch.cat((word, context), 1), states[0])
            x = states[0][0]
            context = self.attention(x, keys, values)
            for number, cell in enumerate(self.upper, 1):
                states[number] = cell(torch.cat((x, context), 1), states[number])
                x = states[number][0] + x if number > 1 else states[number][0]
            tops.append(x)
        return self.output(torch.stack(tops, 1))


def make_step(batch: int):
    # The default device is "cuda" in here. Nothing has values: no weights, no data, no memory.
    model = Translator().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    source, target, following = (torch.zeros(batch, LENGTH, dtype=torch.int64) for _ in range(3))

    def step(source, target, following):
        scores = model(source, target)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), following.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step, (source, target, following)
