"""Every argument of the widgets and figures against values of a wrong kind or size.

Each is a ValueError or TypeError that names the argument, also where a widget is changed later;
nothing fails in torch, at the end of an array, or when the notebook is saved.
"""

import inspect
import warnings

import numpy as np
import pytest
import torch

from workshop import figures, tables, widgets

HALF = "half \ud83d"  # the first half of an emoji, as a cut at a fixed length leaves it
HUGE, MORE = 10**400, 10**5000  # more than a float holds, and more digits than Python writes


EYE = np.eye(2)


class Column:
    """What pandas and others offer: an object that makes an array of itself."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.array, dtype)


class Broken:
    """One that cannot."""

    def __array__(self, *_, **__):
        raise KeyError("no column")


def tensors():
    """Tensors whose numbers NumPy cannot read: (2, 2)."""
    ones = torch.ones(2, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # both are announced as prototypes
        nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
        quantized = torch.quantize_per_tensor(ones, 0.1, 0, torch.quint8)
    return [ones.to("meta"), ones.to_sparse(), ones.to(torch.complex64), nested, quantized]


def nothing():
    """A generator."""
    yield from ()


TENSORS = tensors()
GAP = [[np.nan, 1]]
MASKED = np.ma.masked_array(EYE, EYE)
SEVEN = ["a"] * 7
OTHERS = [b"12", {"a": 1}, {"a"}, nothing(), object(), Broken(), float, 1j, np.datetime64("2020")]
ARRAYS = [
    *TENSORS, *OTHERS, "12", 3, [], HUGE, [[HUGE, 1]], [[MORE, 1]], [[1e39, 0], [0, 1]], [[1j, 0]],
    [["1", "2"], ["3", "4"]], [[1], [1, 2]], [[None, 1]], [TENSORS[0][0]], GAP,
    MASKED, EYE.astype(object), Column(["1", "2"]),
    np.array([["1", "2"]], dtype=object), Column(EYE.astype(object)),
]  # fmt: skip
NUMBERS = [
    *TENSORS, *OTHERS, "0.5", "", [0.5], np.array([0.5, 0.5]), HUGE, MORE, -HUGE, 1e39, np.nan,
    np.inf, np.float64(1e300), torch.ones((), device="meta"), torch.tensor(1j), True,
]  # fmt: skip
WHOLES = [*NUMBERS, 0.5, -1, np.float32(1.5)]
LISTS = [*TENSORS, *OTHERS, 3, None, [None] * 2, [["a"], ["b"]], [b"a", b"b"], [object()] * 2,
         np.array(3), np.ma.masked_array([1, 2], [0, 1])]  # fmt: skip
LABELS = [*LISTS, "ab", [HALF, "b"], ["a", MORE], SEVEN, [TENSORS[0], "b"], [1j, 2j]]
LETTERS = [value for value in LABELS if not isinstance(value, str | dict)]  # those say theirs
TEXTS = [*TENSORS, *OTHERS, 3, ["a"], HALF, "\udcff", np.array(["a", "b"])]
SWITCHES = [*TENSORS, *OTHERS, "yes", 1, 0.0, None, [True], np.array([True, False])]
PAIRS = [*LISTS, "12", (1,), (0, 1, 0), (0, 99), (0, "1"), (0, 0.5), (0, -1), (0, HUGE), [1j, 0]]
SCALARS = [*TENSORS, *OTHERS, None, [3], HUGE, MORE, 1e39, np.nan, HALF, "no choice"]


ONE_HEAD = {"table": EYE, "W_q": EYE, "W_k": EYE, "W_v": EYE}


def step(tokens):
    return np.zeros(3)


# The function, what it needs, and the kind of value that each of its arguments takes.
WANTED = {
    widgets.AttentionHeatmap: (
        {"weights": EYE},
        {"weights": ARRAYS, "tokens": LABELS[:-1], "key_tokens": LABELS, "head_names": LABELS,
         "d_k": [*NUMBERS, 0, None], "layer": [*WHOLES, 9], "head": [*WHOLES, 9],
         "view": [*TEXTS, "x"], "temperature": [*NUMBERS, 0], "scaled": SWITCHES,
         "causal": [*SWITCHES, True], "softmax": SWITCHES, "scores": [*ARRAYS, EYE]},
    ),
    widgets.MatrixProduct: (
        {"A": EYE, "B": EYE},
        {"A": ARRAYS, "B": ARRAYS, "rows": LABELS, "columns": LABELS, "inner": LABELS,
         "names": LABELS, "transposed": SWITCHES, "selected": PAIRS},
    ),
    widgets.SoftmaxLab: (
        {"logits": [1, 2]},
        {"logits": [*ARRAYS, EYE], "labels": LABELS, "temperature": [*NUMBERS, 0, None],
         "d_k": [*WHOLES, 0, None]},
    ),
    widgets.PositionExplorer: (
        {},
        {"d_model": [*WHOLES, 3, 256, None], "length": [*WHOLES, 1, 999, None], "selected": PAIRS},
    ),
    widgets.DropoutLab: (
        {"weights": EYE},
        {"weights": ARRAYS, "tokens": LABELS, "key_tokens": LABELS, "p": [*NUMBERS, 1, None],
         "seed": [*WHOLES, 2**32, None]},
    ),
    widgets.NormLab: (
        {"x": EYE, "sublayer": EYE},
        {"x": ARRAYS, "sublayer": [*ARRAYS, torch.nn.Linear(2, 2)], "tokens": LABELS,
         "gamma": [*NUMBERS, None], "beta": [*NUMBERS, None], "eps": [*NUMBERS, None, 0]},
    ),
    widgets.Machine: (
        {"model": ONE_HEAD, "text": "a b", "vocab": ["a", "b"]},
        {"model": [*TENSORS, *OTHERS, 3, None, {}], "text": [*TEXTS, "", "c"],
         "vocab": [v for v in LABELS if v is not None] + [{"a": "0", "b": 1}, {"a": HUGE, "b": 1}],
         "written": TEXTS, "tokenizer": [3, "ab", object()], "x": [3], "memory": [3],
         "causal": [*SWITCHES, True], "asker": [*WHOLES, "c"], "end": [*TEXTS, None],
         "start": [*TEXTS, None], "at": [*TEXTS, "x/y"], "cell": [*LISTS, ["x"]],
         "changes": [*LISTS, [{"at": "y"}]], "temperature": [*NUMBERS, 0, None],
         "names": [3, "ab", ["a"], {"x": 3}, {"x": "ab"}, {3: ["a"]}]},
    ),
    widgets.NextToken: (
        {"step": step, "vocabulary": ["a", "b", "c"], "prompt": ["a"]},
        {"step": [3, None, "step", *(lambda _, made=made: made for made in ARRAYS)],
         "vocabulary": [*LABELS, ["a", "b", "b"], {"a": "0", "b": 1, "c": 2}, {"a": HUGE}],
         "prompt": [value for value in LABELS if value is not SEVEN], "probabilities": SWITCHES,
         "ids": SWITCHES, "end": [*TEXTS, None], "max_tokens": [*WHOLES, 0, None],
         "temperature": [*NUMBERS, 0, None], "top_k": [*WHOLES, 0], "top_p": [*NUMBERS, 0, 2],
         "seed": [*WHOLES, None]},
    ),
    widgets.predict: (
        {"question": "Which?", "choices": ["a", "b", 3], "answer": "a"},
        {"question": [*TEXTS, "", None], "choices": [*LISTS, "abc", [HALF, "b", "a"], ["a"]],
         "answer": SCALARS, "reason": [*TEXTS, None]},
    ),
    tables.show: (
        {"array": EYE},
        {"array": [*TENSORS, *OTHERS, [[1j, 0]], [[MORE, 1]], [], [HALF], [[1], [1, 2]], MASKED,
                   [None, 1], np.array([{}, 1])],
         "rows": [v for v in LETTERS if v is not None],
         "columns": [v for v in LETTERS if v is not None], "title": TEXTS, "decimals": WHOLES,
         "colour": [*TEXTS, "red", None]},
    ),
    figures.heatmap: (
        {"array": EYE, "rows": "ab", "columns": "ab"},
        {"array": [v for v in ARRAYS if v is not GAP] + [EYE * np.nan, EYE[:1]],
         "rows": LETTERS, "columns": LETTERS, "title": [HALF, b"a", None], "row_name": TEXTS,
         "column_name": TEXTS, "alt": TEXTS},
    ),
    figures.heatmaps: (
        {"panels": {"a": EYE}, "rows": "ab", "columns": "ab"},
        {"panels": [None, {}, EYE, [EYE], {HALF: EYE}],
         "rows": LETTERS, "columns": LETTERS, "row_name": TEXTS, "column_name": TEXTS,
         "shared_scale": SWITCHES, "alt": TEXTS},
    ),
}  # fmt: skip
ARGUMENTS = [(function, name) for function in WANTED for name in WANTED[function][1]]


def named(function):
    """What a call of it may name, and what stands there by default."""
    names = {name: p.default for name, p in inspect.signature(function).parameters.items()}
    more = ["layer", "head", "view", "temperature", "scaled", "causal", "softmax"]
    if names.pop("where", None):
        more = ["at", "cell", "changes", "temperature"]
        return names | dict.fromkeys(more, ...)
    return names | dict.fromkeys(more, ...) if names.pop("shown", None) else names


def must_name(name, call):
    """The error of a call says which argument it means, in a line that a screen has room for."""
    with pytest.raises((ValueError, TypeError)) as caught, warnings.catch_warnings():
        warnings.simplefilter("error")
        call()
    said = str(caught.value)
    assert name.split("_")[-1] in said and said.isprintable() and len(said) < 400, said
    said.encode()


def test_no_argument_is_left_out():
    for function in WANTED:
        assert named(function).keys() == WANTED[function][1].keys(), function.__name__


@pytest.mark.parametrize(
    "function, name", ARGUMENTS, ids=[f"{f.__name__}-{name}" for f, name in ARGUMENTS]
)
def test_a_bad_argument_is_named(function, name, capsys):
    needed, arguments = WANTED[function]
    for value in arguments[name]:
        if value is None and named(function)[name] is None:
            continue  # that is what stands there anyway
        must_name(name, lambda v=value: function(**needed | {name: v}))


def made():
    """One of each widget."""
    heatmap = widgets.AttentionHeatmap(scores=EYE, tokens=["a", "b"])
    others = [widgets.AttentionHeatmap, tables.show, *vars(figures).values()]
    for function, (needed, _) in WANTED.items():
        if function not in others:
            yield function(**needed)
    yield heatmap


KINDS = {
    "Number": NUMBERS, "Whole": WHOLES, "Switch": SWITCHES, "Text": TEXTS, "Choice": [*TEXTS, "x"],
    "Labels": LABELS, "Pair": PAIRS, "Logits": [*ARRAYS, [1, 2, 3], None],
    "Dict": [*TENSORS, 3, None, "a", [1], HUGE], "Bytes": [*TENSORS, 3, None, "a", [1]],
    "Entries": [*LISTS, ["x"]],
}  # fmt: skip


@pytest.mark.parametrize("widget", list(made()), ids=lambda widget: type(widget).__name__)
def test_a_bad_value_is_named_when_it_is_set_later_and_changes_nothing(widget):
    for name, trait in widget.traits(sync=True).items():
        if name.startswith("_") or name in ("layout", "tabbable", "tooltip", "comm", "log"):
            continue  # those of every Jupyter widget
        before = getattr(widget, name)
        for value in KINDS[type(trait).__name__]:
            fits = (value is SEVEN and getattr(trait, "any_number", False)) or (
                value is None and trait.allow_none
            )
            if not fits:
                must_name(name, lambda v=value, name=name: setattr(widget, name, v))
        assert getattr(widget, name) is before


LATER = [
    (lambda: widgets.AttentionHeatmap(scores=EYE),
     {"layer": 99, "head": 1, "d_k": 0, "temperature": 0, "view": "none", "tokens": ["a"],
      "head_names": ["a", "b"], "selected": 3}),
    (lambda: widgets.AttentionHeatmap(EYE),
     {"scaled": True, "causal": True, "softmax": True, "temperature": 2}),
    (lambda: widgets.PositionExplorer(6, 20), {"d_model": 7, "selected": (0, 20)}),
    (lambda: widgets.MatrixProduct(EYE, EYE), {"selected": (1, 4)}),
    (lambda: widgets.SoftmaxLab([1, 2]), {"logits": [1, 2, 3], "temperature": 0, "d_k": 0}),
    (lambda: widgets.NextToken(step, ["a", "b", "c"]),
     {"tokens": ["ghost"], "temperature": -1.0, "top_k": 0, "top_p": 1.1}),
    (lambda: widgets.NormLab(EYE), {"selected": 2}),
    (lambda: widgets.DropoutLab(EYE, p=0), {"draws": 10**6, "p": 0.95}),
]  # fmt: skip


@pytest.mark.parametrize(("make", "values"), LATER)
def test_limits_hold_when_set_later(make, values):
    widget = make()
    for name, value in values.items():
        must_name(name, lambda name=name, value=value: setattr(widget, name, value))
    widget.picture()


def test_kind_values_are_welcome():
    """What is a number, a list or a switch in NumPy or PyTorch is one here, also in bfloat16."""
    weights = torch.full((2, 2), 0.5, dtype=torch.bfloat16)
    names = np.array(["one"])
    heatmap = widgets.AttentionHeatmap(weights, np.array(["a", "b"]), head_names=names,
                                       d_k=np.float32(4), layer=np.int64(0))  # fmt: skip
    assert heatmap.tokens == ["a", "b"] and heatmap.d_k == 4 and heatmap.matrix[0, 0] == 0.5
    lab = widgets.DropoutLab(Column(EYE), range(2), p=torch.tensor(0.25), seed=np.uint8(3))
    assert (lab.p, lab.seed, lab.tokens) == (0.25, 3, ["0", "1"])
    assert widgets.MatrixProduct(EYE, EYE, transposed=np.True_, selected=[1, 1]).selected == (1, 1)
