"""Answers of learners: the wrong ones are caught and explained, the right ones pass."""

import re
from functools import cache

import pytest
from learners import answers, load

from workshop.checks import check, grade, page
from workshop.checks.judge import RIGHT, judge
from workshop.checks.sandbox import observe
from workshop.exercises import find

pytestmark = pytest.mark.long
ANSWERS = answers()
PYTORCH = re.compile(r"torch|\bF\.|tensor|unsqueeze|masked_fill|chunk|\bdim=|keepdim=|\.size\(")
FOUND = 0.95  # the share of repairs that are found again: the search has limits of time
REPAIR = "repair"


def place(answer):
    return f"{answer.exercise}-{answer.line}"


@cache
def verdict(answer):
    return grade(load(answer.source, answer.exercise))


def told(answer) -> str:
    found = verdict(answer)
    return f"{place(answer)}: {answer.summary} → {found.status}, {found.mistake}: {found.message}"


@pytest.mark.parametrize("answer", ANSWERS, ids=place)
def test_right_and_wrong_are_told_apart(answer):
    found = verdict(answer)
    assert found.status == ("right" if answer.right else "wrong"), told(answer)
    if answer.expected not in ("", REPAIR) and found.repair is None:
        assert found.mistake == answer.expected, told(answer)


def test_what_no_misconception_explains_is_repaired():
    asked = [a for a in ANSWERS if a.expected == REPAIR]
    missed = [a for a in asked if verdict(a).repair is None and verdict(a).mistake is None]
    share = 1 - len(missed) / len(asked)
    assert share >= FOUND, "\n".join([f"{share:.1%} repaired; not:", *map(told, missed)])


def test_messages_are_short():
    long = [a for a in ANSWERS if len(verdict(a).message.split()) > (20 if a.right else 60)]
    assert not long, "\n".join(map(told, long))


@pytest.mark.parametrize(
    "answer",
    [a for a in ANSWERS if a.right and PYTORCH.search(a.source) and find(a.exercise).backends[1:]],
    ids=place,
)
def test_what_check_hands_back_takes_arrays(answer, monkeypatch):
    """Whatever it was written for: the cells after a check go on with arrays, or with tensors."""
    monkeypatch.setattr(page, "display", lambda shown: None)
    known, own = find(answer.exercise), load(answer.source, answer.exercise)
    back = check(own)
    for backend in ("numpy",) if back is own else ("numpy", "torch"):
        assert judge(known, list(observe(back, known, backend))).status == RIGHT, backend
    if back is not own:
        assert back.__wrapped__ is own and check(back).__wrapped__ is own
