"""One colour for each thing, the same in drawings, tables, widgets and pages."""

from collections.abc import Sequence
from typing import Any

from workshop.arguments import one_of

# widgets/style.css holds the same; a test compares them. Mixed with the page's ink they stand out
# on light and dark grounds; a cell's tint is the colour laid thinly over its ground.
OF = {
    "x": "#6b7280",  # word vectors, grey
    "q": "#d97706",  # queries, orange
    "k": "#2563eb",  # keys, blue
    "v": "#059669",  # values, green
    "scores": "#7c3aed",  # violet
    "weights": "#db2777",  # pink
    "context": "#111827",  # black
}
_WORDS = {"queries": "q", "keys": "k", "values": "v", "q @ k": "scores", "scaled": "scores"}
STRONGEST = 0.72  # how much of its colour the largest number of a matrix gets


def mixed(colour: str, share: float, ground: str = "#ffffff") -> str:
    """`share` of a colour laid over a ground: #rrggbb."""
    pairs = zip(_channels(colour), _channels(ground), strict=True)
    return "#" + "".join(f"{round(share * c + (1 - share) * g):02x}" for c, g in pairs)


def colour_of(name: str, colour: Any) -> str:
    """The name of a thing that has a colour."""
    return one_of(name, colour, OF)


def things_of(names: Sequence[str]) -> list[str]:
    """Whose colours X, W and X @ W have, by their names: Kᵀ and W_k have those of k."""
    last = _thing(names[2], "context")
    second = _thing(names[1], last if names[1].startswith("W") else "x")
    return [_thing(names[0], "x"), second, last]


def _thing(name: str, otherwise: str) -> str:
    thing = name.removesuffix("ᵀ").removeprefix("W_").lower()
    thing = _WORDS.get(thing, thing)
    return thing if thing in OF else otherwise


def size(name: str, value: Any) -> Any:
    """How much colour a number, or an array of them, asks for; a score below 0 fits less than 0."""
    return value * (value > 0) if name == "scores" else abs(value)


def tint(name: str, value: float, largest: float) -> str:
    """The ground of a cell: white at 0, most of its thing's colour at the largest number."""
    share = min(size(name, value) / largest, 1.0) if largest > 0 and value == value else 0.0
    return mixed(OF[name], STRONGEST * share)


def ink_on(ground: str) -> str:
    """Black or white, whichever stands out more from a ground (WCAG's relative luminance)."""
    channels = [c / 255 for c in _channels(ground)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if luminance > 0.179 else "#ffffff"  # 4.5:1 at least, on any ground


def _channels(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))
