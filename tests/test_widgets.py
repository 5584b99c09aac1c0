"""The heatmap and dropout in Python: what they compute, their words, their picture, their limits.

`test_bad_values.py` gives every argument values of a wrong kind.
"""

import base64
import io

import numpy as np
import pytest
import torch
from PIL import Image

from helpers.attention import causal_mask, masked_softmax, softmax
from workshop.colours import tint
from workshop.widgets import AttentionHeatmap, DropoutLab, predict
from workshop.widgets.dropout import Mulberry

TOKENS = "Your journey starts with one step".split()
SCORES = 2 * np.random.default_rng(5).normal(size=(2, 3, 6, 6))
WEIGHTS = softmax(SCORES)
CAUSAL = masked_softmax(SCORES[0, 0], causal_mask(6))
HUGE = np.broadcast_to(0.001, (5, 1000, 1000))

SHOWN = {
    "heatmap": lambda: AttentionHeatmap(WEIGHTS, TOKENS, layer=1, view="all heads"),
    "two heads of one name": lambda: AttentionHeatmap(WEIGHTS[0, :2], head_names=["a"] * 2),
    "dropout": lambda: DropoutLab(CAUSAL[:, :4], TOKENS, key_tokens=["$x$", "x" * 200, "\n", "$"]),
    "dropout of one": lambda: DropoutLab([[1.0]], p=0),
    "dropout of all": lambda: DropoutLab([[1.0]]),
    "the largest dropout": lambda: DropoutLab(np.full((32, 128), 1 / 128)),
    "question": lambda: predict("How much?", [1, 0.5, "$y$"], answer=1),
    "numbers to type": lambda: predict("How much?", answer=[1, 0.5]),
}  # fmt: skip


@pytest.mark.parametrize("name", SHOWN)
def test_every_widget_has_a_view_a_picture_and_its_words(name, recwarn):
    shown = SHOWN[name]()
    data, metadata = shown._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == shown.model_id
    assert data["text/plain"] == metadata["image/png"]["alt"] == repr(shown)
    assert repr(shown).isprintable()
    picture = Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
    assert picture.width >= metadata["image/png"]["width"] > 150
    assert not [str(warning.message) for warning in recwarn]


WORDS = [
    (lambda: AttentionHeatmap(CAUSAL * 0 + 0.15 + 0.09 * np.eye(6)[[5, 2, 5, 5, 5, 5]], TOKENS),
     'AttentionHeatmap: 6 queries × 6 keys, 1 head; largest: "Your" → "step" 0.24'),
    (lambda: AttentionHeatmap(scores=[[1.0, -2.0]], tokens=["a"], key_tokens=["b", "c"]),
     'AttentionHeatmap: 1 queries × 2 keys, 1 head; largest score: "a" → "b" 1.00'),
    (lambda: DropoutLab([[0.5, 0.5]], p=0),
     "DropoutLab: 1 queries × 2 keys, p 0.00, draw 1 of seed 0: 0 of 2 weights dropped; "
     "row sums 1.00 to 1.00"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "words"), WORDS)
def test_words_say_what_is_seen(make, words):
    assert repr(make()) == words


REFUSED = [
    (AttentionHeatmap, {"weights": np.ones(6)}, r"weights has shape \(6,\), but must be \(Tq"),
    (AttentionHeatmap, {"weights": [[0.5, -0.5]]}, r"-0\.5000 at \(0, 1\).*scores="),
    (AttentionHeatmap, {"weights": WEIGHTS, "scores": SCORES}, "either weights or scores"),
    (AttentionHeatmap, {"weights": WEIGHTS, "softmax": True}, r"softmax.*scores"),
    (AttentionHeatmap, {"weights": np.ones((600, 1200))}, "1,024"),
    (AttentionHeatmap, {"weights": HUGE}, "at most 4,194,304"),
    (DropoutLab, {"weights": np.ones((2, 3, 3))}, r"\(2, 3, 3\), but must be \(Tq, Tk\)"),
    (DropoutLab, {"weights": np.ones((65, 64))}, "at most 4,096 numbers"),
    (DropoutLab, {"weights": np.ones((1, 129))}, "at most 128 queries and keys"),
    (DropoutLab, {"weights": [[1.5, -0.5]]}, r"-0.5000 at \(0, 1\), but weights are not negative"),
]


@pytest.mark.parametrize(("widget", "arguments", "message"), REFUSED)
def test_what_cannot_be_shown_is_named_before_anything_is_drawn(widget, arguments, message):
    with pytest.raises(ValueError, match=message):
        widget(**arguments)


# ---------------------------------------------------------------- the heatmap


def test_weights_may_be_tensors_of_one_head_of_several_or_of_layers():
    for shape in [(6, 4), (3, 6, 4), (2, 3, 6, 4)]:
        weights = torch.full(shape, 0.25, requires_grad=True)
        shown = AttentionHeatmap(weights, TOKENS, key_tokens=TOKENS[:4])
        assert shown.arrays["matrices"]["shape"] == [1] * (4 - len(shape)) + list(shape)


def test_the_matrix_of_a_heatmap_is_what_its_controls_say():
    shown = AttentionHeatmap(scores=SCORES, tokens=TOKENS, d_k=3, layer=1, head=2)
    x = SCORES[1, 2]
    assert np.array_equal(shown.matrix, x)
    shown.scaled = shown.softmax = True
    assert np.allclose(shown.matrix, softmax(x / 3**0.5))
    shown.causal, shown.temperature = True, 0.5
    assert np.allclose(shown.matrix, masked_softmax(x / 3**0.5 / 0.5, causal_mask(6)))
    assert shown.picture().alt == repr(shown) and '"Your" → "Your" 1.00' in repr(shown)
    shown.softmax = False
    assert np.array_equal(np.isneginf(shown.matrix), ~causal_mask(6))
    empty = AttentionHeatmap(scores=[[-np.inf, -np.inf], [1.0, -np.inf]], softmax=True)
    assert np.array_equal(empty.matrix, [[0, 0], [1, 0]])  # a row without keys


@pytest.mark.parametrize("name", ["temperature", "scaled", "causal", "softmax"])
def test_weights_are_not_made_weights_again_later(name):
    with pytest.raises(ValueError, match=f"{name} needs scores"):
        setattr(AttentionHeatmap(CAUSAL), name, 2 if name == "temperature" else True)


def test_a_heatmap_sends_exact_numbers_when_the_browser_asks():
    heads, sent = softmax(np.random.default_rng(1).normal(size=(12, 64, 64))), []
    shown = AttentionHeatmap(heads)
    shown.send = lambda content, buffers=None: sent.append((content, buffers))
    asked = {"method": "custom", "content": {"exact": "matrices"}}
    shown._handle_msg({"content": {"data": asked}, "buffers": []})
    ((content, (buffer,)),) = sent
    assert content == {"exact": "matrices"}
    assert np.array_equal(np.frombuffer(buffer, "<f4"), heads.astype("f4").ravel())


# ---------------------------------------------------------------- dropout


def mulberry32(seed):
    """The generator as it is usually written: one number after the other."""
    state = seed
    while True:
        state = (state + 0x6D2B79F5) % 2**32
        t = (state ^ state >> 15) * (state | 1) % 2**32
        t ^= (t + (t ^ t >> 7) * (t | 61)) % 2**32
        yield (t ^ t >> 14) / 2**32


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1])
def test_random_numbers_are_those_of_mulberry32(seed):
    """The browser draws them one by one, and must get the same."""
    one_by_one = mulberry32(seed)
    expected = [next(one_by_one) for _ in range(1000)]
    assert Mulberry(seed).random((10, 100)).ravel().tolist() == expected
    assert Mulberry(seed, 900).random((100,)).tolist() == expected[900:]


def test_draws_drop_and_scale_and_their_mean_approaches_the_weights():
    lab, every = DropoutLab(CAUSAL, TOKENS, p=0.25, seed=3), []
    assert 0 < lab.dropped.sum() < 18
    assert np.array_equal(lab.last, np.where(lab.dropped, 0, CAUSAL / 0.75))
    assert np.array_equal(lab.last, DropoutLab(CAUSAL, p=0.25, seed=3).last)
    assert not np.array_equal(lab.last, DropoutLab(CAUSAL, p=0.25, seed=4).last)
    for lab.draws in range(1, 11):
        every.append(lab.last)
    assert np.allclose(lab.mean, np.mean(every, axis=0))
    lab.draws = 5000
    assert np.allclose(lab.mean, CAUSAL, atol=0.06)
    lab.training = False
    assert np.array_equal(lab.last, CAUSAL) and repr(lab).count("eval: nothing dropped")
    assert DropoutLab(np.ones((64, 64))).most == 256  # draws of large weights end early


def test_each_cell_of_a_picture_has_exactly_its_tint():
    lab, scores = DropoutLab(CAUSAL, TOKENS, p=0.25), SCORES[0, 0]
    heatmap = AttentionHeatmap(scores=scores, tokens=TOKENS)
    for widget, thing, array, largest in [
        (lab, "weights", np.stack([CAUSAL, lab.mean]), CAUSAL.max() / 0.75),
        (heatmap, "scores", scores, np.abs(scores).max()),
    ]:
        picture = Image.open(io.BytesIO(widget.picture().png)).convert("RGBA")
        seen = np.array([colour for count, colour in picture.getcolors() if count > 500])
        for value in array.flat:
            colour = [*bytes.fromhex(tint(thing, value, largest)[1:]), 255]
            far = np.abs(seen - colour).max(axis=1).min()
            assert far <= 1, (thing, value)  # a colour map has 256 steps
