"""Mechanical mutants of the references are caught: a sample here, all with `make mutants`."""

import mutants as script
import pytest

EVERY = 29  # the sample: every 29th mutant of all exercises, those of one after those of another


@pytest.fixture(scope="module")
def tool():
    """`tests/mutants.py`."""
    return script


@pytest.fixture(scope="module")
def mutants(tool):
    """All mutants of all exercises."""
    return [m for known in tool.exercises().values() for m in tool.mutants_of(known)]


@pytest.mark.long
def test_there_are_enough_and_each_changes_something(mutants):
    assert len(mutants) >= 300
    assert len({(m.exercise, m.source) for m in mutants}) == len(mutants)
    assert all(m.before != m.after for m in mutants)


@pytest.mark.long
def test_a_sample_is_caught_or_explained(tool, mutants):
    known, sample = tool.explained(), mutants[::EVERY]
    assert len(sample) >= 100
    alive = [m for m in sample if not tool.reason_of(m, known) and tool.status_of(m) == "right"]
    assert [m.key for m in alive] == []


@pytest.mark.long
def test_explanations_belong_to_mutants_and_have_a_reason(tool, mutants):
    keys = {key for m in mutants for key in (m.key, ("*", *m.key[1:]))}
    for key, reason in tool.explained().items():
        assert key in keys, "no such mutant any more"
        assert reason.strip().endswith(".") and len(reason) > 20
