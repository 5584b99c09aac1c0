"""Answers of learners, right and wrong, written without looking at the checks that judge them.

One text file an exercise; each answer begins with a line

    === wrong | round | what is wrong | what a check is to find
    === right | round | what is unusual

What a check is to find is the name of a slip, or of two, or `repair`.
"""

import inspect
import linecache
import random
import re
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path

from helpers import layers, models
from workshop.exercises import exercises
from workshop.exercises.exercise import at_hand

CELLS = count(1)


@dataclass(frozen=True)
class Answer:
    exercise: str
    right: bool
    round: str
    summary: str
    expected: str
    source: str
    line: int  # in its file


@cache
def answers() -> list[Answer]:
    """All answers, in the order of the files."""
    return [a for path in sorted(Path(__file__).parent.glob("*.txt")) for a in read(path)]


def read(path: Path) -> list[Answer]:
    """The answers of one file."""
    whole = path.read_text(encoding="utf-8")
    found = []
    for start in re.finditer(r"^=== (.*)\n((?:(?!=== ).*\n)*)", whole, re.MULTILINE):
        kind, *said = (part.strip() for part in start[1].split(" | "))
        said += [""] * (3 - len(said))
        line = whole.count("\n", 0, start.start()) + 2
        found.append(Answer(path.stem, kind == "right", *said, start[2], line))
    return found


@cache
def _names() -> dict:
    """The libraries and the functions of the course; arrays come before tensors."""
    names = {name: thing for room in (models, layers) for name, thing in vars(room).items()
             if inspect.isfunction(thing) and not name.startswith("_")}  # fmt: skip
    names |= {e.name: e.reference for e in exercises().values() if not e.is_class}
    return names | at_hand(torch=True) | {"random": random}


def namespace() -> dict:
    """What a learner's cell has at hand."""
    return dict(_names())


def load(source: str, name: str):
    """The function made anew from its text, which can be read again, as that of a cell."""
    file, scope = f"<cell {next(CELLS)}>", namespace()
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    exec(compile(source, file, "exec"), scope)
    return scope[name]
