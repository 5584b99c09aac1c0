"""Grade learners' notebooks, a row per learner and exercise: `python -m workshop.classroom FOLDER`.

A `seat` runs a learner's cells in a process of its own and only observes the answers; `running`
keeps it apart and within limits; the `verdicts` are made where no learner's code runs.
"""

import hashlib
import json
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from contextlib import closing, nullcontext, suppress
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from helpers import __version__
from workshop.classroom.notebooks import Notebook, read_notebook
from workshop.classroom.running import STOPPED, Limits, keeps_apart, report_on
from workshop.classroom.verdicts import NO_ANSWER, Row, rows_of

PARTIAL, USUAL = "grades.partial.jsonl", Limits()
APART = {
    True: "Notebooks are kept apart: none sees the folder, a network, another's processes.",
    False: "Accidents are kept apart, but not attacks: see TEACHING.md about bubblewrap.",
}


def grade_notebook(book: Notebook | str, limits: Limits, hidden: str) -> list[Row]:
    """The rows of a notebook, which runs in a process of its own and does not see one folder."""
    if isinstance(book, str):  # why it cannot be read
        return [Row("", "", "", NO_ANSWER, "", book)]
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
    path, books = path or folder / PARTIAL, read_all(folder)
    same = {who: f"{book} {limits} {__version__}".encode() for who, book in books.items()}
    keys = {who: hashlib.sha256(it).hexdigest() for who, it in same.items()}
    rows = rows_in(path)
    todo = {key: books[who] for who, key in keys.items() if key not in rows}  # copies run once
    with nullcontext(executor) if executor else ThreadPoolExecutor(1) as executor:
        done = grade_all(executor, todo, limits, str(folder))
        with open(path, "a", buffering=1, encoding="utf-8") as file, closing(done):
            for key, found in done:
                rows[key] = found
                file.write("\n" + json.dumps([key, [astuple(row) for row in found]]))
    return [replace(row, learner=who) for who, key in keys.items() for row in rows[key]]


def read_all(folder: Path) -> dict[str, Notebook | str]:
    """By learner, the notebook, or why it cannot be read."""
    found: dict[str, Notebook | str] = {}
    paths = (path for path in folder.rglob("*.ipynb") if "ipynb_checkpoints" not in str(path))
    for path in sorted(paths):
        learner = path.relative_to(folder).with_suffix("").as_posix()
        try:
            found[learner] = read_notebook(path)
        except ValueError as error:
            found[learner] = str(error)
    return found


def rows_in(path: Path) -> dict[str, list[Row]]:
    """The rows that a file keeps, by what they are of; a line that was cut short is none."""
    rows = {}
    for line in path.read_text("utf-8").splitlines() if path.exists() else []:
        with suppress(ValueError, TypeError):
            key, found = json.loads(line)
            rows[key] = [Row(*row) for row in found]
    return rows


def grade_all(executor: Executor, todo: dict, *how: Any) -> Iterator[tuple[str, list[Row]]]:
    """Let an executor grade notebooks; the rows of each when it is done."""
    STOPPED.clear()
    jobs = {executor.submit(grade_notebook, book, *how): key for key, book in todo.items()}
    try:
        if jobs:
            tqdm.write(APART[executor.submit(keeps_apart).result()])
        for job in tqdm(as_completed(jobs), total=len(jobs), unit="notebook"):
            if not job.exception():
                yield jobs[job], job.result()
    except BaseException:
        STOPPED.set()
        raise
    finally:
        for job in jobs:
            job.cancel()
    for job in jobs:
        job.result()  # raises the first error
