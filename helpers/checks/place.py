"""Where the learner is: which notebook runs, and which of its exercises is being written.

The session remembers what was checked, IPython which cells were run.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import CodeType, FunctionType
from typing import Any

from helpers.checks.judge import NOT_ATTEMPTED, RIGHT, WRONG
from helpers.checks.keep import kept_names
from helpers.checks.whys import Repair
from helpers.exercises import ASKED, exercises

DEFINITION = re.compile(r"^def\s+(\w+)\s*\(", re.MULTILINE)
MAP = re.compile(r'^stage_map\("([\w-]+)"\)', re.MULTILINE)  # each notebook shows its own first
TOOLS = re.compile(r"^from helpers\.checks import\b", re.MULTILINE)  # the room *Your turn* begins


@dataclass(frozen=True)
class Checked:
    """A check: what it found, after how many cells, and whether the answer was a new one."""

    status: str
    cells: int
    code: CodeType | None
    is_new: bool
    repair: Repair | None = None  # the change that hint shows next


class Memory:
    """What this session remembers: each exercise's newest check, in order; the exercise that help
    was asked for since then; which hints were shown, and what is right."""

    checked: dict[str, Checked] = {}  # noqa: RUF012
    named: str | None = None
    shown: dict[str, int] = {}  # noqa: RUF012
    right: set[str] = set()  # noqa: RUF012


def remember(name: str, function: Any, status: str, repair: Repair | None = None) -> None:
    """Remember a check as the newest, and the change that repairs the answer."""
    before = Memory.checked.pop(name, None)
    code = function.__code__ if isinstance(function, FunctionType) else None
    is_new = before is None or before.code != code
    Memory.checked[name] = Checked(status, len(cells_run()), code, is_new, repair)
    Memory.named = None
    if status == RIGHT:
        Memory.right.add(name)


def remember_again(name: str) -> None:
    """Remember that a check was run again with the course's own function, which tells nothing."""
    before = Memory.checked.pop(name, Checked(NOT_ATTEMPTED, 0, None, is_new=False))
    Memory.checked[name] = replace(before, cells=len(cells_run()))
    Memory.named = None


def take_repair(name: str) -> Repair | None:
    """The change that repairs the newest answer, the first time it is asked for."""
    found = Memory.checked.get(name)
    if found is None or found.repair is None:
        return None
    Memory.checked[name] = replace(found, repair=None)
    return found.repair


def done() -> set[str]:
    """The exercises with an answer that is kept or was right just now."""
    return kept_names()[0] | Memory.right


# ---------------------------------------------------------------- the exercise


def current() -> str | None:
    """The exercise that the learner is at, None where nothing tells.

    A function that was written after the last check, else what help was asked for since then, else
    what was checked last. When all cells ran, the last check tells nothing: then an answer that is
    not right yet, the newest first, and without any the first open exercise.
    """
    if name := written() or Memory.named:
        return name
    last, names = last_checked(), here()
    if last and not all_cells_ran(names) and Memory.checked[last].status != RIGHT:
        return last
    return tried(names) or next_open(last, names) or last


def last_checked() -> str | None:
    """The exercise of the newest check."""
    return next(reversed(Memory.checked), None)


def all_cells_ran(names: Sequence[str]) -> bool:
    """Whether the newest checks are those of a whole notebook, in its order."""
    return list(Memory.checked)[-len(names) :] == list(names)


def written() -> str | None:
    """The exercise that was defined last since the last check, in the room *Your turn*."""
    cells = cells_run()
    room = next((i for i, source in enumerate(cells) if TOOLS.search(source)), 0)
    begin = max([room, *(check.cells for check in Memory.checked.values())])
    lesson = set(cells[:room])  # its cells may run again, and are no answers
    found = [DEFINITION.findall(source) for source in cells[begin:] if source not in lesson]
    names = [name for cell in found for name in cell if name in (here() or exercises())]
    return names[-1] if names else None


def tried(names: Sequence[str]) -> str | None:
    """The newest wrong answer, first of those that changed before they were checked again."""
    wrong = [n for n, check in Memory.checked.items() if n in names and check.status == WRONG]
    new = [name for name in wrong if Memory.checked[name].is_new]
    return next(reversed(new or wrong), None)


def next_open(last: str | None, names: Sequence[str]) -> str | None:
    """The first of a notebook's exercises that is not done, from the last checked on."""
    begin = names.index(last) + 1 if last in names else 0
    return next((n for n in (*names[begin:], *names[:begin]) if n not in done()), None)


# ---------------------------------------------------------------- the notebook


def here() -> Sequence[str]:
    """What this notebook asks for, () where it is not known."""
    last = last_checked()
    return ASKED.get(exercises()[last].notebook if last else notebook(), ())


def notebook() -> str:
    """The number of the notebook that runs, "" where its map was not drawn."""
    found = [match[1] for source in cells_run() if (match := MAP.search(source))]
    if not found:
        return ""
    from helpers.stages import STAGES

    return STAGES.get(found[0], "")


def cells_run() -> list[str]:
    """The sources of the cells run so far, with the one that runs; [] without IPython."""
    history = getattr(shell(), "history_manager", None)
    return list(getattr(history, "input_hist_raw", ()))


def names() -> dict[str, Any]:
    """What the notebook's names stand for, {} without IPython."""
    return getattr(shell(), "user_ns", {})


def shell() -> Any:
    """IPython's shell, None outside."""
    interactive = sys.modules.get("IPython")
    return interactive and interactive.get_ipython()
