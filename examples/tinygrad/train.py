#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Trains a small network with tinygrad and prints each loss exactly. It knows nothing of Sluice.

The data are drawn here: digits as on a seven-segment display, shifted and with noise. Equal arguments give
equal losses, bit for bit, on one device.
"""

import argparse
import random
import struct

from tinygrad import Context, Device, Tensor, TinyJit, nn

SIZE = 20  # of an image, in pixels
SEGMENTS = {  # row, column, height, width of each stroke
    "top": (0, 0, 2, 8), "middle": (6, 0, 2, 8), "bottom": (12, 0, 2, 8),
    "upper-left": (0, 0, 8, 2), "upper-right": (0, 6, 8, 2),
    "lower-left": (6, 0, 8, 2), "lower-right": (6, 6, 8, 2),
}
DIGITS = [
    "top bottom upper-left upper-right lower-left lower-right", "upper-right lower-right",
    "top middle bottom upper-right lower-left", "top middle bottom upper-right lower-right",
    "middle upper-left upper-right lower-right", "top middle bottom upper-left lower-right",
    "top middle bottom upper-left lower-left lower-right", "top upper-right lower-right",
    "top middle bottom upper-left upper-right lower-left lower-right",
    "top middle bottom upper-left upper-right lower-right",
]


def draw(digit, rng):
    """One image: a byte per pixel."""
    pixels = bytearray(value >> 2 for value in rng.randbytes(SIZE * SIZE))
    top, left = rng.randrange(SIZE - 14 + 1), rng.randrange(SIZE - 8 + 1)
    for name in DIGITS[digit].split():
        row, column, height, width = SEGMENTS[name]
        for y in range(top + row, top + row + height):
            for x in range(left + column, left + column + width):
                pixels[y * SIZE + x] |= 0xC0
    return bytes(pixels)


def draw_batch(count, rng):
    labels = bytes(rng.randrange(10) for _ in range(count))
    return b"".join(draw(digit, rng) for digit in labels), labels


class MLP:
    def __init__(self):
        self.hidden = nn.Linear(SIZE * SIZE, 256)
        self.out = nn.Linear(256, 10)

    def __call__(self, x):
        return self.out(self.hidden(x.flatten(1)).relu())


class CNN:
    def __init__(self):
        self.first = nn.Conv2d(1, 8, 3)
        self.second = nn.Conv2d(8, 16, 3)
        self.out = nn.Linear(16 * 3 * 3, 10)

    def __call__(self, x):
        x = self.first(x).relu().max_pool2d()
        x = self.second(x).relu().max_pool2d()
        return self.out(x.flatten(1))


def tensors(images, labels):
    """A batch on the device; the pixels travel as bytes."""
    x = Tensor(images).reshape(len(labels), 1, SIZE, SIZE).cast("float") / 255 - 0.5
    return x, Tensor(labels).cast("int")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=["mlp", "cnn"], default="cnn")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--micro-batches", type=int, default=1, help="parts of a batch, one after the other")
    parser.add_argument("--jit", action="store_true", help="capture the step and replay it as a graph")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.batch % args.micro_batches:
        parser.error("--micro-batches must divide --batch")

    rng = random.Random(args.seed)
    Tensor.manual_seed(args.seed)
    model = {"mlp": MLP, "cnn": CNN}[args.model]()
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.002)
    part = args.batch // args.micro_batches

    def gradients(images, labels):
        """Adds one part's gradients; returns its share of the loss."""
        loss = model(images).sparse_categorical_crossentropy(labels) / args.micro_batches
        loss.backward()
        return loss.realize(*(p.grad for p in optimizer.params))

    def update():
        optimizer.step()

    def whole_step(images, labels):
        loss = model(images).sparse_categorical_crossentropy(labels)
        optimizer.zero_grad()
        loss.backward()
        return loss.realize(*optimizer.schedule_step())

    run_whole = TinyJit(whole_step) if args.jit else whole_step
    print("device", Device.DEFAULT, flush=True)
    with Context(TRAINING=1):
        for step in range(args.steps):
            if args.micro_batches == 1:
                x, y = tensors(*draw_batch(args.batch, rng))
                loss = run_whole(x.realize(), y.realize()).item()
            else:
                optimizer.zero_grad()
                loss = 0.0
                for _ in range(args.micro_batches):
                    x, y = tensors(*draw_batch(part, rng))
                    loss += gradients(x, y).item()
                update()
            print("loss", step, struct.pack(">d", loss).hex(), f"{loss:.6f}", flush=True)


if __name__ == "__main__":
    main()
