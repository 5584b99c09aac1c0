"""Run a learner's notebook in a process of its own, apart and within limits; hear what it says."""

import contextlib
import functools
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
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from workshop.checks.sandbox import from_line
from workshop.classroom.notebooks import Notebook

COURSE = Path(__file__).resolve().parents[2]
ATTEMPTS = 5  # how often a notebook runs, each time without the statements that had to be ended
PATIENT = 5.0  # times an exercise's own seconds: in a learner's notebook `check` gives up earlier
STARTUP = 15.0  # seconds for Python and the libraries
IDLE, BUSY = 15.0, 0.25  # seconds on the clock with less than so many on the processor: it waits
PROCESSES, LARGEST = 200, 64 * 2**20  # bytes of a report; more is an accident or an attack
TICK = 0.1  # seconds from one look to the next
SMALL = ["--size", str(256 * 2**20), "--tmpfs"]  # a folder in memory
CODES = {None: "", -24: "took too long", 128 + 24: "took too long"}  # ended by SIGXCPU
STOPPED = threading.Event()  # set where a class is stopped that is graded in threads


@dataclass(frozen=True)
class Limits:
    """What each notebook may take: seconds of computing, bytes of memory."""

    seconds: float = 120.0
    memory: int = 4096 * 2**20


@dataclass
class Report:
    """What a notebook did: by exercise whether the answer is empty, and what each backend saw; why
    cells failed; which statements are left out, as the number of the cell and in it."""

    answers: dict[str, tuple[bool, list]] = field(default_factory=dict)
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
           "skipped": told.skipped, "mark": os.urandom(16).hex(), "memory": limits.memory,
           "seconds": limits.seconds + STARTUP, "step": limits.seconds / 4 + 2,
           "stretch": PATIENT * limits.seconds / Limits.seconds}  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="class-", ignore_cleanup_errors=True) as name:
        process = start(Path(os.path.realpath(name)), hidden)
        try:
            return listen(told, job, process)
        finally:
            end(process)


def start(place: Path, hidden: str) -> subprocess.Popen:
    """A seat: it does not see one folder, or it gets a course of its own, where it may write."""
    desk, course = place / "desk", COURSE
    desk.mkdir()
    if not (room := room_of(str(desk), hidden) if keeps_apart() else []):
        course = place / "course"
        for package in ("helpers", "workshop"):
            shutil.copytree(COURSE / package, course / package)
    return subprocess.Popen(
        [*room, sys.executable, "-m", "workshop.classroom.seat"], start_new_session=True, cwd=desk,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=environment(str(desk), str(course)),
    )  # fmt: skip


def environment(desk: str, course: str) -> dict[str, str]:
    """What a learner's process gets: a home of its own, one thread, no accelerator."""
    once = "OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS PYTHONUTF8 PYTHONSAFEPATH"
    homes = dict.fromkeys(("HOME", "USERPROFILE", "MPLCONFIGDIR"), desk) | {"PYTHONPATH": course}
    rest = {"MPLBACKEND": "Agg", "CUDA_VISIBLE_DEVICES": "", "MY_TRANSFORMER": "off"}
    return os.environ | homes | dict.fromkeys(once.split(), "1") | rest


def room_of(desk: str, hidden: str) -> list[str]:
    """The command that keeps a process apart: no network, no rights, no sight of other processes,
    memory alone to write into, the hidden folder empty but for what Python needs in it."""
    packages = [path for path in sys.path if path.endswith("-packages")]
    needed = sorted({*map(os.path.realpath, [sys.prefix, sys.base_prefix, COURSE, *packages])})
    room = "bwrap --die-with-parent --new-session --unshare-all --cap-drop ALL".split()
    room += "--ro-bind / / --proc /proc --dev /dev".split()
    room += [*SMALL, "/dev/shm", "--remount-ro", "/dev"]
    for place in filter(os.path.isdir, ["/tmp", "/var/tmp", hidden]):
        inside = [path for path in needed if path.startswith(f"{place}/")]
        room += [*SMALL, place, *(a for path in inside for a in ("--ro-bind", path, path))]
    return [*room, *SMALL, desk, "--chdir", desk]


@functools.cache
def keeps_apart() -> bool:
    """Whether this system keeps notebooks apart: bubblewrap is installed, and may do its work."""
    room = [*room_of("/tmp/desk", ""), "true"]
    return bool(shutil.which("bwrap")) and not subprocess.run(room, capture_output=True).returncode


def listen(told: Report, job: dict, process: subprocess.Popen) -> str:
    """Take in what comes back from a process until it ends, or must be ended; says how."""
    lines, total, reason, seen = queue.SimpleQueue(), 0, "", (0.0, time.monotonic())
    talk = threading.Thread(target=exchange, args=(job, process, lines), daemon=True)
    talk.start()
    while not reason and not told.done:
        if STOPPED.wait(TICK):
            raise InterruptedError("the class was stopped")
        if reason := CODES.get(process.poll(), "ended the process that ran it"):
            talk.join(1)
        while not lines.empty():
            total += len(line := lines.get())
            take(told, line.decode("utf-8", "replace"), job)
        number, size, seconds = taken_by(process)
        seen = (seconds, time.monotonic()) if seconds > seen[0] + BUSY else seen
        reason = reached(job, total, number, size, seconds, seen[1]) or reason
    return reason


def exchange(job: dict, process: subprocess.Popen, lines: queue.SimpleQueue) -> None:
    """Hand out a job, and queue the lines that come; no cell can read them again in its pipe."""
    with contextlib.suppress(OSError), process.stdin:
        process.stdin.write(json.dumps(job).encode())
    with process.stdout as stream:
        for line in iter(lambda: stream.readline(LARGEST), b""):
            lines.put(line)


def reached(job: dict, total: int, number: int, size: int, seconds: float, since: float) -> str:
    """What a process has done that it may not, "" where there is nothing."""
    limits = {
        "wrote too much": total > LARGEST,
        "started too many processes": number > PROCESSES,
        "took too much memory": size > 2 * job["memory"],
        "took too long with the cells before it": seconds > job["seconds"],
        "waited for something that did not come": time.monotonic() > since + IDLE,
    }
    return next((limit for limit, over in limits.items() if over), "")


def taken_by(process: subprocess.Popen) -> tuple[int, int, float]:
    """How many a process and its descendants are, their bytes, and seconds on the processor."""
    number, size, seconds = 0, 0, 0.0
    for each in family(process):
        with contextlib.suppress(psutil.Error):
            seconds += sum(each.cpu_times()[:4])  # with those of its children that ended
            rss = each.memory_info().rss  # 0 of one that has ended
            number, size = number + bool(rss), size + rss
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
    process.wait()


def take(told: Report, line: str, job: dict) -> None:
    """Take in a line; without the job's mark, which no cell knows, it says nothing."""
    with contextlib.suppress(ValueError, TypeError, LookupError, AttributeError, RecursionError):
        message = json.loads(line.partition(job["mark"])[2])  # cells may have written before it
        if "at" in message:
            told.at = [range(len(job["cells"]))[message["at"][0]], int(message["at"][1])]
        if "failed" in message:
            told.failed.setdefault(told.at[0], f"raised {message['failed'].strip():.300}")
        if message.get("answer") in job["exercises"]:
            runs = [(str(b), [from_line(o) for o in run]) for b, run in message["runs"]]
            told.answers[message["answer"]] = message["stub"] is True, runs
        told.done = message.get("done") is True
