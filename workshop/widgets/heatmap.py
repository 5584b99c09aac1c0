"""The heatmap of attention: every layer and head, from scores to weights."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets

from helpers.attention import safe_masked_softmax
from workshop.arguments import SMALLEST, number
from workshop.drawings.matrices import maps
from workshop.figures import Picture
from workshop.widgets.base import Widget, check_array, check_labels, check_sign, program, visible
from workshop.widgets.traits import Choice, Labels, Number, Switch, Whole

VIEWS = ["one head", "all heads", "all layers"]
SCORES_ONLY = ("temperature", "scaled", "causal", "softmax")


class AttentionHeatmap(Widget):
    """Attention to touch: hover or arrow keys read a weight, Enter pins its row as bars.

    `weights`, or raw `scores`, are (Tq, Tk), (H, Tq, Tk) or (L, H, Tq, Tk), with one of `tokens`
    per query and one of `key_tokens` (the same unless given) per key. From scores the reader sees
    weights arise: divided by √`d_k` (`scaled`) and by `temperature`, masked (`causal`), `softmax`.
    `head_names` are shown in place of 0, 1, 2 …; `layer`, `head` and `view` say where to begin.
    `selected` is what the reader picked: layer, head, query, key and the number shown there.

    Raises ValueError for NaN, negative weights, other shapes, a wrong number of tokens, or more
    than 4,194,304 numbers or 1,024 tokens.
    """

    _esm = program("widgets/heatmap.js", "AttentionHeatmap")
    tokens = Labels().tag(sync=True)
    key_tokens = Labels().tag(sync=True)
    head_names = Labels().tag(sync=True)
    raw = Switch().tag(sync=True)
    d_k = Number(1, min=SMALLEST).tag(sync=True)
    layer = Whole().tag(sync=True)
    head = Whole().tag(sync=True)
    view = Choice(VIEWS).tag(sync=True)
    temperature = Number(1, min=SMALLEST).tag(sync=True)
    scaled = Switch().tag(sync=True)
    causal = Switch().tag(sync=True)
    softmax = Switch().tag(sync=True)
    selected = traitlets.Dict().tag(sync=True)

    def __init__(self, weights: Any = None, tokens: Sequence[str] | None = None, *,
                 scores: Any = None, key_tokens: Sequence[str] | None = None,
                 head_names: Sequence[str] | None = None, d_k: float = 1,
                 **shown: Any):  # fmt: skip
        if (weights is None) == (scores is None):
            raise ValueError("needed is either weights or scores, and not both")
        name, given = ("weights", weights) if scores is None else ("scores", scores)
        array = _matrices(name, given)
        of = f"{name} {array.shape}"
        self._array = array = array.reshape((1,) * (4 - array.ndim) + array.shape)
        _, heads, queries, keys = array.shape
        tokens = check_labels("tokens", tokens, queries, of)
        if key_tokens is None and keys == queries:
            key_tokens = tokens
        key_tokens = check_labels("key_tokens", key_tokens, keys, of)
        head_names = range(heads) if head_names is None else head_names
        head_names = check_labels("head_names", head_names, heads, of)
        _check_names(shown)
        shown |= {"tokens": tokens, "key_tokens": key_tokens, "head_names": head_names}
        super().__init__("", {"matrices": array}, raw=scores is not None, d_k=d_k, **shown)
        self.words = self._describe()

    @traitlets.validate("layer", "head")
    def _inside(self, proposal: dict) -> int:
        name, value = proposal["trait"].name, proposal["value"]
        count = self._array.shape[("layer", "head").index(name)]
        if value >= count:
            raise ValueError(f"{name} is {value}, but there are {count}, counted from 0")
        return value

    @traitlets.validate(*SCORES_ONLY)
    def _of_scores(self, proposal: dict) -> bool | float:
        if not self.raw and proposal["value"] != proposal["trait"].default_value:
            raise ValueError(f"{proposal['trait'].name} needs scores, but got weights")
        return proposal["value"]

    @property
    def matrix(self) -> np.ndarray:
        """What the heatmap shows now, computed in NumPy: (Tq, Tk), −∞ where masked scores are."""
        return self._transform(self._array[self.layer, self.head])

    def picture(self) -> Picture:
        """Draw the chosen head as it is shown, or all of a layer's up to four small ones."""
        self.words = self._describe()
        names, shown = [""], self.matrix[None]
        if self.view != "one head" and len(self.key_tokens) <= 12 and 1 < len(self.head_names) <= 4:
            names, shown = self.head_names, self._transform(self._array[self.layer])
        largest = np.abs(shown, where=np.isfinite(shown), out=np.zeros(shown.shape)).max()
        thing = "scores" if self.raw and not self.softmax else "weights"
        panels = list(zip(names, shown, strict=True))
        return maps(panels, thing, self.tokens, self.key_tokens, largest, self.words)

    def _transform(self, x: np.ndarray) -> np.ndarray:
        """Scores as the controls say, of any number of heads: (…, Tq, Tk)."""
        x = x / (self.d_k**0.5 if self.scaled else 1) / self.temperature
        if self.causal:
            x = np.where(np.tri(*x.shape[-2:], dtype=bool), x, -np.inf)
        return safe_masked_softmax(x, x > -np.inf) if self.softmax else x

    def _describe(self) -> str:
        """The sizes, and the largest number of all heads as they are shown."""
        shown = self._transform(self._array)
        layers, heads, queries, keys = shown.shape
        _, _, i, j = np.unravel_index(shown.argmax(), shown.shape)
        pair = f'"{visible(self.tokens[i])}" → "{visible(self.key_tokens[j])}"'
        several = [f"{layers} layers"] * (layers > 1) + [f"{heads} head{'s' * (heads > 1)}"]
        score = " score" * (self.raw and not self.softmax)
        return (
            f"AttentionHeatmap: {queries} queries × {keys} keys, {', '.join(several)}; "
            f"largest{score}: {pair} {number(shown.max(), 2)}"
        )


def _check_names(shown: dict[str, Any]) -> None:
    if other := set(shown) - {"layer", "head", "view", *SCORES_ONLY}:
        raise TypeError(f"AttentionHeatmap has no argument {', '.join(sorted(other))}")


def _matrices(name: str, given: Any) -> np.ndarray:
    array = check_array(name, given, masked=name == "scores")
    if not 2 <= array.ndim <= 4:
        need = "(Tq, Tk), (H, Tq, Tk) or (L, H, Tq, Tk)"
        raise ValueError(f"{name} has shape {array.shape}, but must be {need}")
    if name == "weights":
        check_sign(array, "never negative; pass scores=… for raw scores")
    return array
