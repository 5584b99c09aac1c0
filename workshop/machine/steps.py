"""Single steps of a model, each a program that the machine shows whole, with its knobs beside it.

from workshop import Machine, softmax_step

Machine(softmax_step(scores, d_k=64), words)
Machine(norm_step(X, attend), words)
Machine(feed_forward_step(X, W1, b1, W2, b2), words)
Machine(next_word_step(chances), "a journey of a", tokens, at="next")
Machine(positions_step(6), range(40))
"""

import math
from typing import Any

import numpy as np

from workshop.arguments import MOST, as_array, as_floats, as_whole, check_axes
from workshop.machine.of_arrays import Sizes, fitting
from workshop.machine.program import Program, normed_rows


def softmax_step(scores: Any, d_k: int = 1) -> Program:
    """The softmax of one row of scores, (n,), divided by √d_k before; d_k and temperature turn.

    Beside each weight w stands w (1 − w), how far it moves per nudge of its scaled score; below,
    the entropy −Σ w log w, in nats, and the mean of w (1 − w). Raises ValueError for other shapes.
    """
    row = as_floats("scores", as_array("scores", scores))
    check_axes("scores", row, "n")
    p, n = Program(step="weights"), len(row)
    of = {thing: {"colour": thing, "columns": "text"} for thing in ("scores", "weights", "context")}
    _given(p, "scores", row, rows="", **of["scores"])
    by = math.sqrt(as_whole("d_k", d_k, 1, MOST))
    p.add("scaled", "scale", "scores", by=by, title="scaled", note="÷ √d_k", **of["scores"])
    p.add("weights", "softmax", "scaled", temperature=1.0, title="weights", note="softmax",
          **of["weights"])  # fmt: skip
    p.add("w (1 − w)", "slope", "weights", title="w (1 − w)", note="gradient", **of["context"])
    p.add("entropy", "entropy", "weights", title="entropy", colour="context",
          note=f"at most ln {n} = {math.log(n):.2f}")  # fmt: skip
    p.add("mean", "mean", "w (1 − w)", axis=1, title="mean of w (1 − w)", colour="context",
          note=f"at most {(1 - 1 / n) / n:.4f}")  # fmt: skip
    p.knobs = [{"label": "d_k", "at": "scaled", "option": "by", "root": True, "value": int(d_k),
                "min": 1, "max": 1024, "step": math.log10(2), "decimals": 0,
                "log": True}]  # fmt: skip
    return p


def norm_step(x: Any, sublayer: Any, eps: float = 1e-5) -> Program:
    """x (T, d) and what a sub-layer makes of it, an array or a function of x: added, then normed.

    Mean and deviation of each row stand before and after; gain γ and shift β turn for all features.
    Raises ValueError for other shapes. Paper, section 3.1.
    """
    found = sublayer(x) if callable(sublayer) else sublayer
    x, found = _matrix("x", x), _matrix("sublayer", found)
    if found.shape != x.shape:
        raise ValueError(f"sublayer has shape {found.shape}, but must have that of x {x.shape}")
    p, d = Program(step="norm"), x.shape[1]
    _given(p, "x", x)
    _given(p, "sublayer(x)", found, colour="context")
    p.add("add", "add", "x", "sublayer(x)", title="add", note="x + sublayer(x)")
    _measured(p, "add", "before")
    normed_rows(p, "norm", "add", (np.ones(d), np.zeros(d)), eps)
    _measured(p, "norm", "after")
    p.knobs = [{"label": label, "at": f"norm/{name}", "value": value, "min": -3, "max": 3,
                "step": 0.05} for label, name, value in
               (("γ, gain", "gain", 1), ("β, bias", "shift", 0))]  # fmt: skip
    return p


def feed_forward_step(inputs: Any, W1: Any, b1: Any, W2: Any, b2: Any) -> Program:
    """inputs (T, d) through the neurons of W1 (d, d_ff), b1, ReLU, W2 (d_ff, d) and b2.

    Raises ValueError for shapes that do not fit. Paper, section 3.3.
    """
    sizes: Sizes = {}
    x = fitting("inputs", inputs, "Td", sizes)
    W1, b1 = fitting("W1", W1, "df", sizes), fitting("b1", b1, "f", sizes)
    W2, b2 = fitting("W2", W2, "fo", sizes), fitting("b2", b2, "o", sizes)
    p = Program(step="hidden")
    _given(p, "inputs", x)
    p.add("heard", "linear", "inputs", weights={"W1": W1, "b": b1}, title="heard + b1",
          note="what each neuron hears")  # fmt: skip
    p.add("hidden", "relu", "heard", title="hidden", note="who is awake")
    p.add("written", "linear", "hidden", weights={"W2": W2, "b": b2}, title="written",
          note="what is added", colour="context")  # fmt: skip
    return p


def next_word_step(table: Any) -> Program:
    """What follows a word, by its row of a table (V, V) alone, of counts or of probabilities.

    Raises ValueError for another shape, or numbers that are negative.
    """
    table = _matrix("table", table)
    if table.shape[0] != table.shape[1] or (table < 0).any():
        raise ValueError(f"table has shape {table.shape} and numbers from {table.min():.4f}, but "
                         "must be (V, V), how often each word followed each")  # fmt: skip
    p = Program(step="next")
    p.add("one-hot", "one-hot", rows="text", size=len(table), title="one-hot", note="which word",
          columns="vocab")  # fmt: skip
    p.add("follows", "embed", "one-hot", weights={"table": table}, title="what followed",
          note="its row of the table", columns="vocab")  # fmt: skip
    p.add("next", "shares", "follows", temperature=1.0, title="next word", note="its probability",
          colour="weights", columns="vocab")  # fmt: skip
    return p


def positions_step(d_model: int) -> Program:
    """Sines and cosines of each place, and the dot product of any two. Paper, section 3.5."""
    d = as_whole("d_model", d_model, 2, MOST)
    if d % 2:
        raise ValueError(f"d_model is {d}, but must be even: each sine has its cosine")
    p = Program(step="dot")
    p.add("positions", "waves", d=d, rows="text", title="positions", note="sines and cosines")
    p.add("dot", "scores", "positions", "positions", title="p · p", note="how alike",
          colour="scores", columns="text")  # fmt: skip
    p.knobs = [{"label": "d_model", "at": "positions", "option": "d", "value": d, "min": 2,
                "max": 64, "step": 2, "decimals": 0}]  # fmt: skip
    return p


def _matrix(name: str, value: Any) -> np.ndarray:
    array = as_floats(name, as_array(name, value))
    check_axes(name, array, "rows", "columns")
    return array


def _given(p: Program, name: str, array: np.ndarray, rows: str = "text", **shown: Any) -> None:
    p.add(name, "given", weights={"x": array}, rows=rows, title=name, **shown)


def _measured(p: Program, of: str, when: str) -> None:
    """The mean and the deviation of each row."""
    p.add(f"mean {when}", "mean", of, axis=1, title="mean", note=when)
    p.add(f"deviation {when}", "deviation", of, title="deviation", note=when)
