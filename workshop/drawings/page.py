"""The page of a drawing, and how much room boxes and words take on it."""

import warnings
from functools import cache
from typing import NamedTuple

import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

WIDTH, LETTER, CELL, MARGIN = 836, 14, 28, 6  # pixels: the page, the type, a cell's height, around
WORD = 92  # pixels for a token
Point = tuple[float, float]


class Box(NamedTuple):
    """Where something stands; arrows start and end at the middles of its edges."""

    x: float
    y: float
    width: float
    height: float = CELL

    middle = property(lambda self: (self.x + self.width / 2, self.y + self.height / 2))
    left = property(lambda self: (self.x, self.middle[1]))
    right = property(lambda self: (self.x + self.width, self.middle[1]))
    top = property(lambda self: (self.middle[0], self.y))
    bottom = property(lambda self: (self.middle[0], self.y + self.height))

    def meets(self, other: "Box") -> bool:
        """Whether the two overlap."""
        gaps = np.abs(np.subtract(self.middle, other.middle))
        return bool((gaps < np.add(self[2:], other[2:]) / 2).all())


@cache
def wide(words: str, bold: bool = False, size: float = LETTER) -> float:
    """How many pixels wide a text will be."""
    font = FontProperties(size=size, weight="bold" if bold else "normal")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of glyphs that are missing, drawn as an empty box
        return TextToPath().get_text_width_height_descent(words, font, False)[0]


def shortened(word: str, room: float = WORD) -> str:
    """A word in so many pixels, on one line, every character of it to be seen."""
    seen = "".join(c if c.isprintable() else "⏎" if c == "\n" else "·" for c in word[:60])
    if not seen.strip():
        seen = "␣" * max(len(seen), 1)
    if len(word) <= 60 and wide(seen, True) <= room:
        return seen
    while seen and wide(seen + "…", True) > room:
        seen = seen[:-1]
    return seen + "…"
