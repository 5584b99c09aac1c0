"""Small models, batches and losses on which answers of notebook 13 train and measure.

PyTorch is loaded when one of them is made.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from workshop.exercises.exercise import Untested

if TYPE_CHECKING:
    from torch import Tensor, nn


@cache
def models() -> SimpleNamespace:
    """The classes of the little models."""
    import torch
    from torch import nn

    class Scores(nn.Module):
        """Two parameters, the logits of two words, whatever is read; `slope` makes them steep."""

        def __init__(self, a: float, b: float, slope: float) -> None:
            super().__init__()
            self.a, self.b = (nn.Parameter(torch.tensor(float(value))) for value in (a, b))
            self.slope = slope

        def forward(self, x: Tensor) -> Tensor:
            return self.slope * torch.stack([self.a, self.b]).repeat(*x.shape, 1)

    class SameDropout(nn.Dropout):
        """Dropout that always drops the same: every other feature."""

        def forward(self, x: Tensor) -> Tensor:
            if not self.training or not self.p:
                return x
            kept = torch.arange(x.shape[-1]) % 2 == 0
            return x * kept / (1 - self.p)

    class Seen(nn.Module):
        """Counts in a buffer what it has seen in train mode, as nn.BatchNorm gathers means."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            self.count += self.training
            return x

    class Network(nn.Module):
        """Two layers, with dropout in a part, and half of the result in train mode."""

        def __init__(self, vocab_size: int, width: int, p: float) -> None:
            super().__init__()
            self.p = p
            self.table = nn.Embedding(vocab_size, width)
            inner = nn.Sequential(nn.Tanh(), SameDropout(p), Seen())
            self.body = nn.Sequential(nn.Linear(width, 6), inner, nn.Linear(6, vocab_size))

        def forward(self, x: Tensor) -> Tensor:
            y = self.body(self.table(x))
            return y * (1 - self.p) if self.training else y

    return SimpleNamespace(Scores=Scores, Network=Network)


def settled(model: nn.Module, seed: int) -> nn.Module:
    """The model with weights of this seed."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(generator=generator)
    return model


def two_numbers(a: float = 0.0, b: float = 0.0, slope: float = 1.0) -> nn.Module:
    """A model for the pencil: the logits of its two words are a and b everywhere."""
    return models().Scores(a, b, slope)


def bigrams(vocab_size: int, seed: int = 1) -> nn.Module:
    """A table: one row of logits for each token that is read."""
    from torch import nn

    return settled(nn.Embedding(vocab_size, vocab_size), seed)


def network(vocab_size: int = 7, p: float = 0.0, seed: int = 2) -> nn.Module:
    """Embedding, two linear layers, dropout."""
    return settled(models().Network(vocab_size, 5, p), seed)


def batch(x: list[list[int]], y: list[list[int]]) -> tuple[Tensor, Tensor]:
    """A pair of tensors of ids."""
    import torch

    return torch.tensor(x), torch.tensor(y)


def batches_of(vocab_size: int, *shapes: tuple[int, int]) -> list[tuple[Tensor, Tensor]]:
    """Pairs of random ids (B, T), the same at each call."""
    random = np.random.default_rng(vocab_size + 10 * len(shapes))
    drawn_ids = [random.integers(vocab_size, size=(2, *shape)) for shape in shapes]
    return [batch(x.tolist(), y.tolist()) for x, y in drawn_ids]


def called(fn: Callable, *args: Any) -> Any:
    """What the answer itself returns: it gets the model, not a copy, and leaves no mode behind."""
    import torch

    with torch.enable_grad():
        return getattr(fn, "function", fn)(*args)


def weights(model: nn.Module) -> list[np.ndarray]:
    """The values of all parameters."""
    return [p.detach().numpy().copy() for p in model.parameters()]


def everywhere(model: nn.Module, training: bool) -> bool:
    """Whether the model and all its parts are in train mode, or all in eval mode."""
    return all(part.training == training for part in model.modules())


def watched(model: nn.Module) -> list[tuple[tuple[int, ...], bool, bool]]:
    """Fills with the shape of x, train mode in all parts, eval mode in all parts, at each call."""
    seen: list[tuple[tuple[int, ...], bool, bool]] = []

    def note(model: nn.Module, inputs: tuple) -> None:
        shape = tuple(getattr(inputs[0], "shape", ()))
        seen.append((shape, everywhere(model, True), everywhere(model, False)))

    model.register_forward_pre_hook(note)
    return seen


def all_equal(a: list, b: list) -> bool:
    """Whether two lists of batches hold the same."""
    import torch

    pairs = zip(a, b, strict=False)
    return len(a) == len(b) and all(torch.equal(x, z) for p in pairs for x, z in zip(*p))  # noqa: B905


def error_of(fn: Callable, *args: Any) -> Any:
    """The error that an answer raises, Untested without one."""
    try:
        called(fn, *args)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:70]}
    return Untested()


def mean_loss(logits: Tensor, y: Tensor, **changes: Any) -> Tensor:
    """Mean cross-entropy over all tokens, with changes."""
    from torch.nn.functional import cross_entropy

    return cross_entropy(logits.flatten(0, 1), y.flatten(), **changes)


def nothing(*args: Any) -> None:
    """Left out."""
