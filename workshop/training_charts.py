"""Charts of trainings: the loss while a model learns, and what the trainings of a table came to."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from tqdm import tqdm

from helpers.training.ablations import Result, read_table
from workshop.arguments import number
from workshop.figures import COLOURS, INK, Picture, canvas

SECONDS = 1.5  # between two drawings: each takes a tenth of a second
POINTS = 50  # of the curve; each is the mean of the losses of so many steps
BAR = {"unit": " steps", "ncols": 56, "mininterval": 0.5}  # a narrow notebook wraps a longer one
ALT = "Line chart of the loss while the model trains, against the number of steps."


def live_loss(steps: range, losses: list[float]) -> Iterator[int]:
    """Show a training while it runs, `fit(…, watch=live_loss)`: a bar, in notebooks the curve too.

    Hands on the steps, after each of which its loss is in `losses`. At the end the bar is gone and
    the whole curve stays.
    """
    curve = _Curve(losses, len(steps))  # above the bar, so that the bar's line is not torn
    try:
        for step in tqdm(steps, file=sys.stdout, leave=False, **BAR):
            yield step
            curve.redraw(SECONDS)
    finally:
        curve.redraw(0)
    print(f"{len(losses):,} of {len(steps):,} steps.")


def loss_curve(losses: list[float], steps: int) -> Picture:
    """Draw the losses so far, smoothed: each point is the mean of a fiftieth of all `steps`.

    The axis is as long as all `steps`, so that the curve grows into it.
    """
    width = max(1, steps // POINTS)
    starts = range(0, len(losses), width)
    means = [float(np.mean(losses[start : start + width])) for start in starts]
    figure, ax = canvas()
    ax.plot([min(start + width, len(losses)) for start in starts], means)
    highest = 1.05 * max(means, default=1.0)
    ax.set(xlabel="step", ylabel="loss", xlim=(0, steps), ylim=(0, highest))
    return Picture(figure, ALT)


class _Curve:
    """One display in the notebook that is replaced by the newest drawing; elsewhere nothing."""

    def __init__(self, losses: list[float], steps: int) -> None:
        self.losses, self.steps = losses, steps
        self.handle: Any = None
        if _in_notebook():
            from IPython.display import DisplayHandle

            self.handle = DisplayHandle()
            self._show(self.handle.display)
        self.drawn = time.monotonic()

    def redraw(self, after: float) -> None:
        """Draw anew if the last drawing is so many seconds old."""
        if self.handle is not None and time.monotonic() - self.drawn >= after:
            self._show(self.handle.update)
            self.drawn = time.monotonic()

    def _show(self, show: Any) -> None:
        picture = loss_curve(self.losses, self.steps)
        metadata = {"image/png": {"alt": picture.alt, "width": picture.width}}
        content = {"image/png": picture.png, "text/plain": picture.alt}
        show(content, metadata=metadata, raw=True)


def _in_notebook() -> bool:
    """Whether a kernel listens; a terminal would print only the words."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None


def spread(names: Mapping[str, str] | Sequence[str]) -> Picture:
    """Draw lines of the table of ablations: a dot for each seed, their range written at the right.

    `names` are names of lines, or map them to what shall stand in their place.
    """
    labels = names if isinstance(names, Mapping) else {name: name for name in names}
    table = read_table()
    lines = {label: [r for r in table if r.name == name] for name, label in labels.items()}
    figure, (matches, losses) = canvas(9.4, 0.34 * len(lines) + 0.9, columns=2, sharey=True)
    alt = _dots(matches, lines, "exact_match", 100, 1) + _dots(losses, lines, "loss", 1, 3)
    matches.set(xlabel="exact match, %", xlim=(-2, 103), ylim=(len(lines) - 0.4, -0.6))
    losses.set(xlabel="loss per token", xscale="log", xticks=[0.01, 0.1, 1], xlim=(0.003, 5))
    losses.set_xticklabels(["0.01", "0.1", "1"])
    losses.grid(axis="x", alpha=0.3)
    return Picture(figure, f"Chart with a dot for each training. {'; '.join(alt)}.")


def _dots(
    ax: Axes, lines: Mapping[str, list[Result]], what: str, scale: float, decimals: int
) -> list[str]:
    """Draw one measure of each line; returns them in words."""
    words = []
    for y, (label, results) in enumerate(lines.items()):
        dots = [scale * getattr(result, what) for result in results]
        if what == "exact_match":  # a loss has no bar: on its axis nothing stands at 0
            ax.barh(y, np.mean(dots), color=COLOURS[0], alpha=0.5)
        ax.plot(dots, [y] * len(dots), "o", color=INK, linestyle="")
        beside = {"transform": ax.get_yaxis_transform(), "va": "center", "color": INK}
        known = [number(d, decimals) for d in sorted(dots) if not np.isnan(d)]
        span = known[0] if known[0] == known[-1] else f"{known[0]} to {known[-1]}"
        span += ", NaN" if len(known) < len(dots) else ""
        ax.text(1.02, y, span, **beside)
        words.append(f"{label}, {what.replace('_', ' ')}: {span}")
    ax.set_yticks(range(len(lines)), lines)
    return words
