"""Answers of learners: the wrong ones are caught and their mistakes named, the right ones pass."""

import re
from functools import cache

import pytest
from learners import answers, load

from helpers.checks import check, grade, page
from helpers.checks.judge import RIGHT, judge
from helpers.checks.sandbox import observe
from helpers.exercises import find

pytestmark = pytest.mark.long
ANSWERS = answers()
PYTORCH = re.compile(r"torch|\bF\.|tensor|unsqueeze|masked_fill|chunk|\bdim=|keepdim=|\.size\(")
NAMED = 0.9  # the share of wrong answers whose mistake a hint names


@cache
def verdict(answer):
    return grade(load(answer))


def named(answer) -> bool:
    """Whether the hint says what went wrong, in whatever words."""
    told = verdict(answer)
    hint = f"{told.mistake or ''} {told.message}"
    return all(re.search(pattern, hint, re.IGNORECASE) for pattern in answer.patterns)


def told(answer) -> str:
    found = verdict(answer)
    return f"{answer.exercise}: {answer.summary} → {found.status}, {found.mistake}: {found.message}"


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: f"{answer.exercise}-{answer.place}")
def test_right_and_wrong_are_told_apart(answer):
    assert verdict(answer).status == ("right" if answer.right else "wrong"), told(answer)


def test_hints_name_the_mistake():
    wrong = [answer for answer in ANSWERS if not answer.right]
    missed = [answer for answer in wrong if not named(answer)]
    share = 1 - len(missed) / len(wrong)
    assert share >= NAMED, "\n".join([f"{share:.1%} named; not:", *map(told, missed)])


@pytest.mark.parametrize(
    "answer",
    [a for a in ANSWERS if a.right and PYTORCH.search(a.source) and find(a.exercise).backends[1:]],
    ids=lambda answer: f"{answer.exercise}-{answer.place}",
)
def test_what_check_hands_back_takes_arrays(answer, monkeypatch):
    """Whatever it was written for: the cells after a check go on with arrays, or with tensors."""
    monkeypatch.setattr(page, "display", lambda shown: None)
    known, own = find(answer.exercise), load(answer)
    back = check(own)
    for backend in ("numpy",) if back is own else ("numpy", "torch"):
        assert judge(known, list(observe(back, known, backend))).status == RIGHT, backend
    if back is not own:
        assert back.__wrapped__ is own and check(back).__wrapped__ is own
