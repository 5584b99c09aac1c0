"""A model as a list of named operations on matrices: what the machine runs, labels and explains.

A `Program` is written by one function a kind of module: `of_arrays` and `of_modules` write those of
whole models. `run` computes all of it by `formulas`, the browser does the same in engine.js.
A name is a path, "layer 1/attention/head 2/weights"; rows are tokens.
"Paper" is Vaswani et al. (2017), *Attention Is All You Need*.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from workshop.arguments import MOST, SMALLEST, as_number, as_whole, said
from workshop.machine.formulas import FORMULAS, OFF

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
    names: dict[str, list[str]] = field(default_factory=dict)  # of features, by a step's last name
    step: str = ""  # of a single step, not a model: the operation that it is about
    knobs: list[dict[str, Any]] = field(default_factory=list)  # what is turned beside it

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

    def tables(self, kind: str) -> dict[str, np.ndarray]:
        """Of each text the rows of its words ("embed"), or of its places ("places")."""
        return {o.rows: self.weights[o.weights[0]] for o in self.operations.values()
                if o.kind == kind}  # fmt: skip

    def features(self) -> dict[str, list[str]]:
        """Names of features by a step's last name, and of a head's own by all of its name."""
        named, steps = dict(self.names), self.operations
        parts = {o.name: (o.options["start"], o.options["stop"]) for o in steps.values()
                 if o.kind == "split"}  # fmt: skip
        for joined in (o for o in steps.values() if o.kind == "join"):
            named |= {joined.name: self.names["context"]} if "context" in self.names else {}
            for h, context in enumerate(joined.inputs):
                start, stop = parts[steps[context].inputs[1]]  # of its values, maybe a group's
                parts[context] = h * (stop - start), (h + 1) * (stop - start)
        for name, (start, stop) in parts.items():
            whole = self.names.get(name.split("/")[-1], [])
            named |= {name: whole[start:stop]} if len(whole) > stop - start else {}
        return named

    @property
    def output(self) -> str:
        """The name of the last operation."""
        return next(reversed(self.operations))


# ---------------------------------------------------------------- running


def run(program: Program, texts: Mapping[str, Sequence[int]], changes: Sequence[Mapping] = (),
        temperature: float = 1.0, known: Values | None = None) -> Values:  # fmt: skip
    """Compute every operation for the ids of each text, with what was changed: {name: (T, …)}.

    A change is {"at": name, "off": True}, {"at": name, "row": i, "column": j, "value": x}, of an
    operation or a weight, {"at": name, "row": i, "values": […]}, or {"at": name, "option": "by",
    "value": x}. The last of several counts; one of a row or column that this text does not have
    rests. Of `known`, values of these texts without the changes, is taken what none reaches.
    """
    changed = by_name(changes)
    weights = {**program.weights}
    for name in weights.keys() & changed:
        weights[name] = _set(weights[name].astype(float), changed[name])
    values: Values = {}
    reached = set(changed)
    with np.errstate(invalid="ignore", over="ignore"):  # NaN of a diverged model is to be seen
        for op in program.operations.values():
            own = changed.get(op.name, ())
            if known is not None and reached.isdisjoint((op.name, *op.inputs, *op.weights)):
                values[op.name] = known[op.name]
            else:
                reached.add(op.name)
                value = _compute(op, values, weights, texts, own, temperature)
                values[op.name] = _set(value, own)
    return values


def predicts(op: Operation) -> bool:
    """Whether temperature acts on an operation: on what gives probabilities of the next word."""
    return "temperature" in op.options


def _compute(op: Operation, values: Values, weights: Values, texts: Mapping[str, Sequence[int]],
             own: Sequence[Mapping], temperature: float) -> np.ndarray:  # fmt: skip
    inputs = [values[name] for name in op.inputs]
    learned = [weights[name] for name in op.weights]
    options = {**op.options} | ({"temperature": temperature} if predicts(op) else {})
    options |= {change["option"]: change["value"] for change in own if "option" in change}
    value = FORMULAS[op.kind](texts.get(op.rows, ()), *inputs, *learned, **options)
    if is_off(own):
        return np.zeros_like(value) + OFF[op.kind](*inputs)
    return np.array(value, dtype=float)


def _set(matrix: np.ndarray, changes: Sequence[Mapping]) -> np.ndarray:
    for change in changes:
        if _has_place(change, *matrix.shape):
            columns = slice(None) if "values" in change else int(change["column"])
            matrix[int(change["row"]), columns] = change.get("values", change.get("value"))
    return matrix


# ---------------------------------------------------------------- changes


def by_name(changes: Sequence[Mapping]) -> dict[str, list[Mapping]]:
    """The changes at each operation and weight, in their order."""
    found: dict[str, list[Mapping]] = {}
    for change in changes:
        found.setdefault(change["at"], []).append(change)
    return found


def is_off(changes: Sequence[Mapping]) -> bool:
    """Whether one of the changes at an operation switches it off."""
    return any(change.get("off") for change in changes)


def _has_place(change: Mapping, rows: int, columns: int) -> bool:
    if "row" not in change or not change["row"] < rows:
        return False
    return len(change["values"]) == columns if "values" in change else change["column"] < columns


def check_option(op: Operation | None, change: Mapping) -> float:
    """The value that an option is set to, of the kind that it has. Raises ValueError."""
    options = {} if op is None else op.options
    if (option := change["option"]) not in options:
        raise ValueError(f"option is {said(option)}, but there is {', '.join(options) or 'none'}")
    value = as_number(option, change.get("value"), SMALLEST)
    if isinstance(options[option], int):
        value = as_whole(option, int(value) if value == int(value) else value, 1, MOST)
    if op.kind == "waves" and value % 2:
        raise ValueError(f"{option} is {value}, but must be even: each sine has its cosine")
    return value


# ---------------------------------------------------------------- what reads like the layers


def embedding(p: Program, table: Any, *, rows: str = "text", at: str = "",
              factor: float = 1.0) -> str:  # fmt: skip
    """Tokens become rows of a table: (T, d). Beyond 512 words their one-hot rows stay unwritten."""
    words, shown = len(table), {"rows": rows, "note": "which word"}
    if words <= 512:
        ids = p.add(
            at + "one-hot", "one-hot", title="one-hot", size=words, columns="vocab", **shown
        )
    else:
        ids = p.add(at + "ids", "ids", title="id", columns="", **shown)
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
    home = f"{at}/head" if num_heads == 1 else f"{at}/q, k, v"
    whole = {letter: _projection(p, home, letter, of, learned, since, width)
             for letter, of in zip("qkv", (x, source, source), strict=True)}  # fmt: skip
    heads = []
    for h in range(num_heads):
        home = f"{at}/head" if num_heads == 1 else f"{at}/head {h + 1}"
        parts = [_part(p, home, letter, whole[letter], h, num_heads, since) for letter in "qkv"]
        heads.append(head(p, home, h, *parts, by=by, causal=causal, since=since))
    return _mixed(p, at, heads, learned)


def _mixed(p: Program, at: str, heads: Sequence[str], learned: Mapping[str, Any]) -> str:
    joined = heads[0] if len(heads) == 1 else p.add(
        f"{at}/joined", "join", *heads, title="heads joined", colour="context")  # fmt: skip
    if learned.get("W_o") is None:
        return joined
    weights = {"W_o": learned["W_o"], "b": learned.get("b_o")}
    return p.add(f"{at}/out", "linear", joined, weights=weights, title="· W_o",
                 note="what the heads found, mixed", colour="context")  # fmt: skip


def latent_attention(p: Program, at: str, x: str, learned: Mapping[str, Any], num_heads: int, *,
                     scale: float, causal: bool, since: "Since") -> str:  # fmt: skip
    """Keys and values of one small vector c a token; besides, a part of each key turns.

    That part is the same for all heads. DeepSeek-AI (2024), section 2.1.
    """
    home = f"{at}/head" if num_heads == 1 else f"{at}/q, k, v"

    def made(name: str, of: str, W: str, note: str, colour: str) -> str:
        pair = {W: learned[W], "b": learned.get(f"b{W[1:]}")}
        title = name if "turn" in name else f"{name} = {'x' if of == x else 'c'} {W}"
        return p.add(f"{home}/{name}", "linear", of, weights=pair, note=note, colour=colour,
                     title=title)  # fmt: skip

    def small(name: str, end: str, colour: str) -> str:
        c = made(name, x, f"W_down{end}", "small", colour)
        return rms_rows(p, f"{c} normed", c, learned[f"norm_down{end}"], since.eps, colour=colour,
                        title=f"{name} normed")  # fmt: skip

    asks = small("c of q", "_q", "q") if "W_down_q" in learned else x
    c = small("c", "", "k")
    whole = {"q": made("q", asks, "W_q", NOTES["q"], "q"),
             "q to turn": made("q to turn", asks, "W_q_turned", "for places", "q"),
             "k": made("k", c, "W_up_k", "of the small vector", "k"),
             "v": made("v", c, "W_up_v", "of the small vector", "v")}  # fmt: skip
    k_turned = _turned(p, home, made("k to turn", x, "W_turned", "for places", "k"), since, "k")
    heads = []
    for h in range(num_heads):
        home = f"{at}/head" if num_heads == 1 else f"{at}/head {h + 1}"
        q, to_turn, k, v = (_part(p, home, name, whole[name], h, num_heads, Since())
                            for name in whole)  # fmt: skip
        turned = _turned(p, home, to_turn, since, "q"), k_turned
        heads.append(head(p, home, h, q, k, v, by=1 / scale, causal=causal, since=since,
                          turned=turned))  # fmt: skip
    return _mixed(p, at, heads, learned)


NOTES = {"q": "what it looks for", "k": "what it offers", "v": "what it gives"}


class Since(NamedTuple):
    """What attentions since 2017 do besides; nothing of it unless said."""

    num_kv_heads: int | None = None  # of keys and values, each for a group of heads
    turning: Mapping[str, Any] | None = None  # of "rotate": how fast queries and keys turn
    window: int | None = None  # how many of the newest words are seen
    keep_first: int = 0  # and how many of the first
    sinks: Any = None  # of each head a score more, which takes weight and gives nothing
    eps: float = 1e-5  # of the norms of queries and keys, or of small vectors


def _projection(p: Program, home: str, letter: str, x: str, learned: Mapping[str, Any],
                since: Since, width: int) -> str:  # fmt: skip
    """The queries, keys or values of all heads; normed, each head's by themselves, if they are."""
    W, name = f"W_{letter}", f"{home}/{letter}"
    pair = {W: learned[W], "b": learned.get(f"b_{letter}")}
    p.add(name, "linear", x, weights=pair, title=f"{letter} = x {W}", note=NOTES[letter],
          colour=letter)  # fmt: skip
    if f"norm_{letter}" not in learned:
        return name
    return rms_rows(p, f"{name} normed", name, learned[f"norm_{letter}"], since.eps, width=width,
                    title=f"{letter} normed", colour=letter)  # fmt: skip


def _part(p: Program, home: str, letter: str, whole: str, h: int, num_heads: int,
          since: Since) -> str:  # fmt: skip
    """A head's own features of all heads' queries, keys or values, or its group's; turned."""
    name, kv = whole, since.num_kv_heads or num_heads
    if num_heads > 1:
        count = num_heads if letter[0] == "q" else kv
        group, width = h * count // num_heads, _columns(p, whole) // count
        several, first = num_heads // count, group * num_heads // count + 1
        own = NOTES.get(letter, "for places")
        note = own if several == 1 else f"of heads {first}–{first + several - 1}"
        name = p.add(f"{home}/{letter}", "split", whole, start=group * width, note=note,
                     stop=(group + 1) * width, title=letter, colour=letter[0])  # fmt: skip
    return name if letter == "v" else _turned(p, home, name, since, letter)


def _turned(p: Program, home: str, name: str, since: Since, letter: str) -> str:
    """Queries or keys turned by place, if they are."""
    if since.turning is None:
        return name
    return p.add(f"{home}/{letter} turned", "rotate", name, **since.turning, colour=letter,
                 title=f"{letter} turned", note="by its place")  # fmt: skip


def _columns(p: Program, name: str) -> int:
    """How many features a linear step has, or the one that a norm was given."""
    op = p.operations[name]
    return p.weights[op.weights[0]].shape[1] if op.kind == "linear" else _columns(p, op.inputs[0])


def source_of(p: Program, name: str) -> str:
    """Of which vectors a head's queries, keys or values were made: what its attention was given."""
    home = name[: name.rindex("/head") + 1]
    while name.startswith(home):
        name = p.operations[name].inputs[0]
    return name


def head(p: Program, at: str, h: int, q: str, k: str, v: str, *, by: float, causal: bool,
         since: Since, turned: Sequence[str] = ()) -> str:  # fmt: skip
    """One head: scores, scaled, masked, weights, context. Paper, equation 1."""
    shown = {"colour": "scores", "columns": p.operations[k].rows}
    ready = p.add(f"{at}/scores", "scores", q, k, title="scores", note="q · k", **shown)
    if turned:
        place = p.add(f"{at}/by place", "scores", *turned, title="by place", note="of turned parts",
                      **shown)  # fmt: skip
        ready = p.add(f"{at}/both", "add", ready, place, title="both", note="+ by place", **shown)
    root = f"√{by * by:.0f}" if abs(by * by - round(by * by)) < 1e-6 else f"{by:.4g}"
    ready = p.add(f"{at}/scaled", "scale", ready, by=by, title="scaled", note=f"÷ {root}", **shown)
    if causal:
        far = {} if since.window is None else {"window": since.window}
        far |= {"keep_first": since.keep_first} if far and since.keep_first else {}
        note = f"newest {since.window} seen" if far else "later ones hidden"
        ready = p.add(f"{at}/masked", "mask", ready, title="masked", note=note, **shown, **far)
    if since.sinks is not None:
        ready = p.add(f"{at}/sink", "sink", ready, weights={"score": since.sinks[h]}, **shown,
                      title="with sink", note="a score more")  # fmt: skip
    shown = shown | {"colour": "weights"}
    weights = p.add(f"{at}/weights", "softmax", ready, title="weights", note="softmax", **shown)
    return p.add(f"{at}/context", "mix", weights, v, title="Σ weight × v", note="what it gathers",
                 colour="context")  # fmt: skip


def feed_forward(p: Program, at: str, x: str, learned: Mapping[str, Any],
                 activation: str = "relu", called: str = "· W2 + b2") -> str:  # fmt: skip
    """max(0, x W1 + b1) W2 + b2, or another activation. Paper, section 3.3.

    With a W_gate, and b_gate, the activation is that of the gate. Shazeer (2020), equation 6.
    """

    def bend(x: str) -> str:
        return p.add(f"{at}/{activation}", activation, x, title=activation.replace("_", ", "),
                     note="those with a yes")  # fmt: skip

    def mapped(name: str, of: str, x: str, **shown: str) -> str:
        weights = {f"W{of}": learned[f"W{of}"], "b": learned.get(f"b{of}")}
        return p.add(f"{at}/{name}", "linear", x, weights=weights, **shown)

    gate = None
    if learned.get("W_gate") is not None:
        gate = bend(mapped("gate", "_gate", x, title="x W_gate", note="how far each opens"))
    hidden = mapped("hidden", "1", x, title="x W1 + b1", note="questions to each word")
    awake = bend(hidden) if gate is None else p.add(
        f"{at}/gated", "times", gate, hidden, title="gate × x W1", note="what it lets through"
    )  # fmt: skip
    return mapped("out", "2", awake, title=called, note="what to add")


def mixture(p: Program, at: str, x: str, router: Any, experts: Sequence[Mapping[str, Any]],
            top_k: int, activation: str = "relu") -> str:  # fmt: skip
    """Σ share · expert(x) of the top_k experts that a router, (d, experts), finds for each token.

    Shazeer et al. (2017); Jiang et al. (2024), section 2.1.
    """
    scores = p.add(f"{at}/router", "linear", x, weights={"W": router}, title="router",
                   note="which expert fits", colour="scores")  # fmt: skip
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
    logits = p.add(at + "logits", "linear", x, weights={"W": W, "b": b}, title="logits",
                   note="a score for each word", colour="scores", columns="vocab")  # fmt: skip
    return p.add(at + "next", "softmax", logits, title="next word", note="its probability",
                 colour="weights", columns="vocab", temperature=1.0)  # fmt: skip


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
