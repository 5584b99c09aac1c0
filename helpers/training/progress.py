"""What training shows while it runs: a bar, and in a notebook the loss curve as it grows."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from tqdm import tqdm

from helpers.figures import Picture, canvas

SECONDS = 1.5  # between two drawings: each takes a tenth of a second
POINTS = 50  # of the curve; each is the mean of the losses of so many steps
ALT = "Line chart of the loss while the model trains, against the number of steps."


@contextmanager
def progress(steps: int, losses: list[float], shown: bool) -> Iterator[Callable[[], None]]:
    """Show how far the training is; what it yields is to be called after each step.

    At the end the bar is gone and the whole curve stays.
    """
    if not shown:
        yield lambda: None
        return
    curve = _Curve(steps, losses)  # above the bar, so that the bar's line is not torn
    with tqdm(
        total=steps,
        initial=len(losses),
        file=sys.stdout,
        leave=False,
        unit=" steps",
        ncols=56,  # a narrow notebook would wrap a longer one
        mininterval=0.5,
    ) as bar:

        def step_done() -> None:
            bar.update()
            curve.redraw(SECONDS)

        yield step_done
    curve.redraw(0)


def loss_curve(losses: list[float], steps: int | None = None) -> Picture:
    """Draw the losses of a training, (steps,), smoothed: each point is the mean of a fiftieth.

    The axis is as long as all `steps`, so that the curve grows into it.
    """
    steps = steps or len(losses)
    width = max(1, steps // POINTS)
    starts = range(0, len(losses), width)
    means = [float(np.mean(losses[start : start + width])) for start in starts]
    ends = [min(start + width, len(losses)) for start in starts]
    figure, ax = canvas(6.4, 3.2)
    ax.plot(ends, means)
    highest = 1.05 * max(means, default=1.0)
    ax.set(xlabel="step", ylabel="loss", xlim=(0, steps), ylim=(0, highest))
    return Picture(figure, ALT)


class _Curve:
    """One display in the notebook that is replaced by the newest drawing; elsewhere nothing."""

    def __init__(self, steps: int, losses: list[float]) -> None:
        self.steps, self.losses = steps, losses
        self.handle: Any = None
        if _in_notebook():
            from IPython.display import display

            content, metadata = self._drawing()
            self.handle = display(content, metadata=metadata, raw=True, display_id=True)
        self.drawn = time.monotonic()

    def redraw(self, after: float) -> None:
        if self.handle is None or time.monotonic() - self.drawn < after:
            return
        content, metadata = self._drawing()
        self.handle.update(content, metadata=metadata, raw=True)
        self.drawn = time.monotonic()

    def _drawing(self) -> tuple[dict, dict]:
        picture = loss_curve(self.losses, self.steps)
        metadata = {"image/png": {"alt": picture.alt, "width": picture.width}}
        return {"image/png": picture.png, "text/plain": picture.alt}, metadata


def _in_notebook() -> bool:
    """Whether a kernel listens; a terminal would print only the words."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None
