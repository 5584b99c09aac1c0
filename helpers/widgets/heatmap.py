"""The heatmap of attention: every layer and head, from scores to weights."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets

from helpers.attention import softmax
from helpers.figures import Picture, heatmap, heatmaps, number
from helpers.widgets.base import Widget, check_array, check_labels, module, visible

VIEWS = ["one head", "all heads", "all layers"]


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

    _esm = module("heatmap.js")
    tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    key_tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    head_names = traitlets.List(traitlets.Unicode()).tag(sync=True)
    raw = traitlets.Bool().tag(sync=True)
    d_k = traitlets.Float(1).tag(sync=True)
    layer = traitlets.Int(0).tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)
    view = traitlets.Enum(VIEWS, "one head").tag(sync=True)
    temperature = traitlets.Float(1).tag(sync=True)
    scaled = traitlets.Bool(False).tag(sync=True)
    causal = traitlets.Bool(False).tag(sync=True)
    softmax = traitlets.Bool(False).tag(sync=True)
    selected = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        weights: Any = None,
        tokens: Sequence[str] | None = None,
        *,
        scores: Any = None,
        key_tokens: Sequence[str] | None = None,
        head_names: Sequence[str] | None = None,
        d_k: float = 1,
        **shown: Any,
    ):
        if (weights is None) == (scores is None):
            raise ValueError("needed is either weights or scores, and not both")
        name, given = ("weights", weights) if scores is None else ("scores", scores)
        array = self._array = _matrices(name, given)
        layers, heads, queries, keys = array.shape
        of = f"{name} {np.shape(given)}"
        tokens = check_labels("tokens", tokens, queries, of)
        if key_tokens is None and keys == queries:
            key_tokens = tokens
        key_tokens = check_labels("key_tokens", key_tokens, keys, of)
        head_names = check_labels("head_names", head_names or range(heads), heads, of)
        _check_shown(name, layers, heads, d_k, **shown)
        traits = {"tokens": tokens, "key_tokens": key_tokens, "head_names": head_names}
        traits |= {"raw": scores is not None, "d_k": d_k}
        super().__init__("", {"matrices": array}, **traits, **shown)
        self.words = self._describe()

    @property
    def matrix(self) -> np.ndarray:
        """What the heatmap shows now, computed in NumPy: (Tq, Tk), −∞ where masked scores are."""
        return self._transform(self._array[self.layer, self.head])

    def picture(self) -> Picture:
        """Draw the chosen head as it is shown, or all of a layer's up to four small ones."""
        self.words = self._describe()
        rows, columns = ([visible(t) for t in side] for side in (self.tokens, self.key_tokens))
        heads = len(self.head_names)
        if self.view == "one head" or not 1 < heads <= 4 or len(columns) > 12:
            return heatmap(self.matrix, rows, columns, alt=self.words)
        shown = self._transform(self._array[self.layer])
        names = [visible(name) for name in self.head_names]
        names = names if len(set(names)) == heads else [f"head {h}" for h in range(heads)]
        panels = dict(zip(names, shown, strict=True))
        return heatmaps(panels, rows, columns, alt=self.words)

    def _transform(self, x: np.ndarray) -> np.ndarray:
        """Scores as the controls say, of any number of heads: (…, Tq, Tk)."""
        x = x / (self.d_k**0.5 if self.scaled else 1) / self.temperature
        if self.causal:
            x = np.where(np.tri(*x.shape[-2:], dtype=bool), x, -np.inf)
        return _softmax(x) if self.softmax else x

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


def _softmax(x: np.ndarray) -> np.ndarray:
    """The softmax of each row; a row of −∞ becomes zeros, as in the browser."""
    empty = np.isneginf(x).all(axis=-1, keepdims=True)
    return np.where(empty, 0, softmax(np.where(empty, 0, x)))


def _matrices(name: str, given: Any) -> np.ndarray:
    array = check_array(name, given, masked=name == "scores")
    if not 2 <= array.ndim <= 4:
        raise ValueError(
            f"{name} has shape {array.shape}, but must be (Tq, Tk), (H, Tq, Tk) or (L, H, Tq, Tk)"
        )
    if name == "weights" and (array < 0).any():
        place = tuple(int(i) for i in np.argwhere(array < 0)[0])
        raise ValueError(
            f"weights {array.shape} has {array[place]:.4f} at {place}, but weights are never "
            "negative; pass scores=… for raw scores"
        )
    return array.reshape((1,) * (4 - array.ndim) + array.shape)


def _check_shown(
    name: str,
    layers: int,
    heads: int,
    d_k: float,
    layer: int = 0,
    head: int = 0,
    view: str = "one head",
    temperature: float = 1,
    **switches: bool,
) -> None:
    """The controls at the start: in range, and those of scores only for scores."""
    for what, value, count in (("layer", layer, layers), ("head", head, heads)):
        if value not in range(count):
            raise ValueError(f"{what} is {value}, but there are {count}, counted from 0")
    if view not in VIEWS:
        raise ValueError(f"view is {view!r}, but must be one of {', '.join(VIEWS)}")
    for what, value in (("d_k", d_k), ("temperature", temperature)):
        if not 0 < value < np.inf:
            raise ValueError(f"{what} is {value}, but must be positive")
    if other := set(switches) - {"scaled", "causal", "softmax"}:
        raise TypeError(f"AttentionHeatmap has no argument {', '.join(sorted(other))}")
    if name == "weights" and (any(switches.values()) or temperature != 1):
        raise ValueError("scaled, causal, softmax and temperature need scores, but got weights")
