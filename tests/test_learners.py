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
TENSORS = [a for a in ANSWERS if a.right and PYTORCH.search(a.source)]


def place(answer):
    return f"{answer.exercise}-{answer.line}"


@cache
def verdict(answer):
    return grade(load(answer.source, answer.exercise), answer.exercise)


@pytest.mark.parametrize("answer", ANSWERS, ids=place)
def test_right_and_wrong_are_told_apart_and_what_is_wrong_is_found(answer):
    """The slip, or the two, that the file names; one change where it says `repair`."""
    found = verdict(answer)
    told = f"{answer.summary} → {found.status}, {found.mistake}: {found.message}"
    assert found.status == ("right" if answer.right else "wrong"), told
    most = 20 if answer.right else 120 if " + " in answer.expected else 60
    assert len(found.message.split()) <= most, told
    if answer.expected == "repair":
        assert found.repair is not None, told
    elif answer.expected:
        assert found.mistake == answer.expected, told


@pytest.mark.parametrize("answer", TENSORS, ids=place)
def test_what_check_hands_back_takes_arrays(answer, monkeypatch):
    """Whatever it was written for: the cells after a check go on with arrays, or with tensors."""
    monkeypatch.setattr(page, "display", lambda shown: None)
    known, own = find(answer.exercise), load(answer.source, answer.exercise)
    back = check(own)
    for backend in known.backends if back is not own else known.backends[:1]:
        assert judge(known, list(observe(back, known, backend))).status == RIGHT, backend
    if back is not own:
        assert back.__wrapped__ is own and check(back).__wrapped__ is own
