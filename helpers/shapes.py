"""Are arguments as the formulas need them? Shapes by letters, sizes and rates by their names.

    @shaped(Q="… Tq d", K="… Tk d", V="… Tk d_v")
    def attention(Q, K, V): …

Every misfit raises a ValueError that names the argument, what it is, and what it must be.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np


def need(holds: Any, name: str, value: Any, what: str) -> None:
    """Raise ValueError that says what an argument is and what it must be, unless that holds."""
    if not holds:
        raise ValueError(f"{name} is {value}, but must be {what}")


def check_positive(**sizes: float | None) -> None:
    """Raise ValueError unless each size that is given (None is not) is more than 0."""
    for name, size in sizes.items():
        need(size is None or size > 0, name, size, "positive")


def check_rate(**rates: float) -> None:
    """Raise ValueError unless each rate of dropping is in [0, 1)."""
    for name, rate in rates.items():
        need(0 <= rate < 1, name, rate, "at least 0 and less than 1")


def shaped(**needs: str) -> Callable:
    """Check shapes before a call, by letters: `@shaped(Q="… Tq d", K="… Tk d", V="… Tk d_v")`.

    A letter is the same size everywhere; … stands for any axes in front, "D or ()" allows a single
    number, too. Of a method, letters that are attributes of its object have their size:
    `@shaped(x="B T d_model")`. Raises ValueError that says what an argument is, what it must be,
    and which other argument set the size.
    """
    axes = {name: letters.removesuffix(" or ()").split() for name, letters in needs.items()}
    single = {name for name, letters in needs.items() if letters.endswith(" or ()")}

    def decorate(function: Callable) -> Callable:
        names = [*inspect.signature(function).parameters]
        places = {name: names.index(name) for name in axes}

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            own = vars(args[0]) if names[0] == "self" else {}
            sizes: dict[str, int] = {}
            for name, place in places.items():
                array = args[place] if place < len(args) else kwargs.get(name)
                if array is None or (name in single and np.ndim(array) == 0):
                    continue
                if not _fits(np.shape(array), axes[name], own, sizes):
                    given = dict(zip(names, args, strict=False)) | kwargs
                    shapes = {n: tuple(np.shape(given[n])) for n in axes if n in given}
                    raise ValueError(_misfit(name, shapes, axes, own))
            return function(*args, **kwargs)

        return checked

    return decorate


def _fits(
    shape: tuple[int, ...], axes: list[str], own: Mapping[str, Any], sizes: dict[str, int]
) -> bool:
    """Whether a shape has these axes; sizes of letters that are new are noted."""
    if axes[0] == "…":
        axes = axes[1:]
        shape = shape[-len(axes) :]
    if len(shape) != len(axes):
        return False
    for axis, size in zip(axes, shape, strict=True):
        if size != (own[axis] if axis in own else sizes.setdefault(axis, size)):
            return False
    return True


def _misfit(name: str, shapes: dict[str, tuple[int, ...]], axes: dict[str, list[str]],
            own: Mapping[str, Any]) -> str:  # fmt: skip
    """What is wrong with the shape of an argument, after those that fit."""
    wanted = ", ".join(str(own.get(axis, axis)) for axis in axes[name])
    known = {}
    for other, shape in shapes.items():
        if other == name:
            break
        for axis, size in zip(axes[other][::-1], shape[::-1], strict=False):
            if axis in axes[name] and axis not in own:
                known.setdefault(axis, f"{axis} = {size} as in {other} {shape}")
    comma = "," * (len(axes[name]) == 1)
    told = f" with {', '.join(known.values())}" if known else ""
    return f"{name} has shape {shapes[name]}, but must be ({wanted}{comma}){told}"
