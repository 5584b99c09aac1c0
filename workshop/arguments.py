"""What a caller hands in, checked by name: arrays, numbers, switches and words.

Each function returns the value in its plainest form, or raises a TypeError for what is of another
kind and a ValueError for what is out of range; both name the argument, what it was, and the need.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

LARGEST = float(np.finfo(np.float32).max)  # beyond it float32, which browsers draw, is infinite
MOST = 2**31 - 1  # for a whole number that has no other limit
ROOM = 12  # rows in a drawing, and cells in a row
SMALLEST = float(np.finfo(np.float32).tiny)  # of the positive numbers that keep their digits
WORDS = 4_096  # of a vocabulary


def said(value: Any) -> str:
    """A value in an error message: how it begins, and its type if that does not show."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # an integer with more digits than Python writes, or a class of the caller's
        text = "something"
    text = text if len(text) <= 60 else text[:59] + "…"
    text = text.encode("utf-8", "backslashreplace").decode()
    plain = value is None or type(value) in (bool, int, float, str)
    return text if plain else f"{text} ({type(value).__name__})"


def check_axes(name: str, array: Any, *axes: str) -> None:
    """Raise ValueError unless an array has as many axes as are named."""
    if np.ndim(array) != len(axes):
        needed = str(axes).replace("'", "")
        raise ValueError(f"{name} has shape {tuple(np.shape(array))}, but must be {needed}")


def as_array(name: str, value: Any, kinds: str = "biuf") -> np.ndarray:
    """NumPy, PyTorch, pandas or lists as an array of numbers (kinds of dtype; U are strings)."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array: say what to show in its gaps by .filled(…)")
    try:
        array = np.asarray(_on_cpu(value))
    except Exception as error:  # tensors without numbers, rows of several lengths, foreign classes
        reason = said(value) + "".join(f": {line}" for line in str(error).splitlines()[:1])
        raise TypeError(f"{name} must be an array of numbers, not {reason}") from None
    if array.dtype.kind not in kinds:
        what = f"{said(value)} of dtype {array.dtype}"
        raise TypeError(f"{name} must be an array of numbers, not {what}")
    if array.size == 0:
        raise ValueError(f"{name} has shape {array.shape}: there is nothing to show")
    return array


def _on_cpu(value: Any) -> Any:
    """A tensor as NumPy can read it, also one of bfloat16, which NumPy does not have."""
    if not hasattr(value, "detach"):
        return value
    value = value.detach().cpu()
    return value.float() if value.is_floating_point() and value.element_size() < 4 else value


def as_floats(name: str, array: np.ndarray, *, masked: bool = False) -> np.ndarray:
    """Numbers as float64, each one that float32 can hold; `masked` admits −∞, of masked scores."""
    with np.errstate(over="ignore"):
        array = array.astype(float, copy=False)
    bad = ~(np.abs(array) <= LARGEST)  # NaN, too
    if masked:
        bad &= array != -np.inf
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        need = f"numbers, none beyond {LARGEST:.1e}"
        raise ValueError(f"{name} {array.shape} has {array[place]} at {place}; needed are {need}")
    return array


def scalar(value: Any) -> Any:
    """What is in a NumPy or PyTorch scalar; anything else as it is."""
    try:
        return value.item() if hasattr(value, "item") else value
    except Exception:  # more than one number, or a tensor that has none
        return value


def as_number(name: str, value: Any, low: float = -LARGEST, high: float = LARGEST) -> float:
    """One number from `low` to `high`."""
    number = scalar(value)
    if isinstance(number, bool) or not isinstance(number, Real):
        raise TypeError(f"{name} is {said(value)}, but must be a number")
    try:
        number = float(number)
    except OverflowError:
        number = np.inf
    if not low <= number <= high:
        need = f"from {low:g} to {high:g}"
        if high == LARGEST:
            need = f"{'positive and ' * (low == SMALLEST)}a finite float32"
        raise ValueError(f"{name} is {said(value)}, but must be {need}")
    return number


def as_whole(name: str, value: Any, low: int, high: int) -> int:
    """One whole number from `low` to `high`."""
    try:
        number = as_number(name, value, low, high)
    except ValueError:
        number = 0.5
    if number % 1:
        need = f"from {low} to {high}" if high < MOST else f"of at least {low}"
        raise ValueError(f"{name} is {said(value)}, but must be a whole number {need}")
    return int(number)


def as_switch(name: str, value: Any) -> bool:
    """True or False."""
    switch = scalar(value)
    if not isinstance(switch, bool):
        raise TypeError(f"{name} is {said(value)}, but must be True or False")
    return switch


def as_text(name: str, value: Any) -> str:
    """A string that a file can hold: without half a character (a lone surrogate)."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {said(value)}, but must be a string")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        half = f"{value[error.start]!r} at place {error.start}, half a character"
        raise ValueError(f"{name} is {said(value)} with {half}, but must be valid text") from None
    return str(value)


def as_list(name: str, value: Any) -> list[Any]:
    """The entries of a list, a tuple, a range, an array or a column, in their order."""
    other = str | bytes | Mapping | set | frozenset | np.ma.MaskedArray
    if isinstance(value, other) or not isinstance(value, Collection):
        raise TypeError(f"{name} is {said(value)}, but must be a list of strings")
    try:
        return list(value)
    except Exception as error:  # an array without axes, a tensor without numbers
        raise TypeError(f"{name} is {said(value)}, but must be a list: {error}") from None


def as_labels(name: str, labels: Any) -> list[str]:
    """A list of strings, or of numbers written as strings."""
    return [_label(f"{name}[{i}]", label) for i, label in enumerate(as_list(name, labels))]


def as_names(name: str, labels: Any) -> list[str]:
    """Labels of rows or columns; a string stands for its letters, a vocabulary for its words."""
    return as_labels(name, list(labels) if isinstance(labels, str | Mapping) else labels)


def _label(name: str, value: Any) -> str:
    value = scalar(value)
    if isinstance(value, bool | Real):
        try:
            return str(value)
        except ValueError:  # more digits than Python writes
            raise ValueError(f"{name} is {said(value)}, too long for a label") from None
    return as_text(name, value)


def array_of(name: str, value: Any, *shape: int | str, masked: bool = False) -> np.ndarray:
    """Numbers of a shape; a word in it stands for any size, "rows" for as many as can be drawn."""
    array = as_floats(name, as_array(name, value), masked=masked)
    wanted = [need if isinstance(need, int) else None for need in shape]
    seen = [size if need else None for need, size in zip(wanted, array.shape, strict=False)]
    if array.ndim != len(shape) or seen != wanted:
        need = str(shape).replace("'", "")
        raise ValueError(f"{name} has shape {array.shape}, but must be {need}")
    if shape[0] == "rows" and len(array) > ROOM:
        raise ValueError(f"{name} has {len(array)} rows, but a drawing has room for {ROOM}")
    return array


def labels_of(name: str, labels: Any, count: int) -> list[str]:
    """As many labels as are needed."""
    labels = as_names(name, labels)
    if len(labels) != count:
        raise ValueError(f"{name} has {len(labels)} labels, but needs {count}")
    return labels


def tokens_of(name: str, tokens: Any, most: int = ROOM) -> list[str]:
    """Words, or those of a sentence."""
    words = as_names(name, tokens.split() if isinstance(tokens, str) else tokens)
    if not 0 < len(words) <= most:
        raise ValueError(f"{name} has {len(words)} words, but must have from 1 to {most}")
    return words


def place_of(name: str, chosen: Any, words: Sequence[str]) -> int:
    """Where a word stands, of several the first; or the place itself."""
    if not isinstance(chosen, str):
        return as_whole(name, chosen, 0, len(words) - 1)
    return words.index(one_of(name, chosen, words))


def one_of(name: str, chosen: Any, known: Iterable[str], between: str = ", ") -> str:
    """One of the words that are known."""
    if as_text(name, chosen) not in known:
        raise ValueError(f"{name} is {said(chosen)}, but must be one of {between.join(known)}")
    return chosen


def chosen_of(name: str, chosen: Any, steps: Collection[str]) -> set[str]:
    """Those of some steps that were chosen, one or several."""
    chosen = as_names(name, [chosen] if isinstance(chosen, str) else chosen)
    return {one_of(name, step, steps) for step in chosen}


def number(value: Any, decimals: int = 4) -> str:
    """Write one number: floats with fixed decimals and no negative zero, the rest as it is.

    A last bit that differs between machines does not show: 1.495 and 1.4949999999 print alike.
    """
    if isinstance(value, bool | np.bool_ | int | np.integer | str):
        return str(value)
    text = f"{round(float(value), 9):.{decimals}f}"
    return text.lstrip("-") if float(text) == 0 else text


def as_vocabulary(name: str, value: Any) -> list[str]:
    """Words in the order of their ids, each once, given so or as a map to ids 0 … V − 1."""
    if isinstance(value, Mapping):
        ids = {word: as_whole(f"an id of {name}", i, 0, MOST) for word, i in value.items()}
        if sorted(ids.values()) != list(range(len(ids))):
            raise ValueError(f"{name} has ids that are not 0 … {len(ids) - 1}, each once")
        value = sorted(ids, key=ids.__getitem__)
    words = as_labels(name, value)
    if not 1 <= len(words) <= WORDS:
        raise ValueError(f"{name} has {len(words):,} words, but must have 1 to {WORDS:,}")
    if len(set(words)) < len(words):
        twice = next(word for i, word in enumerate(words) if word in words[:i])
        raise ValueError(f"{name} has {twice!r} twice, but each word must be there once")
    return words
