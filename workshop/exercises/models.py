"""Little models and batches on which answers of notebook 13 train and measure."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from workshop.exercises.modules import filled

torch.optim.SGD([torch.zeros(1, requires_grad=True)])  # the first loads more, for seconds


def model_of(words: int, scale: float) -> nn.Module:
    """A row of logits for each token that is read; for 7 words two layers, with dropout inside."""
    inner = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Dropout(0.5))
    layers = nn.Sequential(nn.Embedding(7, 5), inner, nn.Linear(6, 7))
    filled(model := layers if words == 7 else nn.Embedding(words, words))
    for p in model.parameters():
        p.data *= scale
    return model


def mode_of(model: nn.Module) -> str:
    """The mode of all parts."""
    return " and ".join(sorted({"train" if m.training else "eval" for m in model.modules()}))


def outcome(fn: Callable, begin: str, words: int, scale: float, shapes: list[tuple[int, int]],
            *rate: float) -> dict[str, Any]:  # fmt: skip
    """What an answer asks of a model, leaves behind, and returns; with a rate it trains."""
    torch.manual_seed(1)  # dropout drops the same for every answer
    model, rng, seen, computed = model_of(words, scale), np.random.default_rng(words), [], []
    drawn = (rng.integers(words, size=(2, *shape)) for shape in shapes)
    batches, values = [tuple(torch.from_numpy(ids)) for ids in drawn], list(model.parameters())
    model.train(begin != "eval").register_forward_pre_hook(
        lambda m, args: seen.append((tuple(args[0].shape), mode_of(m)))
    )
    values[0].grad = torch.ones_like(values[0]) if begin == "gradients" else None
    values[0].register_hook(computed.append)
    old, given, was = [p.tolist() for p in values], str(batches), mode_of(model)
    with torch.enable_grad():
        result = getattr(fn, "function", fn)(model, batches, *rate)  # the model, not a copy
        enabled = torch.is_grad_enabled()
    unchanged = old == [p.tolist() for p in values]
    mode, asked = "train" if rate else "eval", [shape for shape, _ in seen]
    found = {
        "model(x) is called for every batch": {*shapes} <= {*asked},
        f"the model and all its parts are in {mode} mode": all(m == mode for _, m in seen),
        "gradients are switched on afterwards": enabled,
        "all parameters may still learn": all(p.requires_grad for p in values),
        "the batches stay as they are": str(batches) == given,
    }
    if was == "train" or not rate:
        found[f"a model in {was} mode is in {was} mode again"] = mode_of(model) == was
    if not rate:
        found["no gradient is left"] = all(p.grad is None for p in values)
        return found | {"the weights stay": unchanged, "loss per token": result}
    found |= {"each batch comes once, in the given order": asked == shapes}
    found |= {"the weights of the model itself change": not unchanged, "losses": result}
    if unchanged:  # tells apart why nothing is learned
        found["the gradient is computed (backward)"] = bool(computed)
        found["the gradient is left"] = values[0].grad is not None
    return found | {name: p.detach().numpy() for name, p in model.named_parameters()}


def steps_of(fn: Callable, words: int, scale: float, shape: tuple[int, int]) -> dict[str, Any]:
    """What three steps on one batch make of a model without dropout, and what they return."""
    model, rng, computed = model_of(words, scale).eval(), np.random.default_rng(words), []
    batch = tuple(torch.from_numpy(ids) for ids in rng.integers(words, size=(2, *shape)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    first = next(model.parameters())
    first.grad, old = torch.ones_like(first), first.tolist()
    first.register_hook(computed.append)

    def loss_of(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return nn.functional.cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten())

    with torch.enable_grad():
        one_step = getattr(fn, "function", fn)  # the model, not a copy
        losses = [one_step(model, optimizer, batch, loss_of) for _ in range(3)]
    found = {
        "the gradient is computed (backward)": bool(computed),
        "the gradient is left for the step": first.grad is not None,
        "the weights of the model itself change": first.tolist() != old,
        "losses": losses,
    }
    return found | {name: p.detach().numpy() for name, p in model.named_parameters()}
