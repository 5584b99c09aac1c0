"""What is of a wrong kind or size is refused by name, in a line that a screen has room for.

First each check with values of every wrong kind; then each argument of the widgets and of tables,
and what is changed later: one value is enough to see that it is checked, more where it has a limit.
"""

import inspect
import warnings

import numpy as np
import pytest
import torch

from workshop import Machine, arguments, show, widgets
from workshop.widgets.base import check_array
from workshop.widgets.predict import _plain

EYE, SEVEN = np.eye(2), ["a"] * 7
HALF = "half \ud83d"  # the first half of an emoji, as a cut at a fixed length leaves it
HUGE, MORE = 10**400, 10**5000  # more than a float holds, and more digits than Python writes
MASKED = np.ma.masked_array(EYE, EYE)


class Column:
    """What pandas and others offer: an object that makes an array of itself, or fails to."""

    def __init__(self, array=None):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        if self.array is None:
            raise KeyError("no column")
        return np.asarray(self.array, dtype)


def tensors():
    """Tensors whose numbers NumPy cannot read: (2, 2)."""
    ones = torch.ones(2, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # both are announced as prototypes
        nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
        quantized = torch.quantize_per_tensor(ones, 0.1, 0, torch.quint8)
    return [ones.to("meta"), ones.to_sparse(), ones.to(torch.complex64), nested, quantized]


ODD = [*tensors(), b"12", {"a": 1}, {"a"}, (x for x in ()), object(), Column(), float, 1j,
       np.datetime64("2020")]  # fmt: skip
NUMBERS = [*ODD, "0.5", "", [0.5], np.array([0.5, 0.5]), HUGE, MORE, -HUGE, 1e39, np.nan, np.inf,
           np.float64(1e300), torch.ones((), device="meta"), torch.tensor(1j), True]  # fmt: skip
REFUSED = [
    (check_array, [*ODD, "12", [], HUGE, [[HUGE, 1]], [[MORE, 1]], [[1e39, 0]], [[1j, 0]],
                   [["1", "2"]], [[1], [1, 2]], [[None, 1]], [tensors()[0][0]], [[np.nan, 1]],
                   MASKED, EYE.astype(object), Column(["1"]), Column(EYE.astype(object))]),
    (arguments.as_number, NUMBERS),
    (lambda *named: arguments.as_whole(*named, 0, 9), [*NUMBERS, 0.5, -1, 10, np.float32(1.5)]),
    (arguments.as_switch, [*ODD, "yes", 1, 0.0, None, [True], np.array([True, False])]),
    (arguments.as_text, [*ODD, 3, ["a"], HALF, "\udcff", np.array(["a", "b"])]),
    (arguments.as_labels, [*ODD, "ab", 3, None, np.array(3), np.ma.masked_array([1, 2], [0, 1]),
                           [HALF], ["a", MORE], [None], [["a"]], [b"a"], [object()], [1j]]),
    (_plain, [*ODD, None, [3], HUGE, MORE, 1e39, np.nan, HALF]),
]  # fmt: skip
# What to call, with what it needs; of each argument, and of what is only set later, wrong values.
CASES = [
    (widgets.AttentionHeatmap, {"scores": EYE},
     {"weights": [EYE], "scores": ["12"], "tokens": [3, SEVEN], "key_tokens": [3, SEVEN],
      "head_names": [3, SEVEN], "d_k": ["1", 0], "layer": [0.5, -1, 1], "head": [None, 1],
      "view": [3, "x"], "temperature": ["1", 0], "scaled": [1], "causal": [1], "softmax": [1]},
     {"raw": [1], "selected": [3]}),
    (widgets.DropoutLab, {"weights": EYE},
     {"weights": ["12"], "tokens": [3, SEVEN], "key_tokens": [3, SEVEN], "p": ["0", -0.1, 0.95],
      "seed": [0.5, -1, 2**32]},
     {"training": [1], "draws": [0, 10**6], "most": [0]}),
    (widgets.predict, {"question": "Which?", "choices": ["a", "b", 3], "answer": "a"},
     {"question": [3, ""], "choices": ["abc", ["a"], [HALF, "b", "a"]], "answer": [[3], "c"],
      "reason": [3], "drawn": [3, ["c"], "c"]},
     {"question": [3], "choices": [3, SEVEN], "right": [4], "chosen": [HALF], "answer": [3, "c"],
      "asks": [3], "drawn": [3, "c"]}),
    (Machine, {"model": dict.fromkeys(["table", "W_q", "W_k", "W_v"], EYE), "text": "a b",
               "vocab": ["a", "b"]},
     {"model": [3, {}], "text": [3, "", "c"], "vocab": [3, SEVEN, {"a": "0", "b": 1}],
      "written": [3], "tokenizer": [3], "x": [3], "memory": [3], "causal": [1, True],
      "asker": [0.5, -1, "c"], "at": [3, "x/y"], "cell": [3, ["x"]],
      "changes": [3, [{"at": "y"}]], "temperature": ["1", 0], "names": [3, ["a"], {"x": 3}],
      "others": [3, [3], ["c"]], "by_kernel": [3, "yes"]},
     {"asker": [0.5, -1], "asked": [3, ["c"], ["a", "b", "a", "b"]],
      "description": ["a"], "learned": ["a"], "kept": [3], "output": [3]}),
    (show, {"array": EYE},
     {"array": [*ODD, [[1j, 0]], [[MORE, 1]], [], [HALF], [[1], [1, 2]], MASKED, [None, 1]],
      "rows": [3, SEVEN], "columns": [3, SEVEN], "title": [3], "decimals": [0.5],
      "colour": [3, "red"], "colours": [3, ["q"], ["q", "red"]]}, None),
]  # fmt: skip
MORE_ARGUMENTS = {"shown": "layer head view temperature scaled causal softmax",
                  "where": "at cell changes temperature"}  # fmt: skip
OF_ALL = {"layout", "tabbable", "tooltip", "comm", "log"}  # of every Jupyter widget


def must_name(name, call):
    """The error of a call says which argument it means."""
    with pytest.raises((ValueError, TypeError)) as caught, warnings.catch_warnings():
        warnings.simplefilter("error")
        call()
    said = str(caught.value)
    assert name.split("_")[-1] in said and said.isprintable() and len(said) < 400, said
    said.encode()


@pytest.mark.parametrize(("check", "values"), REFUSED)
def test_each_check_names_what_it_refuses(check, values):
    for value in values:
        must_name("the name", lambda v=value: check("the name", v))


def test_no_argument_is_left_out():
    for function, _, values, _ in CASES:
        names = " ".join(MORE_ARGUMENTS.get(n, n) for n in inspect.signature(function).parameters)
        assert set(values) == set(names.split()), function.__name__


@pytest.mark.parametrize(("function", "needed", "values", "_"), CASES)
def test_a_bad_argument_is_named(function, needed, values, _):
    for name, wrong in values.items():
        for value in wrong:
            must_name(name, lambda n=name, v=value: function(**needed | {n: v}))


@pytest.mark.parametrize(
    ("function", "needed", "values", "later"), [case for case in CASES if case[3]]
)
def test_a_bad_value_set_later_is_named_and_changes_nothing(function, needed, values, later):
    widget, later = function(**needed), {"words": [HALF], "arrays": [3]} | values | later
    for name in {name for name in widget.trait_names(sync=True) if name[0] != "_"} - OF_ALL:
        before = getattr(widget, name)
        for value in later[name]:
            must_name(name, lambda n=name, v=value: setattr(widget, n, v))
        assert getattr(widget, name) is before


def test_kind_values_are_welcome():
    """What is a number, a list or a switch in NumPy or PyTorch is one here, also in bfloat16."""
    weights = torch.full((2, 2), 0.5, dtype=torch.bfloat16)
    heatmap = widgets.AttentionHeatmap(weights, np.array(["a", "b"]), head_names=np.array(["one"]),
                                       d_k=np.float32(4), layer=np.int64(0))  # fmt: skip
    assert heatmap.tokens == ["a", "b"] and heatmap.d_k == 4 and heatmap.matrix[0, 0] == 0.5
    lab = widgets.DropoutLab(Column(EYE), range(2), p=torch.tensor(0.25), seed=np.uint8(3))
    assert (lab.p, lab.seed, lab.tokens) == (0.25, 3, ["0", "1"])
    lab.training = np.False_
    assert lab.training is False
