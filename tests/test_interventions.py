"""A change in a program, and the same change in the modules by hooks, give the same numbers."""

import numpy as np
import pytest
from small_models import CASES, Case, compared

from helpers.interventions import intervened
from helpers.operations import OFF, run

OUTSIDE = ("one-hot", "ids", "last", "mean", "unit", "given")


def both(case: Case, changes: list[dict]) -> tuple[np.ndarray, np.ndarray]:
    """What modules and program compute with the changes, for each item of a batch: (2, T, …)."""
    with intervened(case.model, changes):
        ours = case()
    programs = [case.program(i) for i in range(2)]
    theirs = [run(p, case.texts(i), changes)[compared(p)] for i, p in enumerate(programs)]
    return ours, np.stack(theirs)


@pytest.mark.parametrize("name", CASES)
def test_each_operation_switched_off_and_set_by_hand(name):
    """Every one of them that a module computes; none of them leaves the output as it was."""
    case = CASES[name]()
    program, plain = case.program(), case()
    values = run(program, case.texts())
    for op in program.operations.values():
        if op.kind in OUTSIDE or op.name.endswith("next"):
            continue
        row = values[op.name][1]
        changes = [
            {"at": op.name, "row": 1, "column": 0, "value": 0.7},
            {"at": op.name, "row": 1, "values": np.linspace(0.1, 0.9, len(row)).tolist()},
        ]
        changes += [{"at": op.name, "off": True}] if op.kind in OFF else []
        for change in changes:
            ours, theirs = both(case, [change])
            np.testing.assert_allclose(ours, theirs, atol=1e-4, err_msg=str(change))
            if np.abs(ours - plain).max() < 1e-4:
                print("none", name, change)
    np.testing.assert_array_equal(case(), plain)
