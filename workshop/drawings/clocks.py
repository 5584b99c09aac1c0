"""Pairs of features as the hands of clocks: positions, and vectors that are turned."""

from typing import Any, Literal

import numpy as np

from workshop.arguments import as_list, as_text, as_whole, said
from workshop.colours import colour_of
from workshop.drawings.arrays import array_of, tokens_of
from workshop.drawings.sheet import INKS, MARGIN, WIDTH, Box, Drawing, Sheet, grid, shortened

_MOST = 4  # pairs
_RADIUS, _LINE = 27, 19  # pixels of a dial, and of a line of numbers
_ROW = 2 * _RADIUS + 2 * _LINE + 24  # pixels from a row of dials to the next
_NAMES = 56  # pixels at the left, for the names of the rows
_ZERO = {"sin, cos": (0, 1), "x, y": (1, 0)}  # where a hand points at angle 0


def clock_hands(tokens: Any, X: Any, pairs: Any = None, *, before: Any = None, name: str = "x",
                order: Literal["sin, cos", "x, y"] = "sin, cos") -> Drawing:  # fmt: skip
    """Draw features 2i and 2i + 1 of X (T, d) as a hand: the first to the right, the second up.

    A tick marks angle 0. Of "sin, cos" a hand stands up there and turns clockwise as the angle
    grows; of "x, y" it points right and turns the other way. `pairs` are up to four i (the first
    four), `before` (T, d) are thin hands; a dial is as large as the longest hand, 1 at least.
    Raises ValueError for an odd d, and for other shapes, pairs, orders and names.
    """
    words, name = tokens_of("tokens", tokens), colour_of("name", name)
    X, order = array_of("X", X, len(words), "features"), _order_of(order)
    shown = _pairs_of(pairs, X.shape[1])
    times = [X] if before is None else [array_of("before", before, *X.shape), X]
    hands = np.stack([Y.reshape(len(words), -1, 2)[:, shown] for Y in times], axis=2)
    dials = _Dials(words, shown, hands, name, order)
    dials.draw()
    return dials.sheet.picture(dials.in_words())


def _order_of(order: Any) -> str:
    if as_text("order", order) not in _ZERO:
        raise ValueError(f"order is {said(order)}, but must be one of {'; '.join(_ZERO)}")
    return order


def _pairs_of(pairs: Any, d: int) -> list[int]:
    """The pairs that are drawn, of d features."""
    if d % 2:
        raise ValueError(f"X has {d} features, but must have an even number: two a hand")
    if pairs is None:
        return list(range(min(d // 2, _MOST)))
    shown = as_list("pairs", pairs)
    if not 0 < len(shown) <= _MOST:
        raise ValueError(f"pairs has {len(shown)} entries, but must have from 1 to {_MOST}")
    return [as_whole("pairs", i, 0, d // 2 - 1) for i in shown]


class _Dials:
    """Rows of dials in the making: `hands` (T, pairs, times, 2), the last time is now."""

    def __init__(self, words: list[str], shown: list[int], hands: np.ndarray, name: str,
                 order: str):  # fmt: skip
        self.sheet, self.words, self.shown, self.order = Sheet(), words, shown, order
        self.slot = min((WIDTH - 2 * MARGIN - _NAMES) / len(words), 84)
        self.ways = hands * _RADIUS / max(1, np.hypot(*hands.T).max()) * (1, -1)  # in pixels
        self.colour = INKS[name]
        texts = [text for (text,) in grid(hands.reshape(-1, 1), name).texts]
        self.texts = np.reshape(texts, hands.shape)

    def draw(self) -> None:
        """Draw the tokens, and below each its dials."""
        T = len(self.words)
        self.sheet.over([Box(t * self.slot, -_RADIUS, self.slot) for t in range(T)], self.words)
        for row, i in enumerate(self.shown):
            y = row * _ROW
            for line, words in zip((0, 1, 2), (f"pair {i}", *self.order.split(", ")), strict=True):
                self.sheet.text(-4, _line(y, line), words, at="right", bold=not line)
            for t in range(T):
                self.dial((t + 0.5) * self.slot, y, self.ways[t, row])
                for line, text in enumerate(self.texts[t, row, -1], 1):
                    self.sheet.text((t + 0.5) * self.slot, _line(y, line), text)

    def dial(self, x: float, y: float, ways: np.ndarray) -> None:
        """Draw a dial around a point with its hands, the last of them thick."""
        centre, zero = np.array([x, y]), np.array(_ZERO[self.order]) * (1, -1)
        self.sheet.ring(x, y, _RADIUS)
        tick = centre + np.outer((_RADIUS - 6, _RADIUS), zero)
        self.sheet.arrow(*map(tuple, tick), head=False, width=2)
        for end in centre + ways[:-1]:
            self.sheet.arrow((x, y), tuple(end), width=1.4)
        self.sheet.arrow((x, y), tuple(centre + ways[-1]), colour=self.colour, width=3)
        self.sheet.dot(x, y, self.colour, radius=2.5)

    def in_words(self) -> str:
        """The numbers of all hands in words."""
        told = []
        for row, i in enumerate(self.shown):
            hands = (" → ".join(f"({a}, {b})" for a, b in times) for times in self.texts[:, row])
            said_for = zip(map(shortened, self.words), hands, strict=True)
            told.append(f"pair {i}: {', '.join(map(' '.join, said_for))}")
        return f"Hands of clocks ({self.order}): {'; '.join(told)}."


def _line(y: float, line: int) -> float:
    """The height of a line of writing below the middle of a dial, or of the dial itself."""
    return y + (line and _RADIUS + 3 + (line - 0.5) * _LINE)
