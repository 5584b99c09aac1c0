"""What drawings are handed, checked by name, and its numbers in words."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from workshop.arguments import as_array, as_floats, as_names, as_whole, said
from workshop.drawings.sheet import MOST, Grid, grid, shortened


def array_of(name: str, value: Any, *shape: int | str, masked: bool = False) -> np.ndarray:
    """Numbers of a shape; a word in it stands for any size."""
    array = as_floats(name, as_array(name, value), masked=masked)
    fits = array.ndim == len(shape) and all(
        need in (size, str(need)) for need, size in zip(shape, array.shape, strict=True)
    )
    if not fits:
        need = str(shape).replace("'", "")
        raise ValueError(f"{name} has shape {array.shape}, but must be {need}")
    return array


def matrix_of(name: str, value: Any, masked: bool = False) -> np.ndarray:
    """A matrix with as many rows as a drawing has room for."""
    array = array_of(name, value, "rows", "columns", masked=masked)
    if len(array) > MOST:
        raise ValueError(f"{name} has {len(array)} rows, but a drawing has room for {MOST}")
    return array


def labels_of(name: str, labels: Any, count: int, optional: bool = True) -> list[str]:
    """As many labels as are needed, or none where they are optional."""
    if labels is None and optional:
        return []
    labels = as_names(name, labels)
    if len(labels) != count:
        raise ValueError(f"{name} has {len(labels)} labels, but needs {count}")
    return labels


def number_at(place: Any, drawn: Grid) -> tuple[int, int]:
    """The row and column of a number that is drawn."""
    if np.shape(place) != (2,):
        raise ValueError(f"lit is {said(place)}, but must be (row, column)")
    columns = [text for text in drawn.texts[0] if text != "…"]
    row = as_whole("lit's row", place[0], 0, len(drawn.texts) - 1)
    return row, as_whole("lit's column", place[1], 0, len(columns) - 1)


def tokens_of(name: str, tokens: Any, most: int = MOST) -> list[str]:
    """Words, or those of a sentence."""
    words = as_names(name, tokens.split() if isinstance(tokens, str) else tokens)
    if not 0 < len(words) <= most:
        raise ValueError(f"{name} has {len(words)} words, but must have from 1 to {most}")
    return words


def place_of(name: str, chosen: Any, words: Sequence[str]) -> int:
    """Where a word stands, of several the first; or the place itself."""
    if not isinstance(chosen, str):
        return as_whole(name, chosen, 0, len(words) - 1)
    if chosen not in words:
        raise ValueError(f"{name} is {said(chosen)}, but must be one of {', '.join(words)}")
    return words.index(chosen)


def each(words: Iterable[str], texts: Iterable[str]) -> str:
    """Numbers in words: "the 0.0, shop 1.0"."""
    return ", ".join(f"{shortened(word)} {text}" for word, text in zip(words, texts, strict=False))


def rows_in_words(drawn: Grid, rows: Sequence[str] = ()) -> str:
    """A matrix in words, row by row."""
    lines = [", ".join(texts) for texts in drawn.texts]
    named = [f"{shortened(row)} {line}" for row, line in zip(rows, lines, strict=False)]
    return "; ".join(named or lines)


def in_brackets(point: np.ndarray) -> str:
    """A vector in words: "(2.0, 1.0)"."""
    return f"({', '.join(grid(point[None], 'x').texts[0])})"


def chosen_of(name: str, chosen: Any, steps: Iterable[str]) -> set[str]:
    """Those of some steps that were chosen, one or several."""
    chosen = as_names(name, [chosen] if isinstance(chosen, str) else chosen)
    for step in chosen:
        if step not in steps:
            raise ValueError(f"{name} is {said(step)}, but must be one of {', '.join(steps)}")
    return set(chosen)
