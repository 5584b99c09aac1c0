"""The tensors of a checkpoint and the parameters of ours: each gets its own, and none is left."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from helpers.pretrained.files import CONFIG

HEAD = "lm_head.weight"  # of a decoder: as theirs all call it
Tensors, Shape, Dtypes = dict[str, Tensor], tuple[int, ...], tuple[torch.dtype, ...]
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
    for name in sorted(tensors.keys() - {place.theirs for place in found}):
        if not re.fullmatch(unused, name):
            raise ValueError(f"{path}: the tensor {name} has no place in the model")
    return found


def filled(
    make: Callable[[], Model], path: Path, tensors: Tensors, places: list[Place], dtypes: Dtypes
) -> Model:
    """The model that `make` makes, with these tensors, in eval mode."""
    model = _shape_of(make, path)
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    values = {}
    for place in places:
        values |= _values(place, shapes, path, tensors, dtypes)
    tied = "output.weight" in shapes.keys() - values.keys()
    if tied:
        table = values["output.weight"] = values["tokens.weight"]
        if not torch.equal(tensors.get(HEAD, table).to(table.dtype), table):
            raise ValueError(f"{path}: {HEAD} is not the token table, but {CONFIG} ties them")
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

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if getattr(function, "__module__", None) == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return function(*args, **kwargs)


def _shape_of(make: Callable[[], Model], path: Path) -> Model:
    """A model without values, for which no memory is needed; even that has a largest size."""
    try:
        with torch.device("meta"), _Undrawn():
            return make()
    except (RuntimeError, TypeError) as error:  # an overflow: torch raises now one, now the other
        raise ValueError(f"{path}: {CONFIG} asks for impossible sizes: {error}") from error


def _values(
    place: Place, shapes: dict[str, Shape], path: Path, tensors: Tensors, dtypes: Dtypes
) -> Tensors:
    """What its parameters become: copies in float32, which need the file no longer."""
    first, *_ = parts = [shapes[name] for name in place.ours]
    shape = (sum(part[0] for part in parts), *first[1:])
    tensor = tensors[place.theirs]
    _check(tensor, f"{path}: {place.theirs}", shape[::-1] if place.turned else shape, dtypes)
    tensor = tensor.T if place.turned else tensor
    if place.rope_heads is not None:
        tensor = halves_to_pairs(tensor, place.rope_heads)
    rows = tensor.split([part[0] for part in parts])
    # float32 holds every number of the smaller kinds; without `copy`, it would be the file's.
    form = {"dtype": torch.float32, "memory_format": torch.contiguous_format, "copy": True}
    return {name: part.to(**form) for name, part in zip(place.ours, rows, strict=True)}


def _check(tensor: Tensor, name: str, shape: Shape, dtypes: Dtypes) -> None:
    if tensor.dtype not in dtypes:
        needed = " or ".join(map(str, dtypes))
        raise ValueError(f"{name} has dtype {tensor.dtype}, but must have {needed}")
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}, but must have {shape}")
    if not tensor.isfinite().all():
        raise ValueError(f"{name} holds numbers that are not finite")
