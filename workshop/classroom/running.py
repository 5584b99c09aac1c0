"""Run a learner's notebook in a process of its own, apart and within limits; take in what it says.

The system ends a statement that computes for too long (the seat asks it to); here the rest is seen.
"""

import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from workshop.checks.sandbox import Observation
from workshop.classroom.lines import unpack
from workshop.classroom.notebooks import Notebook

COURSE = Path(__file__).resolve().parents[2]
Run = tuple[str, list[Observation]]  # a backend, and what it saw
PACKAGES = ("helpers", "workshop")
SEAT = [sys.executable, "-m", "workshop.classroom.seat"]
ATTEMPTS = 5  # how often a notebook runs, each time without the statements that had to be ended
PATIENT = 5.0  # times an exercise's own seconds: in a learner's notebook `check` gives up earlier
STARTUP = 15.0  # seconds for Python and the libraries
IDLE, BUSY = 15.0, 0.25  # seconds on the clock with less than so many on the processor: it waits
PROCESSES = 200  # more than that is an accident or an attack
LARGEST = 64 * 2**20  # bytes that a notebook may report
TICK = 0.1  # seconds from one look to the next
SMALL = ["--size", str(256 * 2**20), "--tmpfs"]  # a folder in memory
CODES = {None: "", -24: "took too long", 128 + 24: "took too long"}  # ended by SIGXCPU
STOPPED = threading.Event()  # set where a class is stopped that is graded in threads


@dataclass(frozen=True)
class Limits:
    """What each notebook may take: seconds of computing, bytes of memory."""

    seconds: float = 120.0
    memory: int = 4096 * 2**20


USUAL = Limits()


@dataclass
class Report:
    """What a notebook did: by exercise whether the answer is empty, and what each backend saw; why
    cells failed; which statements are left out, as the number of the cell and in it."""

    answers: dict[str, tuple[bool, list[Run]]] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)
    skipped: list[list[int]] = field(default_factory=list)
    at: list[int] | None = None
    done: bool = False


def report_on(book: Notebook, limits: Limits, hidden: str = "") -> Report:
    """Run a notebook until it ends, each time without what had to be ended before."""
    told = Report()
    for _ in range(ATTEMPTS):
        told.at = None
        ended = attempt(told, book, limits, hidden)
        if told.done or told.at is None:
            break
        told.skipped.append(told.at)
        told.failed[told.at[0]] = ended
    return told


def attempt(told: Report, book: Notebook, limits: Limits, hidden: str) -> str:
    """Run a notebook in a new process that leaves nothing behind; how it ended."""
    job = {"cells": book.sources, "begin": book.begin, "exercises": book.names,
           "skipped": told.skipped, "mark": uuid.uuid4().hex, "memory": limits.memory,
           "seconds": limits.seconds + STARTUP, "step": limits.seconds / 4 + 2,
           "stretch": PATIENT * limits.seconds / Limits.seconds}  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="class-", ignore_cleanup_errors=True) as name:
        desk, course = Path(os.path.realpath(name), "desk"), COURSE
        desk.mkdir()
        if not (room := room_of(str(desk), hidden) if keeps_apart() else []):
            course = desk.with_name("course")  # its own: it may write there
            for package in PACKAGES:
                shutil.copytree(COURSE / package, course / package)
        with open(f"{name}/said", "ab") as sink, open(f"{name}/said", "rb") as said:
            process = subprocess.Popen(
                [*room, *SEAT], env=environment(str(desk), str(course)), cwd=desk,
                stdin=subprocess.PIPE, stdout=sink, stderr=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
            try:
                return listen(told, job, process, said)
            finally:
                end(process)


def environment(desk: str, course: str) -> dict[str, str]:
    """What a learner's process gets: a home of its own, one thread, no accelerator."""
    once = "OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS PYTHONUTF8 PYTHONSAFEPATH"
    homes = dict.fromkeys(("HOME", "USERPROFILE", "IPYTHONDIR", "MPLCONFIGDIR"), desk)
    rest = {"MPLBACKEND": "Agg", "TOKENIZERS_PARALLELISM": "false", "CUDA_VISIBLE_DEVICES": "",
            "PYTHONPATH": course, "MY_TRANSFORMER": "off"}  # fmt: skip
    return os.environ | homes | dict.fromkeys(once.split(), "1") | rest


# ---------------------------------------------------------------- apart


def room_of(desk: str, hidden: str) -> list[str]:
    """The command that keeps a process apart: no network, no rights, no sight of other processes.

    It writes into memory alone. Temporary folders and the hidden one are empty, but for what Python
    needs in them.
    """
    packages = [path for path in sys.path if path.endswith("-packages")]
    needed = sorted({*map(os.path.realpath, [sys.prefix, sys.base_prefix, COURSE, *packages])})
    room = (
        "bwrap --die-with-parent --new-session --unshare-all --cap-drop ALL --ro-bind / /".split()
    )
    room += ["--proc", "/proc", "--dev", "/dev", *SMALL, "/dev/shm", "--remount-ro", "/dev"]
    for place in filter(os.path.isdir, ["/tmp", "/var/tmp", hidden]):
        inside = [path for path in needed if path.startswith(f"{place}/")]
        room += [*SMALL, place, *(a for path in inside for a in ("--ro-bind", path, path))]
    return [*room, *SMALL, desk, "--chdir", desk]


@functools.cache
def keeps_apart() -> bool:
    """Whether this system keeps notebooks apart: bubblewrap is installed, and may do its work."""
    room = [*room_of("/tmp/desk", ""), "true"]
    return bool(shutil.which("bwrap")) and not subprocess.run(room, capture_output=True).returncode


# ---------------------------------------------------------------- what it says, and takes


def listen(told: Report, job: dict, process: subprocess.Popen, said: Any) -> str:
    """Hand out a job, and take in what comes back until it ends, or must be ended; says how."""
    with contextlib.suppress(OSError), process.stdin:
        process.stdin.write(json.dumps(job).encode())
    data, reason, before, since = b"", "", 0.0, time.monotonic()
    while not reason and not told.done:
        if STOPPED.wait(TICK):
            raise InterruptedError("the class was stopped")
        reason = CODES.get(process.poll(), "ended the process that ran it")
        number, size, seconds = taken_by(process)
        *lines, data = (data + said.read(LARGEST)).split(b"\n")
        for line in lines:
            take(told, line.decode("utf-8", "replace"), job)
        if seconds > before + BUSY:
            before, since = seconds, time.monotonic()
        limits = {
            "wrote too much": said.tell() >= LARGEST,
            "started too many processes": number > PROCESSES,
            "took too much memory": size > 2 * job["memory"],
            "took too long with the cells before it": seconds > job["seconds"],
            "waited for something that did not come": time.monotonic() > since + IDLE,
        }
        reason = next((limit for limit, reached in limits.items() if reached), reason)
    return reason


def taken_by(process: subprocess.Popen) -> tuple[int, int, float]:
    """How many a process and its descendants are, their bytes, and seconds on the processor."""
    number, size, seconds = 0, 0, 0.0
    for each in family(process):
        with contextlib.suppress(psutil.Error):
            seconds += sum(each.cpu_times()[:4])  # with those of its children that ended
            number, size = number + 1, size + each.memory_info().rss
    return number, size, seconds


def family(process: subprocess.Popen) -> list[psutil.Process]:
    """The descendants of a process, then itself."""
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(process.pid)
        return [*root.children(recursive=True), root]
    return []


def end(process: subprocess.Popen) -> None:
    """End a process, its group, and what it started."""
    for each in family(process):
        with contextlib.suppress(psutil.Error):
            each.kill()
    with contextlib.suppress(OSError, AttributeError):  # Windows has no groups
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def take(told: Report, line: str, job: dict) -> None:
    """Take in a line; without the job's mark, which no cell knows, it says nothing."""
    with contextlib.suppress(ValueError, TypeError, LookupError, AttributeError, RecursionError):
        message = json.loads(line.partition(job["mark"])[2])  # cells may have written before it
        if "at" in message:
            cell, number = map(int, message["at"])
            told.at = [range(len(job["cells"]))[cell], number]
        if "failed" in message:
            told.failed.setdefault(told.at[0], f"raised {message['failed']:.300}")
        if message.get("answer") in job["exercises"]:
            runs = [(str(b), [unpack(o.encode()) for o in run]) for b, run in message["runs"]]
            told.answers[message["answer"]] = message["stub"] is True, runs
        told.done = message.get("done") is True
