"""What a result depends on, said where no slip and no single change explains an answer."""

import numpy as np
import pytest
from answers import written

from workshop.checks import clues
from workshop.checks.judge import grade
from workshop.exercises import exercises, find

OF_KEYS = "np.tanh(K.mean(axis=-2, keepdims=True) @ np.swapaxes(K, -1, -2)) @ V"
SAID = [  # an answer, and what is said of it
    ("attention", f"return 0 * Q[..., :1] + {OF_KEYS}", "The result does not depend on Q."),
    ("attention", "return 0 * (Q @ np.swapaxes(K, -1, -2) @ V) + 1",
     "The result does not depend on Q. The result does not depend on K."),
    ("softmax", "return x + np.random.normal(size=x.shape)", clues.CHANCE),
    ("softmax_row", "KEPT.append(1) ⏎ return scores * len(KEPT)", clues.CHANCE),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "said"), SAID)
def test_what_a_result_depends_on_is_said(name, text, said):
    answer = written(name, text)
    answer.__globals__["KEPT"] = []
    verdict = grade(answer, name)
    assert (verdict.mistake, verdict.repair) == (None, None) and said in verdict.message


def test_arrays_in_dictionaries_are_arguments_too():
    named = {"x": np.eye(2), "p": {"W": np.ones((2, 2)), "n": 3, "norm": (np.ones(2),)}}
    assert clues.effects(lambda x, p: p["W"] + 0 * x, named) == {"x": False, "W": True}
    assert clues.effects(lambda x, p: "text", named) == {}


@pytest.mark.parametrize("name", exercises())
def test_what_is_right_is_no_matter_of_chance(name, monkeypatch):
    monkeypatch.setattr(clues, "observe_apart", lambda *call: [*clues.observe(*call)])
    known = find(name)
    assert clues.without_effect(known.reference, known, known.backends[0]) == []
    assert not clues.by_chance(known.reference, known, known.backends[0])
