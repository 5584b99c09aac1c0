"""Grade learners' notebooks, a row per learner and exercise: `python -m workshop.classroom FOLDER`.

A `seat` runs a learner's cells in a process of its own and only observes the answers; `running`
keeps it apart and within limits; the `verdicts` are made where no learner's code runs. This grades
a class, a notebook at a time, on this machine or wherever an executor runs.
"""

import contextlib
import functools
import hashlib
import json
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from dataclasses import astuple, replace
from pathlib import Path

from tqdm import tqdm

from workshop.classroom.notebooks import Notebook, notebooks_in, read_notebook
from workshop.classroom.running import COURSE, STOPPED, USUAL, Limits, keeps_apart, report_on
from workshop.classroom.verdicts import NO_ANSWER, Row, rows_of

PARTIAL = "grades.partial.jsonl"
APART = {
    True: "Notebooks are kept apart: none sees the folder, a network, another's processes.",
    False: "Accidents are kept apart, not attacks: a notebook could reach the folder and your "
    "processes. On Linux, bubblewrap (0.7 or newer) prevents that.",
}


def grade_notebook(book: Notebook, limits: Limits = USUAL, hidden: str = "") -> list[Row]:
    """The rows of a notebook, which runs in a process of its own and does not see one folder."""
    return rows_of(book, report_on(book, limits, hidden))


def grade_folder(
    folder: Path | str,
    executor: Executor | None = None,
    limits: Limits = USUAL,
    path: Path | None = None,
) -> list[Row]:
    """The rows of all notebooks in a folder and the folders in it, learner by learner.

    All are read before the first runs. Finished rows stay in the file `path`: an error of the
    executor is raised when the others are done, and a second call goes on from there.
    """
    folder = Path(folder).resolve()
    books, path = read_all(folder), path or folder / PARTIAL
    keys = {who: key_of(book, limits) for who, book in books.items()}
    lost = {keys[who]: why for who, why in books.items() if isinstance(why, str)}
    rows = rows_in(path) | {k: [Row("", "", "", NO_ANSWER, "", why)] for k, why in lost.items()}
    todo = {key: books[who] for who, key in keys.items() if key not in rows}  # copies run once

    def keep(key: str, found: list[Row]) -> None:
        rows[key] = found
        with open(path, "a", encoding="utf-8") as file:
            file.write("\n" + json.dumps([key, [astuple(row) for row in found]]))

    with contextlib.ExitStack() as stack:
        executor = executor or stack.enter_context(ThreadPoolExecutor(1))
        grade_all(executor, todo, (limits, str(folder)), keep)
    return [replace(row, learner=who) for who, key in keys.items() for row in rows[key]]


def read_all(folder: Path) -> dict[str, Notebook | str]:
    """By learner, the notebook, or why it cannot be read."""
    found: dict[str, Notebook | str] = {}
    for path in notebooks_in(folder):
        learner = path.relative_to(folder).with_suffix("").as_posix()
        try:
            found[learner] = read_notebook(path)
        except ValueError as error:
            found[learner] = str(error)
    return found


def rows_in(path: Path) -> dict[str, list[Row]]:
    """The rows that a file keeps, by `key_of`; a line that was cut short is none."""
    rows = {}
    for line in path.read_text("utf-8").splitlines() if path.exists() else []:
        with contextlib.suppress(ValueError, TypeError):
            key, found = json.loads(line)
            rows[key] = [Row(*row) for row in found]
    return rows


def key_of(book: Notebook | str, limits: Limits) -> str:
    """What two notebooks share if and only if they get the same rows."""
    return hashlib.sha256(f"{book} {limits} {version()}".encode()).hexdigest()


@functools.cache
def version() -> str:
    """What changes when the course does."""
    files = sorted(p for room in ("helpers", "workshop") for p in (COURSE / room).rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def grade_all(
    executor: Executor, todo: dict[str, Notebook], how: tuple, keep: Callable[[str, list], None]
) -> None:
    """Let an executor grade notebooks, and keep the rows of each when it is done."""
    STOPPED.clear()
    jobs = {executor.submit(grade_notebook, book, *how): key for key, book in todo.items()}
    try:
        if jobs:
            tqdm.write(APART[executor.submit(keeps_apart).result()])
        for job in tqdm(as_completed(jobs), total=len(jobs), unit="notebook"):
            if not job.exception():
                keep(jobs[job], job.result())
    except BaseException:
        STOPPED.set()
        raise
    finally:
        for job in jobs:
            job.cancel()
    for job in jobs:
        job.result()  # raises the first error
