"""Grade a folder of learners' notebooks: one row per learner and exercise.

    python -m helpers.checks.classroom FOLDER [--out grades.csv] [--seconds 120] [--memory 4096]

Each notebook's cells run in a process of their own (`helpers.checks.cells`), with limits on time
and memory, in a temporary folder with a copy of the notebook and of the helpers, killed with all
that it started when the time is over. It reports in plain JSON what the answers did; verdicts are
made here, where no learner's code runs. A cell that had to be killed is left out and the rest run
again. Limits on memory need Linux or macOS; on Windows only the time is limited.
"""

import argparse
import contextlib
import csv
import functools
import glob
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, field, fields
from pathlib import Path
from typing import Any

from helpers.checks.exercises import exercises, find
from helpers.checks.judge import NOT_ATTEMPTED, RIGHT, WRONG, settle
from helpers.checks.observe import unpack

NO_ANSWER = "no answer"  # the notebook can't be read, or nothing could be learnt from running it
STATUSES = (RIGHT, WRONG, NOT_ATTEMPTED, NO_ANSWER)
HELPERS = Path(__file__).resolve().parents[1]
WORKERS = 2
ATTEMPTS = 3  # how often a notebook runs, each time without the cells that had to be killed
STARTUP = 60.0  # seconds for Python and the helpers to load
GRACE = 2.0  # seconds beyond a cell's time before its process is killed
LARGEST = 64 * 2**20  # bytes of a notebook, and of what a learner's process may report
HEADING = re.compile(r"^# (\d\d) ·", re.MULTILINE)
ROOM = re.compile(r"^## Your turn", re.MULTILINE)
CHECK = re.compile(r"\bcheck\(\s*(\w+)\s*[,)]")
DEFINED = re.compile(r"^def\s+(\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Row:
    """A line of the CSV file."""

    learner: str
    notebook: str
    exercise: str
    status: str
    mistake: str = ""
    message: str = ""


@dataclass(frozen=True)
class Limits:
    """What each notebook may take: seconds in all, bytes of memory."""

    seconds: float = 120.0
    memory: int = 4096 * 2**20

    @property
    def cell_seconds(self) -> float:
        return self.seconds / 4


class Unreadable(Exception):
    """A file that is no notebook; the text says why."""


# ---------------------------------------------------------------- reading notebooks


@dataclass(frozen=True)
class Notebook:
    """A learner's notebook: its code cells, its stage, and the exercises asked of it."""

    sources: list[str]
    stage: str
    names: list[str]
    begin: int  # the first code cell of the room *Your turn*; 0 without such a room


def read_notebook(path: Path) -> Notebook:
    """Read and recognise a notebook by its content. Raises Unreadable."""
    cells = read_cells(path)
    code = [source for kind, source in cells if kind == "code"]
    names = list(dict.fromkeys(n for s in code for n in CHECK.findall(s) if n in exercises()))
    begin, heading = _begin(cells), _heading(cells)
    names = list(dict.fromkeys([*room_of(heading), *names])) or _defined(code[begin:])
    stages = Counter(exercises()[name].notebook for name in names)
    stage = heading or (stages.most_common(1)[0][0] if stages else "")
    return Notebook(code, stage, names, begin)


def read_cells(path: Path) -> list[tuple[str, str]]:
    """The kind and source of each cell. Raises Unreadable."""
    try:
        if path.stat().st_size > LARGEST:
            raise Unreadable(f"The file has more than {LARGEST >> 20} MB.")
        book = json.loads(path.read_text("utf-8-sig"))
        sheets = book.get("worksheets") or [book]  # nbformat 3 has worksheets
        cells = [cell for sheet in sheets for cell in sheet["cells"]]
        return [(cell["cell_type"], _source(cell)) for cell in cells]
    except OSError as error:
        raise Unreadable(f"The file cannot be read: {error.strerror}.") from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise Unreadable("The file is no notebook: its JSON is empty, cut or broken.") from error


def _source(cell: dict) -> str:
    source = cell["source"] if "source" in cell else cell.get("input", "")
    return source if isinstance(source, str) else "".join(source)


def _defined(code: list[str]) -> list[str]:
    """The exercises that code cells define, in order."""
    found = [name for source in code for name in DEFINED.findall(source) if name in exercises()]
    return list(dict.fromkeys(found))


def _heading(cells: list[tuple[str, str]]) -> str:
    """The number in the first heading that has one, whatever the file is called."""
    found = (HEADING.search(source) for kind, source in cells if kind == "markdown")
    return next((heading[1] for heading in found if heading), "")


def _begin(cells: list[tuple[str, str]]) -> int:
    """How many code cells stand before the room *Your turn*."""
    rooms = [i for i, (kind, text) in enumerate(cells) if kind == "markdown" and ROOM.search(text)]
    return sum(kind == "code" for kind, _ in cells[: rooms[0] if rooms else 0])


@functools.cache
def room_of(stage: str) -> tuple[str, ...]:
    """The exercises that the course's own notebook of this number asks for."""
    for path in sorted((HELPERS.parent / "notebooks").glob(f"{stage}_*.ipynb")) if stage else ():
        with contextlib.suppress(Unreadable):
            code = [source for kind, source in read_cells(path) if kind == "code"]
            return tuple(n for s in code for n in CHECK.findall(s) if n in exercises())
    return ()


# ---------------------------------------------------------------- running one


@dataclass
class Run:
    """What a learner's process reported: by exercise the last message, and how far it came."""

    answers: dict[str, dict] = field(default_factory=dict)
    cell: int = -1
    done: bool = False


def answers_of(book: Notebook, limits: Limits) -> dict[str, dict]:
    """Run a notebook until it ends; then, for what is missing, its definitions alone."""
    end, reduced, found = time.monotonic() + limits.seconds, set(), {}
    for _ in range(ATTEMPTS):
        run = run_once(book, reduced, limits, end)
        found |= run.answers
        if run.done or run.cell < 0 or time.monotonic() > end:
            break
        reduced.add(run.cell)
    missing = [name for name in book.names if "answer" not in found.get(name, {})]
    if any(name in _defined(book.sources[book.begin :]) for name in missing):
        end = time.monotonic() + limits.seconds / 2
        again = run_once(book, range(len(book.sources)), limits, end).answers
        found |= {name: again[name] for name in missing if name in again}
    return found


def run_once(book: Notebook, reduced: Iterable[int], limits: Limits, end: float) -> Run:
    """Run the cells in a fresh process with folders of its own, which are gone afterwards."""
    job = {
        "cells": book.sources,
        "exercises": book.names,
        "begin": book.begin,
        "reduced": sorted(reduced),
        "seconds": limits.seconds,
        "cell_seconds": limits.cell_seconds,
        "memory": limits.memory,
    }
    with tempfile.TemporaryDirectory(prefix="seat-", ignore_cleanup_errors=True) as folder:
        return _collect(job, Path(folder), end)


def _collect(job: dict, folder: Path, end: float) -> Run:
    """Start the process, listen until it is done or late, and kill it with all it started."""
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        [sys.executable, "-m", "helpers.checks.cells"],
        env=furnish(folder, job, mark),
        cwd=folder / "desk",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        with contextlib.suppress(OSError):
            process.stdin.write(json.dumps(job).encode())
            process.stdin.close()
        return _listen(process, job, end)
    finally:
        kill(process, mark)


def furnish(folder: Path, job: dict, mark: str) -> dict[str, str]:
    """Make the folders of a process: a desk with the notebook, a home, a copy of the helpers."""
    for name in ("desk", "home", "fonts", "course"):
        (folder / name).mkdir()
    shutil.copytree(HELPERS, folder / "course" / "helpers")
    cells = [{"cell_type": "code", "source": source} for source in job["cells"]]
    copy = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4})
    (folder / "desk" / "notebook.ipynb").write_text(copy, "utf-8")
    for path in font_lists():
        shutil.copy(path, folder / "fonts")
    return os.environ | {
        "HOME": str(folder / "home"),
        "USERPROFILE": str(folder / "home"),
        "IPYTHONDIR": str(folder / "home"),
        "MPLCONFIGDIR": str(folder / "fonts"),
        "MPLBACKEND": "Agg",
        "MY_TRANSFORMER": str(folder / "desk" / "my_transformer.py"),
        "PYTHONPATH": str(folder / "course"),
        "PYTHONUTF8": "1",
        "PYTHONSAFEPATH": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "SEAT": mark,
    }


@functools.cache
def font_lists() -> list[str]:
    """Matplotlib's list of fonts on this machine, which takes seconds to make anew."""
    try:
        import matplotlib.font_manager  # makes the list where there is none
    except ImportError:
        return []
    return glob.glob(str(Path(matplotlib.get_cachedir()) / "fontlist-*.json"))


def _listen(process: subprocess.Popen, job: dict, end: float) -> Run:
    """Read messages until the last, the end of the stream, a silence too long, or the time."""
    run, lines = Run(), queue.SimpleQueue()
    threading.Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
    tests = sum(2 * find(name).seconds for name in job["exercises"])
    silence, started = job["cell_seconds"] + tests + GRACE, False
    while not run.done:
        wait = min(end - time.monotonic(), silence) if started else STARTUP
        try:
            line = lines.get(timeout=max(0.0, wait))
        except queue.Empty:
            break
        if not line or not _note(run, line, job):
            break
        if not started:
            started, end = True, max(end, time.monotonic() + job["cell_seconds"])
    return run


def _read(stream: Any, lines: queue.SimpleQueue) -> None:
    """Put lines into a queue, an empty one at the end or when there are too many."""
    total = 0
    with contextlib.suppress(OSError, ValueError):
        while total < LARGEST and (line := stream.readline(LARGEST)):
            total += len(line)
            lines.put(line)
    lines.put(b"")


def _note(run: Run, line: bytes, job: dict) -> bool:
    """Take in a message; False for anything that `helpers.checks.cells` would not write."""
    try:
        message = json.loads(line)
        if "cell" in message:
            run.cell = range(len(job["cells"]))[message["cell"]]
        run.done = message.get("done") is True
        name = message.get("answer", message.get("broken"))
        if name in job["exercises"]:
            run.answers[name] = message
        return True
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return False


def kill(process: subprocess.Popen, mark: str) -> None:
    """End a process, its group, and on Linux whatever carries its mark, until nothing does."""
    for _ in range(50):
        if hasattr(os, "killpg"):
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        found = list(marked(mark))
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            break
        time.sleep(0.02)
    process.wait()


def marked(mark: str) -> Iterator[int]:
    """The living processes that were started with this mark in their environment."""
    wanted = f"SEAT={mark}".encode()
    for path in glob.glob("/proc/[0-9]*/environ"):
        with contextlib.suppress(OSError), open(path, "rb") as environ:
            if wanted in environ.read():
                yield int(path.split("/")[2])


# ---------------------------------------------------------------- verdicts


def rows_of(learner: str, book: Notebook, answers: dict[str, dict]) -> list[Row]:
    """One row per exercise."""
    if not book.names:
        return [Row(learner, book.stage, "", NO_ANSWER, "", "No exercise of the course is in it.")]
    defined = _defined(book.sources[book.begin :])
    return [
        Row(learner, book.stage, name, *verdict(name, answers.get(name), name in defined))
        for name in book.names
    ]


def verdict(name: str, message: dict | None, defined: bool) -> tuple[str, str, str]:
    """Status, mistake and message for what a learner's process said about an exercise."""
    if message is None and not defined:
        return NOT_ATTEMPTED, "", "The notebook does not define it."
    if message is None:
        return NO_ANSWER, "", "The notebook was ended before the function could be tried."
    if "broken" in message:
        return WRONG, "", f"Its cell does not run: {str(message.get('error'))[:300]}"
    if message.get("stub") is True:
        return NOT_ATTEMPTED, "", "Not attempted yet."
    try:
        runs = [[unpack(line.encode()) for line in lines] for lines in message["runs"]]
        made = settle(find(name), runs)
    except Exception:  # nothing that a learner's process writes may stop the class
        return NO_ANSWER, "", "What it returns could not be judged."
    return made.status, made.mistake or "", made.message


# ---------------------------------------------------------------- the class


def notebooks_in(folder: Path) -> list[Path]:
    """All notebooks in a folder and the folders in it, in order."""
    found = folder.rglob("*.ipynb")
    return sorted(p for p in found if p.is_file() and ".ipynb_checkpoints" not in p.parts)


def grade_folder(folder: Path, limits: Limits = Limits()) -> Iterator[list[Row]]:
    """The rows of each learner, in order; up to two notebooks run at a time."""
    paths = notebooks_in(folder)

    def work(path: Path) -> tuple[Notebook, dict[str, dict]] | str:
        try:
            book = read_notebook(path)
            return book, answers_of(book, limits) if book.names else {}
        except Unreadable as error:
            return str(error)
        except Exception as error:
            return f"The notebook could not be run: {type(error).__name__}: {error}"

    exercises(), font_lists()  # loaded once, before there are threads
    with ThreadPoolExecutor(WORKERS) as pool:
        for path, done in zip(paths, pool.map(work, paths), strict=True):
            learner = path.relative_to(folder).with_suffix("").as_posix()
            if isinstance(done, str):
                yield [Row(learner, "", "", NO_ANSWER, "", done)]
            else:
                yield rows_of(learner, *done)


def safe(cell: str) -> str:
    """Text that can be written, and that a spreadsheet does not take for a formula."""
    cell = cell.encode("utf-8", "replace").decode()
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@")) else cell


def summary(rows: list[Row]) -> str:
    """How often each exercise was right, wrong …, and the most frequent mistakes."""
    lines = [f"{'':30}" + "".join(f"{status:>15}" for status in STATUSES)]
    for name in dict.fromkeys(row.exercise for row in rows):
        counts = Counter(row.status for row in rows if row.exercise == name)
        lines += [f"{name or '(no notebook)':30}" + "".join(f"{counts[s]:15}" for s in STATUSES)]
    mistakes = Counter((r.exercise, r.mistake, r.message) for r in rows if r.mistake)
    if mistakes:
        lines += ["", "The most frequent mistakes:"]
    for (exercise, mistake, message), count in mistakes.most_common(3):
        lines += [f"{count:4} × {exercise}, {mistake}: {message}"]
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Grade a folder of learners' notebooks.")
    parser.add_argument("folder", type=Path, help="is searched with all folders in it")
    parser.add_argument("--out", type=Path, default=None, help="default: FOLDER/grades.csv")
    parser.add_argument("--seconds", type=float, default=120, help="for each notebook (120)")
    parser.add_argument("--memory", type=int, default=4096, help="MB for each notebook (4096)")
    return parser.parse_args()


def main() -> int:
    """Grade, write the CSV file line by line, print a summary."""
    options = arguments()
    if not options.folder.is_dir() or not (paths := notebooks_in(options.folder)):
        print(f"{options.folder} is no folder with notebooks (.ipynb) in it.")
        return 1
    rows, out = [], options.out or options.folder / "grades.csv"
    limits = Limits(options.seconds, options.memory * 2**20)
    with open(out, "w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([f.name for f in fields(Row)])
        for i, found in enumerate(grade_folder(options.folder, limits), 1):
            writer.writerows([[safe(cell) for cell in astuple(row)] for row in found])
            stream.flush()
            rows += found
            marks = ", ".join(f"{row.exercise} {row.status}".strip() for row in found)
            print(f"[{i}/{len(paths)}] {safe(found[0].learner)}: {marks}", flush=True)
    print(f"\n{summary(rows)}\n\n{len(paths)} notebooks, {len(rows)} rows: {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
