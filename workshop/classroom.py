"""Grade a folder of learners' notebooks: one row per learner and exercise.

    python -m workshop.classroom FOLDER [--out grades.csv] [--seconds 120] [--memory 4096]

All notebooks are read before the first of them runs, and known by their content, whatever the
files are called. Each then runs in a process of its own (`classroom_worker`), within limits on
computing time and memory. What learners' code says comes as lines of text and is only read here:
expected results and verdicts are made where no learner's code runs. The rows are written at the
end, all at once; until then they lie beside in a file from which a run that was killed goes on.
"""

import argparse
import contextlib
import csv
import functools
import hashlib
import io
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import astuple, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from workshop.checks.compare import TimedOut
from workshop.checks.judge import NOT_ATTEMPTED, RIGHT, WRONG, agree, expected_of, settle
from workshop.checks.keep import replace as write
from workshop.checks.sandbox import FORGED, Observation
from workshop.classroom_lines import unpack
from workshop.exercises import exercises, find

COURSE = Path(__file__).resolve().parents[1]
PACKAGES = ("helpers", "workshop")
WORKER = [sys.executable, "-m", "workshop.classroom_worker"]
NO_ANSWER = "no answer"  # the notebook can't be read, or nothing could be learnt from running it
STATUSES = (RIGHT, WRONG, NOT_ATTEMPTED, NO_ANSWER)
PARTIAL = "grades.partial.jsonl"
APART = (
    "The system keeps the notebooks apart: none sees the folder, a network, or another's processes."
)
NOT_APART = (
    "This system keeps accidents apart, not attacks: a notebook could reach the folder and your "
    "processes."
)
ATTEMPTS = 3  # how often a notebook runs, each time without the cells that had to be killed
PATIENT = 5.0  # times an exercise's own seconds: in a learner's notebook `check` gives up earlier
GRACE = 2.0  # seconds beyond a cell's time before its process is ended
STARTUP = 900.0  # seconds on the clock for Python and the libraries
CLOCK = 30  # times the seconds of a cell without a word, on the clock: the worker has hung itself
CLOCKLESS = 4  # the same where the worker cannot tell who computes from who waits
LARGEST = 64 * 2**20  # bytes of a notebook, and of what a learner's process may report
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
HEADING = re.compile(r"^# (\d\d) ·", re.MULTILINE)
ROOM = re.compile(r"^(## Your turn|\*\*1 · )", re.MULTILINE)  # or a task before it
CHECK = re.compile(r"\bcheck\(\s*(\w+)\s*[,)]")
DEFINED = re.compile(r"^def\s+(\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Limits:
    """What each notebook may take: seconds of computing in all, bytes of memory."""

    seconds: float = 120.0
    memory: int = 4096 * 2**20
    protect: bool = True  # whether to use what the system offers to keep notebooks apart


USUAL = Limits()


@dataclass(frozen=True)
class Row:
    """A line of the CSV file; a remark says what an answer did that answers need not do."""

    learner: str
    notebook: str
    exercise: str
    status: str
    mistake: str = ""
    message: str = ""
    remark: str = ""


# ---------------------------------------------------------------- a notebook


class Unreadable(Exception):
    """A file that is no notebook; the text says why."""


@dataclass(frozen=True)
class Notebook:
    """A learner's notebook: its code cells, its stage, and the exercises asked of it."""

    sources: list[str]
    stage: str
    names: list[str]
    begin: int  # the first code cell after a first task; 0 without any

    @property
    def digest(self) -> str:
        """What two notebooks share if and only if they get the same rows."""
        return hashlib.sha256(json.dumps(astuple(self)).encode()).hexdigest()

    @property
    def defined(self) -> list[str]:
        """The exercises that its cells from the first task on define."""
        return named(DEFINED, self.sources[self.begin :])


def read_notebook(path: Path) -> Notebook:
    """Read and recognise a notebook by its content. Raises Unreadable."""
    cells = read_cells(path)
    code = [source for kind, source in cells if kind == "code"]
    texts = [(i, source) for i, (kind, source) in enumerate(cells) if kind == "markdown"]
    heading = next((found[1] for _, text in texts if (found := HEADING.search(text))), "")
    room = next((i for i, text in texts if ROOM.search(text)), 0)
    begin = sum(kind == "code" for kind, _ in cells[:room])
    names = list(dict.fromkeys([*room_of(heading), *named(CHECK, code)]))
    names = names or named(DEFINED, code[begin:])
    stages = Counter(exercises()[name].notebook for name in names)
    stage = heading or (stages.most_common(1)[0][0] if stages else "")
    return Notebook(code, stage, names, begin)


def read_cells(path: Path) -> list[tuple[str, str]]:
    """The kind and source of each cell, as any program may have saved it. Raises Unreadable."""
    try:
        if path.stat().st_size > LARGEST:
            raise Unreadable(f"The file has more than {LARGEST >> 20} MB.")
        book = json.loads(path.read_text("utf-8-sig"))
        sheets = book.get("worksheets") or [book]  # nbformat 3 has worksheets, and inputs
        cells = [cell for sheet in sheets for cell in sheet["cells"]]
        return [(c["cell_type"], "".join(c.get("source", c.get("input", "")))) for c in cells]
    except OSError as error:
        raise Unreadable(f"The file cannot be read: {error.strerror}.") from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise Unreadable("The file is no notebook: its JSON is empty, cut or broken.") from error


def named(pattern: re.Pattern, code: Iterable[str]) -> list[str]:
    """The exercises that a pattern finds in code cells, in order."""
    found = [name for source in code for name in pattern.findall(source) if name in exercises()]
    return list(dict.fromkeys(found))


@functools.cache
def room_of(stage: str) -> list[str]:
    """The exercises that the course's own notebook of this number asks for."""
    for path in sorted((COURSE / "notebooks").glob(f"{stage}_*.ipynb")) if stage else ():
        with contextlib.suppress(Unreadable):
            return named(CHECK, [source for kind, source in read_cells(path) if kind == "code"])
    return []


# ---------------------------------------------------------------- one notebook at a time


@dataclass
class Answer:
    """What a function did, per backend; or why it could not be tried."""

    runs: list[tuple[str, list[Observation]]] = field(default_factory=list)
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
    """A worker process with folders of its own, and the notebooks that it runs one after the other.

    Use it in one thread at a time, and close it.
    """

    def __init__(self, limits: Limits, hidden: Iterable[Path] = ()):
        self.limits, self.hidden = limits, [os.path.realpath(path) for path in hidden]
        self.process: subprocess.Popen | None = None
        self.desk = ""  # where notebooks lie while they run
        self.pace, self.forks, self.rooms, self.stopped = 1.0, False, False, False

    def open(self) -> None:
        """Start the worker. Raises Lost."""
        if self.stopped:
            raise Lost
        self._furnish()
        self.process = subprocess.Popen(
            WORKER,
            env=environment(self.folder), cwd=self.folder, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        threading.Thread(target=_read, args=(self.process.stdout, self.lines), daemon=True).start()
        packages = [path for path in sys.path if path.endswith("-packages")]
        needed = map(os.path.realpath, [sys.prefix, sys.base_prefix, self.folder, *packages])
        hidden = [*self.hidden, str(self.folder / "home"), self.desk]
        self.say({"protect": self.limits.protect, "hidden": hidden, "needed": [*needed]})
        hello = self.hear(time.monotonic() + STARTUP, "ready")
        self.pace, self.forks, self.rooms = hello["pace"], hello["forks"], hello["rooms"]

    def _furnish(self) -> None:
        """Make the worker's folders, with a course of its own."""
        self.folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="class-")))
        self.desk = str(self.folder / "desk")
        os.mkdir(self.desk), os.mkdir(self.folder / "home")
        for name in PACKAGES:
            shutil.copytree(COURSE / name, self.folder / "course" / name)
        self.digest, self.lines = digest_of(self.folder / "course"), queue.SimpleQueue()

    def close(self) -> None:
        """End the worker and all that it started, and remove its folders."""
        if self.process is None:
            return
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(2)
        with contextlib.suppress(OSError, AttributeError):
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

    def say(self, order: Any) -> None:
        """Send a line to the worker."""
        with contextlib.suppress(OSError):
            self.process.stdin.write(json.dumps(order).encode() + b"\n")
            self.process.stdin.flush()

    def hear(self, end: float, wanted: str = "") -> dict:
        """The next message, or the next of a kind. Raises Lost."""
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, end - time.monotonic()))
                text = line.decode("utf-8", "replace")
                message = json.loads(text) if self.forks or wanted else {"line": text}
            except (queue.Empty, ValueError) as error:
                raise Lost from error
            if not text or self.stopped:
                raise Lost
            if not wanted or wanted in message:
                return message

    def report(self, book: Notebook) -> Report:
        """Run a notebook until it ends; then, for what is missing, its definitions alone."""
        told, most = Report(), self.limits.seconds * self.pace
        for _ in range(ATTEMPTS):
            self.run(told, book, book.names, set(told.cut), most - told.cpu)
            if told.done or told.cell < 0 or told.ended == "time":
                break
        answered = {name for name, answer in told.answers.items() if not answer.error}
        if missing := set(book.names) & set(book.defined) - answered:
            self.run(told, book, sorted(missing), set(range(len(book.sources))), most / 2)
        return told

    def run(
        self, told: Report, book: Notebook, names: list[str], reduced: set[int], seconds: float
    ) -> None:
        """Run its cells once, of some only the definitions."""
        told.done, told.cell, told.ended = False, -1, "left"
        try:
            if self.process is None:
                self.open()
            self._listen(told, self._job(book, reduced, seconds) | {"exercises": names})
        except Lost:
            self.close()
        if self.process and (not self.forks or digest_of(self.folder / "course") != self.digest):
            self.close()  # a notebook may have changed what the next would run on
        if not told.done and told.cell >= 0:
            told.cut[told.cell] = told.ended

    def _job(self, book: Notebook, reduced: set[int], seconds: float) -> dict:
        """What the worker needs to know; seconds are those of this machine."""
        cell = self.limits.seconds * self.pace / 4
        stretch = PATIENT * self.pace * self.limits.seconds / USUAL.seconds
        test = max(2 * stretch * find(name).seconds + GRACE for name in book.names)
        return {
            "cells": book.sources, "begin": book.begin, "reduced": sorted(reduced), "test": test,
            "seconds": seconds, "cell_seconds": cell, "cell_limit": cell + GRACE,
            "patience": cell, "stretch": stretch, "memory": self.limits.memory,
            "mark": uuid.uuid4().hex, "desk": self.desk,
        }  # fmt: skip

    def _listen(self, told: Report, job: dict) -> None:
        """Hand out a job, and take in messages until it is over. Raises Lost."""
        self.say(job)
        longest = (CLOCK if self.forks else CLOCKLESS) * (job["cell_limit"] + job["test"])
        pending: dict[str, list] = {}
        while self.forks or not told.done:
            message = self.hear(time.monotonic() + longest)
            if "over" in message:
                told.ended, told.cpu = message["over"], told.cpu + message["cpu"]
                return
            if "line" in message and (reply := take(told, pending, message["line"], job)):
                self.say(reply)


def take(told: Report, pending: dict, line: str, job: dict) -> str:
    """Take in a line, and say what to answer; a worker's own begin with the mark of the job."""
    before, mark, text = line.partition(job["mark"])
    if before or not mark:
        told.remarks.add(FORGED)
    reply = "more" if '"seen"' in text else ""  # who asks gets an answer
    with contextlib.suppress(ValueError, TypeError, LookupError, AttributeError, RecursionError):
        message = json.loads(text)
        if "cell" in message:
            told.cell = range(len(job["cells"]))[message["cell"]]
        if "cut" in message:
            told.cut[told.cell] = "cell"
        if "remark" in message:
            told.remarks.add(str(message["remark"])[:200])
        told.done = message.get("done") is True
        return note_answer(told, pending, message, job) or reply
    return reply


def note_answer(told: Report, pending: dict, message: dict, job: dict) -> str:
    """Take in what a message says about an answer: "right", "enough" for a verdict, or "more"."""
    name = next((message[key] for key in ("seen", "answer", "broken") if key in message), None)
    if name not in job["exercises"]:
        return ""
    if "seen" not in message:
        lacks, error = [str(word) for word in message["lacks"]], str(message.get("error", ""))
        stub = message.get("stub") is True
        told.answers[name] = Answer(pending.pop(name, []), stub, error, lacks)
        return ""
    seen = [unpack(line.encode()) for line in message["run"]]
    pending.setdefault(name, []).append((str(message["backend"]), seen))
    with JUDGING:
        pairs = zip(seen, expected_of(name), strict=True)
        right = all(agree(*pair, find(name)) for pair in pairs)
    return "right" if right else "enough" if isinstance(seen[-1].value, TimedOut) else "more"


def environment(folder: Path) -> dict[str, str]:
    """What the worker's processes get: homes of their own, one thread, no accelerator."""
    homes = dict.fromkeys(("HOME", "USERPROFILE", "IPYTHONDIR", "MPLCONFIGDIR"), "home")
    places = homes | {"MY_TRANSFORMER": "desk/my_transformer.py", "PYTHONPATH": "course"}
    once = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "PYTHONUTF8",
            "PYTHONSAFEPATH", "PYTHONDONTWRITEBYTECODE")  # fmt: skip
    rest = {"MPLBACKEND": "Agg", "TOKENIZERS_PARALLELISM": "false", "CUDA_VISIBLE_DEVICES": ""}
    places = {name: str(folder / place) for name, place in places.items()}
    return os.environ | dict.fromkeys(once, "1") | rest | places


def digest_of(folder: Path, pattern: str = "*") -> str:
    """What changes when files in a folder do."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob(pattern)):
        found.update(str(path).encode())
        found.update(path.read_bytes() if path.is_file() else b"")
    return found.hexdigest()


def _read(stream: Any, lines: queue.SimpleQueue) -> None:
    """Put lines into a queue, an empty one at the end."""
    with contextlib.suppress(OSError, ValueError):
        while line := stream.readline(2 * LARGEST):
            lines.put(line)
    lines.put(b"")


# ---------------------------------------------------------------- verdicts


def rows_of(book: Notebook, report: Report) -> list[Row]:
    """One row per exercise, for whoever handed the notebook in."""
    reasons = [ENDED.get(kind, ENDED["left"]).format(cell=i + 1) for i, kind in report.cut.items()]
    cut, rows = "; ".join(reasons) or "it ended", []
    for name in book.names:
        answer = report.answers.get(name)
        seen = [o for _, run in (answer.runs if answer else []) for o in run]
        remark = " ".join(sorted(report.remarks | {text for o in seen for text in o.remarks}))
        told = verdict(name, answer, name in book.defined, cut)
        rows.append(Row("", book.stage, name, *told, remark))
    return rows


def verdict(name: str, answer: Answer | None, defined: bool, cut: str) -> tuple[str, str, str]:
    """Status, mistake and message for what a learner's process said about an exercise.

    What a cut-off cell may have caused is no answer, and never wrong.
    """
    if answer is None and not defined:
        return NOT_ATTEMPTED, "", "The notebook does not define it."
    if answer is None:
        return NO_ANSWER, "", f"It could not be tried, because of the notebook: {cut}."
    if answer.stub:
        return NOT_ATTEMPTED, "", "Not attempted yet."
    status, mistake, message = by_what_it_did(name, answer)
    if status == WRONG and answer.lacks:
        missing = [word for word in answer.lacks if word != name] or answer.lacks
        return NO_ANSWER, "", f"It lacks {', '.join(missing[:3])}, because of the notebook: {cut}."
    return status, mistake, message


def by_what_it_did(name: str, answer: Answer) -> tuple[str, str, str]:
    """The verdict on an answer, if all that it needs was there."""
    if answer.error:
        status = NO_ANSWER if answer.error.startswith("CellTimeout") else WRONG
        return status, "", f"Its cell does not run: {answer.error[:300]}"
    try:
        with JUDGING:
            made, _ = settle(find(name), answer.runs)
    except Exception:  # nothing that a learner's process writes may stop the class
        return NO_ANSWER, "", "What it returns could not be judged."
    values = [o.value for _, run in answer.runs for o in run if isinstance(o.value, TimedOut)]
    if made.status == WRONG and any(value.waited for value in values):
        return NO_ANSWER, "", made.message
    return made.status, made.mistake or "", made.message


# ---------------------------------------------------------------- the class


class Progress:
    """The rows so far, by notebook, in memory and in a file beside the one for the rows.

    Notebooks with the same cells have the same rows. A file of another version of the course, or
    made with other limits, is not gone on with.
    """

    def __init__(self, path: Path, limits: Limits):
        self.path, self.rows = path, {}
        course = [digest_of(COURSE / name, "*.py") for name in PACKAGES]
        course.append(digest_of(COURSE / "notebooks", "*.ipynb"))
        self.lines = [json.dumps(f"{course} {limits}")]
        with contextlib.suppress(OSError, ValueError, TypeError):
            first, *lines = path.read_text("utf-8").splitlines()
            for line in lines if first == self.lines[0] else []:
                digest, rows = json.loads(line)
                self.rows[digest] = [Row(*row) for row in rows]
                self.lines.append(line)

    def of(self, book: Notebook | str) -> list[Row]:
        """The rows of a notebook, or of why there is none."""
        if isinstance(book, str):
            return [Row("", "", "", NO_ANSWER, "", book)]
        empty = Row("", book.stage, "", NO_ANSWER, "", "No exercise of the course is in it.")
        return self.rows[book.digest] if book.names else [empty]

    def add(self, digest: str, rows: list[Row]) -> None:
        """Keep the rows of a notebook."""
        self.rows[digest] = rows
        self.lines.append(json.dumps([digest, [astuple(row) for row in rows]]))
        write(self.path, "\n".join(self.lines) + "\n")


def notebooks_in(folder: Path) -> list[Path]:
    """All notebooks in a folder and the folders in it, in order."""
    found = folder.rglob("*.ipynb")
    return sorted(p for p in found if p.is_file() and ".ipynb_checkpoints" not in p.parts)


def read_all(folder: Path) -> dict[str, Notebook | str]:
    """By learner, the notebook, or why it cannot be read."""
    found: dict[str, Notebook | str] = {}
    for path in notebooks_in(folder):
        learner = path.relative_to(folder).with_suffix("").as_posix()
        try:
            found[learner] = read_notebook(path)
        except Unreadable as error:
            found[learner] = str(error)
    return found


def run_all(books: list[Notebook], folder: Path, limits: Limits, workers: int) -> Iterator[tuple]:
    """Run the notebooks, several at a time; each comes out when it is done, with its report."""
    exercises()  # loaded once, before there are threads
    proctors = [Proctor(limits, [folder]) for _ in range(max(1, min(workers, len(books))))]
    pool, free = ThreadPoolExecutor(len(proctors)), queue.SimpleQueue()
    for proctor in proctors:
        free.put(proctor)
    try:
        for done in as_completed([pool.submit(examine, b, free, proctors) for b in books]):
            yield done.result()
    finally:
        for proctor in proctors:
            proctor.stop()
        pool.shutdown(cancel_futures=True)
        for proctor in proctors:
            proctor.close()


def examine(
    book: Notebook, free: "queue.SimpleQueue[Proctor]", proctors: list[Proctor]
) -> tuple[Notebook, Report, bool]:
    """Let a free worker run a notebook; after an error none starts another."""
    proctor = free.get()
    try:
        if proctor.stopped:
            raise Lost
        return book, proctor.report(book), proctor.rooms
    except BaseException:
        for other in proctors:
            other.stop()
        raise
    finally:
        free.put(proctor)


def grade_folder(
    folder: Path, limits: Limits = USUAL, workers: int = 1, path: Path | None = None
) -> list[list[Row]]:
    """The rows of each learner, in order; `path` is the file of the rows so far."""
    books, found = read_all(folder), Progress(path or folder / PARTIAL, limits)
    readable = [b for b in books.values() if isinstance(b, Notebook) and b.names]
    copies = Counter(book.digest for book in readable)  # those with the same cells run once
    jobs = {book.digest: book for book in readable if book.digest not in found.rows}
    known = len(books) - sum(copies[digest] for digest in jobs)
    with tqdm(total=len(books), initial=known, unit="notebook") as bar:
        reports = run_all([*jobs.values()], folder, limits, workers)
        for i, (book, report, rooms) in enumerate(reports):
            if i == 0:
                tqdm.write(APART if rooms else NOT_APART)
            found.add(book.digest, rows_of(book, report))
            bar.update(copies[book.digest])
    return [
        [replace(row, learner=learner) for row in found.of(book)] for learner, book in books.items()
    ]


def safe(cell: str) -> str:
    """Text that can be written, and that a spreadsheet does not take for a formula."""
    cell = cell.encode("utf-8", "replace").decode()
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@")) else cell


def as_csv(rows: list[Row]) -> str:
    """The rows as a spreadsheet reads them."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([f.name for f in fields(Row)])
    writer.writerows([[safe(cell) for cell in astuple(row)] for row in rows])
    return "\ufeff" + text.getvalue()


def summary(rows: list[Row]) -> str:
    """How often each exercise was right, wrong …, the most frequent mistakes, and remarks."""
    lines = [f"{'':30}" + "".join(f"{status:>15}" for status in STATUSES)]
    for name in dict.fromkeys(row.exercise for row in rows):
        counts = Counter(row.status for row in rows if row.exercise == name)
        lines += [f"{name or '(no notebook)':30}" + "".join(f"{counts[s]:15}" for s in STATUSES)]
    mistakes = Counter((r.exercise, r.mistake, r.message) for r in rows if r.mistake)
    lines += ["", "The most frequent mistakes:"] if mistakes else []
    for (exercise, mistake, message), count in mistakes.most_common(3):
        lines += [f"{count:4} × {exercise}, {mistake}: {message}"]
    if marked := sum(bool(row.remark) for row in rows):
        lines += ["", f"Rows with a remark, to be looked at: {marked}."]
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Grade a folder of learners' notebooks.")
    parser.add_argument("folder", type=Path, help="is searched with all folders in it")
    parser.add_argument("--out", type=Path, default=None, help="default: FOLDER/grades.csv")
    parser.add_argument(
        "--seconds", type=float, default=USUAL.seconds, help="of computing for each (120)"
    )
    parser.add_argument("--memory", type=int, default=4096, help="MB for each notebook (4096)")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser.add_argument("--workers", type=int, default=cores, help="at a time (one for each core)")
    return parser.parse_args()


def main() -> int:
    """Grade, write the CSV file, print a summary."""
    options = arguments()
    folder = options.folder.resolve()
    if not folder.is_dir() or not (paths := notebooks_in(folder)):
        print(f"{options.folder} is no folder with notebooks (.ipynb) in it.")
        return 1
    out = options.out or folder / "grades.csv"
    partial = out.with_name(PARTIAL)
    try:
        limits = Limits(options.seconds, options.memory * 2**20)
        found = grade_folder(folder, limits, options.workers, partial)
    except KeyboardInterrupt:
        print(f"\nStopped. What is done is in {partial}: the same command goes on from there.")
        return 130
    rows = [row for rows in found for row in rows]
    write(out, as_csv(rows))
    partial.unlink(missing_ok=True)
    print(f"\n{summary(rows)}\n\n{len(paths)} notebooks, {len(rows)} rows: {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
