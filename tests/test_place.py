"""`hint()` without a name speaks of the exercise that is being written: real cells, real IPython.

Each story is a learner's session with notebook 05 or 06; what is tested is the first hint after it.
"""

import json
import subprocess
import sys

import pytest
from lessons import PATHS, code_cells

from workshop.checks import learner

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
            done = shell.run_cell(cell, store_history=True)
            done.raise_error()
    heard.append("".join(o.data["text/plain"] for o in seen.outputs))
print(json.dumps(heard))
"""
RIGHT = {
    "softmax": "def softmax(x, axis=-1):\n    e = np.exp(x - np.max(x, axis=axis, keepdims=True))\n"
    "    return e / e.sum(axis=axis, keepdims=True)",
    "attention": "def attention(Q, K, V):\n"
    "    return softmax(Q @ np.swapaxes(K, -1, -2) / K.shape[-1] ** 0.5) @ V",
    "log_softmax": "def log_softmax(x, axis=-1):\n    m = x.max(axis=axis, keepdims=True)\n"
    "    return x - m - np.log(np.exp(x - m).sum(axis=axis, keepdims=True))",
}
STUB = {
    "softmax": "def softmax(x, axis=-1):\n    ...",
    "attention": "def attention(Q, K, V):\n    ...",
    "log_softmax": "def log_softmax(x, axis=-1):\n    ...",
}
WRONG = {name: stub.replace("...", "return 1") for name, stub in STUB.items()}
START = [
    "import numpy as np",
    RIGHT["softmax"],
    RIGHT["attention"],
    "from workshop.checks import check, hint, solution",
]


def checked(source):
    name = source.split("(")[0].removeprefix("def ")
    return [source, f"{name} = check({name})"]


def run_all(**answers):
    """All cells of notebook 05, with these answers in its stubs."""
    cells = [cell for name in STUB for cell in checked(answers.get(name, STUB[name]))]
    return [*START, *cells]


ALL = run_all()
S, A, L = "softmax", "attention", "log_softmax"
STORIES = {
    "nothing but a stub was run": ([*START, STUB[A]], A),
    "all was run, nothing is written": (ALL, S),
    "one was written and is wrong": ([*ALL, *checked(WRONG[L])], L),
    "one was read, its stub and check run": ([*ALL, *checked(STUB[A])], A),
    "a stub alone was run": ([*ALL, STUB[A]], A),
    "all was run, one is wrong": (run_all(log_softmax=WRONG[L]), L),
    "all was run, the first is right": (run_all(softmax=RIGHT[S]), A),
    "two are wrong, the first of them changed, all run": (
        [*run_all(log_softmax=WRONG[L], attention=WRONG[A]),
         *run_all(log_softmax=WRONG[L], attention=WRONG[A].replace("1", "2"))], A),
    "one became right": ([*ALL, *checked(RIGHT[S])], A),
    "the last became right": ([*ALL, *checked(RIGHT[L])], S),
    "the check ran again with the reference": (
        [*ALL, *checked(WRONG[S]), *checked(WRONG[L]), "softmax = check(softmax)"], S),
    "a cell of the lesson ran again": ([*ALL, *checked(WRONG[L]), RIGHT[A]], L),
    "help was asked for by name": ([*ALL, f'hint("{A}")', "hint()"], A),
    "everything is right": (
        [*START, *checked(RIGHT[S]), *checked(RIGHT[A]), *checked(RIGHT[L])], L),
}  # fmt: skip


@pytest.fixture(scope="module")
def heard():
    """What `hint()` says after each story, all in one session of IPython."""
    stories = [[*story, "hint()"] for story, _ in STORIES.values()]
    stories += [
        [START[-1], "def window_mask(T, width):\n    ...", 'hint("nothing like it")'],
        [*START, "hint()"],
    ]
    done = subprocess.run([sys.executable, "-c", RUN], input=json.dumps(stories), text=True,
                          capture_output=True, check=True)  # fmt: skip
    return dict(
        zip(
            [*STORIES, "misuse", "too early"], json.loads(done.stdout.splitlines()[-1]), strict=True
        )
    )


@pytest.mark.parametrize("story", STORIES)
def test_hint_speaks_of_the_exercise_being_written(heard, story):
    assert heard[story].startswith(f"{STORIES[story][1]}, hint "), heard[story]


def test_a_misuse_names_the_exercises_of_the_notebook_that_runs(heard):
    asked = "window_mask, padded_weights, safe_masked_softmax, length_mask"
    assert heard["misuse"] == (f"No exercise is called nothing like it. In this notebook: {asked}.")


def test_where_nothing_tells_it_asks_which(heard):
    assert heard["too early"].startswith('Say which: hint("softmax").')


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_cells_of_every_notebook_tell_which_it_is(path, monkeypatch):
    sources = [cell["source"] for cell in code_cells(path)]
    monkeypatch.setattr(learner, "cells_run", lambda: sources)
    monkeypatch.setattr(learner.Memory, "checked", {})
    assert learner.notebook() == path.stem[:2]
    room = [i for i, source in enumerate(sources) if learner.TOOLS.search(source)]
    assert len(room) == 1 and "check(" in sources[room[0] + 2]
