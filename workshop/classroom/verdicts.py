"""What a learner's process said becomes rows; no learner's code runs here."""

import re
import threading
from dataclasses import dataclass

from workshop.checks.compare import Raised, TimedOut
from workshop.checks.judge import NOT_ATTEMPTED, RIGHT, WRONG, settle
from workshop.classroom.notebooks import DEFINED, Notebook, named
from workshop.classroom.running import Report
from workshop.exercises import find

NO_ANSWER = "no answer"  # the notebook can't be read, or nothing could be learnt from running it
STATUSES = (RIGHT, WRONG, NOT_ATTEMPTED, NO_ANSWER)
JUDGING = threading.Lock()  # references use the random states of the whole process
MAKES = r"^\s*{0}\b[^=(]*=(?!=)|\b(?:import|as|def|class|for)\b.*\b{0}\b|\bimport \*"


@dataclass(frozen=True)
class Row:
    """A line of the CSV file; the remark says that an answer calls the course's own function."""

    learner: str
    notebook: str
    exercise: str
    status: str
    mistake: str = ""
    message: str = ""
    remark: str = ""


def rows_of(book: Notebook, report: Report) -> list[Row]:
    """One row per exercise, for whoever handed the notebook in."""
    rows = []
    for name in book.names:
        answer = report.answers.get(name)
        seen = [observation for _, run in (answer[1] if answer else ()) for observation in run]
        remark = " ".join(sorted({text for one in seen for text in one.remarks}))
        told = verdict(name, *answer) if answer else without(name, book, report)
        errors = [f"{o.value.kind}: {o.value.text}" for o in seen if type(o.value) is Raised]
        lost = lacking([told[2], *errors], book, report) if told[0] == WRONG else ""
        rows.append(Row("", book.stage, name, *(lost or told), remark))
    return rows


def verdict(name: str, stub: bool, runs: list) -> tuple[str, str, str]:
    """Status, mistake and message for what an answer did; one that only waited gives none."""
    if stub:
        return NOT_ATTEMPTED, "", "Not attempted yet."
    try:
        with JUDGING:
            made, seen = settle(find(name), runs)
    except Exception:  # nothing that a learner's process writes may stop the class
        return NO_ANSWER, "", "What it returns could not be judged."
    waited = any(isinstance(one.value, TimedOut) and one.value.waited for one in seen)
    status = NO_ANSWER if made.status == WRONG and waited else made.status
    return status, made.mistake or "", made.message


def without(name: str, book: Notebook, report: Report) -> tuple[str, str, str]:
    """The same where there was no function to try."""
    cells = [i for i, source in enumerate(book.sources) if name in named(DEFINED, [source])]
    if not cells or cells[-1] < book.begin:
        return NOT_ATTEMPTED, "", "The notebook does not define it."
    if report.done and (raised := report.failed.get(cells[-1], "")).startswith("raised "):
        return WRONG, "", f"Its cell does not run: {raised.removeprefix('raised ')}"
    return NO_ANSWER, "", f"It could not be tried, because {why(report, report.failed)}."


def lacking(errors: list[str], book: Notebook, report: Report) -> tuple[str, str, str] | None:
    """No answer, where one lacks a name that a cell of the notebook failed to make."""
    for name in re.findall(r"NameError: name '(\w+)'", "\n".join(errors)):
        makes = re.compile(MAKES.format(name), re.MULTILINE)
        if cells := [i for i in report.failed if makes.search(book.sources[i])]:
            return NO_ANSWER, "", f"It lacks {name}, because {why(report, cells)}."
    return None


def why(report: Report, cells: list[int] | dict[int, str]) -> str:
    """Why cells did not do what they should."""
    told = "; ".join(f"its cell {i + 1} {report.failed[i]}" for i in [*cells][:3])
    return told or "the notebook could not be run"
