"""One worker process, and the learners' notebooks that it runs one after the other.

Everything that learners' code says comes as lines of text and is only read here: expected results
and verdicts are made in this process, where no learner's code runs.
"""

import contextlib
import functools
import glob
import hashlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from helpers.checks.compare import TimedOut
from helpers.checks.homework import HELPERS, Notebook, lesson_of
from helpers.checks.judge import agree, expected_of
from helpers.checks.sandbox import FORGED, Observation, unpack
from helpers.exercises import find

WORKER = [sys.executable, "-m", "helpers.checks.worker"]
ATTEMPTS = 3  # how often a notebook runs, each time without the cells that had to be killed
PATIENT = 5.0  # times an exercise's own seconds: in a learner's notebook `check` gives up earlier
GRACE = 2.0  # seconds beyond a cell's time before its process is ended
STARTUP = 900.0  # seconds on the clock for Python, the libraries and a lesson
CLOCK = 30  # times the seconds of a cell without a word, on the clock: the worker has hung itself
CLOCKLESS = 4  # the same where the worker cannot tell who computes from who waits
LARGEST = 64 * 2**20  # bytes that a learner's process may report
JUDGING = threading.RLock()  # references use the random states of the whole process
ENDED = {
    "cell": "its cell {cell} took too long",
    "time": "its cells took too long together",
    "waits": "its cell {cell} waited for something that did not come",
    "memory": "its cell {cell} took too much memory",
    "processes": "its cell {cell} started too many processes",
    "shouts": "its cell {cell} wrote too much",
    "left": "its cell {cell} ended the process that ran it",
}


@dataclass(frozen=True)
class Limits:
    """What each notebook may take: seconds of computing in all, bytes of memory."""

    seconds: float = 120.0
    memory: int = 4096 * 2**20
    protect: bool = True  # whether to use what the system offers to keep notebooks apart


USUAL = Limits()


@dataclass
class Answer:
    """What a function did, per backend; or why it could not be tried."""

    runs: list[list[Observation]] = field(default_factory=list)
    stub: bool = False
    error: str = ""
    lacks: list[str] = field(default_factory=list)  # names that a cell which was cut off makes


@dataclass
class Report:
    """What a notebook did: its answers, how far it came, what was noticed, which cells were cut."""

    answers: dict[str, Answer] = field(default_factory=dict)
    remarks: set[str] = field(default_factory=set)
    cut: dict[int, str] = field(default_factory=dict)
    cell: int = -1
    done: bool = False
    ended: str = "left"
    cpu: float = 0.0


class Lost(Exception):
    """The worker is gone, or says nothing any more."""


class Proctor:
    """A worker process with folders of its own. Use it in one thread, and close it."""

    def __init__(self, limits: Limits, hidden: Iterable[Path] = ()):
        self.limits, self.hidden = limits, [os.path.realpath(path) for path in hidden]
        self.process: subprocess.Popen | None = None
        self.lesson, self.wanted, self.pace = "", "", 1.0
        self.forks = self.rooms = self.stopped = False

    # ------------------------------------------------------------ the worker

    def open(self) -> None:
        """Start the worker. Raises Lost."""
        if self.stopped:
            raise Lost
        self.folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="class-")))
        for name in ("desk", "home", "fonts"):
            (self.folder / name).mkdir()
        shutil.copytree(HELPERS, self.folder / "course" / "helpers")
        for path in font_lists():
            shutil.copy(path, self.folder / "fonts")
        self.digest, self.lines, self.lesson = self._digest(), queue.SimpleQueue(), ""
        self._start()
        self._say(self._room())
        hello = self._hear(time.monotonic() + STARTUP, "ready")
        self.pace, self.forks, self.rooms = hello["pace"], hello["forks"], hello["rooms"]

    def _start(self) -> None:
        """Start the process, and a thread that reads what it says."""
        self.process = subprocess.Popen(
            WORKER,
            env=environment(self.folder), cwd=self.folder, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        threading.Thread(target=_read, args=(self.process.stdout, self.lines), daemon=True).start()
        if self.stopped:
            raise Lost

    def _room(self) -> dict:
        """The folders that are hidden from notebooks, and what Python needs in them."""
        packages = [path for path in sys.path if path.endswith("-packages")]
        needed = map(os.path.realpath, [sys.prefix, sys.base_prefix, self.folder, *packages])
        hidden, desk = [*self.hidden, str(self.folder / "home")], str(self.folder / "desk")
        protect = self.limits.protect
        return {"protect": protect, "desk": desk, "hidden": hidden, "needed": [*needed]}

    def close(self) -> None:
        """End the worker and all that it started, and remove its folders."""
        if self.process is None:
            return
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(2)
        if hasattr(os, "killpg"):
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.process = None

    def stop(self) -> None:
        """From another thread: end what runs, and start nothing more."""
        self.stopped = True
        with contextlib.suppress(AttributeError):  # there is no process, or none any more
            self.process.kill()

    def _digest(self) -> str:
        """Of the copy of the helpers, which a notebook may have changed."""
        found = hashlib.sha256()
        for path in sorted((self.folder / "course").rglob("*")):
            found.update(str(path).encode())
            found.update(path.read_bytes() if path.is_file() else b"")
        return found.hexdigest()

    def _say(self, order: Any) -> None:
        with contextlib.suppress(OSError):
            self.process.stdin.write(json.dumps(order).encode() + b"\n")
            self.process.stdin.flush()

    def _hear(self, end: float, *wanted: str) -> dict:
        """The next message, or the next of some kinds. Raises Lost."""
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, end - time.monotonic()))
                text = line.decode("utf-8", "replace")
                message = json.loads(text) if self.forks or wanted else {"line": text}
            except (queue.Empty, ValueError) as error:
                raise Lost from error
            if not line:
                raise Lost
            if not wanted or set(wanted) & set(message):
                return message

    # ------------------------------------------------------------ notebooks

    def report(self, book: Notebook) -> Report:
        """Run a notebook until it ends; then, for what is missing, its definitions alone."""
        told, self.wanted = Report(), book.lesson
        for _ in range(ATTEMPTS):
            run = self.run(book, set(told.cut), self.limits.seconds * self.pace - told.cpu)
            _join(told, run)
            if run.done or run.cell < 0 or run.ended == "time":
                break
        answered = [n for n, a in told.answers.items() if not a.error]
        missing = set(book.names) & set(book.defined) - set(answered)
        if missing:
            everything = set(range(len(book.sources)))
            rest = self.run(book, everything, self.limits.seconds * self.pace / 2)
            rest.answers = {n: a for n, a in rest.answers.items() if n in missing}
            _join(told, rest)
        return told

    def run(self, book: Notebook, reduced: set[int], seconds: float) -> Report:
        """Run its cells once, of some only the definitions."""
        told = Report()
        try:
            self._go_to(book.lesson)
            self._listen(told, self._job(book, reduced, seconds))
        except Lost:
            self.close()
        if self.process and (not self.forks or self._digest() != self.digest):
            self.close()  # a notebook may have changed what the next would run on
        if not told.done and told.cell >= 0:
            told.cut[told.cell] = told.ended
        return told

    def _go_to(self, lesson: str) -> None:
        """Have the worker where the notebook begins: a lesson, or nothing at all. Raises Lost."""
        if self.process is None:
            self.open()
        if not self.forks or lesson == self.lesson:
            return
        end = time.monotonic() + STARTUP
        if self.lesson:
            self._say({"leave": True})
            self._hear(end, "forgotten")
        self.lesson = ""
        if lesson:
            self._say({"lesson": lesson_of(lesson)})
            self.lesson = lesson if "learnt" in self._hear(end, "learnt", "forgotten") else ""

    def _job(self, book: Notebook, reduced: set[int], seconds: float) -> dict:
        """What the worker needs to know; seconds are those of this machine."""
        cell = self.limits.seconds * self.pace / 4
        stretch = PATIENT * self.pace * self.limits.seconds / USUAL.seconds
        test = max(2 * stretch * find(name).seconds + GRACE for name in book.names)
        return {
            "cells": book.sources, "exercises": book.names, "begin": book.begin,
            "start": book.begin if self.lesson else 0, "reduced": sorted(reduced),
            "seconds": seconds, "cell_seconds": cell, "cell_limit": cell + GRACE, "test": test,
            "patience": cell, "memory": self.limits.memory, "stretch": stretch,
            "mark": uuid.uuid4().hex,
        }  # fmt: skip

    def _listen(self, told: Report, job: dict) -> None:
        """Hand out a job, and take in messages until it is over. Raises Lost."""
        self._say(job)
        patience = CLOCK if self.forks else CLOCKLESS
        longest = patience * (job["cell_limit"] + job["test"])
        pending: dict[str, list] = {}
        while self.forks or not told.done:
            message = self._hear(time.monotonic() + longest)
            if "over" in message:
                return
            if "ended" in message:
                told.ended, told.cpu = message["ended"], message["cpu"]
            if "line" in message and (reply := take(told, pending, message["line"], job)):
                self._say(reply)


def take(told: Report, pending: dict, line: str, job: dict) -> str:
    """Take in a line; the worker's own begin with the mark of the job."""
    before, mark, text = line.partition(job["mark"])
    if before or not mark:
        told.remarks.add(FORGED)
    return note(told, pending, text, job) if mark else ""


def _join(told: Report, run: Report) -> None:
    """Add a run to what is known of a notebook."""
    told.answers |= run.answers
    told.remarks |= run.remarks
    told.cut |= run.cut
    told.done, told.cell, told.ended = run.done, run.cell, run.ended
    told.cpu += run.cpu


def note(told: Report, pending: dict, text: str, job: dict) -> str:
    """Take in a message of a learner's process; what to answer, if anything."""
    try:
        message = json.loads(text)
        if "cell" in message:
            told.cell = range(len(job["cells"]))[message["cell"]]
        if "cut" in message:
            told.cut[told.cell] = "cell"
        if "remark" in message:
            told.remarks.add(str(message["remark"])[:200])
        told.done = message.get("done") is True
        reply = note_answer(told, pending, message, job)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        reply = ""
    return reply or ("more" if '"seen"' in text else "")  # who asks gets an answer


def note_answer(told: Report, pending: dict, message: dict, job: dict) -> str:
    """Take in what a message says about an answer."""
    name = next((message[key] for key in ("seen", "answer", "broken") if key in message), None)
    if name not in job["exercises"]:
        return ""
    if "seen" in message:
        seen = [unpack(line.encode()) for line in message["run"]]
        pending.setdefault(name, []).append(seen)
        return _found(name, seen)
    lacks, error = [str(word) for word in message["lacks"]], str(message.get("error", ""))
    told.answers[name] = Answer(pending.pop(name, []), message.get("stub") is True, error, lacks)
    return ""


def _found(name: str, seen: list[Observation]) -> str:
    """What the worker needs to know of an answer: "right", "enough" for a verdict, or "more"."""
    with JUDGING:
        pairs = zip(seen, expected_of(name), strict=True)
        right = all(agree(*pair, find(name)) for pair in pairs)
    late = isinstance(seen[-1].value, TimedOut)
    return "right" if right else "enough" if late else "more"


def environment(folder: Path) -> dict[str, str]:
    """What the worker's processes get: homes of their own, one thread, no accelerator."""
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return os.environ | dict.fromkeys(threads, "1") | {
        "HOME": str(folder / "home"),
        "USERPROFILE": str(folder / "home"),
        "IPYTHONDIR": str(folder / "home"),
        "MPLCONFIGDIR": str(folder / "fonts"),
        "MPLBACKEND": "Agg",
        "MY_TRANSFORMER": str(folder / "desk" / "my_transformer.py"),
        "PYTHONPATH": str(folder / "course"),
        "PYTHONUTF8": "1",
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "CUDA_VISIBLE_DEVICES": "",
    }  # fmt: skip


@functools.cache
def font_lists() -> list[str]:
    """Matplotlib's list of fonts on this machine, which takes seconds to make anew."""
    try:
        import matplotlib.font_manager  # makes the list where there is none
    except ImportError:
        return []
    return glob.glob(str(Path(matplotlib.get_cachedir()) / "fontlist-*.json"))


def _read(stream: Any, lines: queue.SimpleQueue) -> None:
    """Put lines into a queue, an empty one at the end."""
    with contextlib.suppress(OSError, ValueError):
        while line := stream.readline(2 * LARGEST):
            lines.put(line)
    lines.put(b"")
