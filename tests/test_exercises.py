"""What an exercise offers: answers that are right and run where they are asked, words that fit."""

import ast
import builtins
import json
import re
from functools import cache
from pathlib import Path

import pytest
from learners import load

from workshop.checks import grade
from workshop.checks.judge import RIGHT
from workshop.checks.source import names_used
from workshop.exercises import ASKED, exercises, find

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
ANSWERS = [(name, i) for name, known in exercises().items() for i in range(len(known.answers))]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "i"), ANSWERS)
def test_every_answer_is_right(name, i):
    verdict = grade(load(find(name).answers[i], name), name)
    assert verdict.status == RIGHT, verdict.message


@cache
def names_before(name: str, notebook: str) -> set[str]:
    """What the cells of a notebook import and define before one of its exercises."""
    path = next(NOTEBOOKS.glob(f"{notebook}_*.ipynb"))
    found = set(dir(builtins))
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            found |= bound(
                ast.parse(re.sub(r"^(\s*)[%!].*", r"\1pass", source, flags=re.MULTILINE))
            )
        if re.search(rf"^\*\*\d · {name}\*\*", source):
            return found
    return found


def bound(tree: ast.Module) -> set[str]:
    """The names that a cell binds at its margin."""
    names = set()
    for node in tree.body:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                names.add(part.id)
            elif isinstance(part, ast.alias):
                names.add((part.asname or part.name).partition(".")[0])
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    return names


@pytest.mark.parametrize(
    ("notebook", "name"), [(n, name) for n, names in ASKED.items() for name in names]
)
def test_the_solution_runs_where_it_is_pasted(notebook, name):
    """With the imports on top of it, and the names of the cells before it."""
    source = find(name).answers[0]
    own = bound(ast.parse(source))
    earlier = set(ASKED[notebook][: ASKED[notebook].index(name)])
    missing = set(names_used(source)) - own - names_before(name, notebook) - earlier
    assert not missing


FORBIDDEN = {"without reshape": ".reshape(", "without a loop": "for "}


@pytest.mark.parametrize("name", exercises())
def test_the_solution_does_what_the_task_asks(name):
    known = find(name)
    for words, code in FORBIDDEN.items():
        assert words not in known.task or code not in known.answers[0]


@pytest.mark.parametrize("name", exercises())
def test_words_fit(name):
    known = find(name)
    for mistake in known.mistakes:
        assert 8 <= len(mistake.message.split()) <= 58, mistake.id
    assert all(len(probe.label.split()) <= 12 for probe in known.probes)
