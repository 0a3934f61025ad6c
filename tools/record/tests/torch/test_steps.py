# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""A step of a user's own: what is recorded of it, and what it is told when it cannot be."""

import copy
import pathlib
import subprocess
import sys

import pytest
import torch
from torch import nn

from sluice_record import RecordError, record, trace_text
from sluice_record.recording import Alloc
from small import making


def trace_of(*arguments, **more):
    return record(making(*arguments, **more), name="small", batches=(8, 16), check=(32, 13))


def operators(trace):
    return [(op.name, op.phase) for op in trace.sequence.operators()]


def test_a_perceptron_block_by_block():
    trace = trace_of()
    kinds = trace.sequence.kinds
    assert kinds.count("persistent") == 4 and kinds.count("input") == 1
    # Two layers of weights and offsets, four bytes each; SGD without momentum keeps nothing.
    assert trace.held("persistent", 100) == 4 * (16 * 32 + 32 + 32 * 4 + 4)
    assert trace.held("input", 100) == 4 * 16 * 100
    assert operators(trace)[:2] == [("addmm", "forward"), ("relu", "forward")]
    assert operators(trace)[-1] == ("_foreach_add_.List", "optimizer")
    # 2 * 16 * 32 operations for each sample.
    assert (trace.costs[0].flops.fixed, trace.costs[0].flops.per_sample) == (0, 1024)
    assert trace.sizes[trace.sequence.operators()[0].writes[0]].per_sample == 4 * 32


def test_the_same_bytes_each_time():
    assert trace_text(trace_of()) == trace_text(trace_of())


def test_notes_and_sizes_are_in_the_header():
    trace = record(making(), name="small", batches=(4, 6), check=(5,), notes={"dtype": "float32"})
    assert trace.header["dtype"] == "float32"
    assert (trace.header["fitted_batches"], trace.header["verified_batches"]) == ("4,6", "5")


@pytest.mark.parametrize("name", ["Adagrad", "Adam", "Adamax", "AdamW", "NAdam", "RAdam", "RMSprop", "SGD"])
def test_every_optimizer_takes_its_variant_for_a_gpu(name):
    trace = trace_of(optimizer=getattr(torch.optim, name))
    updates = [name for name, phase in operators(trace) if phase == "optimizer"]
    assert updates and all(name.startswith("_foreach_") for name in updates), updates


def test_weights_may_be_drawn_within_bounds():
    def bounded():
        layer = nn.Linear(16, 4)
        nn.init.trunc_normal_(layer.weight, std=0.02)
        return layer

    assert trace_of(model=bounded).held("persistent", 100) == 4 * (16 * 4 + 4)


def test_what_is_drawn_within_bounds_in_a_step_is_written():
    def noise(batch, loss, x, kept):
        nn.init.trunc_normal_(torch.empty(batch, 4, device="cuda"))

    assert ("normal_", "optimizer") in operators(trace_of(noise))


@pytest.mark.parametrize("where", [{}, {"device": "cpu"}, {"device": "cuda"}])
@pytest.mark.parametrize(
    "read",
    [
        lambda n, where: [rate.item() for rate in torch.linspace(0, 0.5, n, **where)],
        lambda n, where: torch.linspace(0, 0.5, steps=n, **where).tolist(),
        lambda n, where: sum((stage.tolist() for stage in torch.linspace(0, 0.5, n, **where).split([1, 2])), []),
        lambda n, where: [float(torch.linspace(0, 0.5, n, **where)[i]) for i in range(n)],
        lambda n, where: (2 * torch.linspace(0, 0.25, n, **where)).tolist(),
        lambda n, where: [rate / 4 for rate in torch.linspace(0, 2, n, dtype=torch.int64, **where).tolist()],
    ],
)
def test_rates_may_be_spread_over_layers_and_read(read, where):
    def deep():
        rates = read(3, where)
        assert rates == [0.0, 0.25, 0.5]
        return nn.Sequential(*(nn.Linear(16, 16) for _ in rates))

    assert trace_of(model=deep).held("persistent", 100) == 3 * 4 * (16 * 16 + 16)


def test_the_default_device_is_that_of_linspace():
    class Ramp(nn.Linear):
        def __init__(self):
            super().__init__(16, 4)
            self.register_buffer("ramp", torch.linspace(0, 1, 4))

        def forward(self, x):
            return super().forward(x) * copy.deepcopy(self.ramp)

    assert trace_of(model=Ramp).held("persistent", 100) == 4 * (16 * 4 + 4 + 4)


def test_what_is_large_is_not_computed():
    def wide():
        # 4 TB, were there values.
        torch.linspace(0, 1, 1000).repeat(10**9)
        torch.linspace(0, 1, 10**12)
        return nn.Linear(16, 4)

    assert trace_of(model=wide).held("persistent", 100) == 4 * (16 * 4 + 4)


@pytest.mark.parametrize(
    "change",
    [
        lambda rates: rates.mul_(2).tolist(),
        lambda rates: rates.data.fill_(1).tolist(),
        lambda rates: torch.add(rates, 1, out=rates).tolist(),
        lambda rates: rates.view(3, 1)[2].fill_(1).item(),
        lambda rates: (rates + torch.rand(3)).tolist(),
    ],
)
def test_values_that_changed_are_not_known(change):
    def deep():
        change(torch.linspace(0, 0.5, 3))
        return nn.Linear(16, 4)

    with pytest.raises(RecordError, match="on the host"):
        trace_of(model=deep)


class Turning(nn.Module):
    """Computes a part of its output without a graph, as rotary embeddings do."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x):
        with torch.no_grad():
            turn = x.cos()
        return self.layer(x) * turn


def test_what_a_later_batch_computes_without_a_graph_is_forward():
    def make_step(batch):
        model = Turning()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(x):
            for _ in range(2):
                model(x).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

        return step, (torch.zeros(batch, 16),)

    found = operators(record(make_step, name="turning", batches=(8, 16), check=(32,)))
    assert [phase for name, phase in found if name == "cos"] == ["forward", "forward"]


def test_what_follows_backward_without_a_graph_belongs_to_the_optimizer():
    def clip(batch, loss, x, kept):
        with torch.no_grad():
            x.cos()
        x.sin()

    assert [phase for name, phase in operators(trace_of(clip)) if name in ("cos", "sin")] == ["optimizer", "forward"]


def test_gradients_that_meet_are_added_in_place():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(16, 16)

        def forward(self, x):
            y = self.layer(x).sin()
            return (y * 2) * (y * 3)

    assert ("add_.Tensor", "backward") in operators(trace_of(model=Twice))


def test_recurrent_layers_go_step_by_step():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.LSTM(4, 8, batch_first=True)

        def forward(self, x):
            return self.layer(x.view(-1, 4, 4))[0]

    trace = trace_of(model=Recurrent)
    assert operators(trace).count(("_thnn_fused_lstm_cell", "forward")) == 4
    assert trace.header["stand_ins"] == "recurrent layers step by step (cuDNN off)"


class Attention(nn.Module):
    """Two heads over the sixteen numbers of a sample, as four words."""

    def __init__(self, low=None, mask=False):
        super().__init__()
        self.project = nn.Linear(4, 48)
        self.low = low
        self.mask = torch.ones(4, 4, dtype=torch.bool).tril() if mask else None

    def forward(self, x):
        with torch.autocast("cuda", dtype=self.low, enabled=self.low is not None):
            words = self.project(x.view(-1, 4, 4)).view(-1, 4, 2, 24).transpose(1, 2)
            parts = words.chunk(3, -1)
            return nn.functional.scaled_dot_product_attention(*parts, attn_mask=self.mask)


@pytest.mark.parametrize(
    ("model", "kernel", "stand_in"),
    [
        (Attention, "efficient", "memory-efficient attention"),
        (lambda: Attention(mask=True), "efficient", "memory-efficient attention"),
        (lambda: Attention(torch.bfloat16), "flash", "flash attention"),
        (lambda: Attention(torch.bfloat16, mask=True), "efficient", "memory-efficient attention"),
    ],
)
def test_attention_takes_the_kernel_of_a_gpu(model, kernel, stand_in):
    trace = trace_of(model=model)
    assert (f"_scaled_dot_product_{kernel}_attention", "forward") in operators(trace)
    assert (f"_scaled_dot_product_{kernel}_attention_backward", "backward") in operators(trace)
    assert trace.header["stand_ins"] == stand_in


def test_autocast_lets_go_in_one_order():
    class Many(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(*(nn.Linear(16, 16) for _ in range(8)))

        def forward(self, x):
            with torch.autocast("cuda", dtype=torch.float16):
                return self.layers(x)

    # A hash table of sixteen addresses would not come out alike in all eight recordings.
    first = trace_text(trace_of(model=Many))
    assert trace_text(trace_of(model=Many)) == first


def test_autocast_halves_what_is_kept():
    assert (
        0.4 < trace_of(model=lambda: Attention(torch.bfloat16)).peak(1000) / trace_of(model=Attention).peak(1000) < 0.8
    )


def test_a_block_that_lives_on_the_host_is_none_of_ours():
    plain = trace_of()
    beside = trace_of(lambda batch, loss, x, kept: torch.ones(batch, 7, device="cpu").sin())
    assert beside.sequence == plain.sequence


SAID = [
    (lambda b, loss, x, kept: loss.item(), r"reads a value .*_local_scalar_dense.*Leave out \.item"),
    (lambda b, loss, x, kept: x[x > 0], "nonzero.* size depends on values.*torch.where"),
    (lambda b, loss, x, kept: x @ x.T, r"bytes of block \d+ .*operator 1\d mm.* is not a fixed number"),
    (lambda b, loss, x, kept: x[1:] + 1, r"448 at batch 8 and 960 at batch 16 is not a fixed number"),
    (
        lambda b, loss, x, kept: x.sin() if b > 8 else None,
        r"depends on the batch size: event .* at batch 8, alloc of block \d+ .1024 bytes. at batch 16",
    ),
    (lambda b, loss, x, kept: x.sin() if b == 13 else None, "depends on the batch size: .* at batch 13"),
    (lambda b, loss, x, kept: x.new_zeros(max(b, 20)), r"numbers are not linear in the batch, seen at batch 32"),
    (lambda b, loss, x, kept: kept.append(loss), "leaves 1 new blocks .* 4 bytes by mean.*zero_grad"),
    (lambda b, loss, x, kept: x.sin().resize_(b * 100), "512 bytes .made by sin. was resized to 3200"),
]


@pytest.mark.parametrize(("extra", "text"), SAID)
def test_what_cannot_be_recorded_is_told(extra, text):
    with pytest.raises(RecordError, match=text):
        trace_of(extra)


def test_an_operator_without_shapes_is_named():
    library = torch.library.Library("sluice_record_test", "DEF")
    library.define("opaque(Tensor x) -> Tensor")
    library.impl("opaque", torch.clone, "CUDA")
    with pytest.raises(RecordError, match="sluice_record_test.opaque.default .*register_fake"):
        trace_of(lambda b, loss, x, kept: torch.ops.sluice_record_test.opaque(x))


def test_a_step_that_never_uses_the_device_is_told():
    def make_step(batch):
        layer, x = nn.Linear(4, 4, device="cpu"), torch.zeros(batch, 4, device="cpu")
        return lambda x: layer(x).sum().backward(), (x,)

    with pytest.raises(RecordError, match="no operator of the step uses the device 'cuda'"):
        record(make_step, name="small")


@pytest.mark.parametrize("made", [3, (lambda: None), ((lambda x: x), torch.zeros(3))])
def test_what_make_step_must_return_is_told(made):
    with pytest.raises(RecordError, match=r"make_step\(8\) must return \(step, inputs\)"):
        record(lambda batch: made, name="small")


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"batches": (8, 8)}, "batches: 8,8 must be two different sizes"),
        ({"batches": (8,)}, "batches: 8 must be two"),
        ({"batches": (0, 8)}, "batch size 0: must be 1 to 1048576"),
        ({"check": (16,)}, "sizes to verify: '16' must be one or more other than the fitted 8,16"),
        ({"check": ()}, "sizes to verify: ''"),
        ({"warm_up": 0}, "warm-up: 0 must be at least 1"),
        ({"notes": {"recorder": "mine"}}, "note recorder: the recorder writes"),
    ],
)
def test_wrong_arguments_are_named(more, text):
    with pytest.raises(RecordError, match=text):
        record(making(), name="small", **more)


def test_an_error_of_the_step_itself_passes_through():
    def broken(batch, loss, x, kept):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        trace_of(broken)


def test_a_process_that_has_trained_before_records_the_same():
    # Real iterations set the autograd engine up for good, so this takes a process of its own.
    program = """
import sys, torch
torch.nn.Linear(2, 2)(torch.ones(1, 2)).sum().backward()
from small import making
from sluice_record import record, trace_text
sys.stdout.write(trace_text(record(making(), name="small", batches=(8, 16), check=(32, 13))))
"""
    here = pathlib.Path(__file__).parent
    done = subprocess.run([sys.executable, "-c", program], cwd=here, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == trace_text(trace_of())


def test_nothing_stays_replaced():
    before = (torch.autograd.backward, torch.optim.Optimizer.zero_grad, nn.LSTM.forward, nn.LSTM.__dict__.keys())
    attention = nn.functional.scaled_dot_product_attention
    trace = trace_of()
    assert (
        torch.autograd.backward,
        torch.optim.Optimizer.zero_grad,
        nn.LSTM.forward,
        nn.LSTM.__dict__.keys(),
    ) == before
    assert nn.functional.scaled_dot_product_attention is attention
    # A real step runs as ever, and its allocations are none of the recorder's.
    layer = nn.Linear(4, 4)
    layer(torch.ones(2, 4)).sum().backward()
    assert layer.weight.grad is not None
    assert any(isinstance(event, Alloc) for event in trace.sequence.events)
