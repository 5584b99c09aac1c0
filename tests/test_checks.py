"""The checks themselves: what is said to which answer, in which order, and that nothing escapes."""

import contextlib
import functools
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from answers import written

from workshop.checks import grade, learner, sandbox
from workshop.checks.compare import Opaque, TimedOut, difference, same
from workshop.checks.judge import NOT_ATTEMPTED, RIGHT, WRONG, judge, traces_of
from workshop.checks.sandbox import from_line
from workshop.exercises import exercises, find

linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere without a fork")


def graded(name, text):
    """The verdict on an answer."""
    return grade(written(name, text), name)


# ---------------------------------------------------------------- the order of findings

EXP = "e = np.exp(x - x.max(axis=axis, keepdims=True)) ⏎ "
SUM = "return e / e.sum(axis=axis, keepdims=True)"
WEIGHTS = "w = softmax(Q @ np.swapaxes(K, -1, -2) / Q.shape[-1] ** 0.5) ⏎ "
SHAPES = "shapes (2,3) and (2,) do not fit: counted from the right, two lengths must be equal, or"
SAID = [  # of an answer the slips, what is said, with the words of slips in braces, and the change
    ("softmax", EXP + SUM, None, "Right on three scores; two rows of three scores; whole numbers; "
     "the columns, axis=0; a batch of two; 7 more.", None),
    ("softmax", "e = np.exp(x) ⏎ " + SUM, "overflows", "{overflows}", None),
    ("softmax", "x -= x.max() ⏎ e = np.exp(x) ⏎ " + SUM, "one-maximum-for-everything",
     "{one-maximum-for-everything} It also changes its argument x in place.", None),
    ("softmax", "assert x.ndim < 3 ⏎ e = np.exp(x) ⏎ " + SUM, "overflows", "{overflows}",
     None),  # wherever it returns something
    ("softmax", EXP + "return e / e.sum(axis=axis)", "no-keepdims-in-the-sum",
     f"It raises ValueError: {SHAPES} one 1, in the line `return e / e.sum(axis=axis)`. "
     "The cause may be: {no-keepdims-in-the-sum}", None),
    ("softmax", "print(x)", None, "Three scores: It returns None: it reaches no `return`, "
     "or one whose value is None.", None),
    ("softmax", "return {1: np.exp(x)}", None,
     "Three scores: It returns a dictionary, but must return an array.", None),
    ("softmax", "x += 1 ⏎ " + EXP + SUM, None,
     "It changes its argument x in place: make a new array, or work on a copy.", None),
    ("attention", "return softmax(Q @ np.swapaxes(K, -1, -2)) @ K",
     "not-scaled + keys-in-place-of-values",
     "Two things. {not-scaled} And: {keys-in-place-of-values}", None),
    ("softmax", EXP + "return e / e.mean(axis=axis, keepdims=True)", None,
     "One change in line 3 passes every test.", "return e / e.sum(axis=axis, keepdims=True)"),
    ("attention", WEIGHTS + "return (w @ V).mean(axis=-2, keepdims=True)", None,
     "Its shape is (1, 4), but must be (3, 4). That is, axis 0 has length 1 instead of 3. "
     "One change in line 3 passes every test.", "return w @ V"),
    ("attention", "return F.scaled_dot_product_attention(Q.clone().requires_grad_(), K, V)", None,
     "Right on one query and two keys; three queries, five keys; more queries than keys; 4 more.",
     None),
    ("attention", "return V.mean(axis=-2, keepdims=True) + 0 * Q[..., :1]", None,
     "`K` is never used. One query and two keys: All numbers differ.", None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "body", "slips", "said", "after"), SAID)
def test_what_is_said_of_an_answer(name, body, slips, said, after):
    verdict = graded(name, body)
    said = said.format_map({slip.name: slip.why for slip in find(name).slips})
    assert verdict.message == said
    assert verdict.status == (RIGHT if said.startswith("Right on") else WRONG)
    assert verdict.mistake == slips and getattr(verdict.repair, "after", None) == after
    assert len(verdict.message.split()) <= 60 or " + " in slips


DIFFERENT = [  # expected, obtained, what is said
    (np.eye(3), np.diag([1, 2, 1.0]), "1 of 9 numbers differ."),
    (np.eye(2), np.array([[1.0, 3.0], [0.0, 3.0]]), "2 of 4 numbers differ."),
    (np.eye(2), 3 * np.eye(2), "Every number is 3.0000 times what it should be."),
    (np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3).T, "only transposed: axes stand"),
    (np.eye(2, 3), np.eye(2, 3)[None], "too many axes: 3 instead of 2."),
    (np.eye(2) > 0, np.eye(2) < 1, "the mask is inverted."),
    (np.eye(2), np.full((2, 2), np.nan), "It holds nan, as 0 / 0, ∞ − ∞ and 0 · ∞ give it."),
    ({"W_q.weight": "(2, 3)"}, {"W_q": "(3, 2)"}, "W_q must be an nn.Linear"),
    ([1.0, 2.0], [2.0, 1.0, 0.0], "It gives [2.0000, 1.0000, 0.0000], but must"),
    (np.eye(2), [np.eye(2), np.ones(2)], "Number 1 of them is right: return it alone."),
    (1.0, Opaque("generator"), "Is it `yield` instead of `return`?"),
    (1.0, TimedOut(), "It does not return: the time limit ended it. Look for a loop"),
]


@pytest.mark.parametrize(("expected", "obtained", "words"), DIFFERENT, ids=lambda x: str(x)[:30])
def test_a_difference_has_words(expected, obtained, words):
    assert words in difference(expected, obtained)


ODD = [
    1, "x", b"x", {}, [], [[1.0], [2.0, 3.0]], [np.ones(2), None], {1: np.ones(2), "b": {1}},
    np.zeros((0, 3)), np.ones((1,) * 6), np.full((2, 2), np.nan), np.ones(2, complex),
    10**400, float("inf"), -0.0, 1j, range(3), {1, 2}, len, (x for x in "ab"), {None: 1, (1, 2): 3},
]  # fmt: skip


@pytest.mark.parametrize("name", ["softmax", "SelfAttention"])
def test_odd_results_are_wrong_and_have_words(name):
    known = find(name)
    for odd in ODD:
        seen = sandbox.observe(lambda *args, odd=odd, **options: odd, known, known.backends[0])
        verdict = judge(known, list(seen))
        assert verdict.status == WRONG and verdict.message, odd
        assert learner.shown(verdict, known).text


def test_kinds_and_shapes_are_not_waved_through():
    ones = np.ones((2, 3))
    for other in (ones.astype(int), ones.astype(bool), ones.astype(np.float16), ones[:1], 1.0):
        assert not same(ones, other) and not same(other, ones)
    assert not same(ones, ones.tolist()) and not same(1, True)
    assert same(ones, ones.astype(np.float32)) and same(ones, ones.astype(int), whole=True)


# ---------------------------------------------------------------- what is handed in

BODIES = ["...", "pass", "return None", "raise NotImplementedError('later')", "'''Text.''' ⏎ ..."]


@pytest.mark.parametrize("body", BODIES)
def test_a_stub_is_not_attempted(body):
    """A class is one where its `forward` is, whatever its `__init__` does."""
    assert graded("softmax", body).status == NOT_ATTEMPTED
    init = "a = 1 ⏎ def __init__(self): self.a = 2 ⏎ def forward(self): ⏎     "
    assert graded("SelfAttention", init + body.replace("⏎", "⏎    ")).status == NOT_ATTEMPTED


class Weights:
    def __call__(self, x, axis=-1):
        return find("softmax").reference(x, axis)


KINDS = [  # an exercise, an answer, what is said
    ("softmax", "class softmax:\n    def __init__(self, x, axis=-1): self.x = x",
     "softmax is a class, but must be a function: begin it with `def softmax(x, axis=-1)`."),
    ("SelfAttention", "def SelfAttention(d_in, d_out): return nn.Linear(d_in, d_out)",
     "is a function, but must be a class: begin it with `class SelfAttention(nn.Module)`."),
    ("attention", "def attention(K, Q, V): return V",
     "Its parameters stand in another order: they must be as in `def attention(Q, K, V)`."),
    ("attention", "def attention(Q, K): return Q",
     "It raises TypeError: attention() takes 2 positional arguments but 3 were given. "
     "Its parameters must be as in `def attention(Q, K, V)`."),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "words"), KINDS)
def test_another_kind_of_answer_is_told(name, text, words):
    verdict = graded(name, text)
    assert (verdict.status, verdict.mistake) == (WRONG, None)
    assert words in verdict.message, verdict.message


def test_what_can_be_called_is_judged_by_what_it_does():
    """But what was written under another name is told so."""
    for answer in (Weights(), Weights().__call__, functools.partial(Weights())):
        assert grade(answer, "softmax").status == RIGHT
    for value in (None, "softmax", np.zeros(3), int, len, lambda x, axis=-1: x):
        assert grade(value, "softmax").status == WRONG
    said = "This is `graded`; the exercise is softmax: begin it with `def softmax(x, axis=-1)`."
    assert grade(graded, "softmax").message == said
    assert "not its result softmax(…)" in grade(np.zeros(3), "softmax").message
    with pytest.raises(KeyError, match="no exercise is called '<lambda>'"):
        grade(lambda x: x)
    with pytest.raises(KeyError, match="no exercise is called 'sofmax'; is it 'softmax'"):
        grade(len, "sofmax")


# ---------------------------------------------------------------- hostile answers

WORD = f"burner-{os.getpid()}"
ENDLESS = "does not return"
START = "import contextlib, itertools, os, subprocess, sys, threading, time ⏎ "
HOSTILE = {
    "stubborn": ("while 1: ⏎  try: time.sleep(0.1) ⏎  except BaseException: pass", ENDLESS),
    "loops in C": ("return sum(itertools.count())", ENDLESS),
    "leaves a child": (f"subprocess.Popen([sys.executable, '-c', 'while 1: pass  # {WORD}']) ⏎ "
                       "threading.Thread(target=exec, args=('while 1: pass',)).start()", ""),
    "forks": ("os.fork() ⏎ while 1: pass", ENDLESS),
    "crashes": ("os.kill(os.getpid(), 11)", "ended the process"),
    "takes all": ("return [0] * 10**11", "MemoryError"),
    "asks": ("return input()", "EOFError"),
    "forges": ("for n in range(3, 40):  # the pipe is among them ⏎  with contextlib.suppress("
               "OSError): os.write(n, b'no observation\\n') ⏎ return x", "sum to 1"),
}  # fmt: skip


def descendants():
    """The children of this process, and whatever carries the word."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            marked = WORD.encode() in (folder / "cmdline").read_bytes()
            found |= {folder.name} if marked or parent == str(os.getpid()) else set()
    return found


@pytest.mark.slow
@linux
@pytest.mark.parametrize("answer", HOSTILE)
def test_a_hostile_answer_is_wrong_within_5_seconds_and_leaves_nothing(answer):
    body, words = HOSTILE[answer]
    before, threads, start = descendants(), threading.active_count(), os.times()
    verdict = graded("softmax", START + body)
    assert sum(os.times()[:4]) - sum(start[:4]) < 5  # of computing: others may be at work here
    assert os.times().elapsed - start.elapsed < 60
    assert verdict.status == WRONG and words in verdict.message, verdict.message
    end = time.monotonic() + 2  # a killed process needs a moment to be gone
    while time.monotonic() < end and not descendants() <= before:
        time.sleep(0.05)
    assert descendants() <= before and threading.active_count() <= threads


@linux
def test_what_an_answer_prints_and_changes_stays_there(capfd):
    def softmax(x, axis=-1):
        import helpers.attention

        print("x" * 10**7), os.write(1, b"x" * 1000), np.random.seed(0)  # noqa: NPY002
        right, helpers.attention.softmax = helpers.attention.softmax, None
        os.environ["WORD"] = WORD
        return right(x, axis) if right else x

    state = np.random.get_state()[1].tolist()  # noqa: NPY002
    assert grade(softmax).status == WRONG and capfd.readouterr() == ("", "")
    assert find("softmax").reference and "WORD" not in os.environ
    assert np.random.get_state()[1].tolist() == state  # noqa: NPY002


@pytest.mark.slow
@pytest.mark.parametrize("threads", [True, False])
def test_without_a_fork_and_without_threads_it_works_too(threads, monkeypatch):
    monkeypatch.setattr(sandbox, "can_fork", lambda known: False)
    monkeypatch.setattr(sandbox, "has_threads", lambda: threads)
    state, running = torch.get_rng_state(), threading.active_count()
    for name, body, slips, *_ in SAID[:10]:
        assert graded(name, body).mistake == slips
    ends = {"raise SystemExit": "SystemExit", "raise KeyboardInterrupt": "KeyboardInterrupt",
            "return softmax(x, torch.rand(1))": ""}  # fmt: skip
    for body, words in ends.items() | ({("while 1: pass", ENDLESS)} if threads else set()):
        verdict = graded("softmax", body)
        assert verdict.status == WRONG and words in verdict.message
    assert torch.equal(state, torch.get_rng_state()) and threading.active_count() == running


# ---------------------------------------------------------------- exercises that train


@pytest.mark.slow
@linux
def test_what_trains_runs_in_no_fork_where_there_is_a_gpu(monkeypatch):
    """The first backward starts a thread for the device, which a fork does not have."""
    assert all(map(sandbox.can_fork, exercises().values()))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(sandbox, "_in_a_fork", None)
    trained = [known for known in exercises().values() if not sandbox.can_fork(known)]
    assert [known.name for known in trained] == ["one_step", "train", "evaluate"]
    for known in trained:
        assert grade(known.reference, known.name).status == RIGHT
        slip, trace = traces_of(known.name)[0]
        assert grade(trace.function, known.name).mistake == slip.name
    monkeypatch.delitem(sys.modules, "torch")
    assert not sandbox.has_accelerator()  # nobody is asked before PyTorch is loaded


LOADED = """
import sys
from workshop.checks import judge
def train(model, batches, lr):
    model(batches[0][0]).sum().backward()
    sys.modules["torch"].optim.SGD(model.parameters(), lr).step()
judge.backends_for(train, judge.find("train"))
before = {*sys.modules}
assert list(judge.observe(train, judge.find("train"), "torch"))
print(len({*sys.modules} - before))  # else eight hundred
"""


@pytest.mark.slow
def test_what_pytorch_loads_with_its_first_optimizer_is_loaded_before_the_time_counts():
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True)
    assert int(done.stdout) < 50, done.stderr


# ---------------------------------------------------------------- observations as text


ARRAY = {"array": "AAAA", "dtype": "|u1", "shape": [3]}
FORGED = [{}, {"tag": "os.system", "fields": {}}, {"tag": "Raised", "fields": {"x": 1}},
          {"tag": ["Raised"], "fields": {}}, {"pairs": 3}, {"pairs": [[[1], 2]]},
          *(ARRAY | x for x in ({"shape": [4]}, {"shape": [10**40]}, {"dtype": "O"},
                                {"dtype": None}, {"array": 3}, {"array": "ä"}))]  # fmt: skip
LINES = [b"", b"1", b"[]", b"[1]", b"[1, 2]", b"[1, [], 2]", b"{}", b"\xff", b"[" * 10**5]


@pytest.mark.parametrize("line", [*LINES, *(json.dumps([x, [], []]).encode() for x in FORGED)])
def test_a_forged_line_is_a_value_error(line):
    with pytest.raises(ValueError):
        from_line(line)
