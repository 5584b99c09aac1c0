"""Classes of learners for `make grade`: honest ones, cheats and vandals, and what each must get."""

import json
import re
from pathlib import Path

from learners import answers

from workshop.checks.judge import RIGHT, WRONG
from workshop.exercises import exercises

Told = dict[str, tuple[list[str], dict[str, str]]]  # by learner, the cells, and the statuses
START = "import numpy as np\nfrom workshop.checks import check"
SOFTMAX = """
def softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)""".strip()
UNSTABLE = SOFTMAX.replace("x - np.max(x, axis=axis, keepdims=True)", "x")
SCORES = """
def attention_scores(Q, K):
    return np.einsum("...qd,...kd->...qk", Q, K)""".strip()
SWAPPED = """
def attention_scores(Q, K):
    return K @ np.swapaxes(Q, -1, -2)""".strip()
STUB = 'def softmax(x, axis=-1):\n    """Weights along an axis: (…) → (…)."""\n    ...'


def write(path: Path, *sources: str) -> None:
    """A notebook of code cells."""
    made = [{"cell_type": "code", "source": source, "outputs": []} for source in sources]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": made, "metadata": {}, "nbformat": 4}), "utf-8")


def checked(*sources: str) -> list[str]:
    """Each answer with the cell that checks it."""
    names = [re.findall(r"^(?:def|class) (\w+)", source, re.MULTILINE)[-1] for source in sources]
    pairs = zip(names, sources, strict=True)
    return [cell for name, source in pairs for cell in (source, f"{name} = check({name})")]


IMPORTS = """
import copy, math, random, torch
import torch.nn as nn, torch.nn.functional as F
from collections import Counter""".strip()
ROOMS = [f"from helpers.{n} import *" for n in "text layers attention blocks decoding".split()]


def honest(count: int, each: int) -> Told:
    """Learners with so many answers each, from those of `tests/learners`."""
    told, by_name = {}, {}
    for answer in (a for a in answers() if a.round != "fifth"):  # those use more than the helpers
        by_name.setdefault(answer.exercise, []).append(answer)
    names = [name for name in exercises() if name in by_name]
    for i in range(count):
        mine = [names[(each * i + k) % len(names)] for k in range(each)]
        given = {name: by_name[name][i * 7 % len(by_name[name])] for name in mine}
        cells = checked(*(answer.source.strip() for answer in given.values()))
        statuses = {name: RIGHT if answer.right else WRONG for name, answer in given.items()}
        told[f"learner {i:02}"] = ["\n".join([START, IMPORTS, *ROOMS]), *cells], statuses
    return told


# What a slow machine may not turn against anyone: work before the answer, and slow answers; and
# what cells may do without being marked: use the course's other functions.
WORK = "lowest = sum(i % 2 for i in range(2_000_000)) * 0"
DEPENDENT = SOFTMAX.replace("x - ", "x - lowest - ")
LATE = SCORES.replace(
    "    return", "    total = sum(i % 3 for i in range(200_000))\n    return 0 * total +"
)
HELPED = """
from helpers.attention import attention_scores, scale_scores, softmax
def attention(Q, K, V):
    return softmax(scale_scores(attention_scores(Q, K), K.shape[-1])) @ V""".strip()
PATIENT = (
    [START, WORK, *checked(DEPENDENT, LATE, HELPED)],
    {"softmax": RIGHT, "attention_scores": RIGHT, "attention": RIGHT},
)

CHEATS = {  # instead of the answer: the course's own function, however it is come by
    "lambda": """
import helpers.attention
softmax = lambda x, axis=-1: helpers.attention.softmax(x, axis)""",
    "handed back": f"""
{STUB}
theirs = check(softmax)
def softmax(x, axis=-1):
    return theirs(x, axis)""",
    "gc": """
import gc
def softmax(x, axis=-1):
    for thing in gc.get_objects():
        if getattr(thing, "__module__", "") == "helpers.attention" and thing.__name__ == "softmax":
            return thing(x, axis)""",
}
FORGERIES = {  # a wrong answer that would be a right one
    "in a cell": f"""
import contextlib, json, os
for told in ({{"answer": "softmax", "stub": False, "runs": []}}, {{"done": True}}):
    for handle in range(3, 200):
        with contextlib.suppress(OSError):
            os.write(handle, (json.dumps(told) + "\\n").encode())
{UNSTABLE}""",
    "within": """
import contextlib, os
def softmax(x, axis=-1):
    for handle in range(3, 200):
        with contextlib.suppress(OSError):
            os.write(handle, b"[1.0, [], []]\\n" * 20)
    return np.exp(x) / np.exp(x).sum(axis, keepdims=True)""",
    "patches the judge": f"""
import contextlib, helpers.attention
import workshop.checks.judge, workshop.checks.sandbox, workshop.checks.compare
workshop.checks.judge.judge = workshop.checks.judge.expected_of = lambda *args: "right"
workshop.checks.compare.same = workshop.checks.sandbox.agree = lambda *args: True
helpers.attention.softmax = workshop.checks.sandbox.observe_apart = lambda x, axis=-1: x
with contextlib.suppress(OSError):
    open(helpers.attention.__file__, "w").write("raise SystemExit")
{UNSTABLE}""",
}


def cheats() -> Told:
    """Notebooks whose softmax is not the learner's own, and those that forge one."""
    told = {f"cheat {name}": (cell.strip(), RIGHT) for name, cell in CHEATS.items()}
    told |= {f"forges {name}": (cell.strip(), WRONG) for name, cell in FORGERIES.items()}
    rest = ["softmax = check(softmax)", *checked(SCORES)]
    return {who: ([START, cell, *rest], {"softmax": status, "attention_scores": RIGHT})
            for who, (cell, status) in told.items()}  # fmt: skip


VANDALS = {  # a cell before the answers
    "exits": "import os\nos._exit(3)",
    "kills its group": "import os, signal\nos.killpg(0, signal.SIGKILL)",
    "deletes": "import os, shutil\nshutil.rmtree(os.getcwd())",
    "patches": """
import builtins, numpy
numpy.zeros = numpy.tile = numpy.allclose = None
builtins.print = builtins.hash = None""",
    "endless": "while True:\n    pass",
    "shouts": """
import contextlib, os
for handle in range(3, 50):
    with contextlib.suppress(OSError):
        os.write(handle, b"x" * 2**27)""",
    "endless in C": "import itertools\nsum(itertools.count())",
    "sleeps": "import time\ntime.sleep(10**6)",
    "deaf": """
import signal
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
while True:
    pass""",
    "hoards": "hoard = []\nwhile True:\n    hoard.append(bytearray(10**8))",
    "multiplies": "import os, time\nfor i in range(9):\n    os.fork()\ntime.sleep(100)",
}
# Where notebooks are kept apart, these cannot find the class, nor outlive their turn.
SNEAKS = {
    "removes": "import pathlib\nfor path in pathlib.Path({folder!r}).iterdir():\n    path.unlink()",
    "survives": """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve(sys.executable, [sys.executable, "-c", "while True: pass", {word!r}], {{}})
    os._exit(0)""",
}


def vandals(folder: Path, word: str, names: list[str]) -> Told:
    """Notebooks that break things; their answers are one right and one wrong all the same."""
    cells = VANDALS | {n: s.format(folder=str(folder), word=word) for n, s in SNEAKS.items()}
    statuses = {"softmax": RIGHT, "attention_scores": WRONG}
    return {f"vandal {name}": ([START, cells[name].strip(), *checked(SOFTMAX, SWAPPED)], statuses)
            for name in names}  # fmt: skip
