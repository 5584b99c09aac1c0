"""Answers that pass are kept in my_transformer.py: readable, right by themselves, nothing lost."""

import os
import re
import stat
import subprocess
import sys

import pytest
from cells import CHECK, SCORES, SOFTMAX, WEIGHTS, Notebook

from workshop.checks import keep, learner
from workshop.checks.judge import grade

pytestmark = pytest.mark.slow

KEPT = "Kept in my_transformer.py, beside this notebook."


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Where answers are kept; what is right in one test is forgotten in the next."""
    monkeypatch.setenv("MY_TRANSFORMER", str(tmp_path / "my_transformer.py"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(learner.Memory, "right", set())
    return tmp_path / "my_transformer.py"


@pytest.fixture
def notebook(path, monkeypatch):
    return Notebook(monkeypatch)


def answer(notebook, source, name):
    """Run an answer and its check; the last line of what is shown, about keeping."""
    notebook.run(source).run(CHECK.format(name))
    assert notebook.last.startswith(f"{name}: right,"), notebook.last
    return notebook.last.splitlines()[-1]


def module(path):
    """The file, run by itself."""
    return keep.load(path.read_text("utf-8"), path)


def test_an_answer_is_kept_as_it_was_written(notebook, path):
    source = SOFTMAX.replace("axis=axis", "axis = axis").replace(
        "return", "# a \\n comment\n    return"
    )
    assert answer(notebook, source, "softmax") == KEPT
    text = path.read_text("utf-8")
    assert source.strip() in text and "import numpy as np\n" in text
    assert text.startswith('"""My transformer') and " 05 · Softmax\n" in text
    assert grade(module(path).softmax).status == "right"


def test_functions_stand_in_the_order_of_the_course(notebook, path):
    """In a file that is formatted and imports nothing it does not use."""
    for name, source in {"softmax": SOFTMAX, "attention_scores": SCORES}.items():
        assert answer(notebook, source, name) == KEPT
    assert answer(notebook, WEIGHTS, "attention_weights") == KEPT
    text = path.read_text("utf-8")
    order = ["import numpy", " 03 · Attention scores", "def attention_scores(", " 05 · Softmax",
             "def softmax(", "def attention_weights("]  # fmt: skip
    places = [text.index(part) for part in order]
    assert places == sorted(places) and text.count("import numpy") == 1
    for command in (["check", "--select", "F"], ["format", "--check"]):
        call = [sys.executable, "-m", "ruff", *command, "--isolated", "--line-length", "100", path]
        done = subprocess.run(call, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def test_the_newest_right_answer_stays(notebook, path):
    answer(notebook, SOFTMAX, "softmax")
    answer(notebook, SOFTMAX.replace("e / e.sum", "1.0 * e / e.sum"), "softmax")
    before, stat = path.read_text("utf-8"), path.stat()
    assert before.count("def softmax(") == 1 and "1.0 * e" in before
    notebook.run(CHECK.format("softmax"))  # the same again: nothing is written
    assert notebook.last.endswith(KEPT) and path.stat().st_mtime_ns == stat.st_mtime_ns
    notebook.run("def softmax(x, axis=-1):\n    return x").run(CHECK.format("softmax"))
    assert path.read_text("utf-8") == before


def test_course_functions_are_imported_until_there_are_own(notebook, path):
    notebook.run("from helpers.attention import softmax, attention_scores")
    answer(notebook, WEIGHTS, "attention_weights")
    assert "from helpers.attention import softmax\n" in path.read_text("utf-8")
    answer(notebook, SOFTMAX, "softmax")
    text = path.read_text("utf-8")
    assert "import softmax" not in text
    assert "from helpers.attention import attention_scores\n" in text
    own = module(path)
    assert own.attention_weights.__globals__["softmax"] is own.softmax


TOP = "np.max(x, axis=axis, keepdims=True)"
USES = {  # before the answer, and what stands in it in the place of TOP
    "own functions that call each other": (
        "def odd(x, a): return top(x, a) if a is None else np.max(x, axis=a, keepdims=True)\n"
        "def top(x, a): return odd(x, a)", "top(x, axis)"),
    "a module inside a package": (
        "import numpy.linalg as la", f"({TOP} + 0 * la.norm(x))"),
    "a function of a library": ("from numpy import max as top", "top(x, axis=axis, keepdims=True)"),
    "a ufunc": ("from numpy import maximum", "maximum.reduce(x, axis=axis, keepdims=True)"),
    "a tuple": ("PAIR = (True, (None, 'a', -1.5))", "np.max(x, axis=axis, keepdims=PAIR[0])"),
    "a decorated own function": (
        "import functools\n@functools.lru_cache\ndef yes(): return True",
        "np.max(x, axis=axis, keepdims=yes())"),
    "an own class": (
        "class Top:\n    keep = True\n    def __call__(self, x, a):\n"
        "        return np.max(x, axis=a, keepdims=self.keep)", "Top()(x, axis)"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "top"), USES.values(), ids=USES)
def test_what_an_answer_uses_is_kept_with_it(notebook, path, before, top):
    source = SOFTMAX.replace(TOP, top)
    source = source.replace("e = ", "x = np.asarray(x)\n    e = ")
    notebook.run(before)
    assert answer(notebook, source, "softmax") == KEPT
    assert grade(module(path).softmax).status == "right"


BODY = f"    e = np.exp(x - {TOP})\n    return e / e.sum(axis=axis, keepdims=True)\n"
SHAPES = {
    "nested functions": f"""
def softmax(x, axis=-1):
    top = {TOP}
    def shifted(): return np.exp(x - top)
    return (lambda e: e / e.sum(axis=axis, keepdims=True))(shifted())
""",
    "defaults that are names": f"LAST = -1\ndef softmax(x, axis=LAST):\n{BODY}",
    "annotations that are names": f"""
import numpy.typing as npt
Weights = np.ndarray
def softmax(x: Weights, axis: int = -1) -> "npt.NDArray":
{BODY}""",
    "a decorator": f"""
import functools
def loud(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs): return function(*args, **kwargs)
    return wrapper
@loud
def softmax(x, axis=-1):
{BODY}""",
    "a definition inside an if": f"if True:\n    def softmax(x, axis=-1):\n"
    f"        '''Two\n        lines.'''\n{BODY.replace('    ', '        ')}",
}


@pytest.mark.parametrize("source", SHAPES.values(), ids=SHAPES)
def test_every_way_to_write_a_function_is_kept(notebook, path, source):
    assert answer(notebook, source, "softmax") == KEPT
    assert grade(module(path).softmax).status == "right"


def using(part):
    """A softmax that uses something of the notebook."""
    return SOFTMAX.replace("e = ", f"e = {part} ")


OBSTACLES = {
    "an array": (f"ZERO = np.zeros(1)\n{using('ZERO +')}", "it uses the notebook's ZERO."),
    "a list in an own function": (
        f"L = [0]\ndef zero(): return L[0]\n{using('zero() +')}", "it uses the notebook's L."),
    "a lambda": (
        "softmax = lambda x, axis=-1: "
        f"np.exp(x - {TOP}) / np.exp(x - {TOP}).sum(axis, keepdims=True)",
        "a lambda has no name of its own: write def softmax(…): with a return."),
    "another name": (
        SOFTMAX.replace("softmax", "weights") + "softmax = weights",
        "it was defined as weights: write def softmax(…):."),
    "a closure": (
        "def make(one):\n"
        f"    {using('one *').strip().replace(chr(10), chr(10) + '    ')}\n"
        "    return softmax\nsoftmax = make(1)",
        "it is made inside another function, of which it uses one."),
    "no function": (
        f"import functools\n{SOFTMAX}\nsoftmax = functools.partial(softmax)",
        "it is not written as a function: begin it with def."),
    "no source": (f"exec({SOFTMAX!r}, globals())", "its source cannot be read."),
    "mine": (
        "from workshop import mine\ndef softmax(x, axis=-1): return mine.softmax(x, axis)",
        "it uses mine, that is, itself."),
    "the name of an exercise that is a number": (
        f"dropout = 1\n{using('dropout *')}",
        "it uses the notebook's dropout, which is no function there."),
}  # fmt: skip


@pytest.mark.parametrize(("source", "reason"), OBSTACLES.values(), ids=OBSTACLES)
def test_what_stands_in_the_way_is_named(notebook, path, source, reason):
    said = answer(notebook, source, "softmax")
    assert said.startswith("Right, and not kept: ") and reason in said
    assert not path.exists()


def test_an_own_function_of_the_same_name_does_not_break_an_older_answer(notebook, path):
    """`top` means another thing in the second notebook: the first answer must stay right."""
    notebook.run("def top(x, a): return np.max(x, axis=a, keepdims=True)")
    answer(notebook, SOFTMAX.replace(TOP, "top(x, axis)"), "softmax")
    before = path.read_bytes()
    other = "def top():\n    return 1\n" + SCORES.replace("Q @", "top() * Q @")
    said = answer(notebook, other, "attention_scores")
    assert "your softmax in my_transformer.py would not be right any more" in said
    assert "give top another name" in said
    assert path.read_bytes() == before


HAND = '''\
"""Mine."""
import numpy as np

# what I like
def own(x):
    return x  # as it is


helper = 1; extra = 2
# the end
'''


def test_what_was_written_by_hand_stays(notebook, path):
    path.write_text(HAND, "utf-8")
    assert answer(notebook, SOFTMAX, "softmax") == KEPT
    text = path.read_text("utf-8")
    for line in filter(None, HAND.splitlines()):
        assert text.count(line) == 1, line
    assert text.index("# what I like") + 14 == text.index("def own")
    assert module(path).own(3) == 3 and module(path).extra == 2


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"def broken(:\n", "cannot be read"),
        (b"\0", "cannot be read"),
        (b"\xff\xfe", "cannot be read"),
        (b"x = 1\n1 / 0\n", "stops: "),
        (b"raise SystemExit\n", "stops: SystemExit"),
        (b"import math as np\n", "in the file np is another thing than import numpy as np"),
    ],
)
def test_a_file_that_does_not_run_is_never_written_over(notebook, path, content, reason):
    path.write_bytes(content)
    said = answer(notebook, SOFTMAX, "softmax")
    assert said.startswith("Right, and not kept: ") and reason in said
    assert path.read_bytes() == content


def test_an_answer_that_does_not_go_with_older_ones_is_not_kept(notebook, path):
    """A softmax is kept; then another of the same name, which also scales, is used unchecked."""
    assert answer(notebook, SOFTMAX, "softmax") == KEPT
    notebook.run("""
        def softmax(x, d):
            e = np.exp(x / d**0.5 - (x / d**0.5).max(-1, keepdims=True))
            return e / e.sum(-1, keepdims=True)
    """)
    scaled = """
        def attention_weights(Q, K):
            return softmax(Q @ np.swapaxes(K, -1, -2), K.shape[-1])
    """
    said = answer(notebook, scaled, "attention_weights")
    assert "in my_transformer.py, where it runs on your softmax, it is not right: " in said


def test_where_it_is_kept(notebook, path, tmp_path, monkeypatch):
    """Beside the notebook, elsewhere, on Colab, nowhere, and where nothing can be written."""
    monkeypatch.setenv("MY_TRANSFORMER", "off")
    notebook.run(SOFTMAX).run(CHECK.format("softmax"))
    assert "ept" not in notebook.last and not list(tmp_path.iterdir())
    monkeypatch.delenv("MY_TRANSFORMER")
    assert answer(notebook, SOFTMAX, "softmax") == KEPT
    assert [p.name for p in tmp_path.iterdir()] == ["my_transformer.py"]
    monkeypatch.setenv("MY_TRANSFORMER", str(path))
    monkeypatch.chdir(path.parent.parent)
    assert answer(notebook, SOFTMAX, "softmax") == f"Kept in {path}."
    monkeypatch.setitem(sys.modules, "google.colab", sys)
    said = answer(notebook, SOFTMAX, "softmax")
    assert said == f"Kept in {path}: the files panel on the left downloads it."
    monkeypatch.setenv("MY_TRANSFORMER", str(path.parent / "none" / "my.py"))
    assert "not kept: my.py cannot be written" in answer(notebook, SOFTMAX, "softmax")


def test_permissions_and_links_stay(notebook, path, symlink):
    answer(notebook, SOFTMAX, "softmax")
    path.chmod(0o600)
    real = path.rename(path.with_name("real.py"))
    symlink(path, real)
    answer(notebook, SCORES, "attention_scores")
    assert path.is_symlink() and "def attention_scores(" in real.read_text("utf-8")
    assert os.name == "nt" or stat.S_IMODE(real.stat().st_mode) == 0o600  # Windows has no such


ONE_MORE = """
import sys
from workshop.checks import check, page
from cells import CHECK, Notebook
page.display = lambda shown: None
class Patch:
    def setattr(self, *args): pass
book = Notebook(Patch())
import inspect
from workshop.exercises import exercises
for name in sys.argv[1:]:
    reference = exercises()[name].reference
    source, scope = inspect.getsource(reference), reference.__globals__
    book.scope.update({key: scope[key] for key in scope if key[:2] != "__"})
    book.run(source).run(CHECK.format(name))
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such lock")
def test_notebooks_that_write_at_once_lose_nothing(path, root):
    names = ["softmax", "attention_scores", "scale_scores", "causal_mask", "one_hot", "embed",
             "split_heads", "merge_heads"]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": f"{root}{os.pathsep}{root / 'tests'}"}
    calls = [[sys.executable, "-c", ONE_MORE, *names[i : i + 2]] for i in range(0, 8, 2)]
    running = [subprocess.Popen(call, env=environment) for call in calls]
    assert [process.wait(60) for process in running] == [0] * 4
    assert set(keep.functions(keep.read(path))) == set(names)
    assert [p.name for p in path.parent.iterdir()] == ["my_transformer.py"]


@pytest.fixture(scope="module")
def fresh(ci):
    """`tools/fresh.py`."""
    return ci("fresh").fresh


def test_fresh_puts_the_file_aside_and_loses_nothing(fresh, tmp_path):
    file = tmp_path / "my_transformer.py"
    assert "There is no my_transformer.py yet" in fresh(file)
    for text in ("one", "two"):
        file.write_text(text)
        fresh(file)
    found = {p.name: p.read_text() for p in tmp_path.iterdir()}
    assert found == {"my_transformer-1.py": "one", "my_transformer-2.py": "two"}


@pytest.mark.parametrize("target", ["check", "test", "test-all", "test-notebooks", "notebooks"])
def test_runs_that_compare_or_save_keep_nothing(root, target):
    """Nor do they depend on what somebody keeps."""
    environment = {k: v for k, v in os.environ.items() if k != "MY_TRANSFORMER"}
    call = ["make", "-pn", "--no-print-directory", target]
    rules = subprocess.run(call, cwd=root, env=environment, text=True, capture_output=True).stdout
    assert re.search(rf"^{target}: .*(\n#.*)*MY_TRANSFORMER := off", rules, re.MULTILINE)
