"""The change that repairs a wrong answer: found, verified, told, and kept from doing harm."""

import linecache
import math
import os
import re
import threading
import time
from collections import Counter
from itertools import count
from pathlib import Path

import numpy as np
import psutil
import pytest

from helpers.attention import attention_scores, softmax
from workshop.checks import grade, repair, sandbox
from workshop.checks.judge import RIGHT, WRONG
from workshop.exercises import exercises, find

NAMES = {"np": np, "math": math, "softmax": softmax, "attention_scores": attention_scores}
CELLS = count()


def answer(source, **names):
    """A function as a notebook's cell makes it: its source can be read again."""
    name = f"<cell {next(CELLS)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    scope = NAMES | names
    exec(compile(source, name, "exec"), scope)
    return scope[re.search(r"^def (\w+)", source, re.MULTILINE)[1]]


@pytest.fixture
def no_mistakes(monkeypatch):
    """Known mistakes come first: without them every wrong answer is left to the repair."""
    for known in exercises().values():
        monkeypatch.setattr(known, "mistakes", [])
    from workshop.checks.judge import mistakes_of

    mistakes_of.cache_clear()
    yield
    mistakes_of.cache_clear()


SLIPS = {
    "operator": ("return S * math.sqrt(d_k)", "/"),
    "power": ("return S / d_k", "sqrt"),
    "rounding": ("return S // math.sqrt(d_k)", "S / "),
    "argument": ("return S / math.sqrt(S.shape[-1])", "d_k"),
    "in place": ("S /= math.sqrt(d_k)\n    return S", ""),
    "no return": ("S = S / math.sqrt(d_k)", "return"),
    "sign": ("return -S / math.sqrt(d_k)", "return S / math.sqrt(d_k)"),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_one_change_is_found_and_makes_it_right(slip, no_mistakes):
    body, wanted = SLIPS[slip]
    source = f"def scale_scores(S, d_k):\n    {body}\n"
    told = grade(answer(source))
    assert told.status == WRONG and told.repair is not None and told.repair.line in (1, 2, 3)
    assert wanted in told.repair.after and told.repair.before in source
    assert told.repair.after.strip() not in told.message  # check never shows the code


def test_the_line_counts_as_the_cell_does_and_keeps_how_it_was_written(no_mistakes):
    source = """# my scores
def softmax(x,axis = -1):
    '''Weights.'''
    e = np.exp( x - x.max(axis=axis, keepdims=True) )   # stable
    return e/e.sum(axis=0, keepdims=True)
"""
    found = grade(answer(source)).repair
    assert (found.line, found.before) == (5, "return e/e.sum(axis=0, keepdims=True)")
    assert found.after == "return e/e.sum(axis=axis, keepdims=True)" and "axis" in found.place


def test_a_slip_at_several_places_is_one_change(no_mistakes):
    source = """def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
"""
    found = grade(answer(source)).repair
    assert found.after.count("axis=axis") == 2 and found.also is None


def test_a_line_that_moves_shows_its_margin(no_mistakes):
    source = """def build_vocab(sentences):
    vocab, new = {}, 0
    for token in " ".join(sentences).split():
        if token not in vocab:
            vocab[token] = new
        new += 1
    return vocab
"""
    found = grade(answer(source)).repair
    assert (found.before, found.after) == ("    new += 1", "        new += 1")
    surplus = "def scale_scores(S, d_k):\n    S = abs(S)\n    return S / d_k**0.5\n"
    assert "Line 2, it is too much" in grade(answer(surplus)).message


def test_two_slips_are_told_as_two(no_mistakes):
    source = """def layer_norm(x, gamma, beta, eps=1e-5):
    mean = x.mean(axis=-1, keepdims=True)
    centred = x + mean
    root = np.sqrt(x.var(axis=-1, keepdims=True) + eps)
    return gamma * centred / root - beta
"""
    told = grade(answer(source))
    assert told.repair and told.repair.also and told.message.startswith("Two things")
    assert {told.repair.line, told.repair.also.line} == {3, 5}


def test_the_why_is_that_of_the_expression_that_changes(no_mistakes):
    told = grade(answer("def scale_scores(S, d_k):\n    return S / d_k\n"))
    assert told.repair.why in {why.text for why in find("scale_scores").whys}
    assert told.repair.why in told.message and "√d_k" in told.repair.why


def test_only_what_the_code_bears_is_said_of_a_slip(no_mistakes):
    """A factor that stands twice is told as that; a number that stands elsewhere is not."""
    twice = """def attention(Q, K, V):
    r = math.sqrt(K.shape[-1])
    return softmax((Q / r) @ np.swapaxes(K / r, -1, -2)) @ V
"""
    assert "`/ r` stands there twice" in grade(answer(twice)).message
    once = """def causal_mask(T):
    return np.tril(np.ones((T, T), dtype=bool), k=-1) | np.eye(T - 1, dtype=bool)[-1]
"""
    assert "twice" not in grade(answer(once)).message


def test_a_known_mistake_comes_first_and_a_right_answer_is_left_alone():
    assert grade(find("scale_scores").mistakes[0].function, "scale_scores").repair is None
    right = grade(answer("def scale_scores(S, d_k):\n    return S / d_k**0.5\n"))
    assert (right.status, right.repair) == (RIGHT, None)


def test_an_accident_on_the_probes_alone_is_refused():
    """Right on every probe is not enough: fresh numbers decide in a fork of their own."""
    known = find("scale_scores")
    seen = [np.asarray(p.args[0] if p.args else p.kwargs["S"]).tobytes() for p in known.probes]
    source = """def scale_scores(S, d_k):
    return S / math.sqrt(d_k) if S.tobytes() in SEEN else S
"""
    function = answer(source, SEEN=seen)
    assert grade(function).status == RIGHT  # no probe knows it
    assert not repair.holds(source, function, known, "numpy")


LINES = ["import os; os.system('true')", "open('x').close()", "np.save('x', S)", "system('true')",
         "helper(S)", "path.write_text('y')", "Path('x').touch()", "rm('x')", "st('x', S)",
         "from numpy import savetxt as s; s('x', S)", "o('x', 'w')", "import pathlib"]  # fmt: skip


def helper(S):
    return os.getpid()


@pytest.mark.parametrize("line", LINES)
def test_what_reaches_outside_is_not_changed_and_run(line):
    """By whatever name: a module, a function, a class or a thing of one."""
    names = {"system": os, "helper": helper, "path": Path("x"), "Path": Path, "rm": os.remove}
    source = f"def scale_scores(S, d_k):\n    {line}\n    return S / d_k\n"
    assert repair.tree_of(answer(source, st=np.savetxt, o=open, **names)) is None


def test_what_only_computes_is_changed():
    own = answer("def one_hot(x):\n    return x + 1\n")
    source = (
        "def scale_scores(S, d_k):\n    many = Counter()\n    return own(S) / np.exp(root(d_k))\n"
    )
    assert repair.tree_of(answer(source, own=own, Counter=Counter, root=math.sqrt)) is not None


HOSTILE = {
    "a loop that a change makes endless": """def scale_scores(S, d_k):
    root = 0
    while root < 40:
        root += 1
    return S / root
""",
    "a list that a change makes huge": """def scale_scores(S, d_k):
    many = [0] * (10 * 9 * 8)
    many = many * 2 + [1] * 10 ** 3
    return S / len(many)
""",
    "a sum in C that a change makes endless": """def scale_scores(S, d_k):
    return S / sum(range(10 * 1000 * 1000 // 1000))
""",
    "an error swallowed for ever": """def scale_scores(S, d_k):
    n = 0
    while n < 3:
        try:
            n = n + 1
        except BaseException:
            pass
    return S / n
""",
    "recursion": """def scale_scores(S, d_k):
    return S if d_k < 2 else scale_scores(S, d_k - 1) / 2
""",
    "threads of its own": """def scale_scores(S, d_k):
    import threading
    threading.Thread(target=print).start()
    return S / d_k
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_mutant_ends_with_its_fork(name, no_mistakes, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    threads, began, used = threading.active_count(), os.times(), time.process_time()
    children = set(psutil.Process().children())
    told = grade(answer(HOSTILE[name]))
    ended = os.times()
    assert told.status == WRONG
    assert ended.children_user + ended.children_system < (
        began.children_user + began.children_system + repair.SECONDS + 3
    )
    assert time.process_time() - used < 2 and threading.active_count() <= threads
    assert list(tmp_path.iterdir()) == []
    assert set(psutil.Process().children()) <= children  # nobody is left


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a thread", "in line"])
def test_without_a_fork_it_is_found_too(name, no_mistakes, monkeypatch):
    monkeypatch.setattr(sandbox, "can_fork", lambda known: False)
    monkeypatch.setattr(sandbox, "has_threads", lambda: name == "a thread")
    told = grade(answer("def scale_scores(S, d_k):\n    return S / d_k\n"))
    assert told.repair is not None and "sqrt" in told.repair.after
    loop = (
        "def scale_scores(S, d_k):\n    n = 9\n    while n > 2:\n        n -= 1\n    return S / n\n"
    )
    began = time.process_time()
    assert grade(answer(loop)).status == WRONG and time.process_time() - began < 8


@pytest.mark.parametrize("name", list(exercises()))
def test_an_exercise_has_what_a_repair_needs(name):
    known = find(name)
    assert known.answers and 2 <= len(known.whys) <= 16
    assert all(len(why.text.split()) <= 30 and why.text.endswith((".", "?")) for why in known.whys)
    assert repair.donors_of(name).functions
