"""What a learner sees of a check: verdict, evidence, hints, solution, progress; no traceback."""

import inspect
import re
import subprocess
import sys

import numpy as np
import pytest
from cells import SOFTMAX, Notebook
from lessons import PATHS, code_cells, headings
from markup import Markup

from helpers import attention
from workshop.checks import learner, page
from workshop.checks.compare import Opaque, Raised, TimedOut
from workshop.checks.judge import Evidence, grade
from workshop.course import TITLES
from workshop.exercises import ASKED, exercises
from workshop.exercises.exercise import About

ASKED_NAMES = [name for names in ASKED.values() for name in names]
STUB = "def softmax(x, axis=-1):\n    ..."
ONE_SUM = "def softmax(x, axis=-1):\n    return np.exp(x - x.max()) / np.exp(x - x.max()).sum()"
HOSTILE = "<script>alert(1)</script> & 'quotes' `code` \\x1b[31m \\ud800"


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


def few(text):
    """Whether a text is short, and names at most the exercises of one notebook."""
    return len(text) < 300 and len(set(re.findall(r"\w+", text)) & set(exercises())) <= 4


def test_right_answer_comes_back(notebook):
    assert checked(notebook, SOFTMAX) is notebook["answer"]
    assert notebook.last.startswith("softmax: right, tried on three scores; two rows")
    assert "<b>✓ right</b>" in notebook.html


TENSORS = """
def softmax(x, axis=-1):
    '''For tensors.'''
    return torch.softmax(x.double(), axis)
"""


def test_a_right_answer_for_tensors_comes_back_for_arrays_too(notebook):
    """The next cell may hand it either; it stays the learner's, for another check as well."""
    notebook.run("import torch")
    back = checked(notebook, TENSORS)
    assert notebook.last.startswith("softmax: right,")
    scores = np.random.default_rng(0).normal(size=(2, 10**6))  # as large as the notebook likes
    np.testing.assert_allclose(back(scores), attention.softmax(scores))
    notebook.run("made = softmax(torch.tensor([1.0, 2.0]))")
    assert isinstance(notebook["made"], notebook["torch"].Tensor)
    assert back.__name__ == "softmax" and back.__doc__ == "For tensors."
    assert inspect.getsource(back) == TENSORS.lstrip("\n")
    notebook.run("again = check(softmax)")
    assert notebook.last.startswith("softmax: right,")
    assert notebook["again"].__wrapped__ is notebook["answer"]


def test_reference_comes_back_for_a_wrong_answer(notebook):
    assert checked(notebook, ONE_SUM) is attention.softmax
    assert notebook.last.startswith("softmax: not yet. ")
    assert "<b>◐ not yet</b>" in notebook.html
    for word in ("x", "expected", "yours", "difference", "0.0900", "0.0793", "-0.0107"):
        assert word in notebook.last and word in notebook.html, word


def test_a_stub_is_not_attempted_nor_is_a_check_run_again_with_the_reference(notebook):
    """Else the course's own function would count as the learner's."""
    assert checked(notebook, STUB) is attention.softmax
    assert notebook.last == "softmax: not attempted. The course's own is used until yours is right."
    notebook.run("softmax = check(softmax)")
    assert "run the cell with your function first" in notebook.last
    assert not learner.Memory.right


@pytest.mark.parametrize(
    "made",
    ["3", "np.ones((2, 2))", "None", "lambda x: x", "len", "int", "type('x', (), {})()",
     "__import__('functools').partial(len)", "np", "np.exp", "'softmax'", "check", "Odd()"],
)  # fmt: skip
def test_what_is_no_exercise_comes_back_with_words(notebook, made):
    notebook.run("class Odd:\n    def __getattr__(self, name): raise RuntimeError(name)")
    notebook.run(f"made = {made}\nback = check(made)")
    assert notebook["back"] is notebook["made"]
    assert "progress()" in notebook.last or "Is it " in notebook.last
    assert few(notebook.last) and few(Markup(notebook.html).words)


@pytest.mark.parametrize(
    "source",
    [
        "softmax = functools.partial(attention.softmax)",
        "def mine(x, axis=-1): return attention.softmax(x, axis)\nsoftmax = mine",
        "class Weights:\n    def __call__(self, x, axis=-1): return attention.softmax(x, axis)\n"
        "softmax = Weights()",
    ],
)
def test_answer_without_the_name_is_known_by_its_variable(notebook, source):
    notebook.run("import functools\nfrom helpers import attention")
    assert checked(notebook, source) is notebook["answer"]
    assert notebook.last.startswith("softmax: right,")


BROKEN = [
    f'raise ValueError("{HOSTILE}")', "raise SystemExit", "print(x)", 'return "<b>weights</b>"',
    "return {'<b>': x}", "return [x, None, {1: 2}]", "return softmax", "yield x",
    "x -= x.max(); return x", "return x + 1j", "return softmax(x, axis)", "return np.zeros((0, 3))",
    "return x * np.nan", "return np.asarray(x).astype(int)",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("body", BROKEN)
def test_nothing_that_an_answer_does_stops_the_notebook(notebook, body):
    assert checked(notebook, f"def softmax(x, axis=-1):\n    {body}") is attention.softmax
    assert notebook.last.startswith("softmax: not yet. ")
    assert "Traceback" not in notebook.last
    notebook.last.encode()
    notebook.html.encode()
    assert "script" not in [tag for tag, _ in Markup(notebook.html).tags]


def told(expected, obtained, **inputs):
    """The evidence as text; its HTML must be whole."""
    found = Evidence("two rows", inputs, expected, obtained)
    markup, text = page.shown_parts(page.parts_of(found))
    Markup(markup)
    return text


def test_inputs_are_written_as_short_as_they_are():
    small = {"Q": np.array([[1.0, 2.5]]), "n": np.array([3, 4]), "axis": 0, "words": ["a", "b"]}
    other = {"X": np.ones((2, 3, 4)), "p": {"W": np.eye(2)}, "step": len}
    text = told(1.0, 2.0, **small, **other, rng=np.random.default_rng())
    assert "  1.0  2.5" in text and "  3  4" in text
    assert "axis = 0" in text and "p: a dictionary with W" in text
    assert "rng: a random generator" in text and "step: the function len" in text
    assert "words: ['a', 'b']" in text and "X: floats of shape (2, 3, 4)" in text


def test_matrices_stand_beside_their_difference():
    a, b = np.array([[0.1, 0.9], [0.5, 0.5]]), np.array([[0.1, 0.9], [0.75, 0.5]])
    found = Evidence("two rows", {}, a, b)
    (tables,) = [p for p in page.parts_of(found) if isinstance(p, list)]
    assert [table.caption for table in tables] == ["expected", "yours", "difference"]
    assert tables[2].cells == [["0", "0"], ["+0.2500", "0"]]
    assert tables[2].tints == [[0, 0], [1, 0]]
    batch = told(np.zeros((2, 3, 2, 2)), np.arange(24.0).reshape(2, 3, 2, 2) // 23 * 7)
    assert "the first matrix that differs, [1, 2]" in batch and "+7.0000" in batch


@pytest.mark.parametrize(
    ("expected", "obtained", "words"),
    [
        (np.ones((2, 3)), np.ones((3, 2)), ["expected (2, 3)", "yours (3, 2)"]),
        (np.array([[True, False]]), np.array([[True, True]]), ["True  False", "=  ≠"]),
        (np.array([[1.0, 2.0]]), np.array([[np.nan, 2.0]]), ["≠"]),
        (0.25, 0.5, ["expected: 0.2500", "yours: 0.5000"]),
        (["a", "b"], ["a"], ["expected: ['a', 'b']", "yours: ['a']"]),
        ({"the": 0}, {"The": 0}, ["expected: {'the': 0}", "yours: {'The': 0}"]),
        ({"rows sum to 1": True}, {"rows sum to 1": False}, ["does not hold: rows sum to 1"]),
        ({"share": About(0.3, 0.01)}, {"share": About(0.7, 0)}, ["share:", "0.3000", "0.7000"]),
        ([np.ones(2), np.ones(2)], [np.ones(2), np.zeros(2)], ["result 2 of 2", "-1.0000"]),
        ("x unchanged", "x changed in place", ["expected: x unchanged", "yours: x changed in"]),
        (np.ones(2), TimedOut(), ["yours: no answer in time"]),
        (np.ones(2), Raised("ValueError", "no"), ["yours: it stopped with ValueError"]),
        (np.ones(2), Opaque("Foo"), ["an object of type Foo"]),
    ],
)
def test_every_kind_of_result_is_shown(expected, obtained, words):
    text = told(expected, obtained)
    for word in words:
        assert word in text


def test_hints_come_one_by_one(notebook):
    checked(notebook, STUB)
    for step in (1, 2, 3):
        notebook.run("hint()")
        assert notebook.last.startswith(f"softmax, hint {step} of 3, ")
    notebook.run("hint()")
    assert 'solution("softmax")' in notebook.last
    notebook.run('hint("attention_scores")')
    assert notebook.last.startswith("attention_scores, hint 1 of 3, ")


SOLUTION = "def softmax("
MISUSES = ["hint()", "solution()", 'hint("no")', "solution(3)", 'hint("x" * 10**6)', "check()",
           "check(3)", "check(lambda x: x)"]  # fmt: skip


@pytest.mark.parametrize("call", MISUSES)
def test_a_misuse_offers_what_this_notebook_asks(notebook, call):
    notebook.run(call)
    assert "progress()" in notebook.last and few(notebook.last) and few(Markup(notebook.html).words)
    checked(notebook, STUB)
    notebook.run(call)
    assert "log_softmax" in notebook.last or notebook.last.startswith(("softmax, hint", SOLUTION))
    assert notebook.last.startswith(SOLUTION) or few(notebook.last)


def test_a_mistyped_name_gets_the_nearest_alone(notebook):
    notebook.run('hint("sofmax")')
    assert notebook.last == "No exercise is called sofmax. Is it softmax?"
    with pytest.raises(KeyError, match="no exercise is called 'sofmax'; is it 'softmax'"):
        grade(notebook["np"], "sofmax")


@pytest.mark.parametrize("name", exercises())
def test_solution_is_the_first_answer_with_what_its_parts_are_for(notebook, name):
    notebook.run(f"solution({name!r})")
    known = exercises()[name]
    assert notebook.last.startswith(known.answers[0].replace("`", ""))
    assert any(why.text.replace("`", "") in notebook.last for why in known.whys)
    Markup(notebook.html)


def test_progress_counts_what_is_done(notebook):
    checked(notebook, SOFTMAX)
    notebook.run("progress()")
    assert notebook.last.startswith(f"1 of {len(ASKED_NAMES)} exercises done.")
    assert "✓ softmax" in notebook.last and "○ attention_scores" in notebook.last
    assert {path.stem[:2]: headings(path, 1)[0].partition(" · ")[2] for path in PATHS} == TITLES
    for title in (f"{number} · {TITLES[number]}" for number in ASKED):
        assert title in notebook.last and title in notebook.html.replace("\u00a0", " ")
    Markup(notebook.html)


def test_progress_counts_what_the_notebooks_ask(notebook):
    """Neither less nor more, in their order."""
    asked = {
        path.stem[:2]: tuple(found[1] for cell in code_cells(path)
                             if (found := re.fullmatch(r"(\w+) = check\(\1\)", cell["source"])))
        for path in PATHS
    }  # fmt: skip
    assert asked == ASKED
    assert all(exercises()[n].notebook == number for number in ASKED for n in ASKED[number])
    notebook.run("progress()")
    shown = notebook.last.removesuffix("✓ done, ○ open")
    assert re.findall(r"○ (\w+)", shown) == ASKED_NAMES
    learner.Memory.right |= set(exercises())
    notebook.run("progress()")
    assert notebook.last.startswith(f"{len(ASKED_NAMES)} of {len(ASKED_NAMES)} exercises done.")


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"x = 1\ndef softmax(:\n", "line 2: "), (b"x = 1\ny = '\xff'\n", "line 2: it is not UTF-8")],
)  # fmt: skip
def test_progress_says_which_line_of_the_file_stops_it(
    notebook, tmp_path, monkeypatch, content, reason
):
    path = tmp_path / "my_transformer.py"
    path.write_bytes(content)
    monkeypatch.setenv("MY_TRANSFORMER", str(path))
    notebook.run("progress()")
    first, second = notebook.last.splitlines()[:2]
    assert first.startswith(f"my_transformer.py cannot be read, {reason}")
    assert "repair that line" in first and "make fresh" in first and "not counted" in first
    assert second == f"0 of {len(ASKED_NAMES)} exercises done."


def test_without_ipython_it_is_printed():
    code = "from workshop.checks import hint\nhint('softmax')"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert said.stdout.startswith("softmax, hint 1 of 3, a nudge: ")
