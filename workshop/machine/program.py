"""A model as a list of named operations on matrices: what the machine runs, labels and explains.

A `Program` is written by one function a kind of module: `of_arrays` and `of_modules` write those of
whole models. `run` computes all of it in NumPy, the browser does the same in
engine.js. A name is a path, "layer 1/attention/head 2/weights"; rows are tokens.
"Paper" is Vaswani et al. (2017), *Attention Is All You Need*.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from helpers.blocks import layer_norm, sinusoidal_positions
from helpers.shapes import check_positive
from workshop.arguments import MOST, as_array, as_whole, check_axes, said

Values = dict[str, np.ndarray]  # the matrix of each operation, (rows, columns)


class Operation(NamedTuple):
    """One step: a matrix computed from those before it, and how it is called and coloured."""

    name: str
    kind: str  # of FORMULAS
    inputs: tuple[str, ...] = ()  # names of operations
    weights: tuple[str, ...] = ()  # names of what was learned, or given
    options: Mapping[str, Any] = {}
    title: str = ""
    note: str = ""
    colour: str = "x"  # of workshop.colours
    rows: str = "text"  # whose tokens: "text" is read, "written" is written; "" is one row for all
    columns: str = "features"  # or "vocab", or the tokens of "text" or "written"


@dataclass
class Program:
    """Operations in the order in which they run, their weights, and the words of each text."""

    operations: dict[str, Operation] = field(default_factory=dict)
    weights: dict[str, np.ndarray] = field(default_factory=dict)  # (rows, columns)
    vocab: dict[str, list[str]] = field(default_factory=dict)  # "text", and "written" if any
    origins: dict[str, str] = field(default_factory=dict)  # the module of a path, for hooks
    names: dict[str, list[str]] = field(
        default_factory=dict
    )  # of features, by the step's last name

    def add(self, name: str, kind: str, *inputs: str, weights: Mapping[str, Any] | None = None,
            rows: str | None = None, **how: Any) -> str:  # fmt: skip
        """Append an operation and its weights; its rows are those of its first input."""
        learned = {f"{name}/{key}": w for key, w in (weights or {}).items() if w is not None}
        self.weights |= {key: np.atleast_2d(np.asarray(w)) for key, w in learned.items()}
        rows = self.operations[inputs[0]].rows if rows is None else rows
        shown = {key: how.pop(key) for key in ("title", "note", "colour", "columns") if key in how}
        self.operations[name] = Operation(name, kind, inputs, tuple(learned), how, rows=rows,
                                          **shown)  # fmt: skip
        return name

    @property
    def output(self) -> str:
        """The name of the last operation."""
        return next(reversed(self.operations))


# ---------------------------------------------------------------- formulas

_erf = np.vectorize(math.erf, otypes=[float])


def softmax(x: np.ndarray) -> np.ndarray:
    """Shares of one whole along the last axis; a row of −∞ becomes zeros, NaN stays NaN."""
    largest = x.max(axis=-1, keepdims=True)
    e = np.exp(x - np.where(np.isneginf(largest), 0, largest))
    return e / np.maximum(e.sum(axis=-1, keepdims=True), np.finfo(float).tiny)


def norm(x: np.ndarray, gain: Any = None, shift: Any = None, *, eps: float) -> np.ndarray:
    """`helpers.blocks.layer_norm` with a gain and a shift of one row each, (1, d), or none."""
    gain = np.ones(x.shape[-1]) if gain is None else gain[0]
    return layer_norm(x, gain, np.zeros_like(gain) if shift is None else shift[0], eps)


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    """GPT-2's GELU, by tanh. Hendrycks and Gimpel (2016)."""
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def rms_norm(x: np.ndarray, gain: Any = 1.0, *, eps: float, width: int = 0) -> np.ndarray:
    """x / √(mean x² + eps) · gain, of each `width` features by themselves, or of all of a row.

    Zhang and Sennrich (2019), equation 4.
    """
    parts = x.reshape(len(x), -1, width or x.shape[1])  # (T, heads, width)
    size = np.sqrt((parts**2).mean(axis=-1, keepdims=True) + eps)
    return (parts / size * gain).reshape(x.shape)


def turned(x: np.ndarray, base: float) -> np.ndarray:
    """Each pair of features (2i, 2i + 1) turned by place · base^(−2i/d). Su et al. (2021)."""
    T, d = x.shape
    angle = np.arange(T)[:, None] / base ** (np.arange(0, d, 2) / d)  # (T, d/2)
    even, odd = x[:, 0::2], x[:, 1::2]
    pairs = even * np.cos(angle) - odd * np.sin(angle), even * np.sin(angle) + odd * np.cos(angle)
    return np.stack(pairs, axis=-1).reshape(T, d)


def routed(scores: np.ndarray, top_k: int) -> np.ndarray:
    """Shares of the top_k largest scores of each row, zeros elsewhere. Jiang et al. (2024)."""
    kept = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
    chosen = np.full(scores.shape, -np.inf)
    np.put_along_axis(chosen, kept, np.take_along_axis(scores, kept, 1), 1)
    return softmax(chosen)


def hidden_later(scores: np.ndarray, window: int | None = None) -> np.ndarray:
    """−∞ where a key comes after its query, or before the `window` newest: (Tq, Tk)."""
    Tq, Tk = scores.shape
    seen = np.tri(Tq, Tk, Tk - Tq, dtype=bool)
    if window is not None:
        seen &= ~np.tri(Tq, Tk, Tk - Tq - window, dtype=bool)
    return np.where(seen, scores, -np.inf)


# Of each kind: ids of its tokens, inputs, weights, options → its matrix.
FORMULAS: dict[str, Callable[..., np.ndarray]] = {
    "one-hot": lambda ids, size: np.eye(size)[ids],
    "ids": lambda ids: np.asarray(ids, dtype=float)[:, None],
    "given": lambda ids, x: x,
    "embed": lambda ids, x, table, factor=1.0: factor * table[ids].astype(float),
    "places": lambda ids, table: table[: len(ids)],
    "waves": lambda ids, d: sinusoidal_positions(len(ids), d),
    "same": lambda ids, row: np.repeat(row, len(ids), axis=0),
    "add": lambda ids, x, y: x + y,
    "linear": lambda ids, x, W, b=0.0: x @ W + b,
    "split": lambda ids, x, start, stop: x[:, start:stop],
    "scores": lambda ids, q, k: q @ k.T,
    "scale": lambda ids, scores, by: scores / by,
    "rotate": lambda ids, x, base: turned(x, base),
    "mask": lambda ids, scores, window=None: hidden_later(scores, window),
    "softmax": lambda ids, x, temperature=1.0: softmax(x / temperature),
    "mix": lambda ids, weights, v: weights @ v,
    "join": lambda ids, *heads: np.concatenate(heads, axis=1),
    "norm": lambda ids, x, *learned, eps: norm(x, *learned, eps=eps),
    "rms": lambda ids, x, *gain, **how: rms_norm(x, *gain, **how),
    "relu": lambda ids, x: np.maximum(x, 0),
    "gelu": lambda ids, x: x * (1 + _erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda ids, x: gelu_tanh(x),
    "silu": lambda ids, x: x / (1 + np.exp(-x)),
    "times": lambda ids, gate, x: gate * x,
    "route": lambda ids, scores, top_k: routed(scores, top_k),
    "blend": lambda ids, shares, *found: np.einsum("te,etd->td", shares, np.stack(found)),
    "last": lambda ids, x: x[-1:],
    "mean": lambda ids, x: x.mean(axis=0, keepdims=True),
    "unit": lambda ids, x: x / np.linalg.norm(x, axis=-1, keepdims=True),
}
# What is left of an operation that is switched off: what came in, nothing, or the sub-layer alone.
OFF: dict[str, Callable[..., np.ndarray]] = {
    **dict.fromkeys(("scale", "mask", "norm", "relu", "gelu", "gelu_tanh"), lambda x, *_: x),
    **dict.fromkeys(("rotate", "rms", "silu"), lambda x, *_: x),
    **dict.fromkeys(("mix", "places", "waves", "linear", "blend"), lambda *_: 0.0),
    **dict.fromkeys(("add", "times"), lambda x, alone: alone),
}


def run(program: Program, texts: Mapping[str, Sequence[int]], changes: Sequence[Mapping] = (),
        temperature: float = 1.0, known: Values | None = None) -> Values:  # fmt: skip
    """Compute every operation for the ids of each text, with what was changed: {name: (T, …)}.

    A change is {"at": name, "off": True}, {"at": name, "row": i, "column": j, "value": x}, of an
    operation or a weight, or {"at": name, "row": i, "values": […]}. The last of several counts;
    one of a row or column that this text does not have rests. Of `known`, values of these texts
    without the changes, is taken what none reaches. Raises ValueError for an id without
    a word vector, more words than positions, and a change of nothing in the program.
    """
    check_positive(temperature=temperature)
    _check_texts(program, texts)
    changed = by_name(program, changes)
    weights = program.weights | {
        name: _set(program.weights[name].astype(float), own)
        for name, own in changed.items()
        if name in program.weights
    }
    values: Values = {}
    reached = set(changed)
    with np.errstate(invalid="ignore", over="ignore"):  # NaN of a diverged model is to be seen
        for op in program.operations.values():
            own = changed.get(op.name, ())
            if known is not None and reached.isdisjoint((op.name, *op.inputs, *op.weights)):
                values[op.name] = known[op.name]
                continue
            reached.add(op.name)
            value = _compute(op, values, weights, texts, is_off(own), temperature)
            values[op.name] = _set(value, own)
    return values


def _compute(op: Operation, values: Values, weights: Values, texts: Mapping[str, Sequence[int]],
             off: bool, temperature: float) -> np.ndarray:  # fmt: skip
    inputs = [values[name] for name in op.inputs]
    learned = [weights[name] for name in op.weights]
    predicts = op.kind == "softmax" and op.columns == "vocab"
    options = {**op.options, **({"temperature": temperature} if predicts else {})}
    value = FORMULAS[op.kind](texts.get(op.rows, ()), *inputs, *learned, **options)
    if off:
        return np.zeros_like(value) + OFF[op.kind](*inputs)
    return np.array(value, dtype=float)


def _set(matrix: np.ndarray, changes: Sequence[Mapping]) -> np.ndarray:
    for change in changes:
        if has_place(change, *matrix.shape):
            columns = slice(None) if "values" in change else int(change["column"])
            matrix[int(change["row"]), columns] = change.get("values", change.get("value"))
    return matrix


def _check_texts(program: Program, texts: Mapping[str, Sequence[int]]) -> None:
    for op in program.operations.values():
        if op.kind not in ("embed", "places"):
            continue
        name, size = f"texts[{op.rows!r}]", len(program.weights[op.weights[0]])
        ids = texts.get(op.rows, ())
        if len(ids) == 0:
            raise ValueError(f"{name} is missing or empty, but must hold at least one id")
        if op.kind == "places" and len(ids) > size:
            raise ValueError(f"{name} has {len(ids)} ids, but there are positions for {size}")
        wrong = [int(i) for i in ids if not 0 <= i < size]
        if op.kind == "embed" and wrong:
            need = f"ids must be from 0 to {size - 1}"
            raise ValueError(f"{name} holds the id {wrong[0]}, but {need}")


# ---------------------------------------------------------------- changes


def by_name(program: Program, changes: Sequence[Mapping]) -> dict[str, list[Mapping]]:
    """The changes at each operation and weight, in their order.

    Raises ValueError or TypeError, naming the change, for one that is not as `run` says.
    """
    found: dict[str, list[Mapping]] = {}
    for i, change in enumerate(changes):
        _check_change(f"changes[{i}]", program, change)
        found.setdefault(change["at"], []).append(change)
    return found


def is_off(changes: Sequence[Mapping]) -> bool:
    """Whether one of the changes at an operation switches it off."""
    return any(change.get("off") for change in changes)


def has_place(change: Mapping, rows: int, columns: int) -> bool:
    """Whether a change sets numbers that a matrix of this size has."""
    if "row" not in change or not change["row"] < rows:
        return False
    return len(change["values"]) == columns if "values" in change else change["column"] < columns


def _check_change(name: str, program: Program, change: Mapping) -> None:
    at = change.get("at")
    op = program.operations.get(at) if isinstance(at, str) else None
    if op is None and not (isinstance(at, str) and at in program.weights):
        raise ValueError(f"{name} is at {said(at)}, but the model has nothing of this name")
    if change.get("off") and (op is None or op.kind not in OFF):
        raise ValueError(f"{name} switches off {at!r}, but only these can be: {', '.join(OFF)}")
    if "off" in change and "row" not in change:
        return
    for key in ("row",) if "values" in change else ("row", "column"):
        as_whole(f"{name}[{key!r}]", change.get(key), 0, MOST)
    key = "values" if "values" in change else "value"
    check_axes(f"{name}[{key!r}]", as_array(f"{name}[{key!r}]", change.get(key)),
               *["columns"] * (key == "values"))  # fmt: skip
    if op is None and not has_place(change, *program.weights[at].shape):
        shape = program.weights[at].shape
        raise ValueError(f"{name} is {said(dict(change))}, which {at!r} {shape} has no place for")


# ---------------------------------------------------------------- what reads like the layers


def embedding(p: Program, table: Any, *, rows: str = "text", at: str = "",
              factor: float = 1.0) -> str:  # fmt: skip
    """Tokens become rows of a table: (T, d). Beyond 512 words their one-hot rows stay unwritten."""
    words = np.shape(table)[0]
    few = words <= 512
    ids = p.add(at + ("one-hot" if few else "ids"), "one-hot" if few else "ids", rows=rows,
                title="one-hot" if few else "id", note="which word", columns="vocab" if few else "",
                **({"size": words} if few else {}))  # fmt: skip
    scaled = {} if factor == 1 else {"factor": factor}
    return p.add(at + "x", "embed", ids, weights={"table": table}, title="x", note="word vector",
                 **scaled)  # fmt: skip


def attention(p: Program, at: str, x: str, learned: Mapping[str, Any], num_heads: int = 1, *,
              memory: str | None = None, scale: float | None = None, causal: bool = False,
              since: "Since | None" = None) -> str:  # fmt: skip
    """softmax(Q Kᵀ / √d) V in each head, then W_o if there is one. Paper, section 3.2.

    `learned` holds W_q, W_k, W_v, maybe W_o, (d_in, d_out), biases b_q, b_k, b_v, b_o, and of
    normed queries and keys the gains, norm_q and norm_k.
    """
    since = Since() if since is None else since
    source = x if memory is None else memory
    width = np.shape(learned["W_q"])[1] // num_heads
    by = math.sqrt(width) if scale is None else 1 / scale
    home = f"{at}/{whole_path(num_heads)}"
    whole = {letter: _projection(p, home, letter, of, learned, since, width)
             for letter, of in zip("qkv", (x, source, source), strict=True)}  # fmt: skip
    heads = []
    for h in range(num_heads):
        home = f"{at}/head" if num_heads == 1 else f"{at}/head {h + 1}"
        parts = [_part(p, home, letter, whole[letter], h, num_heads, since) for letter in "qkv"]
        heads.append(head(p, home, *parts, by=by, causal=causal, window=since.window))
    joined = heads[0] if num_heads == 1 else p.add(
        f"{at}/joined", "join", *heads, title="heads joined", colour="context")  # fmt: skip
    if learned.get("W_o") is None:
        return joined
    return _linear(p, f"{at}/out", joined, {"W_o": learned["W_o"], "b": learned.get("b_o")},
                   title="· W_o", note="what the heads found, mixed", colour="context")  # fmt: skip


def whole_path(num_heads: int) -> str:
    """Where the queries, keys and values of all heads stand, below their attention."""
    return "head" if num_heads == 1 else "q, k, v"


NOTES = {"q": "what it looks for", "k": "what it offers", "v": "what it gives"}


class Since(NamedTuple):
    """What attentions since 2017 do besides; nothing of it unless said."""

    num_kv_heads: int | None = None  # of keys and values, each for a group of heads
    rope: float | None = None  # the base of the speeds at which queries and keys turn
    window: int | None = None  # how many of the newest words are seen
    eps: float = 1e-5  # of the norms of queries and keys


def _projection(p: Program, home: str, letter: str, x: str, learned: Mapping[str, Any],
                since: Since, width: int) -> str:  # fmt: skip
    """The queries, keys or values of all heads; normed, each head's by themselves, if they are."""
    W, name = f"W_{letter}", f"{home}/{letter}"
    pair = {W: learned[W], "b": learned.get(f"b_{letter}")}
    _linear(p, name, x, pair, title=f"{letter} = x {W}", note=NOTES[letter], colour=letter)
    if f"norm_{letter}" not in learned:
        return name
    return rms_rows(p, f"{name} normed", name, learned[f"norm_{letter}"], since.eps, width=width,
                    title=f"{letter} normed", colour=letter)  # fmt: skip


def _part(p: Program, home: str, letter: str, whole: str, h: int, num_heads: int,
          since: Since) -> str:  # fmt: skip
    """A head's own features of all heads' queries, keys or values, or its group's; turned."""
    name, kv = whole, since.num_kv_heads or num_heads
    if num_heads > 1:
        count = num_heads if letter == "q" else kv
        group, width = h * count // num_heads, _columns(p, whole) // count
        several, first = num_heads // count, group * num_heads // count + 1
        note = NOTES[letter] if several == 1 else f"of heads {first}–{first + several - 1}"
        name = p.add(f"{home}/{letter}", "split", whole, start=group * width,
                     stop=(group + 1) * width, title=letter, note=note, colour=letter)  # fmt: skip
    if since.rope is None or letter == "v":
        return name
    return p.add(f"{home}/{letter} turned", "rotate", name, base=since.rope, colour=letter,
                 title=f"{letter} turned", note="by its place")  # fmt: skip


def _columns(p: Program, name: str) -> int:
    """How many features a linear step has, or the one that a norm was given."""
    op = p.operations[name]
    return p.weights[op.weights[0]].shape[1] if op.kind == "linear" else _columns(p, op.inputs[0])


def source_of(p: Program, name: str) -> str:
    """Of which vectors a head's queries, keys or values were made."""
    op = p.operations[name]
    return op.inputs[0] if op.kind == "linear" else source_of(p, op.inputs[0])


def head(p: Program, at: str, q: str, k: str, v: str, *, by: float, causal: bool,
         window: int | None = None) -> str:  # fmt: skip
    """One head: scores, scaled, masked, weights, context. Paper, equation 1."""
    keys = p.operations[k].rows
    scores = p.add(f"{at}/scores", "scores", q, k, title="q · k", note="score", colour="scores",
                   columns=keys)  # fmt: skip
    root = f"√{by * by:.0f}" if abs(by * by - round(by * by)) < 1e-6 else f"{by:.4g}"
    ready = p.add(f"{at}/scaled", "scale", scores, by=by, title=f"÷ {root}", note="scaled",
                  colour="scores", columns=keys)  # fmt: skip
    if causal:
        far = {} if window is None else {"window": window}
        note = f"newest {window} seen" if far else "later ones hidden"
        ready = p.add(f"{at}/masked", "mask", ready, title="mask", note=note, colour="scores",
                      columns=keys, **far)  # fmt: skip
    weights = p.add(f"{at}/weights", "softmax", ready, title="softmax", note="weight",
                    colour="weights", columns=keys)  # fmt: skip
    return p.add(f"{at}/context", "mix", weights, v, title="Σ weight × v", note="what it gathers",
                 colour="context")  # fmt: skip


def _linear(p: Program, name: str, x: str, learned: Mapping[str, Any], **shown: Any) -> str:
    """x W + b, `learned` being the matrix and maybe the bias, by their names."""
    return p.add(name, "linear", x, weights=learned, **shown)


def feed_forward(p: Program, at: str, x: str, learned: Mapping[str, Any],
                 activation: str = "relu", called: str = "· W2 + b2") -> str:  # fmt: skip
    """max(0, x W1 + b1) W2 + b2, or another activation. Paper, section 3.3.

    With a W_gate, and b_gate, the activation is that of the gate. Shazeer (2020), equation 6.
    """

    def bend(x: str) -> str:
        return p.add(f"{at}/{activation}", activation, x, title=activation.replace("_", ", "),
                     note="those with a yes")  # fmt: skip

    gate = None if learned.get("W_gate") is None else bend(_linear(
        p, f"{at}/gate", x, {"W_gate": learned["W_gate"], "b": learned.get("b_gate")},
        title="x W_gate", note="how far each opens"))  # fmt: skip
    hidden = _linear(p, f"{at}/hidden", x, {"W1": learned["W1"], "b": learned.get("b1")},
                     title="x W1 + b1", note="questions to each word")  # fmt: skip
    awake = bend(hidden) if gate is None else p.add(
        f"{at}/gated", "times", gate, hidden, title="gate × x W1", note="what it lets through"
    )  # fmt: skip
    return _linear(p, f"{at}/out", awake, {"W2": learned["W2"], "b": learned.get("b2")},
                   title=called, note="what to add")  # fmt: skip


def mixture(p: Program, at: str, x: str, router: Any, experts: Sequence[Mapping[str, Any]],
            top_k: int, activation: str = "relu") -> str:  # fmt: skip
    """Σ share · expert(x) of the top_k experts that a router, (d, experts), finds for each token.

    Shazeer et al. (2017); Jiang et al. (2024), section 2.1.
    """
    scores = _linear(p, f"{at}/router", x, {"W": router}, title="router", colour="scores",
                     note="which expert fits")  # fmt: skip
    shares = p.add(f"{at}/chosen", "route", scores, top_k=top_k, title=f"best {top_k}",
                   note="share of each", colour="weights")  # fmt: skip
    names = [f"expert {i + 1}" for i in range(len(experts))]
    found = [feed_forward(p, f"{at}/{name}", x, expert, activation, name)
             for name, expert in zip(names, experts, strict=True)]  # fmt: skip
    return p.add(f"{at}/out", "blend", shares, *found, title="Σ share × expert",
                 note="what to add")  # fmt: skip


def normed_rows(p: Program, name: str, x: str, learned: Sequence[Any], eps: float = 1e-5) -> str:
    """LayerNorm with its gain and shift. Paper, section 3.1."""
    gain, shift = learned
    return p.add(name, "norm", x, weights={"gain": gain, "shift": shift}, eps=eps, title="norm",
                 note="mean 0, deviation 1")  # fmt: skip


def rms_rows(p: Program, name: str, x: str, gain: Any, eps: float = 1e-5, **more: Any) -> str:
    """RMSNorm with its gain, of each `width` features by themselves if said."""
    return p.add(name, "rms", x, weights={"gain": gain}, eps=eps,
                 **({"title": "norm", "note": "mean of squares 1"} | more))  # fmt: skip


def add_and_norm(p: Program, at: str, x: str, sublayer: Callable[[str], str],
                 normed: Callable[[str, str], str], number: int, pre: bool) -> str:  # fmt: skip
    """x plus what the sub-layer makes of it, normalised after (paper) or before it."""
    shown = {"title": "add", "note": "x + what was found"}
    if pre:
        return p.add(f"{at}/add {number}", "add", x, sublayer(normed(f"{at}/norm {number}", x)),
                     **shown)  # fmt: skip
    summed = p.add(f"{at}/add {number}", "add", x, sublayer(x), **shown)
    return normed(f"{at}/norm {number}", summed)


def prediction(p: Program, x: str, W: Any, *, at: str = "", b: Any = None) -> str:
    """Logits of the next token and their softmax; of the last place alone where words are many."""
    if np.shape(W)[1] > 4096:
        x = p.add(at + "last", "last", x, rows="", title="last", note="the newest word")
    logits = _linear(p, at + "logits", x, {"W": W, "b": b}, title="logits",
                     note="a score for each word", colour="scores",
                     columns="vocab")  # fmt: skip
    return p.add(at + "next", "softmax", logits, title="next word", note="its probability",
                 colour="weights", columns="vocab")  # fmt: skip


def with_positions(p: Program, x: str, positions: Any, at: str = "") -> str:
    """x plus a row for each place: a table's, or waves for True; x as it is for None."""
    if positions is None or positions is False:
        return x
    shown = {"rows": p.operations[x].rows, "title": "positions", "note": "which place"}
    if positions is True:
        d = p.weights[p.operations[x].weights[0]].shape[1]
        rows = p.add(at + "positions", "waves", d=d, **shown)
    else:
        rows = p.add(at + "positions", "places", weights={"table": positions}, **shown)
    return p.add(at + "x + positions", "add", x, rows, title="x + position", note="word and place")
