"""Words and steps as boxes, with arrows between them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workshop.arguments import as_names, as_switch, said
from workshop.colours import colour_of
from workshop.drawings.arrays import array_of, chosen_of, each, place_of, tokens_of
from workshop.drawings.sheet import (
    CELL,
    INKS,
    MARGIN,
    WIDTH,
    Box,
    Drawing,
    Grid,
    Sheet,
    grid,
    shortened,
    wide,
)

_BELOW = 150  # pixels from the words down to those that ask them


def arrows_of_scores(tokens: Any, scores: Any, asker: Any = None, *,
                     name: str = "scores") -> Drawing:  # fmt: skip
    """Draw words as nodes, and scores (T, T) or one asker's (T,) as arrows of that width.

    `name` is "scores" or "weights". An arrow is thin and dashed for a score below 0, and missing
    for −∞ and for a weight of 0; where all ask, a score of 0 has none either.
    Raises ValueError for other shapes.
    """
    words, name = tokens_of("tokens", tokens), colour_of("name", name)
    T, (askers, rows) = len(words), _asked("scores", words, scores, asker, len(words))
    drawn = grid(rows, name, decimals=2 if name == "weights" else None)
    sheet, slot = Sheet(), _slot(T)
    nodes = _nodes(sheet, 0, 0, slot, words, "k", 0.18)
    largest = 1.0 if name == "weights" else drawn.largest or 1.0
    nothing = name == "weights" or asker is None
    for i, row in zip(askers, np.where((rows == 0) & nothing, -np.inf, rows), strict=True):
        (below,) = _nodes(sheet, i * slot, _BELOW, slot, [words[i]], "q", 0.45)
        _fan(sheet, below, nodes, row / largest * (4 if asker is None else 9), name)
    if asker is not None:
        sheet.cells(0, -CELL - 10, drawn._replace(cells=[slot] * T))
    return sheet.picture(f"Arrows as wide as {name}. {_asks(words, askers, words, drawn)}.")


def arrows_between(tokens: Any, source: Any, weights: Any, asker: Any = None) -> Drawing:
    """Draw words below, those of another text above, and weights (T, S) as arrows of that width.

    With an asker, only its weights, which may be (S,), are drawn, with their numbers; a weight of 0
    has no arrow. Raises ValueError for other shapes.
    """
    words, others = tokens_of("tokens", tokens), tokens_of("source", source)
    askers, rows = _asked("weights", words, weights, asker, len(others))
    drawn, sheet = grid(rows, "weights", decimals=2), Sheet()
    slot = _slot(max(len(words), len(others)))
    left = (len(words) - len(others)) / 2 * slot  # of the source, which stands over the middle
    above = _nodes(sheet, left, 0, slot, others, "k", 0.18)
    for i, word in enumerate(words):
        _nodes(sheet, i * slot, _BELOW, slot, [word], "q", 0.45 * (i in askers))
    for i, row in zip(askers, np.where(rows == 0, -np.inf, rows), strict=True):
        below = above[0]._replace(x=i * slot + 5, y=_BELOW)
        _fan(sheet, below, above, row * (4 if asker is None else 9), "weights")
    if asker is not None:
        sheet.cells(left, -CELL - 10, drawn._replace(cells=[slot] * len(others)))
    return sheet.picture(f"Arrows as wide as weights. {_asks(words, askers, others, drawn)}.")


def _slot(count: int) -> float:
    """Pixels from a node to the next of so many."""
    return min((WIDTH - 2 * MARGIN) / count, 104)


def _nodes(sheet: Sheet, x: float, y: float, slot: float, words: Sequence[str], name: str,
           share: float) -> list[Box]:  # fmt: skip
    """Draw words as boxes side by side, on so much of a thing's colour."""
    boxes = [Box(x + j * slot + 5, y, slot - 10, 30) for j in range(len(words))]
    for word, box in zip(words, boxes, strict=True):
        sheet.label(box, word, name, share=share)
    return boxes


def _asked(name: str, words: Sequence[str], scores: Any, asker: Any,
           S: int) -> tuple[Sequence[int], np.ndarray]:  # fmt: skip
    """Who asks, and the scores of each: (askers, S)."""
    T, masked = len(words), name == "scores"
    if asker is None:
        return range(T), array_of(name, scores, T, S, masked=masked)
    at = place_of("asker", asker, words)
    if np.ndim(scores) == 1:
        return [at], array_of(name, scores, S, masked=masked)[None]
    return [at], array_of(name, scores, T, S, masked=masked)[[at]]


def _fan(sheet: Sheet, asker: Box, nodes: Sequence[Box], widths: np.ndarray, name: str) -> None:
    """Draw an asker's arrows up to the words."""
    for node, width in zip(nodes, widths, strict=True):
        if np.isfinite(width):
            style = {"width": 0.6 + max(width, 0), "dashed": width < 0, "lit": width != 0}
            sheet.arrow(asker.top, node.bottom, colour=INKS[name], **style)


def _asks(words: Sequence[str], askers: Sequence[int], others: Sequence[str], drawn: Grid) -> str:
    """The numbers of arrows in words."""
    return "; ".join(f"{shortened(words[i])} asks: {each(others, texts)}"
                     for i, texts in zip(askers, drawn.texts, strict=True))  # fmt: skip


def flow(groups: Mapping[str, Sequence[str]], lit: Any = (), *, linked: bool = True) -> Drawing:
    """Draw a model's steps as boxes, a row of boxes a group, with some steps lit.

    `lit` are steps, or "group/step" for that of one group. With `linked` an arrow leads from the
    end of each group to the start of the next. Raises ValueError for a lit step that no group has.
    """
    rows, linked, sheet = _groups(groups), as_switch("linked", linked), Sheet()
    known = [step for steps in rows.values() for step in steps]
    known += [f"{name}/{step}" for name, steps in rows.items() for step in steps]
    full, y, last = chosen_of("lit", lit, known), 0.0, None
    for name, steps in rows.items():
        sheet.text(-16, y + 17, shortened(name, 110), at="right")
        own = {step for step in steps if {step, f"{name}/{step}"} & full}
        last = last if linked else None
        for line in _lines(steps):
            last = _flow_line(sheet, y, line, last, own)
            y += 74
    told = [*rows.items(), *[("lit", sorted(full))][: len(full)]]
    return sheet.picture("; ".join(f"{name}: {_whole(steps)}" for name, steps in told) + ".")


def _groups(groups: Any) -> dict[str, list[str]]:
    """The steps of each group."""
    if not isinstance(groups, Mapping) or not groups:
        raise TypeError(f"groups is {said(groups)}, but must be names with a list of steps each")
    as_names("groups", groups)
    return {name: as_names(f"groups[{name!r}]", steps) for name, steps in groups.items()}


def _whole(steps: Sequence[str]) -> str:
    """Steps in words, with as many letters as a line has: these need no room in a box."""
    return " → ".join(shortened(step, np.inf) for step in steps)


def _lines(steps: Sequence[str]) -> list[list[tuple[str, Box]]]:
    """Steps with their boxes, in as many lines as they need."""
    lines: list[list[tuple[str, Box]]] = [[]]
    x = 0.0
    for step in steps:
        size = wide(shortened(step, 180), True) + 26
        if x and x + size > WIDTH - 150:
            lines.append([])
            x = 0.0
        lines[-1].append((step, Box(x, 0, size, 34)))
        x += size + 30
    return lines


def _flow_line(sheet: Sheet, y: float, line: Sequence[tuple[str, Box]], last: Box | None,
               full: set[str]) -> Box | None:  # fmt: skip
    """Draw a line of steps at the height y, with arrows from each one's last; its last box."""
    for i, (step, place) in enumerate(line):
        box = place._replace(y=y)
        lit = step in full
        sheet.label(box, shortened(step, 180), "q" if lit else "x", share=0.5 * lit)
        if i:
            sheet.arrow(last.right, box.left)
        elif last:
            turn = y - 20
            sheet.arrow(last.bottom, (last.bottom[0], turn), (box.top[0], turn), box.top)
        last = box
    return last
