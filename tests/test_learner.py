"""What a learner sees of a check: verdict, evidence, hints, solution, progress; no traceback."""

import inspect
import re
import subprocess
import sys

import numpy as np
import pytest
from cells import SOFTMAX, Notebook
from lessons import PATHS, headings
from markup import Markup

from helpers import attention
from workshop.checks import learner, page
from workshop.checks.compare import Opaque, Raised, TimedOut
from workshop.checks.judge import Evidence
from workshop.checks.repair import Repair
from workshop.course import TITLES
from workshop.exercises import asked, exercises
from workshop.exercises.exercise import About

STUB = "def softmax(x, axis=-1):\n    ..."


@pytest.fixture
def notebook(monkeypatch):
    for name, value in {"checked": {}, "named": None, "shown": {}, "right": set()}.items():
        monkeypatch.setattr(learner.Memory, name, value)
    return Notebook(monkeypatch)


def checked(notebook, source, name="softmax"):
    """Run an answer and its check; what the check returned."""
    notebook.run(source).run(f"answer = {name}\n{name} = check({name})")
    Markup(notebook.html)
    return notebook[name]


def test_a_right_answer_comes_back_and_the_reference_for_a_wrong_one(notebook):
    assert checked(notebook, SOFTMAX) is notebook["answer"]
    assert notebook.last.startswith("softmax: right, tried on three scores; two rows")
    assert "<b>✓ right</b>" in notebook.html
    assert checked(notebook, STUB.replace("...", "return np.exp(x)")) is attention.softmax
    assert notebook.last.startswith("softmax: not yet. ")
    assert "<b>◐ not yet</b>" in notebook.html


TENSORS = """
def softmax(x, axis=-1):
    '''For tensors.'''
    return torch.softmax(x.double(), axis)
"""


def test_a_right_answer_for_tensors_comes_back_for_arrays_too(notebook):
    """The next cell may hand it either; it stays the learner's, for another check as well."""
    notebook.run("import torch")
    back = checked(notebook, TENSORS)
    scores = np.random.default_rng(0).normal(size=(2, 10**6))  # as large as the notebook likes
    np.testing.assert_allclose(back(scores), attention.softmax(scores))
    notebook.run("made = softmax(torch.tensor([1.0, 2.0]))")
    assert isinstance(notebook["made"], notebook["torch"].Tensor)
    assert (back.__name__, back.__doc__) == ("softmax", "For tensors.")
    assert inspect.getsource(back) == TENSORS.lstrip("\n")
    notebook.run("again = check(softmax)")
    assert notebook["again"].__wrapped__ is notebook["answer"]


def test_neither_a_stub_nor_a_check_run_again_with_the_reference_is_an_answer(notebook):
    assert checked(notebook, STUB) is attention.softmax
    assert notebook.last == "softmax: not attempted. The course's own is used until yours is right."
    notebook.run("softmax = check(softmax)")
    assert "run the cell with your function first" in notebook.last and not learner.Memory.right


CALLS = "    def __call__(self, x, axis=-1): return attention.softmax(x, axis)"
CALLED = ["softmax = functools.partial(attention.softmax)", f"class W:\n{CALLS}\nsoftmax = W()",
          "softmax = lambda x, axis=-1: attention.softmax(x, axis)",
          "def mine(x, axis=-1): return attention.softmax(x, axis)\nsoftmax = mine"]  # fmt: skip


@pytest.mark.parametrize("source", CALLED)
def test_an_answer_without_the_name_is_known_by_its_variable(notebook, source):
    """One that was written under another name is told so."""
    notebook.run("import functools\nfrom helpers import attention")
    back, right = checked(notebook, source), "mine" not in source
    said = "right, " if right else "not yet. This is mine; the exercise is softmax: begin it with"
    assert notebook.last.startswith(f"softmax: {said}") and (back is notebook["answer"]) == right


BROKEN = ["raise ValueError('<script>alert(1)</script> & `code` \\x1b[31m \\ud800')",
          "raise SystemExit", 'return "<b>weights</b>"', "return {'<b>': x}", "return x * np.nan",
          "return [x, None, {1: 2}]", "return softmax(x, axis)", "yield x"]  # fmt: skip


@pytest.mark.parametrize("body", BROKEN)
def test_nothing_that_an_answer_does_stops_the_notebook(notebook, body):
    assert checked(notebook, f"def softmax(x, axis=-1):\n    {body}") is attention.softmax
    assert notebook.last.startswith("softmax: not yet. ") and "Traceback" not in notebook.last
    assert notebook.last.encode() and notebook.html.encode()
    assert "script" not in [tag for tag, _ in Markup(notebook.html).tags]


def test_a_check_that_stops_is_said(notebook, monkeypatch):
    monkeypatch.setattr(learner, "grade", None)
    assert checked(notebook, SOFTMAX) is attention.softmax
    assert "The check itself stopped (TypeError: " in notebook.last


# ---------------------------------------------------------------- what is shown

SHOWN = """softmax: not yet. One change in line 3 passes every test.
line 3, yours:
    return e / e.mean(axis, keepdims=True)
changed:
    return e / e.sum(axis, keepdims=True)
The smallest case that shows it: three scores.
x:
  1  2  3
expected    0.0900    0.2447    0.6652
yours     [0.2701]    0.7342    1.9957"""


def test_the_reason_comes_first_then_the_line_then_numbers_with_one_framed(notebook):
    checked(notebook, "def softmax(x, axis=-1):\n    e = np.exp(x - x.max(axis, keepdims=True))\n"
            "    return e / e.mean(axis, keepdims=True)")  # fmt: skip
    assert notebook.last == SHOWN and notebook.html.count(page.FRAME) == 1
    assert re.findall("<mark[^>]*>(.*?)</mark>", notebook.html) == ["mean", "sum"]
    rivals = page.change(Repair(2, "a = b + 1", "", rivals=True))[1]
    assert rivals == "line 2, yours:\n    a = b + 1"


def told(expected, obtained, **inputs):
    """The evidence as HTML, which must be whole, and as text."""
    markup, text = page.evidence_of(Evidence("two rows", inputs, expected, obtained), "All differ.")
    Markup(markup)
    return markup, text


INPUTS = {"Q": np.array([[1.0, 2.5]]), "n": np.array([3, 4]), "axis": 0, "words": ["a", "b"],
          "X": np.ones((2, 3, 4)), "p": {"W": np.eye(2)}, "step": len}  # fmt: skip
WRITTEN = ["  1.0  2.5", "  3  4", "axis = 0", "words: ['a', 'b']", "p: a dictionary with W",
           "rng: a random generator", "step: the function len", "X: floats of shape "]  # fmt: skip


def test_inputs_are_written_as_short_as_they_are_and_many_are_folded():
    markup, text = told(1.0, 2.0, **INPUTS, rng=np.random.default_rng())
    assert all(words in text for words in WRITTEN), text
    assert "what goes in</summary>" not in markup
    assert "what goes in</summary>" in told(1.0, 2.0, Q=np.ones((5, 5)))[0]


BIG = np.zeros((2, 3, 40, 40))
BIG[1, 2, 30, 35] = 7
KINDS = [  # what must come out, what came, and what is shown; a frame is written as brackets
    (np.eye(2), np.array([[1.0, 0.0], [0.75, 2.0]]), "yours:\n    1.00    0.00\n  [0.75]    2.00"),
    (0 * BIG, BIG, "the first matrix that differs, [1, 2]; rows 29 to 36 of 40; columns 32 to 39"),
    (0 * BIG, BIG, "    0    0    0  [7]    0"),
    (np.array([[True, False]]), np.array([[True, True]]), "True  [True]"),
    (np.ones(2), np.array([np.nan, 2]), "[nan]"), (0.25, 0.5, "expected: 0.2500\nyours: 0.5000"),
    ({"the": 0}, {"The": 0}, "expected: {'the': 0}\nyours: {'The': 0}"),
    ({"rows sum to 1": True}, {"rows sum to 1": False}, "does not hold: rows sum to 1"),
    ({"share": About(0.3, 0.01)}, {"share": About(0.7, 0)}, "share:\nexpected: 0.3000"),
    ([np.ones(2), np.ones(2)], [np.ones(2), np.zeros(2)], "result 2 of 2:\nexpected    1    1"),
    (1.0, TimedOut(), "yours: no answer in time"), (1.0, Opaque("Foo"), "an object of type Foo"),
    (1.0, Raised("ValueError", "no"), "yours: it stopped with ValueError: no"),
    (1.0, Raised("ValueError", "All differ"), "yours: it stopped with ValueError"),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "obtained", "words"), KINDS)
def test_every_kind_of_result_is_shown(expected, obtained, words):
    """Without what the message quotes already, which is "All differ."."""
    text = told(expected, obtained)[1]
    assert words in text and "All differ" not in text


def test_hints_come_one_by_one(notebook):
    checked(notebook, STUB)
    for step, kind in enumerate(("a nudge", "the idea")):
        notebook.run("hint()")
        text = exercises()["softmax"].hints[step].replace("`", "")
        assert notebook.last == f"softmax, hint {step + 1} of 2, {kind}: {text}"
    notebook.run("hint()")
    assert 'solution("softmax")' in notebook.last
    notebook.run('hint("attention")')
    assert notebook.last.startswith("attention, hint 1 of 2, ")


def few(text):
    """Whether a text is short, and names at most the exercises of one notebook."""
    return len(text) < 300 and len({*re.findall(r"\w+", text)} & {*exercises()}) <= 8


MISUSES = ["hint()", "solution()", 'hint("no")', "solution(3)", 'hint("x" * 10**6)', "check()",
           "check(3)", "check(lambda x: x)", "check(np)", "check(Odd())", "check('x')"]  # fmt: skip


@pytest.mark.parametrize("call", MISUSES)
def test_a_misuse_offers_what_this_notebook_asks(notebook, call):
    notebook.run("class Odd:\n    def __getattr__(self, name): raise RuntimeError(name)")
    notebook.run(f"back = {call}")
    assert "progress()" in notebook.last and few(notebook.last) and few(Markup(notebook.html).words)
    assert (notebook["back"] == 3) == (call == "check(3)")  # as it was
    checked(notebook, STUB)
    notebook.run(call)
    helped = notebook.last.startswith(("softmax, hint", "def softmax("))
    assert helped or ("log_softmax" in notebook.last and few(notebook.last))
    notebook.run('hint("sofmax")')
    assert notebook.last == "No exercise is called sofmax. Is it softmax?"


@pytest.mark.parametrize("name", exercises())
def test_the_solution_is_shown_as_it_can_be_run(notebook, name):
    notebook.run(f"solution({name!r})")
    known = exercises()[name]
    assert notebook.last == known.solution.replace("`", "")
    assert len(Markup(learner.folded(known)).all("details")) == 3  # the hints too


def test_progress_counts_what_the_notebooks_ask(notebook, monkeypatch):
    names = [name for names in asked().values() for name in names]
    checked(notebook, SOFTMAX)
    notebook.run("progress()")
    assert notebook.last.startswith(f"1 of {len(names)} exercises done.")
    assert re.findall(r"[✓○] (\w+)", notebook.last.removesuffix("✓ done, ○ open")) == names
    assert re.findall(r"✓ (\w+)", notebook.last) == ["softmax", "done"]
    titles = [f"{number} · {TITLES[number]}" for number in asked()]
    assert all(title in notebook.html.replace("\u00a0", " ") for title in titles)
    assert {path.stem[:2]: headings(path, 1)[0].partition(" · ")[2] for path in PATHS} == TITLES
    monkeypatch.setattr(learner, "kept_names", lambda: ({"attention"}, "x.py cannot be read"))
    notebook.run("progress()")
    assert notebook.last.startswith("x.py cannot be read. What it holds is not counted.\n2 of ")


def test_progress_tells_the_story_first_and_what_is_deeper_apart(notebook, monkeypatch):
    for name, known in exercises().items():
        monkeypatch.setattr(known, "story", name == "attention")
    notebook.run("progress()")
    of_05 = [name for name in asked()["05"] if name != "attention"]
    told = f": ○ attention; deeper: {', '.join(f'○ {name}' for name in of_05)}\n"
    assert f"05 · Softmax, 0 of {len(of_05) + 1}{told}" in notebook.last
    assert notebook.last.count("deeper") == 1


def test_without_ipython_it_is_printed():
    code = "from workshop.checks import hint\nhint('softmax')"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert said.stdout.startswith("softmax, hint 1 of 2, a nudge: ")
