"""NormLab in Python: what it adds and normalises, its words and picture, and what it refuses."""

import base64
import io

import numpy as np
import pytest
import torch
from PIL import Image

from helpers.blocks import add_and_norm, layer_norm
from helpers.widgets import NormLab

TOKENS = "when you play game of thrones".split()
RNG = np.random.default_rng(10)
X, F = RNG.normal(size=(6, 5)), RNG.normal(3, 2, size=(6, 5))


def test_out_is_add_and_norm():
    lab = NormLab(X, F, tokens=TOKENS, gamma=2, beta=-0.5)
    ones = np.ones(5)
    assert np.allclose(lab.out, add_and_norm(X, F, 2 * ones, -0.5 * ones))
    assert np.allclose(lab.summed, X + F)
    torch_norm = torch.nn.functional.layer_norm(torch.from_numpy(X + F), (5,)).numpy()
    lab.gamma, lab.beta = 1, 0
    assert np.allclose(lab.out, torch_norm)


def test_each_switch_does_its_part():
    lab = NormLab(X, F)
    lab.norm = False
    assert np.array_equal(lab.out, X + F)
    lab.add = False
    assert np.array_equal(lab.out, F)
    lab.norm = True
    assert np.allclose(lab.out, layer_norm(F, 1.0, 0.0))


def test_without_a_sublayer_there_is_nothing_to_add():
    lab = NormLab(torch.from_numpy(X))
    assert np.allclose(lab.out, layer_norm(X, 1.0, 0.0)) and list(lab.arrays) == ["x"]
    assert ", Norm;" in repr(lab)


def test_a_sublayer_may_be_a_function():
    assert np.allclose(NormLab(X, np.tanh).summed, X + np.tanh(X))
    linear = torch.nn.Linear(5, 5, dtype=torch.float64)
    with torch.no_grad():
        expected = X + linear(torch.from_numpy(X)).numpy()
    assert np.allclose(NormLab(torch.from_numpy(X), linear).summed, expected)


def test_a_row_of_equal_numbers_becomes_zeros():
    assert np.array_equal(NormLab([[3.0, 3.0, 3.0]]).out, np.zeros((1, 3)))


def test_words_measure_the_rows():
    lab = NormLab([[1.0, 4, 8, 10, 12], [0, 0, 0, 0, 5]], gamma=3)
    assert repr(lab) == (
        "NormLab: 2 rows × 5 features, Norm; deviation of the rows 2.00 to 4.00 before Norm, "
        "3.00 to 3.00 after"
    )
    lab.norm = False
    assert "nothing done; deviation of the rows 2.00 to 4.00" in repr(lab)
    assert "Add & Norm" in repr(NormLab(X, F))


def test_the_bundle_has_a_view_a_picture_and_its_words():
    lab = NormLab(X, F, tokens=TOKENS)
    data, metadata = lab._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == lab.model_id
    assert data["text/plain"] == metadata["image/png"]["alt"] == repr(lab)
    assert Image.open(io.BytesIO(base64.b64decode(data["image/png"]))).width > 500


@pytest.mark.parametrize("shape", [(1, 1), (64, 64), (32, 128)])
def test_smallest_and_largest(shape):
    lab = NormLab(np.ones(shape), np.ones(shape), tokens=["x" * 200] * shape[0])
    assert np.array_equal(lab.out, np.zeros(shape))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": X[0]}, r"x has shape \(5,\), but must be \(T, d\)"),
        ({"x": np.ones((65, 64))}, "at most 4,096 numbers"),
        ({"x": np.ones((1, 129))}, "at most 128 rows and features"),
        ({"x": np.where(X > 1, np.nan, X)}, "x .* has nan at"),
        ({"sublayer": F[:, :4]}, r"sublayer has shape \(6, 4\), but must have that of x \(6, 5\)"),
        ({"sublayer": lambda x: x[:2]}, r"sublayer has shape \(2, 5\)"),
        ({"tokens": TOKENS[:3]}, r"tokens has 3 entries, but x \(6, 5\) needs 6"),
        ({"eps": 0}, "eps is 0, but must be positive"),
        ({"gamma": np.inf}, "gamma is inf"),
        ({"beta": np.nan}, "beta is nan"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        NormLab(**({"x": X} | arguments))


def test_refuses_a_row_that_is_not_there():
    lab = NormLab(X)
    lab.selected = 5
    with pytest.raises(ValueError, match="selected is 6, but x has 6 rows, counted from 0"):
        lab.selected = 6
