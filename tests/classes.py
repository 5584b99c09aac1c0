"""Classes of learners for `make grade`: honest ones, cheats and vandals, and what each must get."""

import json
import re
from pathlib import Path

from learners import answers

from workshop.checks.judge import RIGHT, WRONG
from workshop.exercises import exercises

START = "import numpy as np\nimport torch\nfrom workshop.checks import check"
SOFTMAX = """
def softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)""".strip()
UNSTABLE = """
def softmax(x, axis=-1):
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)""".strip()
SCORES = """
def attention_scores(Q, K):
    return np.einsum("...qd,...kd->...qk", Q, K)""".strip()
SWAPPED = """
def attention_scores(Q, K):
    return K @ np.swapaxes(Q, -1, -2)""".strip()
STUB = 'def softmax(x, axis=-1):\n    """Weights along an axis: (…) → (…)."""\n    ...'


def write(path: Path, *sources: str, markdown: str = "# My homework") -> None:
    """A notebook of one Markdown cell and code cells."""
    made = [{"cell_type": "code", "source": source, "outputs": []} for source in sources]
    made.insert(0, {"cell_type": "markdown", "source": markdown})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": made, "metadata": {}, "nbformat": 4}), "utf-8")


def checked(*sources: str) -> list[str]:
    """Each answer with the cell that checks it."""
    names = [re.findall(r"^(?:def|class) (\w+)", source, re.MULTILINE)[-1] for source in sources]
    pairs = zip(names, sources, strict=True)
    return [cell for name, source in pairs for cell in (source, f"{name} = check({name})")]


IMPORTS = """
import copy, math, random
import torch.nn as nn
import torch.nn.functional as F
from collections import Counter
from helpers.text import *
from helpers.layers import *
from helpers.attention import *
from helpers.blocks import *
from helpers.decoding import *""".strip()
# What a slow machine may not turn against anyone: work before the answer, and slow answers.
WORK = """
table = np.arange(12.0).reshape(3, 4)
for i in range(400_000):
    table = table + i % 2 - 0.5
lowest = min(float(table.min()), 0.0) * 0"""
DEPENDENT = """
def softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True) + lowest)
    return e / np.sum(e, axis=axis, keepdims=True)"""
SLOW = """
def attention_scores(Q, K):
    total = sum(i % 3 for i in range(200_000))
    return np.einsum("...qd,...kd->...qk", Q, K) + 0 * total"""
# What cells may do without being marked: they use the course's other functions, and its checks.
HELPED = """
from helpers.attention import attention_scores, scale_scores, softmax
def attention(Q, K, V):
    return softmax(scale_scores(attention_scores(Q, K), K.shape[-1])) @ V"""


def honest(count: int) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Learners with four answers each, from those of `tests/learners`: cells, and statuses."""
    told, by_name = {}, {}
    for answer in (a for a in answers() if a.round != "fifth"):  # those use more than the helpers
        by_name.setdefault(answer.exercise, []).append(answer)
    names = [name for name in exercises() if name in by_name]
    for i in range(count):
        mine = [names[(4 * i + k) % len(names)] for k in range(4)]
        given = {name: by_name[name][i * 7 % len(by_name[name])] for name in mine}
        cells = [START, IMPORTS, *checked(*[answer.source.strip() for answer in given.values()])]
        statuses = {name: RIGHT if answer.right else WRONG for name, answer in given.items()}
        told[f"learner {i:02}"] = cells, statuses
    return told


def slow() -> tuple[list[str], dict[str, str]]:
    """A learner whose right answers need what cells before them work out, and time."""
    cells = [START, WORK.strip(), *checked(DEPENDENT.strip(), SLOW.strip(), HELPED.strip())]
    return cells, dict.fromkeys(["softmax", "attention_scores", "attention"], RIGHT)


IMPORT = "import helpers.attention\n"
THEIRS = "theirs = check(softmax)"
CHEATS = {  # instead of the answer
    "imports": """
def softmax(x, axis=-1):
    from helpers.attention import softmax as theirs
    return theirs(x, axis)""",
    "lambda": IMPORT + "softmax = lambda x, axis=-1: helpers.attention.softmax(x, axis)",
    "handed back": f"""
{STUB}
{THEIRS}
def softmax(x, axis=-1):
    return theirs(x, axis)""",
    "stack": """
import sys
def softmax(x, axis=-1):
    frame = sys._getframe()
    while frame:
        for value in list(frame.f_locals.values()):
            if hasattr(value, "reference"):
                return value.reference(x, axis)
        frame = frame.f_back""",
    "gc": """
import gc
def softmax(x, axis=-1):
    for thing in gc.get_objects():
        if getattr(thing, "__module__", "") == "helpers.attention" and thing.__name__ == "softmax":
            return thing(x, axis)""",
    "solution": """
from workshop.exercises import exercises
def softmax(x, axis=-1):
    return exercises()["softmax"].reference(x, axis)""",
    "code": IMPORT
    + """
import types
theirs = helpers.attention.softmax.__code__.replace(co_name="own", co_filename="own")
softmax = types.FunctionType(theirs, globals(), "softmax", (-1,))""",
    "run again": IMPORT
    + """
scope = {}
exec(open(helpers.attention.__file__).read(), scope)
def softmax(x, axis=-1):
    return scope["softmax"](x, axis)""",
    "process": """
import json, subprocess, sys
def softmax(x, axis=-1):
    code = "import json, sys; from helpers.attention import softmax; import numpy as np;"
    code += "print(json.dumps(softmax(np.array(json.load(sys.stdin)), %d).tolist()))" % axis
    done = subprocess.run([sys.executable, "-c", code], input=json.dumps(np.asarray(x).tolist()),
                          capture_output=True, text=True)
    return np.array(json.loads(done.stdout))""",
    "fork": IMPORT
    + """
import os, pickle
def softmax(x, axis=-1):
    source, sink = os.pipe()
    if os.fork() == 0:
        os.write(sink, pickle.dumps(helpers.attention.softmax(x, axis)))
        os._exit(0)
    os.close(sink)
    return pickle.loads(os.read(source, 10**6))""",
    "unwatched": IMPORT
    + """
import sys
def softmax(x, axis=-1):
    sys.setprofile(None)
    return helpers.attention.softmax(x, axis)""",
}
FORGED = """
import json, os
line = json.dumps({"answer": "softmax", "stub": False, "lacks": [], "runs": []})
for handle in range(3, 200):
    try:
        os.write(handle, (line + "\\n").encode())
    except OSError:
        pass"""
FORGED_WITHIN = """
import os
def softmax(x, axis=-1):
    for handle in range(3, 200):
        try:
            os.write(handle, b"[1.0, [], []]\\n" * 20)
        except OSError:
            pass
    return np.exp(x) / np.exp(x).sum(axis, keepdims=True)"""
DIGS = """
import gc
known = [thing for thing in gc.get_objects() if type(thing).__name__ == "Exercise"]
tables = {}
for thing in known:
    if thing.probes and thing.reference.__name__ == "softmax":
        rows = tables["softmax"] = []
        for probe in thing.probes:
            probe.run(lambda *a, **k: rows.append(thing.reference(*a, **k)) or rows[-1])
calls = 0
def softmax(x, axis=-1):
    global calls
    calls += 1
    return tables["softmax"][calls - 1]"""


def cheats() -> dict[str, tuple[list[str], dict[str, str]]]:
    """Notebooks whose softmax is not the learner's own; the scores are. "" is any status."""
    told = {name: (source.strip(), RIGHT) for name, source in CHEATS.items()}
    told["digs"] = DIGS.strip(), ""
    told["process"] = CHEATS["process"].strip(), ""  # it may take too long
    told["forges in a cell"] = f"{FORGED}\n{UNSTABLE}", WRONG
    told["forges within"] = FORGED_WITHIN.strip(), WRONG
    return {
        f"cheat {name}": (
            [START, cell, "softmax = check(softmax)", *checked(SCORES)],
            {"softmax": status, "attention_scores": RIGHT},
        )
        for name, (cell, status) in told.items()
    }


VANDALS = {  # a cell before the answers
    "endless": "while True:\n    pass",
    "endless in C": "import itertools\nsum(itertools.count())",
    "swallows": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "sleeps": "import time\ntime.sleep(10**6)",
    "exits": "import os\nos._exit(3)",
    "kills itself": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "kills its group": "import os, signal\nos.killpg(0, signal.SIGKILL)",
    "deaf": """
import signal
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
while True:
    pass""",
    "hoards": "hoard = []\nwhile True:\n    hoard.append(bytearray(10**8))",
    "multiplies": """
import os, time
for i in range(9):
    os.fork()
time.sleep(100)""",
    "shouts": "for _ in range(100):\n    print('x' * 2**20)",
    "shouts into everything": """
import os
for handle in range(3, 50):
    for _ in range(100):
        try:
            os.write(handle, b'x' * 2**20)
        except OSError:
            break""",
    "deletes": """
import os, pathlib, shutil
for path in pathlib.Path().iterdir():
    path.unlink()
shutil.rmtree(os.getcwd())""",
    "meddles": """
import workshop.checks, workshop.checks.judge, workshop.checks.sandbox, helpers.attention
workshop.checks.grade = workshop.checks.judge.judge = lambda *args: "right"
workshop.checks.judge.expected_of = workshop.checks.sandbox.observe_apart = None
helpers.attention.softmax = lambda x, axis=-1: x
open(helpers.attention.__file__, "w").write("raise SystemExit")""",
    "patches": """
import builtins, numpy, torch
numpy.zeros = numpy.tile = numpy.allclose = torch.softmax = torch.zeros = None
builtins.print = builtins.hash = None""",
}
# These look for the class through /proc, and do harm there; nowhere else, should they get out.
WALKER = """
import glob, os
from pathlib import Path
places = [r"{folder}"]
for link in glob.glob("/proc/[0-9]*/cwd") + glob.glob("/proc/[0-9]*/fd/*"):
    try:
        places.append(os.readlink(link))
    except OSError:
        pass
for words in glob.glob("/proc/[0-9]*/cmdline"):
    try:
        places += Path(words).read_text().split("\\0")
    except OSError:
        pass
found = [place for place in places if place == r"{folder}"]
for path in sorted(Path(found[-1]).glob("*.ipynb"))[:20] + [Path(found[-1], "grades.csv")]:
    try:
        {harm}
    except OSError:
        pass"""
FINDERS = {
    "walks": "path.write_text('')",
    "links": "os.symlink(path, 'link'); open('link', 'w').write('')",
    "removes": "os.remove(path)",
}
SURVIVOR = """
import os, subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "{word}"], env={{}},
                 start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve(sys.executable, [sys.executable, "-c", "while True: pass", "{word}"], {{}})
    os._exit(0)"""


def vandals(folder: Path, word: str, names=None) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Notebooks that break things; their answers are one right and one wrong, where they last."""
    cells = dict(VANDALS)
    cells |= {n: WALKER.format(folder=folder, harm=harm) for n, harm in FINDERS.items()}
    cells["survives"] = SURVIVOR.format(word=word)
    statuses = {"softmax": RIGHT, "attention_scores": WRONG}
    return {
        f"vandal {name}": ([START, cell.strip(), *checked(SOFTMAX, SWAPPED)], statuses)
        for name, cell in cells.items() if names is None or name in names
    }  # fmt: skip
