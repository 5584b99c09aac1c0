"""A learner's notebook, whatever its file is called: its cells, and the exercises asked in it."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from workshop.exercises import asked, exercises

HEADING = re.compile(r"^# (\d\d) ·", re.MULTILINE)
ROOM = re.compile(r"^(## Your turn|\*\*1 · )", re.MULTILINE)  # or a task before it
CHECK = re.compile(r"\bcheck\(\s*(\w+)\s*[,)]")
DEFINED = re.compile(r"^(?:def|class)\s+(\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Notebook:
    """A learner's notebook: its code cells, its stage, and the exercises asked of it."""

    sources: list[str]
    stage: str
    names: list[str]
    begin: int  # the first code cell after a first task; 0 without any


def read_notebook(path: Path) -> Notebook:
    """Read and recognise a notebook by its content; ValueError says why it is none."""
    cells = read_cells(path)
    code = [source for kind, source in cells if kind == "code"]
    texts = [(i, source) for i, (kind, source) in enumerate(cells) if kind == "markdown"]
    heading = next((found[1] for _, text in texts if (found := HEADING.search(text))), "")
    room = next((i for i, text in texts if ROOM.search(text)), 0)
    begin = sum(kind == "code" for kind, _ in cells[:room])
    names = list(dict.fromkeys([*asked().get(heading, []), *named(CHECK, code)]))
    if not (names := names or named(DEFINED, code[begin:])):
        raise ValueError("No exercise of the course is in it.")
    return Notebook(code, heading or exercises()[names[0]].notebook, names, begin)


def read_cells(path: Path) -> list[tuple[str, str]]:
    """The kind and source of each cell, as any program may have saved it."""
    try:
        cells = json.loads(path.read_text("utf-8-sig"))["cells"]
        return [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    except OSError as error:
        raise ValueError(f"The file cannot be read: {error.strerror}.") from error
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ValueError("The file is no notebook: its JSON is empty, cut or broken.") from error


def named(pattern: re.Pattern, code: Iterable[str]) -> list[str]:
    """The exercises that a pattern finds in code cells, in order."""
    found = [name for source in code for name in pattern.findall(source) if name in exercises()]
    return list(dict.fromkeys(found))
