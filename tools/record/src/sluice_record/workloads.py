# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Training steps of models of known libraries, with random weights: nothing is downloaded."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import json
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from .errors import RecordError

OPTIMIZERS: dict[str, tuple[str, Callable[..., torch.optim.Optimizer]]] = {
    "sgd": ("SGD momentum=0.9", lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9)),
    "adam": ("Adam", lambda parameters: torch.optim.Adam(parameters, lr=1e-3)),
    "adamw": ("AdamW", lambda parameters: torch.optim.AdamW(parameters, lr=1e-3)),
}
TOKENS = 128


@dataclasses.dataclass
class Options:
    """What may be chosen; None is the library's or the model's own."""

    optimizer: str | None = None
    side: int | None = None  # pixels of an image
    tokens: int | None = None  # per sample
    config: Mapping[str, str] = dataclasses.field(default_factory=dict)  # transformers: values in JSON, or text
    accumulate: int = 1  # batches whose gradients are added up before a step of the optimizer


class Workload:
    """A `make_step` for sluice_record.record; `notes` are complete after its first call."""

    def __init__(self, library: ModuleType, optimizer: str, accumulate: int) -> None:
        if optimizer not in OPTIMIZERS:
            raise RecordError(f"optimizer {optimizer!r}: there are {', '.join(OPTIMIZERS)}")
        text, self._optimizer = OPTIMIZERS[optimizer]
        self.notes = {"source": f"{library.__name__} {version(library.__name__)}", "optimizer": text}
        self._accumulate = accumulate
        if accumulate > 1:
            self.notes["gradient_accumulation_steps"] = str(accumulate)

    def __call__(self, batch: int) -> tuple[Callable[..., None], tuple[torch.Tensor, ...]]:
        model = self.build().train()
        inputs = self.inputs(model, batch)
        optimizer = self._optimizer(model.parameters())

        def step(*inputs: torch.Tensor) -> None:
            # As in a plain training loop, loss and outputs stay referenced until there are others, or the iteration is
            # over. The next batch takes the place of the one before.
            for _ in range(self._accumulate):
                loss, _outputs = self.loss(model, *inputs)
                if self._accumulate > 1:
                    loss = loss / self._accumulate
                loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

        return step, inputs

    def build(self) -> nn.Module:
        raise NotImplementedError

    def inputs(self, model: nn.Module, batch: int) -> tuple[torch.Tensor, ...]:
        raise NotImplementedError

    def loss(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """The loss, and what else the loop keeps."""
        raise NotImplementedError


class ImageClassifier(Workload):
    def __init__(self, library: ModuleType, build: Callable[[], nn.Module], options: Options, side: int | None) -> None:
        super().__init__(library, options.optimizer or "sgd", options.accumulate)
        self.build = build  # type: ignore[method-assign]
        self._side = options.side or side

    def inputs(self, model: nn.Module, batch: int) -> tuple[torch.Tensor, ...]:
        side = self._side or model.default_cfg["input_size"][-1]  # timm's models know it themselves
        self.notes["input_shape"] = f"3x{side}x{side}"
        return torch.zeros(batch, 3, side, side), torch.zeros(batch, dtype=torch.int64)

    def loss(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, Any]:
        images, labels = inputs
        outputs = model(images)
        if isinstance(outputs, torch.Tensor):
            return functional.cross_entropy(outputs, labels), outputs
        # The weights of the auxiliary heads are those of the papers.
        if len(outputs) == 2:  # Inception
            logits, second = outputs
            self.notes["loss"] = "cross entropy + 0.4 * auxiliary cross entropy"
            return functional.cross_entropy(logits, labels) + 0.4 * functional.cross_entropy(second, labels), outputs
        logits, second, third = outputs  # GoogLeNet
        self.notes["loss"] = "cross entropy + 0.3 * each auxiliary cross entropy"
        auxiliary = functional.cross_entropy(second, labels) + functional.cross_entropy(third, labels)
        loss = functional.cross_entropy(logits, labels) + 0.3 * auxiliary
        return loss, outputs


class LanguageModel(Workload):
    def __init__(self, library: ModuleType, kind: str, options: Options) -> None:
        super().__init__(library, options.optimizer or "adam", options.accumulate)
        self._config = {key: _value(text) for key, text in options.config.items()}
        self._kind = kind
        self._tokens = options.tokens or TOKENS
        self._library = library
        self.notes["input_shape"] = f"{self._tokens} tokens"
        if options.config:
            self.notes["config"] = " ".join(f"{key}={text}" for key, text in options.config.items())

    def build(self) -> nn.Module:
        library = self._library
        config = library.AutoConfig.for_model(self._kind, **self._config)
        for head in (
            library.AutoModelForMaskedLM,
            library.AutoModelForSeq2SeqLM,
            library.AutoModelForCausalLM,
        ):
            if type(config) in head._model_mapping:
                model = head.from_config(config)
                self.notes["head"] = type(model).__name__
                return model
        raise RecordError(
            f"transformers:{self._kind} is no language model with a loss of its own; write a make_step for it"
        )

    def inputs(self, model: nn.Module, batch: int) -> tuple[torch.Tensor, ...]:
        return tuple(torch.zeros(batch, self._tokens, dtype=torch.int64) for _ in range(2))

    def loss(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, Any]:
        words, labels = inputs
        outputs = model(input_ids=words, labels=labels)
        return outputs.loss, outputs


def workload(library: str, model: str, options: Options) -> Workload:
    """The training step of `model` of torchvision, timm or transformers (there a kind of model: bert, gpt2)."""
    try:
        module = importlib.import_module(library)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise RecordError(f"{library} is not installed; `pip install {library}`") from None
    unfit = (
        {"side": options.side} if library == "transformers" else {"tokens": options.tokens, "config": options.config}
    )
    for name, value in unfit.items():
        if value:
            raise RecordError(f"--{name}: models of {library} have none")
    if library == "transformers":
        _require_known(model, sorted(module.models.auto.configuration_auto.CONFIG_MAPPING.keys()), library)
        return LanguageModel(module, model, options)
    if library == "timm":
        _require_known(model, module.list_models(), library)
        return ImageClassifier(module, lambda: module.create_model(model, pretrained=False), options, None)
    _require_known(model, module.models.list_models(module=module.models), library)
    # Its drawing of random weights by scipy would take minutes, and weights have no values here.
    more = {"init_weights": False, "aux_logits": True} if model in ("googlenet", "inception_v3") else {}
    side = 299 if model == "inception_v3" else 224
    return ImageClassifier(module, lambda: module.models.get_model(model, weights=None, **more), options, side)


def _require_known(model: str, known: Iterable[str], library: str) -> None:
    known = list(known)
    if model not in known:
        close = ", ".join(difflib.get_close_matches(model, known)) or f"{len(known)} others, such as {known[0]}"
        raise RecordError(f"{library} has no model {model!r}; it has {close}")


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
