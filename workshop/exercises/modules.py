"""Modules of PyTorch as answers: their parameters by name, and what they give with known numbers.

PyTorch is loaded when a probe runs.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor, nn


def compared(fn: Callable, sizes: Sequence[int], inputs: Sequence[Any], *,
             rate: float | None = None) -> dict[str, Any]:  # fmt: skip
    """What an answer of these sizes has and gives: its parameters, and the result in eval mode.

    With a rate of dropout, handed over by name, also whether it acts while training, and only then.
    """
    import torch

    given = [torch.from_numpy(x.copy()) if isinstance(x, np.ndarray) else x for x in inputs]
    model = built(fn, sizes) if rate is None else built(fn, sizes, dropout=rate)
    if not isinstance(model, torch.nn.Module):
        return {"it is an nn.Module": False}
    every = list(model.named_parameters(remove_duplicate=False))
    found = {"its parameters": {name: str(tuple(p.shape)) for name, p in every}}
    found["each part has parameters of its own"] = len({id(p) for _, p in every}) == len(every)
    filled(model)
    result = model.eval()(*given)
    if not isinstance(result, torch.Tensor):
        return found | {"result": result}
    found["result"] = result.detach().numpy()
    found["what is handed in stays as it was: no += or *= on it"] = all(
        not isinstance(x, np.ndarray) or np.array_equal(x, y)
        for x, y in zip(inputs, given, strict=True)
    )
    found["every parameter learns"] = all(reached(model, result))
    if rate is not None:
        everything = filled(built(fn, sizes, dropout=1.0)).train()(*given)
        found["what is left where dropout drops everything"] = everything.detach().numpy()
        found["dropout is at work while it is trained"] = differs(model.train(), given)
        found["dropout rests in eval mode"] = not differs(model.eval(), given)
    return found


def built(fn: Callable, sizes: Sequence[int], **options: float) -> Any:
    """An answer's object; what it draws at its start does not matter."""
    import torch

    torch.manual_seed(1)
    return getattr(fn, "function", fn)(*sizes, **options)


def filled(model: nn.Module) -> nn.Module:
    """Fill the parameters with numbers that depend on their names and shapes alone."""
    import torch

    with torch.no_grad():
        for name, p in model.named_parameters():
            rng = np.random.default_rng(zlib.crc32(name.encode()))
            p.copy_(torch.from_numpy(0.5 * rng.normal(size=tuple(p.shape))))
    return model


def differs(model: nn.Module, given: Sequence[Any]) -> bool:
    """Whether two calls give different results."""
    import torch

    torch.manual_seed(2)
    with torch.no_grad():
        return not torch.equal(model(*given), model(*given))


def reached(model: nn.Module, y: Tensor) -> list[bool]:
    """Which parameters the gradient of y would reach. It is not computed: that may fail in a fork
    where there is a GPU."""
    nodes, seen = [y.grad_fn], {None}
    while nodes:
        node = nodes.pop()
        if node not in seen:
            seen.add(node)
            nodes += [following for following, _ in node.next_functions]
    leaves = {id(getattr(node, "variable", None)) for node in seen}
    return [id(p) in leaves for p in model.parameters()]
