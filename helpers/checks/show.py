"""What a learner calls: `check`, `hint`, `solution` and `progress`."""

import difflib
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from helpers.checks import bundle
from helpers.checks.bundle import Shown
from helpers.checks.compare import Raised, in_plain_words, type_name
from helpers.checks.evidence import Part, Words, parts_of
from helpers.checks.exercise import Exercise
from helpers.checks.exercises import exercises
from helpers.checks.judge import NOT_ATTEMPTED, RIGHT, WRONG, Evidence, Verdict, grade
from helpers.checks.keep import TITLES, keep, kept_names
from helpers.checks.observe import plain

STATUS = {RIGHT: "right", WRONG: "not yet", NOT_ATTEMPTED: "not attempted"}
STEPS = ("a nudge", "the idea", "the line")
SMALL = 3000  # bytes of an output that stands in every saved notebook


class Memory:
    """What this session remembers: the last exercise, the hints that were shown, what is right."""

    last: str | None = None
    shown: dict[str, int] = {}  # noqa: RUF012
    right: set[str] = set()  # noqa: RUF012


# ---------------------------------------------------------------- check


def check(function: Any = None) -> Any:
    """Judge an answer and show the verdict; the exercise is known by the function's name.

    Returns the function if it is right and the reference if not, so that a notebook runs on
    either way: `softmax = check(softmax)`. What belongs to no exercise comes back as it is.
    """
    known = exercise_of(function, inspect.currentframe().f_back)
    if known is None:
        bundle.display(unknown(function))
        return function
    Memory.last = known.name
    if is_of_the_course(function):
        bundle.display(already(known))
        return function
    verdict = judged(function, known)
    kept = ""
    if verdict.status == RIGHT:
        Memory.right.add(known.name)
        kept = keep(function, known)
    bundle.display(shown(verdict, known, kept))
    return function if verdict.status == RIGHT else known.reference


def is_of_the_course(function: Any) -> bool:
    """Whether it is a helper, such as a check returns, and not the learner's answer."""
    home = getattr(function, "__module__", None)
    return isinstance(home, str) and home.startswith("helpers.")


def judged(function: Any, known: Exercise) -> Verdict:
    """The verdict on an answer; if the check itself fails, that is said instead of a traceback."""
    try:
        return grade(function, known.name)
    except Exception as error:
        text = f"The check itself stopped ({type(error).__name__}: {error}): please report it."
        return Verdict(known.name, WRONG, text)


def exercise_of(function: Any, frame: Any) -> Exercise | None:
    """The exercise of a function: by its own name, else by the variable that holds it."""
    name = name_of(function)
    if name in exercises():
        return exercises()[name]
    for scope in (frame.f_locals, frame.f_globals) if frame and callable(function) else ():
        for variable, value in list(scope.items()):
            if value is function and variable in exercises():
                return exercises()[variable]
    return None


def name_of(function: Any) -> str:
    """The name under which a function or class was defined, "" for anything else."""
    try:
        name = function.__name__
    except Exception:
        return ""
    return name if isinstance(name, str) else ""


def unknown(function: Any) -> Shown:
    """Say why there is nothing to check, and what could be checked."""
    name = name_of(function)
    if function is None:
        text = "`check` takes the function itself: `softmax = check(softmax)`. It got nothing."
    elif not callable(function):
        kind = type_name(plain(function))
        text = f"`check` takes the function itself: `softmax = check(softmax)`. This is {kind}."
    elif name in ("", "<lambda>"):
        text = "This function has no name: begin it with `def` and the name of the exercise."
    else:
        text = no_exercise(name)
    markup = bundle.card("not attempted", text, all_exercises())
    return Shown(markup, bundle.printable(f"not attempted: {text} {listed()}".replace("`", "")))


def no_exercise(name: str) -> str:
    """Say that a name is unknown, and which one may be meant."""
    near = difflib.get_close_matches(name, exercises(), n=1, cutoff=0.5)
    return f"No exercise is called `{name}`." + (f" Is it `{near[0]}`?" if near else "")


def listed() -> str:
    """The names of all exercises in a sentence."""
    return "There are exercises for " + ", ".join(f"`{name}`" for name in exercises()) + "."


def all_exercises() -> str:
    """Their names, folded."""
    return bundle.fold("All exercises", bundle.paragraph(listed()))


def already(known: Exercise) -> Shown:
    """The notebook's cell was run again with the reference that it got before."""
    name = known.name
    text = (
        f"`{name}` is the course's own now: run the cell with your function first, then this one."
    )
    return Shown(
        bundle.card("not attempted", text, folded(known)), f"{name}: {text.replace('`', '')}"
    )


# ---------------------------------------------------------------- the verdict


def shown(verdict: Verdict, known: Exercise, kept: str = "") -> Shown:
    """A verdict with its evidence; hints and solution stay folded until they are opened."""
    if verdict.status == NOT_ATTEMPTED:
        return not_attempted(known)
    status, message = STATUS[verdict.status], verdict.message.replace("Right on ", "tried on ", 1)
    evidence = verdict.evidence and untold(verdict.evidence, message)
    parts = parts_of(evidence, known.whole_numbers) if evidence else []
    parts = [part for part in parts if not is_told(part, message)]
    markup, text = bundle.shown_parts(parts)
    markup += bundle.paragraph(kept) if kept else ""
    markup += way(known) if verdict.status == RIGHT else folded(known)
    body = bundle.card(status, f"`{known.name}`: {message}", markup)
    pause = "," if verdict.status == RIGHT else "."
    lines = [f"{known.name}: {status}{pause} {message}", text, kept.replace("`", "")]
    return Shown(body, bundle.printable("\n".join(filter(None, lines)).replace("`", "")))


def untold(evidence: Evidence, message: str) -> Evidence:
    """The evidence without the text of an exception, where the message quotes it already."""
    raised = evidence.obtained
    if isinstance(raised, Raised) and in_plain_words(raised.text) in message:
        return replace(evidence, obtained=Raised(raised.kind))
    return evidence


def is_told(part: Part, message: str) -> bool:
    """Whether the message says it already."""
    text = part.text.partition(": ")[2] if isinstance(part, Words) else ""
    opening = f"For {text.rstrip('.')}:"
    failed = f"This must hold and does not: {text}."
    return bool(text) and (message.startswith(opening) or failed in message)


def not_attempted(known: Exercise) -> Shown:
    """What stands in every saved notebook: short, with the hints folded where there is room."""
    name = known.name
    text = f"`{name}`: replace `...` and run both cells; until then the course's own is used."
    said = f'Help: `hint("{name}")`, `solution("{name}")`.'
    plain = f"{name}: not attempted. The course's own is used until yours is right."
    full = bundle.card("not attempted", text, folded(known))
    if len((full + plain).encode()) >= SMALL:
        full = bundle.card("not attempted", text, bundle.paragraph(said))
    return Shown(full, plain)


def folded(known: Exercise) -> str:
    """Three hints and the solution, each to be opened by itself."""
    hints = zip(STEPS, known.hints, strict=True)
    return "".join(bundle.fold(step, bundle.paragraph(text)) for step, text in hints) + way(known)


def way(known: Exercise) -> str:
    """The solution, folded."""
    return bundle.fold("solution", bundle.code(source_of(known)))


def source_of(known: Exercise) -> str:
    """The reference as it stands in the helpers."""
    try:
        return inspect.getsource(known.reference)
    except (OSError, TypeError):
        return f"# {known.name} is in {known.reference.__module__}"


# ---------------------------------------------------------------- help


def hint(name: str | Callable | None = None) -> None:
    """Show the next of three steps: a nudge, the idea, the line.

    Without a name it is about the function that was checked last.
    """
    known = asked(name)
    if known is None:
        bundle.display(listing(name, "hint"))
        return
    step = Memory.shown.get(known.name, 0)
    if step == len(known.hints):
        text = f"Those were the three hints for `{known.name}`. One way to write it: "
        text += f'`solution("{known.name}")`.'
    else:
        Memory.shown[known.name] = step + 1
        text = f"`{known.name}`, hint {step + 1} of 3, {STEPS[step]}: {known.hints[step]}"
    bundle.display(Shown(bundle.paragraph(text), text.replace("`", "")))


def solution(name: str | Callable | None = None) -> None:
    """Show one way to write the function of an exercise: the source of the reference."""
    known = asked(name)
    if known is None:
        bundle.display(listing(name, "solution"))
        return
    source = source_of(known)
    title = f"`{known.name}`, one way:"
    bundle.display(Shown(bundle.paragraph(title) + bundle.code(source), source.strip("\n")))


def asked(name: Any) -> Exercise | None:
    """The exercise that is meant: by name or function, by default the last that was checked."""
    name = Memory.last if name is None else name
    return exercises().get(name if isinstance(name, str) else name_of(name))


def listing(name: Any, command: str) -> Shown:
    """Say which names can be asked for."""
    said = name if isinstance(name, str) else name_of(name)
    text = no_exercise(said) if said else f'Say which: `{command}("softmax")`.'
    markup = bundle.paragraph(text) + all_exercises()
    return Shown(markup, bundle.printable(f"{text} {listed()}".replace("`", "")))


# ---------------------------------------------------------------- progress


def progress() -> None:
    """Show all exercises by notebook, done and open: done is what is kept or right just now."""
    done = (kept_names() | Memory.right) & set(exercises())
    bundle.display(progress_map(done))


def by_notebook() -> dict[str, list[str]]:
    """The names of the exercises of each notebook, in the order of the course."""
    found: dict[str, list[str]] = {}
    for known in exercises().values():
        found.setdefault(known.notebook, []).append(known.name)
    return dict(sorted(found.items()))


def progress_map(done: set[str]) -> Shown:
    """The map of the exercises, those in `done` marked."""
    total = len(exercises())
    title = f"{len(done)} of {total} exercises done"
    rows, lines = [], [f"{title}."]
    for notebook, names in by_notebook().items():
        count = f"{sum(name in done for name in names)} of {len(names)}"
        heading = f"{notebook} · {TITLES.get(notebook, '')}"
        marks = [f"{'✓' if name in done else '○'} {name}" for name in names]
        rows.append([heading, count, ", ".join(marks)])
        lines.append(f"{heading}, {count}: " + ", ".join(marks))
    lines.append("✓ done, ○ open")
    return Shown(
        bundle.overview(title, ["notebook", "done", "✓ done, ○ open"], rows), "\n".join(lines)
    )
