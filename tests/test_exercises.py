"""Each exercise: its answers are right, its slips told apart, and nothing passes by accident."""

import builtins
import copy
import re

import numpy as np
import pytest
import torch
from answers import for_tensors
from lessons import CHECK, PATHS, code_cells, made_by

from workshop.checks import grade, sandbox
from workshop.checks.judge import RIGHT, WRONG, wrong_of
from workshop.checks.source import names_used
from workshop.exercises import asked, exercises, find
from workshop.exercises.exercise import made

each = pytest.mark.parametrize("name", exercises())


@each
def test_it_is_complete_and_short(name):
    known = find(name)
    labels = [probe.label for probe in known.probes]
    assert len({*labels}) == len(labels) >= 1
    assert all(len(label.split()) <= 12 and label[-1] not in ".:;" for label in labels)
    assert len(known.hints) == 2 and all(0 < len(hint.split()) <= 40 for hint in known.hints)


@each
def test_its_answers_are_right_with_every_backend(name):
    """So its solution equals the course's own function, which says what is right."""
    known = find(name)
    for text in (known.solution, *known.ways):
        verdict = grade(made(text, name), name)
        assert verdict.status == RIGHT, verdict.message
        assert verdict.message.startswith("Right on ") and verdict.mistake is None
    if "torch" in known.backends:
        verdict = grade(made(for_tensors(name), name), name)
        assert (verdict.status, verdict.backend) == (RIGHT, "torch"), verdict.message


@pytest.mark.slow
@each
def test_its_slips_are_told_apart_in_short_words(name, monkeypatch):
    """One that does the same as the solution or as another slip would not get its own name.

    No fork for each of so many: what runs in one is held equal in `test_checks.py`.
    """
    monkeypatch.setattr(sandbox, "can_fork", lambda known: False)
    for slip in find(name).slips:
        verdict = grade(made(slip.wrong, name), name)
        assert (verdict.status, verdict.mistake) == (WRONG, slip.name), verdict.message
        assert slip.why in verdict.message or "The cause may be: " in verdict.message, slip.name
        assert 6 <= len(slip.why.split()) <= 60 and slip.why.endswith((".", "?", ")")), slip.name


@each
def test_the_solution_runs_where_it_is_pasted(name):
    """With the names of the cells before its check, and the imports of its own."""
    missing = {*names_used(find(name).solution)} - {*dir(builtins), name}
    (path,) = [path for path in PATHS if path.stem[:2] == find(name).notebook]
    for cell in code_cells(path):
        missing -= made_by(cell)
        if cell["source"] == f"{name} = check({name})":
            break
    assert not missing


def test_the_notebooks_ask_what_the_files_hold_in_their_order():
    cells = {path.stem[:2]: [cell["source"] for cell in code_cells(path)] for path in PATHS}
    found = {n: [m[1] for source in cells[n] if (m := re.fullmatch(CHECK, source))] for n in cells}
    assert found == {n: list(names) for n, names in asked().items()}


ACCIDENTS = {
    "zeros": lambda x: x * 0,
    "nan": lambda x: x * np.nan,
    "a 0/1 mask": lambda x: x.astype(np.float32) if x.dtype == bool else x,
    "whole numbers": lambda x: x.astype(int) if x.dtype.kind == "f" else x,
    "one row": lambda x: x[:1] if x.ndim and len(x) > 1 else x,  # would broadcast
    "one axis more": lambda x: x[None] if x.ndim else x,
}


def changed(x, change, log):
    """A result with all its arrays and numbers changed; `log` gathers whether they were."""
    if isinstance(x, list | tuple):
        return type(x)(changed(y, change, log) for y in x)
    if isinstance(x, dict):
        return {key: changed(y, change, log) for key, y in x.items()}
    if x is None or isinstance(x, bool | str):
        return x
    new = change(x if isinstance(x, torch.Tensor) else np.asarray(x))
    log.append(repr(sandbox.plain(new, "torch")) != repr(sandbox.plain(x, "torch")))
    return new


def spoilt(known, *how):
    """An answer that changes what the right one returns."""

    class Spoilt(known.reference if known.is_class else object):
        def forward(self, *args, **options):
            return changed(super().forward(*args, **options), *how)

    call = lambda *args, **options: changed(known.reference(*args, **options), *how)  # noqa: E731
    return Spoilt if known.is_class else call


@pytest.mark.slow
@each
def test_nothing_passes_by_accident(name):
    known = find(name)
    for accident, change in ACCIDENTS.items():
        seen = [*sandbox.observe(spoilt(known, change, log := []), known, known.backends[0])]
        harmless = not any(log) or (known.whole_numbers and accident == "whole numbers")
        assert harmless or wrong_of(known, seen), accident


@each
def test_a_change_to_an_argument_is_found(name):
    known, touched = find(name), []

    def answer(*args, **options):
        result = copy.deepcopy(known.reference(*args, **options))
        arrays = [x for x in args if isinstance(x, np.ndarray) and x.dtype.kind in "if" and x.size]
        for x in arrays:
            x += 1
        touched.extend(arrays)
        return result

    seen = [*sandbox.observe(answer, known, known.backends[0])]
    assert not touched or wrong_of(known, seen)
