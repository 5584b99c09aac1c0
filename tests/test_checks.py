"""The checks themselves: no mistake passes, none is taken for another, nothing escapes."""

import contextlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from helpers import attention
from workshop.checks import grade, learner, sandbox
from workshop.checks.compare import Opaque, Raised, TimedOut, same
from workshop.checks.judge import (
    NOT_ATTEMPTED,
    RIGHT,
    WRONG,
    agree,
    expected_of,
    judge,
    mistakes_of,
)
from workshop.checks.sandbox import Observation, pack, plain, unpack
from workshop.exercises import exercises, find
from workshop.exercises.exercise import About

each = pytest.mark.parametrize("name", list(exercises()))
linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere without a fork")


def here(function, name):
    """The verdict on a function that can be trusted to end: no fork, so it is fast."""
    known = find(name)
    return judge(known, list(sandbox.observe(function, known, known.backends[0])))


# ---------------------------------------------------------------- exercises


@each
def test_an_exercise_is_complete(name):
    known = find(name)
    assert known.level in (1, 2, 3) and 1 <= known.minutes <= 60 and known.task
    assert len(known.hints) == 3 and all(known.hints) and known.reference.__doc__
    assert len(known.probes) >= 3 and len(known.mistakes) <= (20 if known.trains else 12)
    labels = [probe.label for probe in known.probes]
    assert len(set(labels)) == len(labels) and not any(label.endswith(".") for label in labels)
    assert len({mistake.id for mistake in known.mistakes}) == len(known.mistakes)
    assert all(len(mistake.message) > 20 for mistake in known.mistakes)


@each
def test_the_reference_is_right(name):
    verdict = grade(find(name).reference, name)
    assert verdict.status == RIGHT, verdict.message
    assert verdict.message.startswith("Right on ") and verdict.mistake is None


@pytest.mark.slow
@each
def test_every_mistake_is_wrong_and_has_its_own_name(name):
    known = find(name)
    for mistake, seen in mistakes_of(name):
        verdict = judge(known, seen)
        assert (verdict.status, verdict.mistake) == (WRONG, mistake.id)
        raised = isinstance(verdict.evidence.obtained, Raised)  # then the error comes first
        assert mistake.message in verdict.message or raised


@pytest.mark.slow
@each
def test_a_mistake_graded_away_from_the_notebook(name):
    known = find(name)
    mistake = known.mistakes[len(known.mistakes) // 2]
    verdict = grade(mistake.function, name)
    assert (verdict.status, verdict.mistake) == (WRONG, mistake.id), verdict.message


@pytest.mark.slow
@each
def test_mistakes_are_told_apart(name):
    known = find(name)
    made = [("the reference", expected_of(name))] + [(m.id, seen) for m, seen in mistakes_of(name)]
    for (a, x), (b, y) in itertools.combinations(made, 2):
        alike = all(agree(p, q, known) for p, q in zip(x, y, strict=True))
        assert not alike, f"{a} and {b} agree on all probes"


# ---------------------------------------------------------------- nothing passes by accident


def raises(*args, **kwargs):
    raise NotImplementedError


def raises_with_text(*args, **kwargs):
    """What it does."""
    raise NotImplementedError("later")


def ellipsis(*args, **kwargs): ...


def documented(*args, **kwargs):
    """What it does."""
    ...


def passes(*args, **kwargs):
    pass


def returns_none(*args, **kwargs):
    """What it does."""
    return None


@each
def test_a_stub_is_not_attempted(name):
    for stub in (ellipsis, documented, passes, raises, raises_with_text, returns_none):
        assert grade(stub, name).status == NOT_ATTEMPTED


def mapped(change):
    """An answer that changes every array and number of the right result."""

    def through(x):
        if isinstance(x, np.ndarray | np.generic | float | int) and not isinstance(x, bool):
            return change(np.asarray(x))
        if isinstance(x, list | tuple):
            return type(x)(map(through, x))
        return {key: through(value) for key, value in x.items()} if isinstance(x, dict) else x

    return lambda reference: lambda *args, **kwargs: through(reference(*args, **kwargs))


def first(x):
    """The result's first row alone, which would broadcast."""
    return x[:1] if x.ndim and len(x) > 1 else x


ACCIDENTS = {
    "zeros": mapped(np.zeros_like),
    "ones": mapped(np.ones_like),
    "nan": mapped(lambda x: np.full(x.shape, np.nan)),
    "a list": mapped(lambda x: x.tolist() if x.ndim else x),
    "a 0/1 mask": mapped(lambda x: x.astype(np.float32) if x.dtype == bool else x),
    "whole numbers": mapped(lambda x: x.astype(int) if x.dtype.kind == "f" else x),
    "half precision": mapped(lambda x: x.astype(np.float16) if x.dtype.kind == "f" else x),
    "one row": mapped(first),
    "one axis more": mapped(lambda x: x[None] if x.ndim else x),
    "the input": lambda reference: lambda *args, **kwargs: (args or [*kwargs.values()])[0],
    "nothing": lambda reference: lambda *args, **kwargs: None if args else 0,
    "a generator": lambda reference: lambda *args, **kwargs: (i for i in range(3)),
    "text": lambda reference: lambda *args, **kwargs: str(reference(*args, **kwargs)),
}


OF_ARRAYS = "a list", "a 0/1 mask", "whole numbers", "half precision", "one row", "one axis more"


@pytest.mark.slow
@pytest.mark.parametrize("accident", ACCIDENTS)
@each
def test_nothing_passes_by_accident(name, accident):
    known = find(name)
    answer = ACCIDENTS[accident](known.reference)
    seen = list(sandbox.observe(answer, known, known.backends[0]))
    harmless = accident == "whole numbers" and known.whole_numbers
    harmless |= name == "sample_token" and accident in OF_ARRAYS  # its result is a whole number
    if not harmless and any(is_changed(probe, known, answer) for probe in known.probes):
        assert judge(known, seen).status == WRONG


def is_changed(probe, known, answer):
    """Whether an accident has given anything else than the reference to a probe."""
    log = []

    def both(*args, **kwargs):
        copied, named = sandbox.copy.deepcopy((args, kwargs))  # the original generator moves on
        results = [known.reference(*args, **kwargs), answer(*copied, **named)]
        log.append([strict(result) for result in results])
        return results[0]

    try:
        probe.run(both)
    except Exception:
        return True
    return any(a != b for a, b in log)


def strict(x):
    """A value with all that a learner's answer must get right, as text; 0-d arrays are numbers."""
    if isinstance(x, list | tuple):
        return [strict(value) for value in x]
    if isinstance(x, np.ndarray) and x.ndim:
        half = x.dtype == np.float16
        return f"{x.dtype.kind} {half} {x.shape} {np.array(x, float).tolist()}"
    return repr(plain(x))


@each
def test_a_change_to_an_argument_is_found(name):
    known, touched = find(name), []

    def answer(*args, **kwargs):
        result = known.reference(*args, **kwargs)
        for value in (*args, *kwargs.values()):
            if isinstance(value, np.ndarray) and value.size and value.dtype.kind in "if":
                result = np.array(result) if isinstance(result, np.ndarray) else result
                value += 1
                touched.append(value)
                return result
        return result

    verdict = here(answer, name)
    if touched:
        assert verdict.status == WRONG
        assert "in place" in f"{verdict.message} {verdict.evidence.obtained}", verdict.message


# ---------------------------------------------------------------- answers in PyTorch


def softmax_in_torch(x, axis=-1):
    return torch.softmax(x.double(), dim=axis)


def softmax_by_hand(x, axis=-1):
    e = torch.exp(x - x.amax(dim=axis, keepdim=True))
    return e / e.sum(dim=axis, keepdim=True)


def scores_in_torch(Q, K):
    return torch.einsum("...qd,...kd->...qk", Q, K)


def scores_with_gradient(Q, K):
    return Q.clone().requires_grad_() @ K.mT


TORCH = {
    "softmax": [softmax_in_torch, softmax_by_hand],
    "attention_scores": [scores_in_torch, scores_with_gradient],
    "scale_scores": [lambda S, d_k: S / torch.tensor(d_k).sqrt()],
    "causal_mask": [lambda T: torch.ones(T, T).tril().bool()],
    "split_heads": [lambda x, H: x.unflatten(-1, (H, x.shape[-1] // H)).transpose(1, 2)],
}


@pytest.mark.parametrize("name", TORCH)
def test_tensors_are_accepted(name):
    for answer in TORCH[name]:
        verdict = grade(answer, name)
        assert verdict.status == RIGHT, verdict.message


def test_tensors_are_judged():
    def softmax(x, axis=-1):
        return torch.softmax(x.double(), dim=0)

    assert grade(softmax).status == WRONG


# ---------------------------------------------------------------- hostile answers


def plain_loop(x, axis=-1):
    while True:
        pass


def stubborn_loop(x, axis=-1):
    while True:
        try:
            time.sleep(0.1)
        except BaseException:
            pass


def loop_in_c(x, axis=-1):
    return sum(itertools.count())


def sleeps(x, axis=-1):
    time.sleep(60)


def leaves_a_thread(x, axis=-1):
    threading.Thread(target=plain_loop, args=(x,)).start()
    return x


def leaves_a_child(x, axis=-1):
    subprocess.Popen([sys.executable, "-c", f"while True: pass  # {WORD}"])
    return x


def forks(x, axis=-1):
    os.fork()
    while True:
        pass


def leaves_at_once(x, axis=-1):
    os._exit(0)


def leaves(x, axis=-1):
    sys.exit(3)


def takes_all(x, axis=-1):
    return [0] * 10**11


def asks_itself(x, axis=-1):
    return asks_itself(x, axis)


def asks(x, axis=-1):
    return input("x? ")


def interrupts(x, axis=-1):
    raise KeyboardInterrupt


def crashes(x, axis=-1):
    os.kill(os.getpid(), 11)


def forges(x, axis=-1):
    for number in range(3, 40):  # the pipe is among them, and nothing else
        with contextlib.suppress(OSError):
            os.write(number, b"no observation\n")
    return x


def endless_text(x, axis=-1):
    return "x" * 2**21


WORD = f"burner-{os.getpid()}"
HOSTILE = {
    plain_loop: "does not return", stubborn_loop: "does not return", loop_in_c: "does not return",
    sleeps: "does not return", leaves_a_thread: "", leaves_a_child: "", forks: "does not return",
    leaves_at_once: "ended the process", leaves: "SystemExit", takes_all: "MemoryError",
    asks_itself: "RecursionError", asks: "EOFError", interrupts: "KeyboardInterrupt",
    crashes: "ended the process", forges: "must sum to 1", endless_text: "length 2097152",
}  # fmt: skip


def descendants():
    """The children of this process, and whatever carries the word."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            marked = WORD.encode() in (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if marked or parent == str(os.getpid()):
            found.add(folder.name)
    return found


@pytest.mark.slow
@linux
@pytest.mark.parametrize("answer", HOSTILE, ids=lambda answer: answer.__name__)
def test_a_hostile_answer_is_wrong_within_5_seconds_and_leaves_nothing(answer):
    expected_of("softmax"), mistakes_of("softmax")
    before, threads, start = descendants(), threading.active_count(), os.times()
    verdict = grade(answer, "softmax")
    assert sum(os.times()[:4]) - sum(start[:4]) < 5  # of computing: others may be at work here
    assert os.times().elapsed - start.elapsed < 60
    assert verdict.status == WRONG and HOSTILE[answer] in verdict.message, verdict.message
    end = time.monotonic() + 2  # a killed process needs a moment to be gone
    while time.monotonic() < end and not descendants() <= before:
        time.sleep(0.05)
    assert descendants() <= before and threading.active_count() <= threads


@linux
def test_printing_is_not_seen_and_does_not_hurt(capfd):
    def softmax(x, axis=-1):
        print("x" * 10**7)
        os.write(1, b"x" * 1000)
        return find("softmax").reference(x, axis)

    assert grade(softmax).status == RIGHT
    assert capfd.readouterr() == ("", "")


@linux
def test_what_an_answer_changes_elsewhere_stays_there():
    def softmax(x, axis=-1):
        import helpers.attention

        helpers.attention.softmax = np.allclose = None
        os.environ["WORD"] = WORD
        np.random.seed(0)  # noqa: NPY002
        return x

    state = np.random.get_state()[1].tolist()  # noqa: NPY002
    assert grade(softmax).status == WRONG
    assert np.allclose and find("softmax").reference and "WORD" not in os.environ
    assert np.random.get_state()[1].tolist() == state  # noqa: NPY002


@pytest.mark.slow
def test_the_fallback_without_a_fork(monkeypatch):
    known = find("softmax")
    monkeypatch.setattr(sandbox, "can_fork", lambda known: False)

    def seen(answer):
        return judge(known, sandbox.observe_apart(answer, known, "numpy"))

    mistake = known.mistakes[0]
    assert seen(known.reference).status == RIGHT
    assert seen(mistake.function).mistake == mistake.id
    threads = threading.active_count()
    for answer in (plain_loop, leaves, asks_itself, interrupts):
        verdict = seen(answer)
        assert verdict.status == WRONG and HOSTILE[answer] in verdict.message
    assert threading.active_count() == threads


def test_what_is_no_exercise_and_what_is_no_function():
    with pytest.raises(KeyError, match="no exercise is called '<lambda>'"):
        grade(lambda x: x)
    with pytest.raises(KeyError):
        grade(plain_loop, "no such exercise")
    for value in (np.zeros(3), None, "softmax", 3):
        assert grade(value, "softmax").status == WRONG


def test_callables_of_other_kinds():
    class Softmax:
        def __call__(self, x, axis=-1):
            return find("softmax").reference(x, axis)

    assert grade(Softmax(), "softmax").status == RIGHT
    assert grade(Softmax().__call__, "softmax").status == RIGHT
    assert grade(int, "softmax").status == grade(lambda: 0, "softmax").status == WRONG


# ---------------------------------------------------------------- observations as text

numbers = st.floats(allow_nan=True) | st.integers(-(2**80), 2**80) | st.booleans()
matrices = arrays.arrays(
    arrays.boolean_dtypes() | arrays.integer_dtypes() | arrays.floating_dtypes(),
    arrays.array_shapes(min_dims=1, min_side=0, max_side=4),
)
leaves_ = st.none() | numbers | st.text() | matrices
keys = st.text() | st.integers() | st.booleans()
values = st.recursive(
    leaves_ | st.builds(Raised, st.text(), st.text()) | st.builds(Opaque, st.text()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=8,
)


def identical(a, b):
    """Equal in type, dtype and every bit that counts."""
    if isinstance(a, np.ndarray):
        nan = a.dtype.kind == "f"
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=nan)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(identical, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(identical(a[key], b[key]) for key in a)
    return type(a) is type(b) and (a == b or a != a)


@given(values)
def test_an_observation_comes_back_as_it_was(value):
    line = pack(Observation(value, ("x",)))
    assert b"\n" not in line
    back = unpack(line)
    assert identical(value, back.value) and back.changed == ("x",)


def test_words_of_the_engine_come_back():
    for value in (TimedOut(), About(0.5, 0.1), Raised("A", "b", "c")):
        assert unpack(pack(Observation(value))).value == value


ARRAY = {"array": "AAAA", "dtype": "|u1", "shape": [3]}


@pytest.mark.parametrize(
    "value",
    [
        {}, {"tag": "os.system", "fields": {}}, {"tag": "Raised", "fields": {"x": 1}},
        {"tag": ["Raised"], "fields": {}}, {"tag": "Raised", "fields": 3}, {"pairs": 3},
        {"pairs": [[[1], 2]]}, {"pairs": [[1]]}, ARRAY | {"shape": [4]}, ARRAY | {"dtype": "O"},
        ARRAY | {"dtype": "V3"}, ARRAY | {"dtype": "no"}, ARRAY | {"dtype": None},
        ARRAY | {"array": 3}, ARRAY | {"array": "ä"}, ARRAY | {"shape": [10**40]},
        ARRAY | {"shape": "x"}, {"array": "AAAA"},
    ],
    ids=json.dumps,
)  # fmt: skip
def test_a_forged_value_is_a_value_error(value):
    with pytest.raises(ValueError):
        unpack(json.dumps([value, []]).encode())


@given(st.binary() | st.sampled_from([b"", b"1", b"[]", b"[1]", b"[1, 2]", b"[" * 10**5, b"{}"]))
def test_a_forged_line_is_a_value_error(line):
    try:
        made = json.loads(line)
        fits = isinstance(made, list | str) and len(made) == 2 and isinstance(made[1], list | str)
    except (ValueError, RecursionError):
        fits = False
    if not fits:
        with pytest.raises(ValueError):
            unpack(line)


def test_kinds_and_shapes_are_not_waved_through():
    ones = np.ones((2, 3))
    assert same(ones, ones.astype(np.float32)) and not same(ones, ones.astype(np.float16))
    assert not same(ones, ones.astype(int)) and not same(ones, ones.astype(bool))
    assert not same(ones, ones[:1]) and not same(ones, ones.tolist()) and not same(ones, 1.0)
    assert same(ones, ones.astype(int), whole=True) and not same(1, True)


# ---------------------------------------------------------------- time


@pytest.mark.slow
def test_a_check_answers_at_once():
    seconds = {}
    for name, known in exercises().items():
        expected_of(name)
        if known.prepare:  # loads what a notebook that trains has loaded long before
            known.prepare()
        start = time.monotonic()
        grade(known.reference, name)
        seconds[name] = time.monotonic() - start
    assert statistics.median(seconds.values()) <= 0.3, seconds
    assert max(seconds.values()) <= 3, seconds


# ---------------------------------------------------------------- words for what has no name


def misses_an_argument(Q, d_k):
    return Q / d_k**0.5


def other_order(d_k, sigma):
    return sigma**2 * d_k**0.5


class Layer:
    def __init__(self, x, axis=-1):
        self.x = x


def raises_everywhere(x, W1, b1, W2, b2):
    return (x @ W1 + b1) * W2


def row_by_row(Q, K, V):
    return np.array([attention.softmax(K @ q / len(q) ** 0.5) @ V for q in Q])


def a_pair(Q, K, V):
    scores = Q @ np.swapaxes(K, -1, -2) / Q.shape[-1] ** 0.5
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights, weights @ V


@pytest.mark.parametrize(
    "function, name, words",
    [
        (misses_an_argument, "scale_queries", "missing 1 required positional argument: 'd_k'"),
        (other_order, "score_deviation", "another order: they must be as in `def score_dev"),
        (Layer, "softmax", "is a class, but must be a function: begin it with `def softmax(x, ax"),
        (
            raises_everywhere,
            "feed_forward",
            "shapes (1,3) and (3,2) do not fit: counted from the right",
        ),
        (row_by_row, "attention", "It fails wherever there are more axes in front"),
        (
            a_pair,
            "attention",
            "It returns 2 arrays, but must return one. Number 2 of them is right",
        ),
    ],
)
def test_what_has_no_name_is_said_in_words(function, name, words):
    verdict = grade(function, name)
    assert verdict.status == WRONG and verdict.mistake is None
    assert words in verdict.message and "Perhaps" not in verdict.message, verdict.message


ODD = [
    None, 1, "x", b"x", {}, [], [[1.0], [2.0, 3.0]], [np.ones(2), None], {1: np.ones(2), "b": {1}},
    np.zeros((0, 3)), np.ones((1,) * 6), np.full((2, 2), np.nan), np.ones(2, complex),
    10**400, float("inf"), -0.0, 1j, range(3), {1, 2}, len, (x for x in "ab"), {None: 1, (1, 2): 3},
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ["softmax", "project_qkv", "score_deviation", "greedy_decode"])
def test_odd_results_are_wrong_and_have_words(name):
    for odd in ODD:
        verdict = grade(lambda *args, odd=odd, **kwargs: odd, name)
        assert verdict.status == WRONG and verdict.message, odd
        assert learner.shown(verdict, find(name)).text
