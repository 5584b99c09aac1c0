"""How a model learns: the plain loop, how it is measured, and `fit` for the translator."""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from helpers.layers import in_mode, unwatched
from helpers.models import Transformer
from helpers.shapes import need
from helpers.training.batches import Examples

Batches = Iterable[tuple[Tensor, Tensor]]
Watch = Callable[[range, list[float]], Iterable[int]]


def train(model: nn.Module, batches: Batches, lr: float) -> list[float]:
    """Take one step of gradient descent per batch (x, y), and return the loss of each.

    SGD with momentum 0.9 on the mean cross-entropy of model(x), (B, T, V), against y, (B, T); the
    model is in train mode. In nats. Raises ValueError unless lr is positive.
    """
    need(lr > 0, "lr", lr, "positive")
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    model.train()
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def evaluate(model: nn.Module, batches: Batches) -> float:
    """Mean cross-entropy per token over all batches (x, y), in nats, without dropout.

    The model is put back in the mode it was in. Raises ValueError without a batch.
    """
    total, count = 0.0, 0
    with evaluating(model):
        for x, y in batches:
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum")
            total, count = total + loss.item(), count + y.numel()
    if not count:
        raise ValueError("batches is empty, but must hold at least one (x, y)")
    return total / count


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Within this: no dropout and no gradients; then each part of the model is as it was."""
    with in_mode(model, training=False), torch.no_grad():
        yield


class Recipe(NamedTuple):
    """How a translator is trained: by default much as in the paper, section 5, without dropout."""

    steps: int = 400
    batch_size: int = 64
    pairs: int | None = None  # how many of the data to learn from, the first ones; None: all
    peak: float = 3e-3  # the highest learning rate
    warm_up: int = 100  # steps until there
    schedule: str = "line"  # how the rate falls then: in a line, as a cosine, or not at all, "flat"
    label_smoothing: float = 0.1
    clip: float = math.inf  # the longest gradient that is let through
    weight_decay: float = 0.0  # of AdamW
    momentum: float | None = None  # that of SGD in place of AdamW

    def rate(self, step: int) -> float:
        """The learning rate of one step: up in a line, paper, section 5.3; a simpler decay to 0.

        Steps count from 1, and after the last the rate would be 0.
        """
        if step <= self.warm_up:
            return self.peak * (step / self.warm_up)
        left = (self.steps + 1 - step) / (self.steps + 1 - self.warm_up)  # from 1 to almost 0
        cosine = (1 - math.cos(math.pi * left)) / 2
        return self.peak * {"line": left, "cosine": cosine, "flat": 1}[self.schedule]

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """Adam with the paper's betas and a weight decay of its own, or SGD."""
        if self.momentum is not None:
            return torch.optim.SGD(model.parameters(), lr=self.peak, momentum=self.momentum)
        betas, decay = (0.9, 0.98), self.weight_decay
        return torch.optim.AdamW(model.parameters(), betas=betas, weight_decay=decay)


DEFAULT = Recipe()


def fit(model: Transformer, data: Examples, generator: torch.Generator, recipe: Recipe = DEFAULT,
        watch: Watch = lambda steps, losses: steps) -> list[float]:  # fmt: skip
    """Train a translator on sentence pairs, on its device, and return the loss of each step.

    `generator` (on the CPU) decides the order of the pairs and what dropout drops. `watch` gets the
    steps and the list that their losses, in nats, are put into, and hands on the steps, as tqdm
    does. Interrupting (Ctrl-C) ends the training: there are fewer losses, and the model keeps what
    it learned. Raises ValueError for a recipe out of range.
    """
    pairs = len(data.source[: recipe.pairs])
    _check(recipe, pairs)
    losses: list[float] = []
    optimizer, batches = recipe.optimizer(model), _shuffled(pairs, recipe.batch_size, generator)
    with _own_randomness(generator), in_mode(model, training=True), unwatched(model):
        try:
            for step in watch(range(1, recipe.steps + 1), losses):
                optimizer.param_groups[0]["lr"] = recipe.rate(step)
                batch = data.pick(next(batches), model.pad_id)
                losses.append(_one_step(model, optimizer, batch, recipe))
        except KeyboardInterrupt:
            done = f"{len(losses):,} of {recipe.steps:,} steps"
            print(f"Interrupted after {done}; what was learned is kept.")
    return losses


def _one_step(
    model: Transformer, optimizer: torch.optim.Optimizer, batch: Examples, recipe: Recipe
) -> float:
    """Learn from one batch of pairs; returns its loss."""
    batch = batch.to(next(model.parameters()).device)
    loss = translation_loss(model, batch, recipe.label_smoothing)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
    optimizer.step()
    return loss.item()


def _shuffled(pairs: int, batch_size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """The rows of each batch, without end: when too few are left, all are shuffled anew."""
    while True:
        order = torch.randperm(pairs, generator=generator)
        yield from order[: pairs // batch_size * batch_size].split(batch_size)


def translation_loss(model: Transformer, data: Examples, label_smoothing: float = 0.0) -> Tensor:
    """Mean cross-entropy of the French tokens, padding left out: a scalar, in nats.

    With label smoothing, the target is 1 − label_smoothing for the right token, and the rest is
    shared out over all. Paper, section 5.4; Szegedy et al. (2016).
    """
    logits = model(data.source, data.inputs)  # (B, T, V)
    counted = {"ignore_index": model.pad_id, "label_smoothing": label_smoothing}
    return F.cross_entropy(logits.flatten(0, 1), data.targets.flatten(), **counted)


@contextmanager
def _own_randomness(generator: torch.Generator) -> Iterator[None]:
    """Let dropout, which draws from PyTorch's common generators, depend on ours, and only on it."""
    seed = int(torch.randint(2**31, (), generator=generator))
    with torch.random.fork_rng(range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield


def _check(recipe: Recipe, pairs: int) -> None:
    needs = {
        "steps": (recipe.steps >= 1, "at least 1"),
        "batch_size": (1 <= recipe.batch_size <= pairs, f"from 1 to {pairs}, the pairs of data"),
        "peak": (0 < recipe.peak < math.inf, "positive and finite"),
        "warm_up": (1 <= recipe.warm_up <= recipe.steps, f"from 1 to steps = {recipe.steps}"),
        "schedule": (recipe.schedule in ("line", "cosine", "flat"), "line, cosine or flat"),
        "label_smoothing": (0 <= recipe.label_smoothing < 1, "in [0, 1)"),
    }
    for name, (holds, what) in needs.items():
        need(holds, name, repr(getattr(recipe, name)), what)
