"""The one change that makes a wrong answer right: found, told, and kept from doing harm."""

import contextlib
import json
import math
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import psutil
import pytest
from answers import written

from workshop.checks import grade, repair, sandbox
from workshop.checks.judge import WRONG, expected_of
from workshop.exercises import find

SPACED = """# my weights
def softmax(x,axis = -1):
    '''Weights.'''
    e = np.exp( x - x.max(axis=axis, keepdims=True) )   # stable
    return e/e.mean( axis=axis, keepdims=True )
"""
EXP = "e = np.exp(x - x.max(axis=axis, keepdims=True)) ⏎ "
SUM = "return e / e.sum(axis=axis, keepdims=True)"
TWO = "m = x.max(axis=axis, keepdims=True) ⏎ a = 1 * m ⏎ s = x - m ⏎ "
SELF = find("SelfAttention").solution
TABLE = [  # an answer, the line of its cell, what changes there, and what it becomes
    ("softmax", SPACED, 5, "mean", "sum"),
    ("softmax", (EXP + SUM).replace("axis=axis", "axis=0"), 2, "axis=0", "axis=axis"),
    ("softmax", "return torch.softmax(x.double(), dim=0)", 2, "0", "axis"),
    ("softmax", EXP + SUM + " * 3", 3, " * 3", ""),
    ("softmax_row", "e = np.exp(scores) ⏎ e = e + 1 ⏎ return e / e.sum()", 3, "e = e + 1", ""),
    ("softmax_row", "return np.exp(scores) / len(scores)", 2, "len(scores)",
     "np.exp(scores).sum()"),
    ("log_softmax", TWO + "return s - np.log(np.exp(x - s).sum(axis=axis, keepdims=True))", 5,
     "x - s", None),  # x - m or x - a
]  # fmt: skip
CLASSES = [
    ("SelfAttention", SELF.replace(" / K", " * K"), 10, " * K", " / K"),
    ("SelfAttention", SELF.replace("softmax", "log_softmax"), 11, "log_softmax", "softmax"),
]


def told(name, text):
    """What is said of an answer."""
    found = grade(written(name, text), name)
    return found.status, found.mistake, found.message, found.repair


@pytest.mark.parametrize(
    ("name", "text", "line", "old", "new"),
    [*TABLE, *(pytest.param(*row, marks=pytest.mark.slow) for row in CLASSES)],
)
def test_the_change_is_told_in_the_learner_s_own_lines(name, text, line, old, new):
    """They count as the cell does, and stay as they were written but for what changes."""
    status, mistake, message, found = told(name, text)
    before = "\n".join(part.strip() for part in re.split("[\n⏎]", text) if old in part)
    after = "" if new is None else before.replace(old, new)
    assert found == repair.Repair(line, before, after, "", rivals=new is None)
    place = f"Look at line {line}:" if new is None else f"One change in line(s|) {line} (to|passes)"
    assert (status, mistake) == (WRONG, None) and re.search(place, message)


BY_ONE_MAX = "e = np.exp(x - x.max()) ⏎ s = e.sum(axis=axis, keepdims=True) ⏎ "
WHY = {
    "one-maximum-for-everything": BY_ONE_MAX + "return np.where(s > 0, e / s, 0.0)",
    "": EXP + "return e / e.mean(axis=axis, keepdims=True)",  # slips change what stands beside
}


@pytest.mark.parametrize("slip", WHY)
def test_a_reason_is_told_only_where_the_edit_undoes_a_slip(slip):
    *_, message, found = told("softmax", WHY[slip])
    reasons = {s.name: s.why for s in find("softmax").slips}
    assert found.why == reasons.get(slip, "") and found.why in message
    assert not any(why in message for name, why in reasons.items() if name != slip)


# ---------------------------------------------------------------- what is never offered


def offered(name, text):
    """All changes of an answer that are tried."""
    known = find(name)
    answer = repair.answer_of(written(name, text), known)
    search = repair.Search(answer, known, known.backends[0], expected_of(name), [0])
    return [changed for changed, _ in search.candidates()]


LOOP = "t = 0 ⏎ for i in range(len(scores) - 1): ⏎     t = t + np.exp(scores[i]) ⏎ "
WIDTHS = "d, n = K.shape[-1], K.shape[-2] ⏎ s = Q @ np.swapaxes(K, -1, -2) / np.sqrt(n // d) ⏎ "
CHECKED = "assert wanted.all() ⏎ return (weights * wanted).sum(axis=-1).sum(axis=-1) / len(wanted)"
MASKED = find("CausalAttention").solution.replace("T = ", "assert self.mask.any()\n        T = ")
NONSENSE = [  # an answer, what may be offered, and what may not
    ("softmax", EXP.replace("max", "min") + SUM, "x - x.max(", "x - x.mean("),
    ("next_token_probs", "return softmax(logits / temperature + 1)", "ture)", "+ 0"),
    ("softmax", EXP.replace("x - x", "2 * x - x") + SUM, "np.exp(x - x.max(", "2 + x"),
    ("softmax_row", LOOP + "return np.exp(scores) / t", "len(scores))", "len(scores - 1)"),
    ("head_scores", CHECKED, "wanted.any(axis=-1)", "assert wanted.any"),
    ("CausalAttention", MASKED, "masked_fill", "assert ~"),
    ("attention", WIDTHS + "return softmax(s) @ V * d / d", "np.sqrt(n)", "n // n)"),
]


@pytest.mark.parametrize(("name", "text", "sane", "nonsense"), NONSENSE)
def test_nonsense_is_never_offered(name, text, sane, nonsense):
    changes = offered(name, text)
    assert [changed for changed in changes if sane in changed]
    assert not [changed for changed in changes if nonsense in changed]


@pytest.mark.parametrize("fresh", [True, False])
def test_an_accident_on_the_probes_is_refused_by_fresh_numbers(fresh, monkeypatch):
    known = find("softmax_row")
    answer = written("softmax_row", "w = KNOWN.get(scores.tobytes(), scores) ⏎ return w + 1")
    inputs = [probe.args[0] for probe in known.probes]
    answer.__globals__["KNOWN"] = {x.tobytes(): known.reference(x) for x in inputs}
    if not fresh:
        monkeypatch.setattr(repair, "fresh_probes", lambda known: iter(()))
    assert (grade(answer).repair is None) == fresh


OUTSIDE = ["import os; os.system('true')", "open('x', 'w')", "np.save('x', scores)", "rm('y')",
           "helper(scores)", "path.write_text('y')", "Path('x').touch()", "st('x', scores)",
           "from numpy import savetxt as s; s('x', scores)", "o('x', 'a')", "scores.tofile('x')",
           "__import__('shutil').rmtree('z')", "vars(np)['save']('x', scores)",
           "import socket; socket.socket().connect(('127.0.0.1', 9))",
           "import torch; torch.save(torch.ones(2), 'x')"]  # fmt: skip
INSIDE = ["n = root(2)", "n = Counter()", "import math", "open('y').read()"]


@pytest.mark.parametrize("forks", [True, False])
@pytest.mark.parametrize("line", [*OUTSIDE, *INSIDE])
def test_what_reaches_outside_is_refused_to_a_changed_answer(line, forks, tmp_path, monkeypatch):
    """By whatever name: a module, a function, a class or a thing of one. An answer has its way."""
    monkeypatch.chdir(tmp_path)
    Path("z").mkdir()
    Path("y").write_text("kept")
    body, known = f"{line} ⏎ return np.exp(scores) / np.exp(scores).max()", find("softmax_row")
    texts = []
    if answer := repair.answer_of(written("softmax_row", body), known):
        scope = {"helper": lambda x: os.system("true"), "path": Path("x"), "Path": Path, "o": open}
        answer.scope.update(scope, st=np.savetxt, rm=os.remove, root=math.sqrt)
        search = repair.Search(answer, known, "numpy", expected_of("softmax_row"), [0, 1, 2, 3])
        found = sandbox.lines_of(search.run, 20, forks)[0]
        texts = [json.loads(row)[3] for row in found]
    assert any(line.split("; ")[-1].split("(")[0] in text for text in texts) == (line in INSIDE)
    assert sorted(os.listdir()) == ["y", "z"] and Path("y").read_text() == "kept"


HOSTILE = {  # by a change
    "endless": "n = 0 ⏎ while n < 40: ⏎     n += 1 ⏎ return np.exp(scores) / n",
    "huge": "n = [0] * (10 * 9 * 8) ⏎ n = n * 2 + [1] * 10**3 ⏎ return np.exp(scores) / len(n)",
    "endless in C": "return np.exp(scores) / sum(range(10 * 1000 * 1000 // 1000))",
    "errors swallowed": "n = 0 ⏎ while n < 3: ⏎     try: n = n + 1 ⏎     except BaseException: "
    "pass ⏎ return np.exp(scores) / n",
    "recursion": "return scores if scores.sum() < 0 else softmax_row(scores - 1) * 2",
    "threads": "import threading ⏎ threading.Thread(target=print).start() ⏎ return scores",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_candidate_ends_with_its_fork(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    threads, children, began = threading.active_count(), psutil.Process().children(), os.times()
    assert told("softmax_row", HOSTILE[name])[0] == WRONG
    assert sum(os.times()[:4]) - sum(began[:4]) < 6 and threading.active_count() <= threads
    assert list(tmp_path.iterdir()) == [] and psutil.Process().children() == children


# ---------------------------------------------------------------- the same words each time

ANSWERS = [*(row[:2] for row in TABLE[1:5]), ("softmax_row", HOSTILE["endless"])]


@contextlib.contextmanager
def busy():
    """Other processes that burn the processor."""
    burning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(6)]
    try:
        yield
    finally:
        for process in burning:
            process.kill()


@pytest.mark.slow
def test_the_same_answer_gets_the_same_words_wherever_it_runs(monkeypatch):
    """Twice, beside others that burn the processor, in a thread, and without one."""
    words = [told(*answer) for answer in ANSWERS]
    assert [told(*answer) for answer in ANSWERS] == words
    with busy():
        assert [told(*answer) for answer in ANSWERS] == words
    monkeypatch.setattr(sandbox, "can_fork", lambda known: False)
    for threads in (True, False):
        monkeypatch.setattr(sandbox, "has_threads", lambda threads=threads: threads)
        assert [told(*answer) for answer in ANSWERS] == words


ONE_SEED = """if not training: return x ⏎ rng = np.random.default_rng(0) ⏎ \
keep = rng.binomial(1, 1 - p, size=x.shape[:-1]) ⏎ return x * keep[..., None] / (1 - p)"""
SIMULATED = """rng = np.random.default_rng(0) ⏎ \
q, k = rng.normal(0, sigma, (2, 2000, d_k)) ⏎ return (q * k).sum(1).var()"""
SLOW = [("drop_tokens", ONE_SEED, True), ("score_deviation", SIMULATED, False)]


@pytest.mark.parametrize(("name", "text", "tried"), SLOW)
def test_an_answer_is_slow_beside_the_reference_not_beside_a_clock(name, text, tried, monkeypatch):
    """On a machine where all takes too long, what is as fast as ours is changed as ever."""
    asked, search = [], repair.Search.candidates
    monkeypatch.setattr(repair, "SLOW", 0)
    monkeypatch.setattr(sandbox, "can_fork", lambda known: False)
    monkeypatch.setattr(repair.Search, "candidates", lambda own: asked.append(1) or search(own))
    assert bool(told(name, text)[3]) == tried == bool(asked)
