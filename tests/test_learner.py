"""What a learner sees of a check: verdict, evidence, hints, solution, progress; no traceback."""

import inspect
import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from cells import SOFTMAX, Notebook
from lessons import PATHS, code_cells, headings

from helpers import attention
from helpers.checks import learner, page
from helpers.checks.compare import Opaque, Raised, TimedOut
from helpers.checks.judge import Evidence, Verdict, grade
from helpers.exercises import ASKED, exercises
from helpers.exercises.exercise import About
from helpers.stages import TITLES

ASKED_NAMES = [name for names in ASKED.values() for name in names]
VOID = {"br", "img"}
STUB = 'def softmax(x, axis=-1):\n    """Numbers → weights."""\n    ...'
ONE_SUM = "def softmax(x, axis=-1):\n    return np.exp(x - x.max()) / np.exp(x - x.max()).sum()"
HOSTILE = "<script>alert(1)</script> & 'quotes' `code` \\x1b[31m \\ud800"


@pytest.fixture
def notebook(monkeypatch):
    for name, value in {"checked": {}, "named": None, "shown": {}, "right": set()}.items():
        monkeypatch.setattr(learner.Memory, name, value)
    return Notebook(monkeypatch)


class Reader(HTMLParser):
    """Whether markup is whole, and what stands in it."""

    def __init__(self, markup):
        super().__init__()
        self.open, self.tags, self.words = [], [], ""
        self.feed(markup)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data


def checked(notebook, source, name="softmax"):
    """Run an answer and its check; what the check returned."""
    notebook.run(source).run(f"answer = {name}\n{name} = check({name})")
    Reader(notebook.html)
    return notebook[name]


def few(text):
    """Whether a text is short, and names at most the exercises of one notebook."""
    return len(text) < 300 and len(set(re.findall(r"\w+", text)) & set(exercises())) <= 4


# ---------------------------------------------------------------- what check returns and says


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


def test_a_right_answer_for_both_comes_back_as_it_is(notebook):
    notebook.run("import torch")
    made = "def scale_scores(S, d_k):\n    return S / d_k**0.5"
    assert checked(notebook, made, "scale_scores") is notebook["answer"]


def test_reference_comes_back_for_a_wrong_answer(notebook):
    assert checked(notebook, ONE_SUM) is attention.softmax
    assert notebook.last.startswith("softmax: not yet. ")
    assert "<b>◐ not yet</b>" in notebook.html
    for word in ("x", "expected", "yours", "difference", "0.0900", "0.0793", "-0.0107"):
        assert word in notebook.last and word in notebook.html, word


def test_stub_is_not_attempted_and_its_output_small(notebook):
    assert checked(notebook, STUB) is attention.softmax
    assert notebook.last == "softmax: not attempted. The course's own is used until yours is right."
    assert "<b>○ not attempted</b>" in notebook.html


@pytest.mark.parametrize("name", exercises())
def test_what_every_saved_notebook_holds_stays_small(name):
    made = learner.not_attempted(exercises()[name])
    Reader(made.html)
    assert len((made.html + made.text).encode()) < 3000
    assert "solution" in made.html


def test_check_run_again_with_the_reference_is_no_answer(notebook):
    """Else the course's own function would count as the learner's."""
    checked(notebook, STUB)
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
    assert few(notebook.last) and few(Reader(notebook.html).words)


def test_mistyped_name_is_guessed(notebook):
    notebook.run("def sofmax(x): ...\ncheck(sofmax)")
    assert "No exercise is called sofmax. Is it softmax?" in notebook.last


@pytest.mark.parametrize(
    "source",
    [
        "softmax = lambda x, axis=-1: attention.softmax(x, axis)",
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


BROKEN = {
    "raises": f'raise ValueError("{HOSTILE}")',
    "exits": "raise SystemExit",
    "prints": "print(x)",
    "returns text": 'return "<b>weights</b>"',
    "returns a dictionary": "return {'<b>': x}",
    "returns a list": "return [x, None, {1: 2}]",
    "returns itself": "return softmax",
    "returns a generator": "yield x",
    "changes x": "x -= x.max(); return x",
    "returns complex numbers": "return x + 1j",
    "recurses": "return softmax(x, axis)",
    "is empty": "return np.zeros((0, 3))",
    "is nan": "return x * np.nan",
    "is whole": "return np.asarray(x).astype(int)",
}


@pytest.mark.slow
@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_nothing_that_an_answer_does_stops_the_notebook(notebook, body):
    assert checked(notebook, f"def softmax(x, axis=-1):\n    {body}") is attention.softmax
    assert notebook.last.startswith("softmax: not yet. ")
    assert "Traceback" not in notebook.last
    notebook.last.encode()
    notebook.html.encode()
    assert "script" not in Reader(notebook.html).tags


def test_exception_is_told_with_the_line_of_the_learner(notebook):
    checked(notebook, 'def softmax(x, axis=-1):\n    raise ValueError("<b>no</b>")  # here')
    assert "ValueError: <b>no</b>" in notebook.last and "# here" in notebook.last
    assert "&lt;b&gt;no&lt;/b&gt;" in notebook.html and "<b>no</b>" not in notebook.html


def test_a_check_that_fails_itself_is_reported_in_words(notebook, monkeypatch):
    def fail(*_):
        raise RuntimeError("<oh>")

    monkeypatch.setattr(learner, "grade", fail)
    assert checked(notebook, SOFTMAX) is attention.softmax
    assert "RuntimeError: <oh>" in notebook.last and "please report it" in notebook.last


# ---------------------------------------------------------------- evidence


def told(expected, obtained, **inputs):
    """The evidence as text; its HTML must be whole."""
    found = Evidence("two rows", inputs, expected, obtained)
    markup, text = page.shown_parts(page.parts_of(found))
    Reader(markup)
    return text


@pytest.mark.parametrize(
    ("x", "text"),
    [(0.5, "0.5000"), (-1e-9, "0.0000"), (3, "3"), (True, "True"), (np.float32(2), "2.0000"),
     (float("nan"), "nan"), (-np.inf, "-inf"), (12345678.0, "1.235e+07")],
)  # fmt: skip
def test_numbers_have_four_decimals(x, text):
    assert page.number(x) == text


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


def test_only_the_first_matrix_that_differs_is_shown():
    a = np.zeros((2, 3, 2, 2))
    b = a.copy()
    b[1, 2, 0, 1] = 7
    assert "the first matrix that differs, [1, 2]" in told(a, b)
    assert "+7.0000" in told(a, b) and told(a, b).count("0.0000") == 7


def test_large_matrices_are_cut_around_the_first_difference():
    a = np.zeros((20, 30))
    b = a.copy()
    b[15, 29] = 1
    text = told(a, b)
    assert "rows 12 to 19 of 20; columns 22 to 29 of 30" in text and "+1.0000" in text
    assert len(text) < 3000


def test_vectors_are_three_rows_of_one_table():
    text = told(np.array([1.0, 2.0]), np.array([1.0, 2.5]))
    assert re.search(
        r"expected +1\.0000 +2\.0000\n +yours +1\.0000 +2\.5000\n +difference +0 ", text
    )


def test_masks_say_where_they_differ():
    text = told(np.array([[True, False]]), np.array([[True, True]]))
    assert "True  False" in text and re.search(r"difference:\n +=  ≠", text)


def test_not_a_number_is_marked():
    assert "≠" in told(np.array([[1.0, 2.0]]), np.array([[np.nan, 2.0]]))


@pytest.mark.parametrize(
    ("expected", "obtained", "words"),
    [
        (np.ones((2, 3)), np.ones((3, 2)), ["expected (2, 3)", "yours (3, 2)"]),
        (np.ones((2, 3)), np.ones(3, int), ["expected (2, 3)", "yours (3,)"]),
        (np.ones((50, 60)), np.ones((60, 50)), ["floats of shape (50, 60)"]),
        (np.ones((0, 3)), np.ones((0, 4)), ["shape (0, 3)", "shape (0, 4)"]),
        (0.25, 0.5, ["expected: 0.2500", "yours: 0.5000"]),
        (["a", "b"], ["a"], ["expected: ['a', 'b']", "yours: ['a']"]),
        ({"the": 0}, {"The": 0}, ["expected: {'the': 0}", "yours: {'The': 0}"]),
        ({"rows sum to 1": True}, {"rows sum to 1": False}, ["does not hold: rows sum to 1"]),
        ({"share": About(0.3, 0.01)}, {"share": About(0.7, 0)}, ["share:", "0.3000", "0.7000"]),
        ([np.ones(2), np.ones(2)], [np.ones(2), np.zeros(2)], ["result 2 of 2", "-1.0000"]),
        ("x unchanged", "x changed in place", ["expected: x unchanged", "yours: x changed in"]),
        (np.ones(2), None, ["yours: None"]),
        (np.ones(2), TimedOut(), ["yours: no answer in time"]),
        (np.ones(2), Raised("ValueError", "no"), ["yours: it stopped with ValueError"]),
        (np.ones(2), Opaque("Foo"), ["an object of type Foo"]),
        (True, False, ["expected: True", "yours: False"]),
        (np.ones(2), "text", ["yours: text"]),
        (np.ones((2, 2)), np.ones((2, 2)) + 1e-12, ["expected"]),
    ],
)
def test_every_kind_of_result_is_shown(expected, obtained, words):
    text = told(expected, obtained)
    for word in words:
        assert word in text


def test_tinted_cells_stay_readable():
    """Contrast of text on the strongest tint, on the white and the black of JupyterLab."""
    (r, g, b, share) = re.search(r"\((\d+),(\d+),(\d+),([\d.]+)\)", page.tint(1)).groups()

    def light(colour):
        parts = [c / 255 for c in colour]
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return np.dot(parts, [0.2126, 0.7152, 0.0722])

    colour, share = np.array([r, g, b], float), float(share)
    for ground, ink in (((255,) * 3, (33,) * 3), ((17,) * 3, (222,) * 3)):
        mixed = share * colour + (1 - share) * np.array(ground)
        bright, dark = sorted([light(mixed), light(ink)], reverse=True)
        assert (bright + 0.05) / (dark + 0.05) >= 4.5


# ---------------------------------------------------------------- hints, solution, progress


def test_hints_come_one_by_one(notebook):
    checked(notebook, STUB)
    for step in (1, 2, 3):
        notebook.run("hint()")
        assert notebook.last.startswith(f"softmax, hint {step} of 3, ")
    notebook.run("hint()")
    assert 'solution("softmax")' in notebook.last
    notebook.run('hint("attention_scores")')
    assert notebook.last.startswith("attention_scores, hint 1 of 3, ")


SOLUTION = "import numpy as np\n\n\ndef softmax("
MISUSES = [
    "hint()",
    "solution()",
    'hint("no")',
    "solution(3)",
    "hint([])",
    'hint("x" * 10**6)',
    "check()",
    "check(3)",
    "check(lambda x: x)",
]


@pytest.mark.parametrize("call", MISUSES)
def test_a_misuse_offers_what_this_notebook_asks(notebook, call):
    notebook.run(call)
    assert "progress()" in notebook.last and few(notebook.last) and few(Reader(notebook.html).words)
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
def test_solution_is_the_source_of_the_reference_after_its_imports(notebook, name):
    notebook.run(f"solution({name!r})")
    source = inspect.getsource(exercises()[name].reference)
    assert notebook.last.endswith(source.strip("\n"))
    assert all(
        re.match("import |from |$", line) for line in notebook.last.split("def ")[0].split("\n")
    )
    Reader(notebook.html)


def test_progress_counts_what_is_done(notebook):
    notebook.run("progress()")
    assert notebook.last.startswith(f"0 of {len(ASKED_NAMES)} exercises done.")
    checked(notebook, SOFTMAX)
    notebook.run("progress()")
    assert notebook.last.startswith(f"1 of {len(ASKED_NAMES)} exercises done.")
    assert "✓ softmax" in notebook.last and "○ attention_scores" in notebook.last
    for title in (f"{number} · {TITLES[number]}" for number in ASKED):
        assert title in notebook.last and title in notebook.html.replace("\u00a0", " ")
    Reader(notebook.html)


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


BROKEN_FILES = {
    "a line that is no Python": ("x = 1\ndef softmax(:\n", "line 2: "),
    "an open string": ("x = 1\n\ny = '\n", "line 3: "),
    "bytes that are no text": (b"x = 1\ny = '\xff'\n", "line 2: it is not UTF-8 text"),
}


@pytest.mark.parametrize(("text", "reason"), BROKEN_FILES.values(), ids=BROKEN_FILES)
def test_progress_says_which_line_of_the_file_stops_it(
    notebook, tmp_path, monkeypatch, text, reason
):
    path = tmp_path / "my_transformer.py"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    monkeypatch.setenv("MY_TRANSFORMER", str(path))
    notebook.run("progress()")
    first, second = notebook.last.splitlines()[:2]
    assert first.startswith(f"my_transformer.py cannot be read, {reason}")
    assert "repair that line" in first and "make fresh" in first and "not counted" in first
    assert second == f"0 of {len(ASKED_NAMES)} exercises done."
    assert "<code>make fresh</code>" in notebook.html
    Reader(notebook.html)


def test_titles_are_those_of_the_notebooks():
    found = {path.stem[:2]: headings(path, 1)[0].partition(" · ")[2] for path in PATHS}
    assert found == TITLES


# ---------------------------------------------------------------- where it is shown


def test_without_ipython_it_is_printed():
    code = "from helpers.checks import hint\nhint('softmax')"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert said.stdout.startswith("softmax, hint 1 of 3, a nudge: ")


def test_a_cell_shows_html_and_text_together():
    """In IPython, the middle of a cell too; the text does not change from run to run."""
    code = f"""
import json
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
shell = InteractiveShell.instance()
shell.run_cell("import numpy as np; from helpers.checks import check")
shell.run_cell({ONE_SUM!r})
with capture_output() as seen:
    shell.run_cell("new = check(softmax); new = check(softmax)")
print(json.dumps([output.data for output in seen.outputs]))
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    first, second = json.loads(said.stdout.splitlines()[-1])
    assert set(first) == {"text/html", "text/plain"} and first == second


def test_verdict_of_a_message_alone_is_shown():
    made = learner.shown(Verdict("softmax", "wrong", "No `x`."), exercises()["softmax"])
    assert made.text == "softmax: not yet. No x." and "No <code>x</code>." in made.html


def test_check_of_nothing_is_told(notebook):
    assert learner.check() is None
    assert "It got nothing" in notebook.last


def test_an_error_is_quoted_once():
    raised = Raised("ValueError", "shapes differ")
    found = Evidence("one row", {}, np.ones(2), raised)
    for message, times in (("It raises ValueError: shapes differ.", 1), ("K is transposed.", 1)):
        verdict = Verdict("softmax", "wrong", message, None, found)
        assert learner.shown(verdict, exercises()["softmax"]).text.count("shapes differ") == times
