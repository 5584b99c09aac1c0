"""What all widgets share: arrays in and out, tokens in one line, the size of the program."""

import base64
import re
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from helpers.attention import softmax
from workshop import Machine, colours, widgets
from workshop.widgets import base

FOLDER = Path(base.__file__).parent


def unpack(packed):
    """`pack` undone, as the browser does it."""
    if not packed["step"]:
        return np.frombuffer(packed["bytes"], "<f4").reshape(packed["shape"])
    halves = np.frombuffer(zlib.decompress(packed["bytes"]), np.uint8).reshape(2, -1)
    whole = np.ascontiguousarray(halves.T).view("<i2").ravel()
    x = np.where(whole == -32768, -np.inf, whole * packed["step"])
    return x.reshape(packed["shape"])


@given(hnp.arrays(float, hnp.array_shapes(min_dims=1, max_dims=4, max_side=8),
                  elements=st.floats(-1000, 1000)))  # fmt: skip
def test_small_arrays_are_kept_as_float32(array):
    assert np.array_equal(unpack(base.pack(array)), array.astype("f4"))


@pytest.mark.parametrize("scale", [1e-3, 1, 1000, 1e6])
@pytest.mark.parametrize("masked", [False, True])
def test_large_arrays_are_kept_to_half_a_step(scale, masked):
    x = np.random.default_rng(3).normal(size=(3, 50, 51)) * scale
    if masked:
        x[:, ~np.tri(50, 51, dtype=bool)] = -np.inf
    packed = base.pack(x)
    assert packed["step"] >= 1e-4
    back = unpack(packed)
    assert np.array_equal(np.isneginf(back), np.isneginf(x))
    finite = np.isfinite(x)
    assert np.abs(back[finite] - x[finite]).max() <= packed["step"] * 0.5001
    assert len(packed["bytes"]) < 1.2 * x.size


def test_weights_of_64_tokens_and_12_heads_fit_in_100_kilobytes():
    """In base64, with the widget's whole program and style; three decimals are true."""
    heads = softmax(np.random.default_rng(0).normal(size=(12, 64, 64)))
    widget = widgets.AttentionHeatmap(heads, [f"token{i}" for i in range(64)])
    packed = widget.arrays["matrices"]
    assert packed["step"] <= 4e-4
    data = len(base64.b64encode(packed["bytes"]))
    assert data + len(widget._esm.encode()) <= 100_000


@pytest.mark.parametrize(
    "token, seen",
    [("a\nb\tc", "a⏎b⇥c"), ("x" * 200, "x" * 23 + "…"), ("a\x00\x1b[31m", "a··[31m"),
     ("<b>", "<b>"), ("\u202eabc", "·abc"), ("שלום", "שלום")],
)  # fmt: skip
def test_tokens_are_shown_in_one_line(token, seen):
    assert base.visible(token) == seen


WIDGETS = [kind for kind in base.Widget.__subclasses__() if kind.__module__.startswith("workshop.")]


@pytest.mark.parametrize("widget", WIDGETS, ids=lambda kind: kind.__name__)
def test_a_widget_saves_what_all_share_and_its_own_styles(widget):
    """Together all have every rule of the file, and none has another's."""
    own = {Machine.__name__: ".board", "AttentionHeatmap": ".small", "Predict": "fieldset"}
    styles = base.style(widget.__name__)
    assert styles.startswith(".step {") and "focus-visible" in styles
    for name, rule in own.items():
        assert (f".step {rule} " in styles) == (name == widget.__name__), name


def test_every_rule_is_saved_with_some_widget():
    whole = re.sub(r"/\*.*?\*/", "", (FOLDER / "style.css").read_text("utf-8"), flags=re.DOTALL)
    rules = re.findall(r"[^{}]+\{[^{}]*\}", " ".join(whole.split()))
    assert len(rules) > 60
    saved = " ".join(base.style(widget.__name__) for widget in WIDGETS)
    assert [rule for rule in rules if rule.strip() not in saved] == []


def test_colours_are_those_of_the_drawings():
    text = (FOLDER / "style.css").read_text("utf-8")
    assert dict(re.findall(r"--(\w+): color-mix\(in srgb, (#\w{6}) (?:80|10)%", text)) == colours.OF
