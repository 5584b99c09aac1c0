"""`hint()` without a name speaks of the exercise being written: sessions with notebook 05, and the
first hint after each, in a real IPython."""

import json
import subprocess
import sys

import pytest
from lessons import PATHS, code_cells

from workshop.checks import learner
from workshop.exercises import asked, find

pytestmark = pytest.mark.slow

RUN = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
shell = InteractiveShell.instance()
heard = []
for story in json.load(sys.stdin):
    shell.history_manager.input_hist_raw[:] = [""]
    shell.reset(new_session=False)
    shell.run_cell("from workshop.checks.learner import Memory as M")
    shell.run_cell("M.checked, M.named, M.shown, M.right = {}, None, {}, set()")
    shell.history_manager.input_hist_raw[:] = [""]
    for cell in story:
        with capture_output() as seen:
            shell.run_cell(cell, store_history=True).raise_error()
    heard.append("".join(o.data["text/plain"] for o in seen.outputs))
print(json.dumps(heard))
"""
NAMES = asked()["05"]  # in their order
ROW, MODULE, SOFTMAX, ATTENTION, LOG = NAMES
RIGHT = {name: find(name).solution for name in NAMES}
STUB = {name: f"{find(name).header}:\n    ..." for name in NAMES}
STUB[MODULE] = STUB[MODULE].replace("...", "def forward(self, x):\n        ...")
WRONG = {name: stub.replace("...", "return 1") for name, stub in STUB.items()}
START = [
    "import numpy as np, torch\nfrom torch import nn\nfrom workshop import check, hint, solution"
]


def checked(source):
    """An answer's cell, and that of its check."""
    name = next(name for name in NAMES if source.startswith((f"def {name}(", f"class {name}(")))
    return [source, f"{name} = check({name})"]


def run_all(*answers):
    """All cells of the notebook, with these answers in its stubs."""
    cells = {checked(source)[1]: checked(source) for source in (*STUB.values(), *answers)}
    return [*START, *(cell for pair in cells.values() for cell in pair)]


ALL = run_all()
OTHER = WRONG[ATTENTION].replace("1", "2")
STORIES = {
    "nothing but a stub was run": ([*START, STUB[ATTENTION]], ATTENTION),
    "all was run, nothing is written": (ALL, ROW),
    "one was written and is wrong": ([*ALL, *checked(WRONG[LOG])], LOG),
    "one was read, its stub and check run": ([*ALL, *checked(STUB[ATTENTION])], ATTENTION),
    "a stub alone was run": ([*ALL, STUB[ATTENTION]], ATTENTION),
    "a class was written": ([*ALL, WRONG[MODULE]], MODULE),
    "all was run, one is wrong": (run_all(WRONG[LOG]), LOG),
    "all was run, a class is wrong": (run_all(WRONG[MODULE]), MODULE),
    "all was run, the first is right": (run_all(RIGHT[ROW]), MODULE),
    "two are wrong, the first of them changed, all run": (
        [*run_all(WRONG[LOG], WRONG[ATTENTION]), *run_all(WRONG[LOG], OTHER)], ATTENTION),
    "one became right": ([*ALL, *checked(RIGHT[SOFTMAX])], ATTENTION),
    "the last became right": ([*ALL, *checked(RIGHT[LOG])], ROW),
    "the check ran again with the reference": (
        [*ALL, *checked(WRONG[SOFTMAX]), *checked(WRONG[LOG]), "softmax = check(softmax)"],
        SOFTMAX),
    "help was asked for by name": ([*ALL, f'hint("{ATTENTION}")'], ATTENTION),
    "everything is right": (run_all(*RIGHT.values()), LOG),
}  # fmt: skip
MASK = ["from workshop import check, hint", "def window_mask(T, width):\n    ..."]
IN_06 = f"In this notebook: {', '.join(asked()['06'])}."
OTHERS = {
    "a misuse names what the notebook that runs asks": (
        [*MASK, 'hint("nothing like it")'], f"No exercise is called nothing like it. {IN_06}"),
    "where nothing tells it asks which": ([*START, "hint()"], 'Say which: hint("softmax"). All'),
}  # fmt: skip


@pytest.fixture(scope="module")
def heard():
    """What is said at the end of each story, all in one session of IPython."""
    stories = [[*story, "hint()"] for story, _ in STORIES.values()]
    stories += [story for story, _ in OTHERS.values()]
    done = subprocess.run([sys.executable, "-c", RUN], input=json.dumps(stories), text=True,
                          capture_output=True, check=True)  # fmt: skip
    return dict(zip([*STORIES, *OTHERS], json.loads(done.stdout.splitlines()[-1]), strict=True))


@pytest.mark.parametrize("story", [*STORIES, *OTHERS])
def test_help_is_for_the_exercise_being_written(heard, story):
    said = OTHERS[story][1] if story in OTHERS else f"{STORIES[story][1]}, hint "
    assert heard[story].startswith(said), heard[story]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_cells_of_every_notebook_tell_which_it_is(path, monkeypatch):
    sources = [cell["source"] for cell in code_cells(path)]
    monkeypatch.setattr(learner, "cells_run", lambda: sources)
    monkeypatch.setattr(learner.Memory, "checked", {})
    assert learner.notebook() == path.stem[:2]
