"""Softmax to touch: logits become probabilities, sharp or soft."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets

from helpers.attention import softmax
from workshop.figures import Picture, bars, number
from workshop.widgets.base import Widget, check_array, check_labels, program, visible
from workshop.widgets.traits import Labels, Number, Whole

LABELS = 12  # sliders that a page has room for


class Logits(traitlets.List):
    """One row of numbers."""

    def validate(self, widget: Any, value: Any) -> list[float]:
        x = check_array(self.name, value)
        if x.ndim != 1 or x.size > LABELS:
            raise ValueError(
                f"logits has shape {x.shape}, but must be one row of at most {LABELS} numbers"
            )
        return x.tolist()


class SoftmaxLab(Widget):
    """Softmax to touch: drag logits, temperature and d_k, and watch how undecided it stays.

    `logits` are (n,), n at most 12, one for each of `labels`. They are divided by √`d_k` and by
    `temperature` before softmax. `probabilities`, `entropy` and `answer` follow what is set.

    Raises ValueError for more logits, other shapes, numbers that are not finite, a wrong number of
    labels, a temperature outside 0.01 … 100 or a d_k that is no positive whole number.
    """

    _esm = program("widgets/softmax.js", "SoftmaxLab")
    labels = Labels().tag(sync=True)
    logits = Logits().tag(sync=True)
    temperature = Number(1.0, min=0.01, max=100).tag(sync=True)
    d_k = Whole(1, min=1).tag(sync=True)
    start = traitlets.Dict().tag(sync=True)

    def __init__(self, logits: Any, labels: Sequence[str] | None = None, *,
                 temperature: float = 1.0, d_k: int = 1):  # fmt: skip
        start = self.check(logits=logits, temperature=temperature, d_k=d_k)
        count = len(start["logits"])
        labels = check_labels("labels", labels, count, f"logits {(count,)}")
        super().__init__("", {}, labels=labels, start=start, **start)
        self._say()

    @property
    def probabilities(self) -> np.ndarray:
        """The softmax of logits / √d_k / temperature: (n,), the numbers that the browser shows."""
        return softmax(np.array(self.logits) / self.d_k**0.5 / self.temperature)

    @property
    def entropy(self) -> float:
        """How undecided the probabilities are, −Σ p log p in nats: at most log n."""
        p = self.probabilities
        return float(-(p * np.log(np.where(p > 0, p, 1))).sum())

    @property
    def answer(self) -> float:
        """The mean of p (1 − p), how much a probability moves per nudge of its own scaled logit."""
        p = self.probabilities
        return float((p * (1 - p)).mean())

    def picture(self) -> Picture:
        """Draw the probabilities as bars."""
        labels = [visible(label, 16) for label in self.labels]
        return bars({"probability": self.probabilities}, labels, decimals=4, alt=self.words)

    @traitlets.validate("logits")
    def _one_each(self, proposal: Any) -> list[float]:
        x = proposal["value"]
        if len(x) != len(self.labels):
            raise ValueError(f"logits has {len(x)} numbers, but must have {len(self.labels)}")
        return x

    @traitlets.observe("logits", "temperature", "d_k")
    def _say(self, _: Any = None) -> None:
        """Keep the words in step with what is set."""
        p, labels = self.probabilities, self.labels
        best = int(p.round(9).argmax())
        self.words = (
            f"SoftmaxLab: {len(p)} logits, temperature {self.temperature:g}, d_k {self.d_k}; "
            f'largest probability "{visible(labels[best])}" {number(p[best])}, '
            f"entropy {number(self.entropy)} of at most {number(np.log(len(p)))} nats, "
            f"mean of p (1 − p) {number(self.answer)}"
        )
