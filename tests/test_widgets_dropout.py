"""DropoutLab in Python: its draws, words and picture, and what it refuses."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from helpers.attention import causal_mask, masked_softmax
from helpers.widgets import DropoutLab
from helpers.widgets.dropout import Mulberry

TOKENS = "Your journey starts with one step".split()
SCORES = 2 * np.random.default_rng(7).normal(size=(6, 6))
WEIGHTS = masked_softmax(SCORES, causal_mask(6))


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
    one_by_one = mulberry32(seed)
    expected = [next(one_by_one) for _ in range(1000)]
    assert Mulberry(seed).random((10, 100)).ravel().tolist() == expected
    assert Mulberry(seed, 900).random((100,)).tolist() == expected[900:]


def test_random_numbers_spread_evenly():
    numbers = Mulberry(5).random((100_000,))
    assert 0 <= numbers.min() and numbers.max() < 1
    assert np.allclose(np.histogram(numbers, 10, (0, 1))[0], 10_000, atol=400)
    assert abs(np.corrcoef(numbers[:-36], numbers[36:])[0, 1]) < 0.02


def test_a_draw_drops_and_scales():
    lab = DropoutLab(WEIGHTS, TOKENS, p=0.25, seed=3)
    assert 0 < lab.dropped.sum() < 18
    assert np.array_equal(lab.last, np.where(lab.dropped, 0, WEIGHTS / 0.75))
    assert np.array_equal(lab.mean, lab.last)


def test_the_same_seed_draws_the_same():
    first, again, other = (DropoutLab(WEIGHTS, seed=seed) for seed in (4, 4, 5))
    assert np.array_equal(first.last, again.last)
    assert not np.array_equal(first.last, other.last)


def test_the_mean_is_that_of_all_draws_and_approaches_the_weights():
    lab, every = DropoutLab(WEIGHTS), []
    for lab.draws in range(1, 11):
        every.append(lab.last)
    assert np.allclose(lab.mean, np.mean(every, axis=0))
    lab.draws = 5000
    assert np.allclose(lab.mean, WEIGHTS, atol=0.06)
    assert not np.allclose(lab.last, WEIGHTS, atol=0.3)


def test_in_eval_nothing_is_dropped():
    lab = DropoutLab(WEIGHTS)
    lab.training = False
    lab.draws = 8
    assert np.array_equal(lab.last, WEIGHTS) and np.allclose(lab.mean, WEIGHTS)
    assert not lab.dropped.any()
    assert repr(lab).endswith("eval: nothing dropped; row sums 1.00 to 1.00")


def test_words_count_what_is_dropped():
    lab = DropoutLab(WEIGHTS, TOKENS, p=0.5, seed=1)
    count, sums = lab.dropped.sum(), lab.last.sum(axis=1)
    assert repr(lab) == (
        f"DropoutLab: 6 queries × 6 keys, p 0.50, draw 1 of seed 1: {count} of 36 weights dropped; "
        f"row sums {sums.min():.2f} to {sums.max():.2f}"
    )
    lab.p, lab.draws = 0.9, 12
    assert "p 0.90, draw 12 of seed 1" in repr(lab)


def test_the_bundle_has_a_view_a_picture_and_its_words():
    lab = DropoutLab(WEIGHTS[:, :4], TOKENS, key_tokens=TOKENS[:4])
    data, metadata = lab._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == lab.model_id
    assert data["text/plain"] == metadata["image/png"]["alt"] == repr(lab)
    assert Image.open(io.BytesIO(base64.b64decode(data["image/png"]))).width > 500
    assert np.array_equal(np.frombuffer(lab.arrays["weights"]["bytes"], "<f4").size, 24)


@pytest.mark.parametrize(("shape", "most"), [((1, 1), 10_000), ((64, 64), 256), ((2, 128), 4096)])
def test_smallest_and_largest(shape, most):
    lab = DropoutLab(np.full(shape, 1 / shape[1]))
    lab.draws = most
    assert lab.most == most and lab.mean.shape == shape


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": np.ones((2, 3, 3))}, r"weights has shape \(2, 3, 3\), but must be \(Tq, Tk\)"),
        ({"weights": np.ones((65, 64))}, "at most 4,096 numbers"),
        ({"weights": np.ones((1, 129))}, "at most 128 queries and keys"),
        ({"weights": np.zeros((0, 3))}, "nothing to show"),
        ({"weights": [[0.5, np.nan]]}, r"nan at \(0, 1\)"),
        ({"weights": [[1.5, -0.5]]}, r"-0.5000 at \(0, 1\), but weights are not negative"),
        ({"tokens": ["a"]}, r"tokens has 1 entries, but weights \(6, 6\) needs 6"),
        ({"key_tokens": ["a"]}, "key_tokens has 1 entries"),
        ({"p": 1}, "p is 1, but must be from 0 to 0.9"),
        ({"p": -0.1}, "p is -0.1"),
        ({"p": float("nan")}, "p is nan"),
        ({"seed": -1}, "seed is -1, but must be a whole number"),
        ({"seed": 0.5}, "seed is 0.5"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        DropoutLab(**({"weights": WEIGHTS} | arguments))


def test_refuses_later_too():
    lab = DropoutLab(WEIGHTS)
    for name, value in (("p", 0.95), ("draws", 0), ("draws", 10_001)):
        with pytest.raises(ValueError, match=f"{name} is {value}"):
            setattr(lab, name, value)
    assert lab.p == 0.5 and lab.draws == 1
