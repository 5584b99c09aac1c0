"""Grade a folder of learners' notebooks: one row per learner and exercise.

    python -m helpers.checks.classroom FOLDER [--out grades.csv] [--seconds 120] [--memory 4096]

All notebooks are read before the first of them runs. Each then runs in a process of its own
(`helpers.checks.worker`), within limits on computing time and memory; verdicts are made here
(`helpers.checks.proctor`), where no learner's code runs. The rows are written at the end, all at
once; until then they lie beside in a file from which a run that was killed goes on.
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
import sys
import tempfile
import threading
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

from tqdm import tqdm

from helpers.checks.compare import TimedOut
from helpers.checks.homework import HELPERS, Notebook, Unreadable, read_notebook
from helpers.checks.judge import NOT_ATTEMPTED, RIGHT, WRONG, settle
from helpers.checks.proctor import (
    ENDED,
    JUDGING,
    USUAL,
    Answer,
    Limits,
    Proctor,
    Report,
    font_lists,
)
from helpers.exercises import exercises, find

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


# ---------------------------------------------------------------- verdicts


def rows_of(book: Notebook, report: Report) -> list[Row]:
    """One row per exercise, for whoever handed the notebook in."""
    rows = []
    for name in book.names:
        answer = report.answers.get(name)
        told = verdict(name, answer, name in book.defined, why(report))
        rows.append(Row("", book.stage, name, *told, remarks(answer, report)))
    return rows


def why(report: Report) -> str:
    """Which cells were cut off, and why."""
    reasons = [ENDED.get(kind, ENDED["left"]).format(cell=i + 1) for i, kind in report.cut.items()]
    return "; ".join(reasons) or "it ended"


def remarks(answer: Answer | None, report: Report) -> str:
    """What was noticed about an answer, and about its notebook."""
    seen = [o for run in (answer.runs if answer else []) for o in run]
    return " ".join(sorted(report.remarks | {text for o in seen for text in o.remarks}))


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
            made = settle(find(name), answer.runs)
    except Exception:  # nothing that a learner's process writes may stop the class
        return NO_ANSWER, "", "What it returns could not be judged."
    values = [o.value for run in answer.runs for o in run if isinstance(o.value, TimedOut)]
    if made.status == WRONG and any(value.waited for value in values):
        return NO_ANSWER, "", made.message
    return made.status, made.mistake or "", made.message


# ---------------------------------------------------------------- what is done so far


class Progress:
    """The rows so far, by notebook, in memory and in a file beside the one for the rows.

    Notebooks with the same cells have the same rows. A file of another version of the helpers, or
    made with other limits, is not gone on with.
    """

    def __init__(self, path: Path, limits: Limits):
        self.path, self.first = path, json.dumps(f"{version()} {limits}")
        self.rows: dict[str, list[Row]] = {}
        self.lines: dict[str, str] = {}
        with contextlib.suppress(OSError, ValueError, TypeError):
            first, *lines = path.read_text("utf-8").splitlines()
            for line in lines if first == self.first else []:
                digest, rows = json.loads(line)
                self.rows[digest], self.lines[digest] = [Row(*row) for row in rows], line

    def add(self, digest: str, rows: list[Row]) -> None:
        """Keep the rows of a notebook."""
        self.rows[digest] = rows
        self.lines[digest] = json.dumps([digest, [astuple(row) for row in rows]])
        write(self.path, "\n".join([self.first, *self.lines.values()]) + "\n")


def write(path: Path, text: str) -> None:
    """Write a file all at once: there is the old one or the new one, never a half."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with open(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


@functools.cache
def version() -> str:
    """What changes when the helpers or the course's notebooks do."""
    found = hashlib.sha256()
    notebooks = (HELPERS.parent / "notebooks").glob("[0-9][0-9]_*.ipynb")
    for path in sorted([*HELPERS.rglob("*.py"), *notebooks]):
        found.update(path.read_bytes())
    return found.hexdigest()


# ---------------------------------------------------------------- the class


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


class Jobs:
    """The notebooks to run, each of its kind once; a worker goes on with those of its lesson."""

    def __init__(self, books: Iterable[Notebook]):
        self.lock, self.waiting = threading.Lock(), {}
        for book in {book.digest: book for book in books}.values():
            self.waiting.setdefault(book.lesson, deque()).append(book)
        self.taken: Counter[str] = Counter()

    def __iter__(self) -> Iterator[Notebook]:
        return (book for books in self.waiting.values() for book in books)

    def stop(self) -> None:
        """Give out no more."""
        with self.lock:
            self.waiting.clear()

    def next(self, lesson: str) -> Notebook | None:
        """A notebook of this lesson, else of one where most wait for each worker."""
        with self.lock:
            left = {name: len(books) for name, books in self.waiting.items() if books}
            if not left:
                return None
            if lesson not in left:
                lesson = max(left, key=lambda name: left[name] / (1 + self.taken[name]))
                self.taken[lesson] += 1
            return self.waiting[lesson].popleft()


def run_all(jobs: Jobs, folder: Path, limits: Limits, workers: int) -> Iterator[tuple]:
    """Run the notebooks, several at a time; each comes out when it is done, with its report."""
    exercises(), font_lists()  # loaded once, before there are threads
    done, count = queue.SimpleQueue(), len([*jobs])
    proctors = [Proctor(limits, [folder]) for _ in range(min(workers, count))]
    threads = [threading.Thread(target=work, args=(jobs, p, done)) for p in proctors]
    for thread in threads:
        thread.start()
    try:
        for _ in range(count):
            if isinstance(item := done.get(), BaseException):
                raise item
            yield item
    finally:
        jobs.stop()
        for proctor in proctors:
            proctor.stop()
        for thread in threads:
            thread.join()


def work(jobs: Jobs, proctor: Proctor, done: queue.SimpleQueue) -> None:
    """In a thread for each worker: run notebooks until there are no more."""
    try:
        with contextlib.closing(proctor):
            while book := jobs.next(proctor.wanted):
                done.put((book, proctor.report(book), proctor.rooms))
    except BaseException as error:
        done.put(error)


def grade_folder(
    folder: Path, limits: Limits = USUAL, workers: int = 1, path: Path | None = None
) -> list[list[Row]]:
    """The rows of each learner, in order; `path` is the file of the rows so far."""
    books = read_all(folder)
    found = Progress(path or folder / PARTIAL, limits)
    digests = Counter(b.digest for b in books.values() if isinstance(b, Notebook) and b.names)
    missing = [b for b in books.values() if isinstance(b, Notebook) and b.digest in digests]
    jobs = Jobs(book for book in missing if book.digest not in found.rows)
    known = len(books) - sum(digests[book.digest] for book in jobs)
    with tqdm(total=len(books), initial=known, unit="notebook") as bar:
        for i, (book, report, rooms) in enumerate(run_all(jobs, folder, limits, workers)):
            if i == 0:
                tqdm.write(APART if rooms else NOT_APART)
            found.add(book.digest, rows_of(book, report))
            bar.update(digests[book.digest])
    return [rows_for(learner, book, found) for learner, book in books.items()]


def rows_for(learner: str, book: Notebook | str, found: Progress) -> list[Row]:
    """The rows of a learner, from those of the notebook."""
    if isinstance(book, str):
        return [Row(learner, "", "", NO_ANSWER, "", book)]
    if not book.names:
        return [Row(learner, book.stage, "", NO_ANSWER, "", "No exercise of the course is in it.")]
    return [replace(row, learner=learner) for row in found.rows[book.digest]]


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
    if mistakes:
        lines += ["", "The most frequent mistakes:"]
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
