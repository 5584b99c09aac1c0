"""SoftmaxLab in Python: what it accepts, computes, says and draws."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers.widgets.softmax import SoftmaxLab

LOGITS, LABELS = [2.0, 1.0, -0.5], ["cat", "dog", "eel"]
finite = st.floats(-50, 50)


@given(st.lists(finite, min_size=1, max_size=12), st.floats(0.01, 100), st.integers(1, 1024))
def test_probabilities_entropy_and_answer_are_those_of_pytorch(logits, temperature, d_k):
    lab = SoftmaxLab(logits, temperature=temperature, d_k=d_k)
    p = torch.softmax(torch.tensor(logits, dtype=float) / d_k**0.5 / temperature, 0)
    np.testing.assert_allclose(lab.probabilities, p, atol=1e-12)
    entropy = torch.distributions.Categorical(p, validate_args=False).entropy()
    assert lab.entropy == pytest.approx(float(entropy), abs=1e-9)
    assert lab.answer == pytest.approx(float((p * (1 - p)).mean()), abs=1e-12)
    assert lab.entropy <= np.log(len(logits)) + 1e-9
    assert lab.answer <= (1 - 1 / len(logits)) / len(logits) + 1e-12


def test_the_answer_is_the_gradient_of_each_probability_by_its_own_logit():
    z = torch.tensor(LOGITS, dtype=float) / 4**0.5 / 0.5
    jacobian = torch.autograd.functional.jacobian(lambda z: torch.softmax(z, 0), z)
    lab = SoftmaxLab(LOGITS, temperature=0.5, d_k=4)
    assert lab.answer == pytest.approx(float(jacobian.diagonal().mean()))


def test_words_follow_what_is_set():
    lab = SoftmaxLab(LOGITS, LABELS, d_k=4)
    assert repr(lab) == lab.words == (
        'SoftmaxLab: 3 logits, temperature 1, d_k 4; largest probability "cat" 0.5283, '
        "entropy 0.9876 of at most 1.0986 nats, mean of p (1 − p) 0.1985"
    )  # fmt: skip
    lab.logits, lab.temperature = [0, 3, 0], 0.5
    assert 'temperature 0.5, d_k 4; largest probability "dog" 0.9094' in lab.words
    assert lab._repr_mimebundle_()[0]["text/plain"] == lab.words


def test_what_comes_in_may_be_numpy_or_a_tensor():
    lab = SoftmaxLab(torch.tensor([1.0, 2.0], requires_grad=True), d_k=np.int64(64))
    assert lab.logits == [1.0, 2.0] and lab.labels == ["1", "2"] and lab.d_k == 64
    assert lab.start == {"logits": [1.0, 2.0], "temperature": 1.0, "d_k": 64}


def test_far_away_logits_leave_no_nan():
    lab = SoftmaxLab([1e6, 0, -1e6], temperature=0.01)
    assert lab.probabilities.tolist() == [1, 0, 0] and lab.entropy == lab.answer == 0
    assert "entropy 0.0000" in lab.words


@pytest.mark.parametrize(
    "logits, options, message",
    [
        (np.zeros(13), {}, r"logits has shape \(13,\), but must be one row of at most 12 numbers"),
        ([[1.0, 2.0]], {}, r"logits has shape \(1, 2\), but must be one row"),
        (3.0, {}, r"logits has shape \(\), but must be one row"),
        ([], {}, r"logits has shape \(0,\): there is nothing"),
        ([1, np.nan], {}, r"logits \(2,\) has nan at \(1,\)"),
        ([1, -np.inf], {}, r"logits \(2,\) has -inf at \(1,\)"),
        (LOGITS, {"labels": ["a"]}, r"labels has 1 entries, but logits \(3,\) needs 3"),
        (LOGITS, {"temperature": 0}, r"temperature is 0, but must be from 0\.01 to 100"),
        (LOGITS, {"temperature": np.inf}, "temperature is inf"),
        (LOGITS, {"temperature": np.nan}, "temperature is nan"),
        (LOGITS, {"d_k": 0}, "d_k is 0, but must be a whole number of at least 1"),
        (LOGITS, {"d_k": 2.5}, "d_k is 2.5"),
        (LOGITS, {"d_k": np.nan}, "d_k is nan"),
    ],
)
def test_what_cannot_be_shown(logits, options, message):
    with pytest.raises(ValueError, match=message):
        SoftmaxLab(logits, **options)


def test_what_cannot_be_set_later():
    lab = SoftmaxLab(LOGITS)
    for wrong in ([1, 2], [1, 2, np.nan]):
        with pytest.raises(ValueError, match="logits"):
            lab.logits = wrong
    with pytest.raises(ValueError, match="temperature is 0"):
        lab.temperature = 0
    with pytest.raises(ValueError, match="d_k"):
        lab.d_k = 0
    assert (lab.logits, lab.temperature, lab.d_k) == (LOGITS, 1, 1)


@pytest.mark.parametrize("labels", [LABELS, ["$x$", "x" * 200, "two\nlines"]])
def test_the_picture_carries_the_words(labels, recwarn):
    lab = SoftmaxLab(LOGITS, labels)
    data, metadata = lab._repr_mimebundle_()
    assert metadata["image/png"]["alt"] == data["text/plain"] == lab.words
    assert data["text/plain"].isprintable()
    assert not [str(warning.message) for warning in recwarn]
