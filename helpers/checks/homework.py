"""A learner's notebook, read and recognised by its content, whatever the file is called."""

import contextlib
import functools
import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from helpers.exercises import exercises

HELPERS = Path(__file__).resolve().parents[1]
LARGEST = 64 * 2**20  # bytes of a notebook
HEADING = re.compile(r"^# (\d\d) ·", re.MULTILINE)
ROOM = re.compile(r"^## Your turn", re.MULTILINE)
CHECK = re.compile(r"\bcheck\(\s*(\w+)\s*[,)]")
DEFINED = re.compile(r"^def\s+(\w+)", re.MULTILINE)


class Unreadable(Exception):
    """A file that is no notebook; the text says why."""


@dataclass(frozen=True)
class Notebook:
    """A learner's notebook: its code cells, its stage, and the exercises asked of it."""

    sources: list[str]
    stage: str
    names: list[str]
    begin: int  # the first code cell of the room *Your turn*; 0 without such a room

    @property
    def digest(self) -> str:
        """What two notebooks share if and only if they get the same rows."""
        parts = [self.sources, self.stage, self.names, self.begin]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @property
    def defined(self) -> list[str]:
        """The exercises that its cells from *Your turn* on define."""
        return defined_in(self.sources[self.begin :])

    @property
    def lesson(self) -> str:
        """The stage, if the cells before *Your turn* are those of the course; else ""."""
        same = self.begin > 0 and tuple(self.sources[: self.begin]) == lesson_of(self.stage)
        return self.stage if same else ""


def read_notebook(path: Path) -> Notebook:
    """Read and recognise a notebook by its content. Raises Unreadable."""
    cells = read_cells(path)
    code = [source for kind, source in cells if kind == "code"]
    names = list(dict.fromkeys(n for s in code for n in CHECK.findall(s) if n in exercises()))
    begin, heading = _begin(cells), _heading(cells)
    names = list(dict.fromkeys([*room_of(heading), *names])) or defined_in(code[begin:])
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


def defined_in(code: list[str]) -> list[str]:
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
def course_cells(stage: str) -> list[tuple[str, str]]:
    """The cells of the course's own notebook of this number, none where there is no such."""
    for path in sorted((HELPERS.parent / "notebooks").glob(f"{stage}_*.ipynb")) if stage else ():
        with contextlib.suppress(Unreadable):
            return read_cells(path)
    return []


def room_of(stage: str) -> tuple[str, ...]:
    """The exercises that the course's own notebook of this number asks for."""
    code = [source for kind, source in course_cells(stage) if kind == "code"]
    return tuple(n for s in code for n in CHECK.findall(s) if n in exercises())


def lesson_of(stage: str) -> tuple[str, ...]:
    """The code cells before *Your turn* in the course's own notebook of this number."""
    cells = course_cells(stage)
    return tuple(source for kind, source in cells if kind == "code")[: _begin(cells)]
