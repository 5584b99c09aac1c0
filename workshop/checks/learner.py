"""What a learner calls: `check`, `hint`, `solution` and `progress`.

The session remembers what was checked, IPython which cells were run: by both `hint` knows which
notebook runs, and which of its exercises is being written.
"""

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import CodeType, FunctionType
from typing import Any

from workshop.checks import page
from workshop.checks.compare import type_name
from workshop.checks.judge import NOT_ATTEMPTED, RIGHT, WRONG, Verdict, grade
from workshop.checks.keep import keep, kept_names, wants_tensors
from workshop.checks.page import Shown
from workshop.checks.sandbox import as_written, on_tensors, plain
from workshop.course import TITLES
from workshop.exercises import asked as asked_by_notebook
from workshop.exercises import exercises, nearest
from workshop.exercises.exercise import Exercise

STEPS = ("a nudge", "the idea")
OURS = ("helpers.", "workshop.")  # whose functions are no answers
DEFINITION = re.compile(r"^(?:def|class)\s+(\w+)\s*\(", re.MULTILINE)


@dataclass(frozen=True)
class Checked:
    """A check: what it found, whether the answer was a new one, and after how many cells."""

    status: str = NOT_ATTEMPTED
    code: tuple[CodeType, ...] = ()
    is_new: bool = False
    cells: int = 0


class Memory:
    """What this session remembers: each exercise's newest check, in order; the exercise that help
    was asked for since then; which hints were shown, and what is right."""

    checked: dict[str, Checked] = {}  # noqa: RUF012
    named: str | None = None
    shown: dict[str, int] = {}  # noqa: RUF012
    right: set[str] = set()  # noqa: RUF012


# ---------------------------------------------------------------- check


def check(function: Any = None) -> Any:
    """Judge an answer and show the verdict; the exercise is known by the function's name.

    Returns the function if it is right and the reference if not, so that a notebook runs on
    either way: `softmax = check(softmax)`. A right one for tensors takes arrays as well from then
    on. What belongs to no exercise comes back as it is.
    """
    known = exercise_of(function, inspect.currentframe().f_back)
    if known is None:
        page.display(page.note("not attempted", unknown(function)))
        return function
    function = as_written(function)
    if str(getattr(function, "__module__", "")).startswith(OURS):  # a check's own result
        remember(known.name, Memory.checked.get(known.name, Checked()))
        text = f"`{known.name}` is the course's own now: run the cell with your function first."
        page.display(page.note("not attempted", text, folded(known)))
        return function
    return handed_back(function, known)


def handed_back(function: Any, known: Exercise) -> Any:
    """Judge an answer and show the verdict; returns what the notebook goes on with."""
    verdict, before = judged(function, known), Memory.checked.get(known.name)
    parts = (function, *getattr(function, "__dict__", {}).values())
    code = tuple(part.__code__ for part in parts if isinstance(part, FunctionType))
    is_new = before is None or before.code != code
    remember(known.name, Checked(verdict.status, code, is_new))
    if verdict.status != RIGHT:
        page.display(shown(verdict, known))
        return known.reference
    Memory.right.add(known.name)
    tensors = verdict.backend == "torch" and wants_tensors(function, known)
    page.display(shown(verdict, known, keep(function, known, tensors)))
    return on_tensors(function) if tensors else function


def remember(name: str, found: Checked) -> None:
    """Remember a check as the newest."""
    Memory.checked.pop(name, None)
    Memory.checked[name], Memory.named = replace(found, cells=len(cells_run())), None


def judged(function: Any, known: Exercise) -> Verdict:
    """The verdict on an answer; if the check itself fails, that is said instead of a traceback."""
    try:
        return grade(function, known.name)
    except Exception as error:
        text = f"The check itself stopped ({type(error).__name__}: {error}): please report it."
        return Verdict(known.name, WRONG, text)


def exercise_of(function: Any, frame: Any) -> Exercise | None:
    """The exercise of a function: by its own name, else by the variable that holds it."""
    names = [name_of(function)]
    for scope in (frame.f_locals, frame.f_globals) if frame and callable(function) else ():
        names += [variable for variable, value in list(scope.items()) if value is function]
    return next((exercises()[name] for name in names if name in exercises()), None)


def name_of(function: Any) -> str:
    """The name under which a function or class was defined, "" for anything else."""
    try:
        return function.__name__ if isinstance(function.__name__, str) else ""
    except Exception:
        return ""


# ---------------------------------------------------------------- what could be meant


def unknown(function: Any) -> str:
    """Say why there is nothing to check, and what could be checked."""
    name = name_of(function)
    if not callable(function):
        given = "It got nothing" if function is None else f"This is {type_name(plain(function))}"
        return f"`check` takes the function itself: {example('check')}. {given}. {offered()}"
    if name in ("", "<lambda>"):
        named = "begin it with `def` and the name of the exercise"
        return f"This function has no name: {named}. {offered()}"
    return no_exercise(name)


def no_exercise(name: str) -> str:
    """Say that a name is unknown, and which one may be meant, or which there are."""
    near = nearest(name[:60])
    return f"No exercise is called `{name[:60]}`. " + (f"Is it `{near}`?" if near else offered())


def example(command: str) -> str:
    """A call with one of this notebook's exercises."""
    name = (*here(), "softmax")[0]
    return f"`{name} = check({name})`" if command == "check" else f'`{command}("{name}")`'


def offered() -> str:
    """What can be asked for: this notebook's exercises, or where all of them are listed."""
    if names := here():
        return "In this notebook: " + ", ".join(f"`{name}`" for name in names) + "."
    return "All exercises: `from workshop import progress`, then `progress()`."


# ---------------------------------------------------------------- the verdict


def shown(verdict: Verdict, known: Exercise, kept: str = "") -> Shown:
    """A verdict: its reason, the line to change, what came out; hints and solution folded."""
    name = known.name
    if verdict.status == NOT_ATTEMPTED:  # what stands in every saved notebook, and is short
        text = f"`{name}`: replace `...` and run both cells; until then the course's own is used."
        help = page.paragraph(f'Help: `hint("{name}")`, `solution("{name}")`.')
        plain = f"{name}: not attempted. The course's own is used until yours is right."
        return Shown(page.card("not attempted", text, help), plain)
    right, message = verdict.status == RIGHT, verdict.message.replace("Right on ", "tried on ", 1)
    repair, case = verdict.repair, verdict.evidence
    seen = page.change(repair) if repair else ("", "")
    found = page.evidence_of(case, message, known.whole_numbers) if case else ("", "")
    body = seen[0] + found[0] + (page.paragraph(kept) if kept else "") + folded(known, not right)
    begin = f"{name}: right, " if right else f"{name}: not yet. "
    lines = filter(None, [begin + message, seen[1], found[1], kept])
    card = page.card("right" if right else "not yet", f"`{name}`: {message}", body)
    return page.said(card, "\n".join(lines))


def folded(known: Exercise, hints: bool = True) -> str:
    """The two hints, where they help, and the solution, each to be opened by itself."""
    told = zip(STEPS, known.hints, strict=True) if hints else ()
    markup = "".join(page.fold(step, page.paragraph(text)) for step, text in told)
    return markup + page.fold("solution", page.code(known.solution))


# ---------------------------------------------------------------- help


def hint(name: str | Callable | None = None) -> None:
    """Show, call by call, a nudge and the idea; without a name, of the exercise being written."""
    if (known := asked(name, "hint")) is None:
        return
    step = Memory.shown.get(known.name, 0)
    if step == len(known.hints):
        text = f"Those were both hints for `{known.name}`. One way to write it: "
        text += f'`solution("{known.name}")`.'
    else:
        Memory.shown[known.name] = step + 1
        text = f"`{known.name}`, hint {step + 1} of 2, {STEPS[step]}: {known.hints[step]}"
    page.display(page.said(page.paragraph(text), text))


def solution(name: str | Callable | None = None) -> None:
    """Show one way to write the function of an exercise, as it can be run in its notebook."""
    if known := asked(name, "solution"):
        markup = page.paragraph(f"`{known.name}`, one way:") + page.code(known.solution)
        page.display(page.said(markup, known.solution))


def asked(name: Any, command: str) -> Exercise | None:
    """The exercise that is meant, by default the one being written; without one, what there is."""
    name = current() if name is None else name
    given = name if isinstance(name, str) else name_of(name)
    known = exercises().get(given)
    if known is None:
        text = no_exercise(given) if given else f"Say which: {example(command)}. {offered()}"
        page.display(page.said(page.paragraph(text), text))
    Memory.named = known and known.name
    return known


def progress() -> None:
    """Show what the notebooks ask for, done and open: done is what is kept or right just now."""
    kept, obstacle = kept_names()
    done, rows = kept | Memory.right, []
    for notebook, names in asked_by_notebook().items():
        count = f"{sum(name in done for name in names)} of {len(names)}"
        marks = {name: f"{'✓' if name in done else '○'} {name}" for name in names}
        told = [marks.pop(name) for name in names if exercises()[name].story]
        layers = "; deeper: ".join(", ".join(part) for part in (told, marks.values()) if part)
        rows.append([f"{notebook} · {TITLES[notebook]}", count, layers])
    title, key = f"{len(done)} of {len(exercises())} exercises done", "✓ done, ○ open"
    lines = [f"{title}.", *(f"{head}, {count}: {marks}" for head, count, marks in rows), key]
    markup = page.overview(title, ["notebook", "done", key], rows)
    if obstacle:
        lines.insert(0, f"{obstacle}. What it holds is not counted.")
        markup = page.paragraph(lines[0]) + markup
    page.display(page.said(markup, "\n".join(lines)))


# ---------------------------------------------------------------- where the learner is


def current() -> str | None:
    """The exercise that the learner is at, None where nothing tells.

    A function that was written after the last check, else what help was asked for since then, else
    what was checked last. When all cells ran, the last check tells nothing: then an answer that is
    not right yet, the newest first, and without any the first open exercise.
    """
    if name := written() or Memory.named:
        return name
    last, names = next(reversed(Memory.checked), None), here()
    all_ran = list(Memory.checked)[-len(names) :] == list(names)
    if last and not all_ran and Memory.checked[last].status != RIGHT:
        return last
    wrong = [n for n, found in Memory.checked.items() if n in names and found.status == WRONG]
    if wrong:
        return ([n for n in wrong if Memory.checked[n].is_new] or wrong)[-1]
    begin, done = names.index(last) + 1 if last in names else 0, kept_names()[0] | Memory.right
    return next((n for n in (*names[begin:], *names[:begin]) if n not in done), last)


def written() -> str | None:
    """The exercise that was defined last since the last check."""
    begin = max((found.cells for found in Memory.checked.values()), default=0)
    names = [name for name in defined(cells_run()[begin:]) if name in (here() or exercises())]
    return names[-1] if names else None


def here() -> Sequence[str]:
    """What this notebook asks for, () where it is not known."""
    last = next(reversed(Memory.checked), None)
    return asked_by_notebook().get(exercises()[last].notebook if last else notebook(), ())


def notebook() -> str:
    """The number of the notebook that runs, by most of what it asks so far, else ""."""
    asking = [exercises()[n].notebook for n in defined(cells_run()) if n in exercises()]
    return max(asking, key=asking.count, default="")


def defined(cells: list[str]) -> list[str]:
    """The names of the functions and classes that cells define."""
    return [name for source in cells for name in DEFINITION.findall(source)]


def cells_run() -> list[str]:
    """The sources of the cells run so far, with the one that runs; [] without IPython."""
    interactive = sys.modules.get("IPython")
    history = getattr(interactive and interactive.get_ipython(), "history_manager", None)
    return list(getattr(history, "input_hist_raw", ()))
