"""Judge an answer by what it does: right, wrong and why, or not attempted."""

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from workshop.checks import influence
from workshop.checks.compare import Opaque, Raised, TimedOut, difference, same
from workshop.checks.repair import Repair, repair_of
from workshop.checks.sandbox import (
    Observation,
    agree,
    observe,
    observe_apart,
    observe_probe,
    undisturbed,
)
from workshop.exercises import find
from workshop.exercises.exercise import Exercise, Mistake, Probe, Untested

RIGHT, WRONG, NOT_ATTEMPTED = "right", "wrong", "not attempted"
TENSOR = set("torch F nn view permute unsqueeze contiguous masked_fill".split())  # PyTorch's words
EVERYTHING = "All numbers differ."
WORDS = 60  # of a message, before the fold
LIKELY = 0.6  # the share of wrong probes that a guess must explain


@dataclass(frozen=True)
class Evidence:
    """The smallest probe that shows a mistake: what went in, what came out, what should have."""

    label: str
    inputs: dict[str, Any]
    expected: Any
    obtained: Any


@dataclass(frozen=True)
class Verdict:
    """What a check found: status "right", "wrong" or "not attempted".

    `mistake` is the id of a known mistake or None, `message` says in words what is wrong or what
    was verified, `evidence` shows it where the answer is wrong. `backend` is the one it was
    found with: the first on which a right answer is right. `repair` is one change that makes a
    wrong answer right,
    looked for where no known mistake explains it.
    """

    exercise: str
    status: str
    message: str
    mistake: str | None = None
    evidence: Evidence | None = None
    backend: str | None = None
    repair: Repair | None = None


def grade(function: Any, exercise: str | None = None) -> Verdict:
    """Judge a function as the answer to an exercise, by default to the one of its name.

    Raises KeyError when there is no such exercise, and nothing for what the function does.
    """
    known = find(exercise or getattr(function, "__name__", str(function)))
    if not callable(function):
        text = f"Hand over the function itself: {known.name}, not its result {known.name}(…)."
        return Verdict(known.name, WRONG, text)
    if is_stub(function):
        return Verdict(known.name, NOT_ATTEMPTED, "Not attempted yet.")
    backends = backends_for(function, known)
    verdict, seen = settle(known, ((b, observe_apart(function, known, b)) for b in backends))
    if verdict.evidence and (text := wrong_header(function, known, verdict.evidence.obtained)):
        return replace(verdict, message=text, mistake=None)
    with contextlib.suppress(Exception):  # an addition: no verdict is lost for it
        return explained(verdict, seen, function, known)
    return verdict


def explained(verdict: Verdict, seen: list[Observation], function: Any, known: Exercise) -> Verdict:
    """Where no known mistake is sure: the change that repairs it, else what it depends on."""
    if not verdict.evidence or isinstance(verdict.evidence.obtained, TimedOut):
        return verdict
    results = [seen[i].value for i in wrong_of(known, seen)]
    if verdict.mistake and not all(isinstance(value, Raised) for value in results):
        return verdict  # where everything raises, a known mistake is but a guess
    repair = repair_of(function, known, verdict.backend, expected_of(known.name))
    if repair is None:
        return verdict if verdict.mistake else with_influence(verdict, seen, function, known)
    told = [*where(repair), *fails(verdict.evidence, known)]
    return replace(verdict, message=brief(told), mistake=None, repair=repair)


def fails(evidence: Evidence, known: Exercise) -> list[str]:
    """What differs, without the line, which the repair tells, and without what it tells too."""
    obtained = evidence.obtained
    if isinstance(obtained, str) and obtained.endswith("changed in place"):
        return []
    if isinstance(obtained, Raised):
        obtained = replace(obtained, line="")
    text = difference(evidence.expected, obtained, known.whole_numbers)
    return [] if text == EVERYTHING else [text]


def where(repair: Repair) -> list[str]:
    """Where a mistake is and why, without the code that mends it."""
    if repair.also:
        return ["Two things are to be changed.", *where(replace(repair, also=None)),
                *where(repair.also)]  # fmt: skip
    said = f"Line {repair.line}, {repair.place}"
    return [f"{said}: {repair.why}" if repair.why else f"Look at {said[0].lower()}{said[1:]}."]


def brief(sentences: Sequence[str], most: int = WORDS) -> str:
    """As many of the sentences, in order, as make no more than `most` words; the first always."""
    text = sentences[0]
    for more in filter(None, sentences[1:]):
        if len(f"{text} {more}".split()) <= most:
            text = f"{text} {more}"
    return text


def wrong_header(function: Callable, known: Exercise, obtained: Any) -> str:
    """Say what is wrong before the first line of the body: a class, or other parameters."""
    wanted = inspect.signature(known.reference).replace(return_annotation=inspect.Signature.empty)
    bare = [p.replace(annotation=p.empty) for p in wanted.parameters.values()]
    header = f"`def {known.name}{wanted.replace(parameters=bare)}`"
    if inspect.isclass(function) and all(base.__name__ != "Module" for base in function.__mro__):
        return f"{known.name} is a class, but must be a function: begin it with {header}."
    try:
        given = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return ""
    if given != known.parameters and sorted(given) == sorted(known.parameters):
        return f"Its parameters stand in another order: they must be as in {header}."
    if isinstance(obtained, Raised) and f"{known.name}() " in obtained.text and not obtained.line:
        return f"It raises {obtained.kind}: {obtained.text}. Its parameters must be as in {header}."
    return ""


def with_influence(
    verdict: Verdict, seen: list[Observation], function: Callable, known: Exercise
) -> Verdict:
    """The verdict with what the result depends on and must not, or does not and must."""
    expected, obtained = verdict.evidence.expected, verdict.evidence.obtained
    if isinstance(obtained, Raised | TimedOut):
        return verdict
    if isinstance(obtained, np.ndarray) and getattr(expected, "shape", ()) != obtained.shape:
        return verdict
    probes = [probe for probe in known.probes if probe.args]
    probes.sort(key=lambda probe: sum(np.size(x) for x in probe.args), reverse=True)
    for probe in probes[:1] + [p for p in probes if p.label == verdict.evidence.label]:
        for backend in backends_for(function, known):
            if found := influence.findings(function, known, probe, backend):
                first, *rest = sentences(known, verdict.evidence, seen)
                told = [*found, first] if influence.CHANCE in found else [first, *found[:2], *rest]
                return replace(verdict, message=brief(told))
    return verdict


def backends_for(function: Callable, known: Exercise) -> list[str]:
    """NumPy, and tensors where torch is in use: to load it takes longer than an answer may.

    An answer that speaks PyTorch meets tensors first, so that an error it gets is one of PyTorch's.
    """
    names = set(getattr(getattr(function, "__code__", None), "co_names", ()))
    if "torch" in names or known.backends == ("torch",):
        import_module("torch")
    if known.prepare:
        known.prepare()
    if "torch" not in sys.modules:
        return ["numpy"]
    return sorted(known.backends, key=lambda b: b != "torch") if names & TENSOR else known.backends


def settle(
    known: Exercise, runs: Iterable[tuple[str, list[Observation]]]
) -> tuple[Verdict, list[Observation]]:
    """The verdict on what each backend saw, and that: the first right, else the most telling."""
    verdicts = []
    for backend, seen in runs:
        verdicts.append((replace(judge(known, seen), backend=backend), seen))
        if isinstance(seen[-1].value, TimedOut) or gives_the_same(known, seen):
            return verdicts[-1]
    return min(verdicts, key=lambda pair: _rank(pair[0]))


def gives_the_same(known: Exercise, seen: list[Observation]) -> bool:
    """Whether all results are right; whoever then changes an argument in place is judged by that,
    and not tried on tensors, of which `x += array` makes a new one."""
    pairs = zip(seen, expected_of(known.name), strict=True)
    return all(same(o.value, e.value, known.whole_numbers) for o, e in pairs)


def is_stub(function: Callable) -> bool:
    """Whether a function does nothing: its body is `...`, `pass` or `raise NotImplementedError`."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_code not in _idle_code():
        return False
    raises = code.co_names == ("NotImplementedError",)
    nothing = (None, Ellipsis, function.__doc__)
    return raises or (not code.co_names and all(constant in nothing for constant in code.co_consts))


@cache
def _idle_code() -> set[bytes]:
    """What this Python makes of bodies that do nothing."""
    raised = ["NotImplementedError", "NotImplementedError()", "NotImplementedError('later')"]
    bodies = ["...", "pass", "return", *(f"raise {error}" for error in raised)]
    scope: dict[str, Callable] = {}
    for i, body in enumerate(bodies):
        exec(f"def plain_{i}():\n {body}\ndef told_{i}():\n 'What it does.'\n {body}", scope)
    return {f.__code__.co_code for name, f in scope.items() if name[0] != "_"}


@cache
def expected_of(name: str) -> list[Observation]:
    """What the reference gives on each probe."""
    known = find(name)
    with undisturbed():
        return list(observe(known.reference, known, known.backends[0]))


class Trace(Sequence):
    """What a known mistake gives on each probe, found out when it is first looked at."""

    def __init__(self, mistake: Mistake, known: Exercise):
        self.mistake, self.known = mistake, known
        self.seen: dict[int, Observation] = {}

    def __len__(self) -> int:
        return len(self.known.probes)

    def __getitem__(self, i: int) -> Observation:
        if i not in self.seen:
            probe, backend = self.known.probes[i], self.known.backends[0]
            with undisturbed():
                made = observe_probe(self.mistake.function, self.known, probe, backend)
            self.seen[i] = made
        return self.seen[i]


@cache
def mistakes_of(name: str) -> list[tuple[Mistake, Trace]]:
    """The known mistakes of an exercise, and what each gives on its probes."""
    known = find(name)
    return [(mistake, Trace(mistake, known)) for mistake in known.mistakes]


def judge(known: Exercise, seen: list[Observation]) -> Verdict:
    """Compare observations with those of the reference and of the known mistakes."""
    expected, wrong = expected_of(known.name), wrong_of(known, seen)
    if not wrong:
        return Verdict(known.name, RIGHT, verified(known, seen))
    late = [i for i in wrong if isinstance(seen[i].value, TimedOut)]
    first = (late or wrong)[0]
    evidence = _evidence(known.probes[first], expected[first], seen[first], known)
    if not late and (mistake := _named(known, seen, wrong)):
        message = mistake[0].message + _in_place(seen, mistake[1])
        if all(isinstance(seen[i].value, Raised) for i in wrong):  # many causes look like this
            raised = difference(evidence.expected, evidence.obtained)
            message = brief([raised, f"The cause may be: {message}"])
        return Verdict(known.name, WRONG, message, mistake[0].id, evidence)
    message = brief(sentences(known, evidence, seen))
    return Verdict(known.name, WRONG, message, None, evidence)


def verified(known: Exercise, seen: list[Observation]) -> str:
    """Say on what a right answer was tried, in at most 20 words."""
    labels = [known.probes[i].label for i in tried(known, seen)]
    count = next((n for n in range(len(labels), 1, -1) if len(_listed(labels, n).split()) <= 18), 1)
    return f"Right on {_listed(labels, count)}."


def _listed(labels: list[str], count: int) -> str:
    more = f"; {len(labels) - count} more" if len(labels) > count else ""
    return "; ".join(labels[:count]) + more


def tried(known: Exercise, seen: list[Observation]) -> list[int]:
    """The probes that tell right from wrong: neither the answer nor the reference is untested."""
    pairs = enumerate(zip(seen, expected_of(known.name), strict=True))
    return [i for i, pair in pairs if not any(isinstance(o.value, Untested) for o in pair)]


def _rank(verdict: Verdict) -> tuple[bool, bool, bool]:
    """The most telling of several verdicts first: named, or else with a result to look at, or else
    with an error of its own, not one about an array where a tensor was meant."""
    obtained = verdict.evidence and verdict.evidence.obtained
    misfit = isinstance(obtained, Raised) and "ndarray" in obtained.text
    return verdict.mistake is None, isinstance(obtained, Raised | Opaque), misfit


def _named(
    known: Exercise, seen: list[Observation], wrong: list[int]
) -> tuple[Mistake, Trace] | None:
    """The known mistake that gives the same on every probe.

    Where none also changes the same inputs, one that changes fewer of them: the rest is said too.
    """

    def alike(a: Observation, b: Observation) -> bool:
        touches_no_more = set(b.changed) <= set(a.changed)
        return touches_no_more and same(a.value, b.value, known.whole_numbers)

    telling_first = sorted(range(len(seen)), key=lambda i: i not in wrong)
    nothing_came = all(isinstance(o.value, Raised | Untested) for o in seen)

    def likely(made: Trace) -> bool:  # where everything raises, only the same words tell something
        a, b = seen[wrong[0]].value, made[wrong[0]].value
        return not nothing_came or (a.kind, a.text) == (b.kind, b.text)

    for test in (lambda a, b: agree(a, b, known)), alike:
        for mistake, made in mistakes_of(known.name):
            if all(test(seen[i], made[i]) for i in telling_first) and likely(made):
                return mistake, made
    return None


def _in_place(seen: list[Observation], made: Trace) -> str:
    """Say which arguments were changed in place that a mistake leaves alone."""
    changed = {n for a, b in zip(seen, made, strict=True) for n in a.changed if n not in b.changed}
    return "".join(f" It also changes its argument {n} in place." for n in sorted(changed))


def _evidence(probe: Probe, expected: Observation, seen: Observation, known: Exercise) -> Evidence:
    inputs = dict(zip(known.parameters, probe.args, strict=False)) | probe.kwargs
    if same(seen.value, expected.value, known.whole_numbers):  # so it changed its inputs
        names = " and ".join(seen.changed)
        return Evidence(probe.label, inputs, f"{names} unchanged", f"{names} changed in place")
    return Evidence(probe.label, inputs, expected.value, seen.value)


def sentences(known: Exercise, evidence: Evidence, seen: list[Observation]) -> list[str]:
    """What fails, where no known mistake explains all of it: the most telling first."""
    wrong = wrong_of(known, seen)
    changed = [name for i in wrong for name in seen[i].changed]
    if isinstance(evidence.obtained, str) and evidence.obtained.endswith("changed in place"):
        name, changed = changed[0], []
        told = [f"It changes its argument {name} in place: make a new array, or work on a copy."]
    else:
        text = difference(evidence.expected, evidence.obtained, known.whole_numbers)
        told = [f"{begun(evidence.label)}: {text}"]
    told += [f"It also changes its argument {name} in place." for name in changed[:1]]
    if guess := _guess(known, seen, wrong):
        told.append(f"Perhaps this is part of it: {guess.message}")
    right = [known.probes[i].label for i in tried(known, seen) if i not in wrong]
    told += [f"It is right on: {'; '.join(right[:4])}."] if right else []
    return [*told, _more_axes(known, wrong)]


def begun(label: str) -> str:
    """A label as a sentence begins, unless it begins with code."""
    return label if "=" in label.split()[0] else f"{label[0].upper()}{label[1:]}"


def wrong_of(known: Exercise, seen: list[Observation]) -> list[int]:
    """The probes on which an answer differs from the reference."""
    pairs = enumerate(zip(seen, expected_of(known.name), strict=True))
    return [i for i, pair in pairs if not agree(*pair, known)]


def _more_axes(known: Exercise, wrong: list[int]) -> str:
    """Say whether it fails where there are more axes than in what is right."""

    def axes(probe: Probe) -> int:
        return max(map(np.ndim, (*probe.args, *probe.kwargs.values())), default=0)

    right = [axes(probe) for i, probe in enumerate(known.probes) if i not in wrong]
    if right and 0 < max(right) < min(axes(known.probes[i]) for i in wrong):
        return "It fails wherever there are more axes in front, such as a batch."
    return ""


def _guess(known: Exercise, seen: list[Observation], wrong: list[int]) -> Mistake | None:
    """The known mistake that explains most of the wrong probes, if it explains enough of them."""

    results = [i for i in wrong if not isinstance(seen[i].value, Raised)]
    if not results:
        return None

    def explained(made: Trace) -> float:
        alike: set[int] = set()
        for k, i in enumerate(wrong):
            if not isinstance(made[i].value, Untested) and agree(seen[i], made[i], known):
                alike.add(i)
            if len(alike) + len(wrong) - k - 1 < LIKELY * len(wrong):
                return 0  # too few are left to try
        return len(alike) / len(wrong) if alike & {*results} else 0  # errors have many causes

    telling = [(explained(made), mistake) for mistake, made in mistakes_of(known.name)]
    share, mistake = max(telling, key=lambda pair: pair[0], default=(0, None))
    return mistake if share >= LIKELY else None
