"""Answers that pass are kept in my_transformer.py: readable, right by themselves, nothing lost."""

import ast
import errno
import os
import re
import stat
import subprocess
import sys
import time

import pytest
from cells import CHECK, SCORES, SOFTMAX, WEIGHTS, Notebook

from helpers.checks import keep, learner
from helpers.checks.judge import grade

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


# ---------------------------------------------------------------- what the file looks like


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
    for name, source in {"softmax": SOFTMAX, "attention_scores": SCORES}.items():
        assert answer(notebook, source, name) == KEPT
    assert answer(notebook, WEIGHTS, "attention_weights") == KEPT
    text = path.read_text("utf-8")
    order = ["import numpy", " 03 · Attention scores", "def attention_scores(", " 05 · Softmax",
             "def softmax(", "def attention_weights("]  # fmt: skip
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert text.count("import numpy") == 1 and "\nfrom helpers" not in text
    assert "\n\n\n\n" not in text and text.endswith(")\n")


def test_the_newest_wins(notebook, path):
    answer(notebook, SOFTMAX, "softmax")
    answer(notebook, SOFTMAX.replace("e / e.sum", "1.0 * e / e.sum"), "softmax")
    text = path.read_text("utf-8")
    assert text.count("def softmax(") == 1 and "1.0 * e" in text


def test_a_wrong_answer_leaves_the_file(notebook, path):
    answer(notebook, SOFTMAX, "softmax")
    before = path.read_bytes()
    notebook.run("def softmax(x, axis=-1):\n    return x").run(CHECK.format("softmax"))
    assert path.read_bytes() == before


def test_keeping_twice_changes_nothing(notebook, path):
    answer(notebook, SOFTMAX, "softmax")
    before = path.stat()
    assert answer(notebook, SOFTMAX, "softmax") == KEPT
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_the_file_is_formatted_and_has_no_unused_import(notebook, path):
    answer(notebook, SOFTMAX.lstrip(), "softmax")
    answer(notebook, SCORES.lstrip(), "attention_scores")
    answer(notebook, WEIGHTS.lstrip(), "attention_weights")
    for command in (["check", "--select", "F"], ["format", "--check"]):
        call = [sys.executable, "-m", "ruff", *command, "--isolated", "--line-length", "100", path]
        done = subprocess.run(call, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


# ---------------------------------------------------------------- the names an answer uses


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


USES = {
    "an own function": (
        "def top(x, a):\n    return np.max(x, axis=a, keepdims=True)",
        "top(x, axis)",
    ),
    "one that calls another": (
        "def low(x, a): return np.max(x, axis=a, keepdims=True)\ndef top(x, a): return low(x, a)",
        "top(x, axis)",
    ),
    "two that call each other": (
        "def odd(x, a): return top(x, a) if a is None else np.max(x, axis=a, keepdims=True)\n"
        "def top(x, a): return odd(x, a)",
        "top(x, axis)",
    ),
    "a module of another name": ("import numpy as xp", "xp.max(x, axis=axis, keepdims=True)"),
    "a module inside a package": (
        "import numpy.linalg as la",
        "(np.max(x, axis=axis, keepdims=True) + 0 * la.norm(x))",
    ),
    "a function of a library": ("from numpy import max as top", "top(x, axis=axis, keepdims=True)"),
    "a ufunc": ("from numpy import maximum", "maximum.reduce(x, axis=axis, keepdims=True)"),
    "a number": ("KEEP = 1", "np.max(x, axis=axis, keepdims=KEEP > 0)"),
    "a tuple": ("PAIR = (True, (None, 'a', -1.5))", "np.max(x, axis=axis, keepdims=PAIR[0])"),
    "a decorated own function": (
        "import functools\n@functools.lru_cache\ndef yes(): return True",
        "np.max(x, axis=axis, keepdims=yes())",
    ),
    "an own class": (
        "class Top:\n    keep = True\n    def __call__(self, x, a):\n"
        "        return np.max(x, axis=a, keepdims=self.keep)",
        "Top()(x, axis)",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("before", "top"), USES.values(), ids=USES)
def test_what_an_answer_uses_is_kept_with_it(notebook, path, before, top):
    source = SOFTMAX.replace("np.max(x, axis=axis, keepdims=True)", top)
    source = source.replace("e = ", "x = np.asarray(x)\n    e = ")
    notebook.run(before)
    assert answer(notebook, source, "softmax") == KEPT
    assert grade(module(path).softmax).status == "right"


SHAPES = {
    "nested functions and a closure of its own": """
def softmax(x, axis=-1):
    top = np.max(x, axis=axis, keepdims=True)
    def shifted(): return np.exp(x - top)
    return (lambda e: e / e.sum(axis=axis, keepdims=True))(shifted())
""",
    "defaults that are names": """
LAST = -1
def exp(x): return np.exp(x)
def softmax(x, axis=LAST, function=exp):
    e = function(x - np.max(x, axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
""",
    "annotations that are names": """
import numpy.typing as npt
Weights = np.ndarray
def softmax(x: Weights, axis: int = -1) -> "npt.NDArray":
    e: Weights = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
""",
    "a decorator": """
import functools
def loud(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs): return function(*args, **kwargs)
    return wrapper
@loud
def softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
""",
    "a definition inside an if": """
if True:
    def softmax(x, axis=-1):
        '''Two
        lines.'''
        e = np.exp(x - np.max(x, axis=axis, keepdims=True))
        return e / e.sum(axis=axis, keepdims=True)
""",
    "an import inside": """
def softmax(x, axis=-1):
    import numpy
    e = numpy.exp(x - numpy.max(x, axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
""",
}


@pytest.mark.parametrize("source", SHAPES.values(), ids=SHAPES)
def test_every_way_to_write_a_function_is_kept(notebook, path, source):
    assert answer(notebook, source, "softmax") == KEPT
    assert grade(module(path).softmax).status == "right"


TOP = "np.max(x, axis=axis, keepdims=True)"
OBSTACLES = {
    "an array": (
        f"ZERO = np.zeros(1)\n{SOFTMAX.replace('e = ', 'e = ZERO + ')}",
        "it uses the notebook's ZERO.",
    ),
    "a list": (f"L = [0]\n{SOFTMAX.replace('e = ', 'e = L[0] + ')}", "it uses the notebook's L."),
    "an array inside an own function": (
        f"A = np.zeros(1)\ndef zero(): return A\n{SOFTMAX.replace('e = ', 'e = zero() + ')}",
        "it uses the notebook's A.",
    ),
    "a lambda": (
        "softmax = lambda x, axis=-1: "
        f"np.exp(x - {TOP}) / np.exp(x - {TOP}).sum(axis, keepdims=True)",
        "a lambda has no name of its own: write def softmax(…): with a return.",
    ),
    "another name": (
        SOFTMAX.replace("softmax", "weights") + "softmax = weights",
        "it was defined as weights: write def softmax(…):.",
    ),
    "a closure": (
        "def make(one):\n"
        f"    {SOFTMAX.strip().replace(chr(10), chr(10) + '    ').replace('e = ', 'e = one * ')}\n"
        "    return softmax\nsoftmax = make(1)",
        "it is made inside another function, of which it uses one.",
    ),
    "an own lambda": (
        f"one = lambda: 1\n{SOFTMAX.replace('e = ', 'e = one() * ')}",
        "it uses the notebook's one, and a lambda has no name of its own",
    ),
    "no function": (
        f"import functools\n{SOFTMAX}\nsoftmax = functools.partial(softmax)",
        "it is not written as a function: begin it with def.",
    ),
    "mine": (
        "from helpers import mine\ndef softmax(x, axis=-1): return mine.softmax(x, axis)",
        "it uses mine, that is, itself.",
    ),
    "the name of an exercise that is a number": (
        f"dropout = 1\n{SOFTMAX.replace('e = ', 'e = dropout * ')}",
        "it uses the notebook's dropout, which is no function there.",
    ),
}


@pytest.mark.parametrize(("source", "reason"), OBSTACLES.values(), ids=OBSTACLES)
def test_what_stands_in_the_way_is_named(notebook, path, source, reason):
    said = answer(notebook, source, "softmax")
    assert said.startswith("Right, and not kept: ") and reason in said
    assert not path.exists()


def test_a_function_without_a_source_is_not_kept(notebook, path):
    notebook.run(f"exec({SOFTMAX!r}, globals())").run(CHECK.format("softmax"))
    assert notebook.last.endswith("Right, and not kept: its source cannot be read.")


def test_an_own_function_of_the_same_name_does_not_break_an_older_answer(notebook, path):
    """`top` means another thing in the second notebook: the first answer must stay right."""
    notebook.run(USES["an own function"][0])
    answer(notebook, SOFTMAX.replace(TOP, "top(x, axis)"), "softmax")
    before = path.read_bytes()
    other = "def top():\n    return 1\n" + SCORES.replace("Q @", "top() * Q @")
    said = answer(notebook, other, "attention_scores")
    assert "your softmax in my_transformer.py would not be right any more" in said
    assert "give top another name" in said
    assert path.read_bytes() == before


# ---------------------------------------------------------------- the learner's own file


HAND = '''\
"""Mine."""
import numpy as np

# what I like
def own(x):
    return x  # as it is


# ---------------------------------------------------------------- 05 · Softmax

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


@pytest.mark.parametrize("text", ["def broken(:\n", "x = '\n", "\0", "  x = 1\n"])
def test_a_file_that_python_cannot_read_is_never_written_over(notebook, path, text):
    path.write_text(text, "utf-8")
    said = answer(notebook, SOFTMAX, "softmax")
    assert "Right, and not kept: my_transformer.py cannot be read" in said
    assert path.read_text("utf-8") == text


def test_bytes_that_are_no_text_are_never_written_over(notebook, path):
    path.write_bytes(b"\xff\xfe")
    assert "cannot be read" in answer(notebook, SOFTMAX, "softmax")
    assert path.read_bytes() == b"\xff\xfe"


@pytest.mark.parametrize("line", ["1 / 0", "import nothing_of_that_name", "raise SystemExit"])
def test_a_file_that_stops_is_never_written_over(notebook, path, line):
    path.write_text(f"x = 1\n{line}\n", "utf-8")
    said = answer(notebook, SOFTMAX, "softmax")
    assert "stops: " in said and ", line " in said
    assert path.read_text("utf-8") == f"x = 1\n{line}\n"


def test_what_is_only_right_in_the_notebook_is_not_kept(notebook, path):
    """The name means another thing in the learner's file than in the notebook."""
    path.write_text("import math as np\n", "utf-8")
    said = answer(notebook, SOFTMAX, "softmax")
    assert "in the file np is another thing than import numpy as np" in said


def test_the_answer_as_it_stands_in_the_file_is_graded(notebook, path, monkeypatch):
    notebook.run(SOFTMAX)
    monkeypatch.setattr(keep, "piece_of", lambda *_: keep.Piece({"softmax": "def softmax(x): 1"}))
    notebook.run(CHECK.format("softmax"))
    assert "in my_transformer.py, away from the notebook, it is not right" in notebook.last
    assert not path.exists()


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


# ---------------------------------------------------------------- the file system


def test_a_folder_that_cannot_be_written_is_a_sentence(notebook, path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(keep.tempfile, "mkstemp", refuse)
    said = answer(notebook, SOFTMAX, "softmax")
    assert (
        said == "Right, and not kept: my_transformer.py cannot be written (read-only file system)."
    )


def test_a_folder_that_is_not_there_is_a_sentence(notebook, path, monkeypatch):
    monkeypatch.setenv("MY_TRANSFORMER", str(path.parent / "none" / "my.py"))
    assert "my.py cannot be written" in answer(notebook, SOFTMAX, "softmax")


def test_nothing_is_kept_where_that_is_switched_off(notebook, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_TRANSFORMER", "off")
    monkeypatch.chdir(tmp_path)
    notebook.run(SOFTMAX).run(CHECK.format("softmax"))
    assert "ept" not in notebook.last and not list(tmp_path.iterdir())


def test_it_lies_beside_the_notebook(notebook, tmp_path, monkeypatch):
    monkeypatch.delenv("MY_TRANSFORMER")
    monkeypatch.chdir(tmp_path)
    assert answer(notebook, SOFTMAX, "softmax") == KEPT
    assert [p.name for p in tmp_path.iterdir()] == ["my_transformer.py"]


def test_another_file_is_named_with_its_folder(notebook, path, monkeypatch):
    monkeypatch.chdir(path.parent.parent)
    assert answer(notebook, SOFTMAX, "softmax") == f"Kept in {path}."


def test_on_colab_the_verdict_says_how_to_take_it_home(notebook, path, monkeypatch):
    monkeypatch.setitem(sys.modules, "google.colab", sys)
    said = answer(notebook, SOFTMAX, "softmax")
    assert said == f"Kept in {path}: the files panel on the left downloads it."


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
from helpers.checks import check, page
from cells import CHECK, Notebook
page.display = lambda shown: None
class Patch:
    def setattr(self, *args): pass
book = Notebook(Patch())
import inspect
from helpers.exercises import exercises
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


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such lock")
def test_a_lock_that_never_opens_is_a_sentence(notebook, path, monkeypatch):
    monkeypatch.setattr(keep, "PATIENCE", 0.05)
    with keep.locked(path.parent):
        began = time.monotonic()
        assert "another notebook has been writing it" in answer(notebook, SOFTMAX, "softmax")
    assert time.monotonic() - began < 5


# ---------------------------------------------------------------- make fresh, and the tests


@pytest.fixture(scope="module")
def fresh(ci):
    """`.ci/fresh.py`."""
    return ci("fresh").fresh


def test_fresh_puts_the_file_aside_and_loses_nothing(fresh, tmp_path):
    file = tmp_path / "my_transformer.py"
    assert "There is no my_transformer.py yet" in fresh(file)
    for text in ("one", "two"):
        file.write_text(text)
        fresh(file)
    found = {p.name: p.read_text() for p in tmp_path.iterdir()}
    assert found == {"my_transformer-1.py": "one", "my_transformer-2.py": "two"}


def test_fresh_runs_and_takes_the_same_file_as_check(root, tmp_path):
    file = tmp_path / "my.py"
    file.write_text("x")
    said = subprocess.run(
        ["make", "--no-print-directory", "-s", "fresh"], cwd=root, text=True, capture_output=True,
        env=os.environ | {"MY_TRANSFORMER": str(file)}, check=True,
    ).stdout  # fmt: skip
    assert said == "my.py is now my-1.py, beside it. The next right answer begins a new one.\n"


def test_answers_and_their_copies_are_not_committed(root):
    for name in ("my_transformer.py", "my_transformer-1.py"):
        call = ["git", "check-ignore", "-q", f"notebooks/{name}"]
        assert subprocess.run(call, cwd=root).returncode == 0, name


@pytest.mark.parametrize("target", ["check", "test", "test-all", "test-notebooks", "notebooks"])
def test_runs_that_compare_or_save_keep_nothing(root, target, tmp_path):
    """Nor do they depend on what somebody keeps."""
    environment = {k: v for k, v in os.environ.items() if k != "MY_TRANSFORMER"}
    call = ["make", "-pn", "--no-print-directory", target]
    rules = subprocess.run(call, cwd=root, env=environment, text=True, capture_output=True).stdout
    (rule,) = re.findall(rf"^{target}: .*(?:\n#.*)*", rules, re.MULTILINE)[:1]
    assert "MY_TRANSFORMER := off" in rules and target in rule
    assert os.environ["MY_TRANSFORMER"] == "off"
    script = (root / ".ci" / "notebooks.py").read_text("utf-8")
    assert 'os.environ["MY_TRANSFORMER"] = "off"' in script


def test_the_file_parses_and_renders_to_itself(notebook, path):
    answer(notebook, SOFTMAX, "softmax")
    answer(notebook, SCORES, "attention_scores")
    text = path.read_text("utf-8")
    assert keep.render(keep.parse(text)) == text
    assert ast.parse(text)
