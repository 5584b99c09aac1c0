"""What a learner calls: `check`, `hint`, `solution` and `progress`."""

import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from helpers.checks import page, place
from helpers.checks.compare import Raised, in_plain_words, type_name
from helpers.checks.evidence import Part, Words, parts_of
from helpers.checks.judge import NOT_ATTEMPTED, RIGHT, WRONG, Evidence, Verdict, grade
from helpers.checks.keep import keep, kept_names, wants_tensors
from helpers.checks.page import Shown
from helpers.checks.place import Memory
from helpers.checks.sandbox import as_written, on_tensors, plain
from helpers.checks.whys import Repair
from helpers.exercises import ASKED, exercises, nearest
from helpers.exercises.exercise import Exercise
from helpers.stages import TITLES

STATUS = {RIGHT: "right", WRONG: "not yet", NOT_ATTEMPTED: "not attempted"}
STEPS = ("a nudge", "the idea", "the line")
SMALL = 3000  # bytes of an output that stands in every saved notebook


# ---------------------------------------------------------------- check


def check(function: Any = None) -> Any:
    """Judge an answer and show the verdict; the exercise is known by the function's name.

    Returns the function if it is right and the reference if not, so that a notebook runs on
    either way: `softmax = check(softmax)`. A right one for tensors takes arrays as well from then
    on. What belongs to no exercise comes back as it is.
    """
    known = exercise_of(function, inspect.currentframe().f_back)
    if known is None:
        page.display(unknown(function))
        return function
    function = as_written(function)
    if is_of_the_course(function):
        place.remember_again(known.name)
        page.display(already(known))
        return function
    return handed_back(function, known)


def handed_back(function: Any, known: Exercise) -> Any:
    """Judge an answer and show the verdict; returns what the notebook goes on with."""
    verdict = judged(function, known)
    place.remember(known.name, function, verdict.status, verdict.repair)
    if verdict.status != RIGHT:
        page.display(shown(verdict, known))
        return known.reference
    tensors = verdict.backend == "torch" and wants_tensors(function, known)
    page.display(shown(verdict, known, keep(function, known, tensors)))
    return on_tensors(function) if tensors else function


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
    if function is None or not callable(function):
        given = "It got nothing" if function is None else f"This is {type_name(plain(function))}"
        text = f"`check` takes the function itself: {example('check')}. {given}. {offered()}"
    elif name in ("", "<lambda>"):
        text = "This function has no name: begin it with `def` and the name of the exercise. "
        text += offered()
    else:
        text = no_exercise(name)
    markup = page.card("not attempted", text, "")
    return Shown(markup, page.printable(f"not attempted: {text}".replace("`", "")))


def no_exercise(name: str) -> str:
    """Say that a name is unknown, and which one may be meant, or which there are."""
    near = nearest(name[:60])
    return f"No exercise is called `{name[:60]}`. " + (f"Is it `{near}`?" if near else offered())


def example(command: str) -> str:
    """A call with one of this notebook's exercises."""
    name = (*place.here(), "softmax")[0]
    return f"`{name} = check({name})`" if command == "check" else f'`{command}("{name}")`'


def offered() -> str:
    """What can be asked for: this notebook's exercises, or where all of them are listed."""
    if names := place.here():
        return "In this notebook: " + ", ".join(f"`{name}`" for name in names) + "."
    return "All exercises: `from helpers.checks import progress`, then `progress()`."


def already(known: Exercise) -> Shown:
    """The notebook's cell was run again with the reference that it got before."""
    name = known.name
    text = (
        f"`{name}` is the course's own now: run the cell with your function first, then this one."
    )
    return Shown(
        page.card("not attempted", text, folded(known)), f"{name}: {text.replace('`', '')}"
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
    markup, text = page.shown_parts(parts)
    markup += page.paragraph(kept) if kept else ""
    markup += way(known) if verdict.status == RIGHT else folded(known)
    body = page.card(status, f"`{known.name}`: {message}", markup)
    pause = "," if verdict.status == RIGHT else "."
    lines = [f"{known.name}: {status}{pause} {message}", text, kept.replace("`", "")]
    return Shown(body, page.printable("\n".join(filter(None, lines)).replace("`", "")))


def untold(evidence: Evidence, message: str) -> Evidence:
    """The evidence without the text of an exception, where the message quotes it already."""
    raised = evidence.obtained
    if isinstance(raised, Raised) and in_plain_words(raised.text) in message:
        return replace(evidence, obtained=Raised(raised.kind))
    return evidence


def is_told(part: Part, message: str) -> bool:
    """Whether the message says it already."""
    text = part.text.partition(": ")[2] if isinstance(part, Words) else ""
    opening = f"{text[:1].upper()}{text[1:].rstrip('.')}:"
    failed = f"This must hold and does not: {text}."
    return bool(text) and (message.startswith(opening) or failed in message)


def not_attempted(known: Exercise) -> Shown:
    """What stands in every saved notebook: short, with the hints folded where there is room."""
    name = known.name
    text = f"`{name}`: replace `...` and run both cells; until then the course's own is used."
    said = f'Help: `hint("{name}")`, `solution("{name}")`.'
    plain = f"{name}: not attempted. The course's own is used until yours is right."
    full = page.card("not attempted", text, folded(known))
    if len((full + plain).encode()) >= SMALL:
        full = page.card("not attempted", text, page.paragraph(said))
    return Shown(full, plain)


def folded(known: Exercise) -> str:
    """Three hints and the solution, each to be opened by itself."""
    hints = zip(STEPS, known.hints, strict=True)
    return "".join(page.fold(step, page.paragraph(text)) for step, text in hints) + way(known)


def way(known: Exercise) -> str:
    """The solution and what its parts are for, folded."""
    return page.fold("solution", page.code(source_of(known)) + reasons_html(known))


def source_of(known: Exercise) -> str:
    """The first answer: one way to write it, as it runs in its notebook."""
    return known.answers[0]


def reasons(known: Exercise) -> list[str]:
    """What the parts of the solution are for, each with its code."""
    shown = source_of(known)
    pairs = ((next((c for c in why.code if holds(shown, c)), ""), why.text) for why in known.whys)
    return [f"`{code}`: {text}" for code, text in pairs if code]


def holds(source: str, code: str) -> bool:
    """Whether a piece of code stands in a source, as whole words."""
    return re.search(rf"(?<![\w.]){re.escape(code)}(?!\w)", source) is not None


def reasons_html(known: Exercise) -> str:
    return "".join(map(page.paragraph, reasons(known)))


# ---------------------------------------------------------------- help


def hint(name: str | Callable | None = None) -> None:
    """Show one change that makes your newest answer pass, if one was found; then, call by call,
    three steps: a nudge, the idea, the line.

    Without a name it is about the exercise that is being written.
    """
    known = asked(name)
    if known is None:
        page.display(listing(name, "hint"))
    elif repair := place.take_repair(known.name):
        page.display(changed(known, repair))
    else:
        page.display(step_of(known))


def changed(known: Exercise, repair: Repair) -> Shown:
    """The learner's line beside the one that passes, and why."""
    many = "These two changes pass" if repair.also else "This one change passes"
    title = f"`{known.name}`: {many} every test."
    markup, lines = page.paragraph(title), [title]
    while repair:
        for head, source in (
            (f"line {repair.line}, yours", repair.before),
            ("changed", repair.after),
        ):
            source = source or ("(nothing)" if head == "changed" else "(a new line here)")
            markup += page.paragraph(f"{head}:") + page.code(source)
            lines += [f"{head}:", source]
        markup += page.paragraph(repair.why) if repair.why else ""
        lines += [repair.why] if repair.why else []
        repair = repair.also
    return Shown(markup, page.printable("\n".join(lines).replace("`", "")))


def step_of(known: Exercise) -> Shown:
    """The next of the three hints."""
    step = Memory.shown.get(known.name, 0)
    if step == len(known.hints):
        text = f"Those were the three hints for `{known.name}`. One way to write it: "
        text += f'`solution("{known.name}")`.'
    else:
        Memory.shown[known.name] = step + 1
        text = f"`{known.name}`, hint {step + 1} of 3, {STEPS[step]}: {known.hints[step]}"
    return Shown(page.paragraph(text), text.replace("`", ""))


def solution(name: str | Callable | None = None) -> None:
    """Show one way to write the function of an exercise, as it can be run in its notebook."""
    known = asked(name)
    if known is None:
        page.display(listing(name, "solution"))
        return
    source, title = source_of(known), f"`{known.name}`, one way:"
    text = "\n".join([source, "", *(f"# {why}" for why in reasons(known))]).strip("\n")
    markup = page.paragraph(title) + page.code(source) + reasons_html(known)
    page.display(Shown(markup, text.replace("`", "")))


def asked(name: Any) -> Exercise | None:
    """The exercise that is meant: by name or function, by default the one being written."""
    if name is None:
        name = place.current()
    known = exercises().get(name if isinstance(name, str) else name_of(name))
    Memory.named = known and known.name
    return known


def listing(name: Any, command: str) -> Shown:
    """Say which names can be asked for."""
    said = name if isinstance(name, str) else name_of(name)
    text = no_exercise(said) if said else f"Say which: {example(command)}. {offered()}"
    return Shown(page.paragraph(text), page.printable(text.replace("`", "")))


# ---------------------------------------------------------------- progress


def progress() -> None:
    """Show what the notebooks ask for, done and open: done is what is kept or right just now."""
    kept, obstacle = kept_names()
    made = progress_map(kept | Memory.right)
    if obstacle:
        text = f"{obstacle}. What it holds is not counted."
        plain_text = f"{text}\n{made.text}".replace("`", "")
        made = Shown(page.paragraph(text) + made.html, page.printable(plain_text))
    page.display(made)


def progress_map(done: set[str]) -> Shown:
    """The map of the exercises, those in `done` marked."""
    asked = {name for names in ASKED.values() for name in names}
    title = f"{len(asked & done)} of {len(asked)} exercises done"
    rows, lines = [], [f"{title}."]
    for notebook, names in ASKED.items():
        count = f"{sum(name in done for name in names)} of {len(names)}"
        heading = f"{notebook} · {TITLES[notebook]}"
        marks = [f"{'✓' if name in done else '○'} {name}" for name in names]
        rows.append([heading, count, ", ".join(marks)])
        lines.append(f"{heading}, {count}: " + ", ".join(marks))
    lines.append("✓ done, ○ open")
    table = page.overview(title, ["notebook", "done", "✓ done, ○ open"], rows)
    return Shown(table, "\n".join(lines))
