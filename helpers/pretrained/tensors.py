"""The tensors of a checkpoint and the parameters of ours: each gets its own, and none is left."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from helpers.models import DecoderOnly
from helpers.pretrained.files import CONFIG

KINDS = ("weight", "bias")
HEAD = "lm_head.weight"  # of a decoder: as theirs all call it
Tensors = dict[str, Tensor]
Model = TypeVar("Model", bound=nn.Module)


class Place(NamedTuple):
    """One tensor of theirs, and which parameters of ours its rows are for, in turn."""

    theirs: str
    ours: tuple[str, ...]
    turned: bool = False  # (in, out) there, (out, in) in nn.Linear
    rope_heads: int | None = None  # rows of so many heads, whose halves RoPE pairs there


def check_places(places: Iterator[Place], path: Path, tensors: Tensors, unused: str) -> list[Place]:
    """The places, once each has its tensor and each tensor its place."""
    found = []
    for place in places:  # ends at the first that is missing, however many layers are asked for
        if place.theirs not in tensors:
            raise ValueError(f"{path}: the tensor {place.theirs} is missing")
        found.append(place)
    surplus = sorted(tensors.keys() - {place.theirs for place in found})
    surplus = [name for name in surplus if not re.fullmatch(unused, name)]
    if surplus:
        raise ValueError(f"{path}: the tensor {surplus[0]} has no place in the model")
    return found


def filled(make: Callable[[], Model], path: Path, tensors: Tensors, places: list[Place],
           dtypes: tuple[torch.dtype, ...] = (torch.float32,)) -> Model:  # fmt: skip
    """The model that `make` makes, with these tensors, in eval mode."""
    model = _shape_of(make, path)
    values = _values(model, path, tensors, places, dtypes)
    tied = isinstance(model, DecoderOnly) and "output.weight" not in values
    if tied:
        values["output.weight"] = _tied(values["tokens.weight"], path, tensors)
    model.load_state_dict(values, assign=True)
    if tied:
        model.output.weight = model.tokens.weight  # one parameter again
    return model.eval()


def halves_to_pairs(rows: Tensor, heads: int) -> Tensor:
    """Let heads that turn features i and i + d/2 together turn 2i and 2i + 1: (heads · d, …).

    Su et al. (2021) pair neighbours, as `helpers.rotary.rotate` does; transformers, halves.
    """
    return rows.unflatten(0, (heads, 2, -1)).transpose(1, 2).flatten(0, 2)


class _Undrawn(TorchFunctionMode):
    """Skip the start values: on the meta device the first random one costs PyTorch seconds."""

    def __torch_function__(
        self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(function, "__module__", None) == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return function(*args, **kwargs)


@contextmanager
def shapes_only() -> Iterator[None]:
    """Within this, a new model has shapes but no values: no memory, and nothing is drawn.

    Its values come with `load_state_dict(…, assign=True)`.
    """
    with torch.device("meta"), _Undrawn():
        yield


def _shape_of(make: Callable[[], Model], path: Path) -> Model:
    """A model without values; even that has a largest size, in bytes."""
    try:
        with shapes_only():
            return make()
    except (RuntimeError, TypeError) as error:  # an overflow: torch raises now one, now the other
        raise ValueError(f"{path}: {CONFIG} asks for impossible sizes: {error}") from error


def _values(
    model: nn.Module, path: Path, tensors: Tensors, places: list[Place], dtypes: tuple
) -> Tensors:
    """What each parameter of ours becomes: a copy in float32, which needs the file no longer."""
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    values = {}
    for place in places:
        first, *_ = parts = [shapes[name] for name in place.ours]
        shape = (sum(part[0] for part in parts), *first[1:])
        shape = shape[::-1] if place.turned else shape
        tensor = _laid_out(_tensor(path, tensors, place.theirs, shape, dtypes), place)
        rows = tensor.split([part[0] for part in parts])
        for name, part in zip(place.ours, rows, strict=True):
            part = part.clone(memory_format=torch.contiguous_format)
            values[name] = part.to(torch.float32)  # which holds every number of the smaller kinds
    return values


def _laid_out(tensor: Tensor, place: Place) -> Tensor:
    """Their numbers in the order of ours."""
    tensor = tensor.T if place.turned else tensor
    return tensor if place.rope_heads is None else halves_to_pairs(tensor, place.rope_heads)


def _tensor(
    path: Path, tensors: Tensors, name: str, shape: tuple[int, ...], dtypes: tuple
) -> Tensor:
    tensor = tensors[name]
    if tensor.dtype not in dtypes:
        needed = " or ".join(map(str, dtypes))
        raise ValueError(f"{path}: {name} has dtype {tensor.dtype}, but must have {needed}")
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{path}: {name} has shape {tuple(tensor.shape)}, but must have {shape}")
    if not tensor.isfinite().all():
        raise ValueError(f"{path}: {name} holds numbers that are not finite")
    return tensor


def _tied(table: Tensor, path: Path, tensors: Tensors) -> Tensor:
    """The token table, which lm_head.weight must equal if it is there."""
    if not torch.equal(tensors.get(HEAD, table).to(table.dtype), table):
        raise ValueError(f"{path}: {HEAD} is not the token table, but {CONFIG} ties them")
    return table
