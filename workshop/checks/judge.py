"""Judge an answer by what it does: right, wrong and why, or not attempted.

Findings in their order, the first that holds is told: right; a slip with the same results on all
probes; one with the same wherever the answer returns something; what is obvious and all there is to
say (None, another type, a changed argument); two slips at once; one plausible edit that passes
every test, after what is obvious (an error, a shape, nan); the smallest probe that fails.
"""

import ast
import contextlib
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from itertools import permutations
from types import FunctionType
from typing import Any

import numpy as np

from workshop.checks import clues, sandbox
from workshop.checks.compare import Opaque, Raised, TimedOut, difference, kind_of, same
from workshop.checks.repair import Answer, Repair, answer_of, repair_of
from workshop.checks.sandbox import Observation, agree, observe, observe_apart
from workshop.exercises import find
from workshop.exercises.exercise import Exercise, Probe, Slip, Untested, edited, made

RIGHT, WRONG, NOT_ATTEMPTED = "right", "wrong", "not attempted"
TENSOR = set("torch F nn view permute unsqueeze contiguous masked_fill dim keepdim".split())
MISFIT = ("ndarray", "Tensor", "unexpected keyword", "must be tensor")  # another backend's errors
STATED = {"its parameters", "no hook is left"}  # what a module, a model is asked for first
WORDS = 60  # of a message, before the fold


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

    `message` says in words what is wrong or what was verified; `mistake` is the name of a slip, or
    those of two, or None; `evidence` shows where the answer is wrong. `backend` is the one it was
    found with: the first on which a right answer is right. `repair` is one change that passes every
    test; `final` says that nothing more is to be looked for.
    """

    exercise: str
    status: str
    message: str
    mistake: str | None = None
    evidence: Evidence | None = None
    backend: str | None = None
    repair: Repair | None = None
    final: bool = True


def grade(function: Any, exercise: str | None = None) -> Verdict:
    """Judge a function or class as the answer to an exercise, by default to the one of its name.

    Raises KeyError when there is no such exercise, and nothing for what the answer does.
    """
    known = find(exercise or getattr(function, "__name__", str(function)))
    if not callable(function):
        text = f"Hand over the function itself: {known.name}, not its result {known.name}(…)."
        return Verdict(known.name, WRONG, text)
    if is_stub(function):
        return Verdict(known.name, NOT_ATTEMPTED, "Not attempted yet.")
    if text := of_another_kind(function, known):
        return Verdict(known.name, WRONG, text)
    backends = backends_for(function, known)
    verdict, seen = settle(known, ((b, observe_apart(function, known, b)) for b in backends))
    if verdict.evidence and (text := other_header(function, known, verdict.evidence.obtained)):
        return replace(verdict, message=text, mistake=None)
    if verdict.final:
        return verdict
    with contextlib.suppress(Exception):  # an addition: no verdict is lost for it
        return explained(verdict, seen, function, known)
    return verdict


def explained(verdict: Verdict, seen: list[Observation], function: Any, known: Exercise) -> Verdict:
    """Where no slip is sure: the change that repairs it, else what it depends on."""
    wrong, lead = wrong_of(known, seen), obvious(verdict.evidence, seen, known)
    if clues.by_chance(function, known, verdict.backend):
        first, *_ = sentences(known, verdict.evidence, seen)
        return replace(verdict, message=brief([clues.CHANCE, first]))
    answer = answer_of(function, known) if known.is_class or known.parameters else None
    repair = repair_of(answer, known, verdict.backend, expected_of(known.name), wrong)
    if repair is None:
        return replace(verdict, message=brief(unexplained(verdict, seen, known, answer)))
    if repair.why:
        told = f"Line {repair.line}: {repair.why}"
    elif repair.rivals:
        told = f"Look at line {repair.line}: a change there passes every test."
    else:
        more = repair.before.count("\n")
        lines = f"lines {repair.line} to {repair.line + more}" if more else f"line {repair.line}"
        told = f"One change in {lines} passes every test."
    return replace(verdict, message=brief([lead and begun(lead), told]), repair=repair)


def brief(sentences: Sequence[str], most: int = WORDS) -> str:
    """As many of the sentences, in order, as make no more than `most` words; the first always."""
    text, *rest = filter(None, sentences)
    for more in rest:
        if len(f"{text} {more}".split()) <= most:
            text = f"{text} {more}"
    return text


# ---------------------------------------------------------------- what is handed in


def is_stub(function: Callable) -> bool:
    """Whether it does nothing: its body, or the `forward` of a class, is `...` or the like."""
    function = vars(function).get("forward", function) if inspect.isclass(function) else function
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


def of_another_kind(function: Callable, known: Exercise) -> str:
    """Say that it is a class or a function, but must be the other, or has another name."""
    wanted, given = ("class", "function")[:: 1 if known.is_class else -1]
    name = getattr(function, "__name__", known.name)
    if inspect.isclass(function) != known.is_class:
        return f"{name} is a {given}, but must be a {wanted}: begin it with `{known.header}`."
    written = isinstance(function, FunctionType | type) and name not in ("<lambda>", known.name)
    course = getattr(function, "__module__", "") or ""
    if written and not str(course).startswith(("numpy", "torch", "helpers", "workshop")):
        return f"This is `{name}`; the exercise is {known.name}: begin it with `{known.header}`."
    return ""


def other_header(function: Callable, known: Exercise, obtained: Any) -> str:
    """Say what is wrong in the first line of a function: other parameters."""
    header, wanted = f"`{known.header}`", known.parameters
    try:
        given = list(inspect.signature(function).parameters) if wanted else []
    except (TypeError, ValueError):
        return ""
    if given != wanted and sorted(given) == sorted(wanted):
        return f"Its parameters stand in another order: they must be as in {header}."
    called = isinstance(obtained, Raised) and f"{known.name}() " in obtained.text
    if called and not obtained.line:
        return f"It raises {obtained.kind}: {obtained.text}. Its parameters must be as in {header}."
    return ""


def backends_for(function: Callable, known: Exercise) -> list[str]:
    """NumPy, and tensors where torch is in use: to load it takes longer than an answer may.

    An answer that speaks PyTorch meets tensors first, so that an error it gets is one of PyTorch's.
    """
    code = getattr(function, "__code__", None)
    names = set(getattr(code, "co_names", ()))
    names.update(*(c for c in getattr(code, "co_consts", ()) if isinstance(c, tuple)))  # keywords
    if "torch" in names or known.backends == ("torch",):
        import_module("torch")
    if known.prepare:
        known.prepare()
    if "torch" not in sys.modules:
        return ["numpy"]
    return sorted(known.backends, key=lambda b: b != "torch") if names & TENSOR else known.backends


# ---------------------------------------------------------------- what slips do


@cache
def expected_of(name: str) -> list[Observation]:
    """What the reference gives on each probe."""
    known = find(name)
    with sandbox.undisturbed():
        return list(observe(known.reference, known, known.backends[0]))


class Trace(Sequence):
    """What a text gives on each probe, found out when it is first looked at."""

    def __init__(self, source: str, known: Exercise):
        self.known, self.seen, self.function = known, {}, made(source, known.name)

    def __len__(self) -> int:
        return len(self.known.probes)

    def __getitem__(self, i: int) -> Observation:
        if i not in self.seen:
            probe, backend = self.known.probes[i], self.known.backends[0]
            with sandbox.undisturbed():
                self.seen[i] = sandbox.observe_probe(self.function, self.known, probe, backend)
        return self.seen[i]


@cache
def trace_of(name: str, source: str) -> Trace:
    return Trace(source, find(name))


def traces_of(name: str) -> list[tuple[Slip, Trace]]:
    """The slips of an exercise, and what each gives on its probes."""
    return [(slip, trace_of(name, slip.wrong)) for slip in find(name).slips]


def pair_of(name: str, a: Slip, b: Slip) -> Trace | None:
    """What two slips give together, None where one leaves no place for the other."""
    both = edited(a.wrong, b.edits) if a.right == b.right else a.wrong
    undone = any(new and new in b_new for _, new in a.edits for _, b_new in b.edits)
    if both not in (a.wrong, b.wrong) and not undone:
        with contextlib.suppress(Exception):  # together they may be no Python
            return trace_of(name, both)
    return None


# ---------------------------------------------------------------- the findings


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


def _rank(verdict: Verdict) -> tuple[bool, bool]:
    """The most telling of several verdicts first: named, or else no misfit, such as an error about
    an array where a tensor was meant; of equal ones that of the backend that the answer speaks."""
    obtained = verdict.evidence and verdict.evidence.obtained
    text = getattr(obtained, "text", "")
    misfit = isinstance(obtained, Opaque) or any(w in text for w in MISFIT)
    return verdict.mistake is None, misfit


def gives_the_same(known: Exercise, seen: list[Observation]) -> bool:
    """Whether all results are right; whoever then changes an argument in place is judged by that,
    and not tried on tensors, of which `x += array` makes a new one."""
    pairs = zip(seen, expected_of(known.name), strict=True)
    return all(same(o.value, e.value, known.whole_numbers) for o, e in pairs)


def judge(known: Exercise, seen: list[Observation]) -> Verdict:
    """Compare observations with those of the reference and of the slips, in the order of findings.

    Where nothing says enough the verdict is not `final`: the answer's text may say more.
    """
    expected, wrong = expected_of(known.name), wrong_of(known, seen)
    if not wrong:
        return Verdict(known.name, RIGHT, verified(known, seen))
    late = [i for i in wrong if isinstance(seen[i].value, TimedOut)]
    first = (late or wrong)[0]
    evidence = _evidence(known.probes[first], expected[first], seen[first], known)

    def verdict(message: str, mistake: str | None = None, final: bool = True) -> Verdict:
        return Verdict(known.name, WRONG, message, mistake, evidence, final=final)

    if late:
        return verdict(brief(sentences(known, evidence, seen)))
    if slip := _slip(known, seen) or _almost(known, seen, wrong):
        message = slip.why + _in_place(seen, dict(traces_of(known.name))[slip])
        if all(isinstance(seen[i].value, Raised) for i in wrong):  # many causes look like this
            message = brief([obvious(evidence, seen, known), f"The cause may be: {message}"])
        return verdict(message, slip.name)
    if is_all_there_is(evidence):
        return verdict(brief(sentences(known, evidence, seen)))
    if two := _two_slips(known, seen, wrong[0]):
        a, b = sorted(two, key=lambda slip: known.slips.index(slip))
        return verdict(f"Two things. {a.why} And: {b.why}", f"{a.name} + {b.name}")
    return verdict(brief(sentences(known, evidence, seen)), final=False)


def _slip(known: Exercise, seen: list[Observation]) -> Slip | None:
    """The slip with equal results on all probes; one that changes fewer arguments is second."""

    def likely(trace: Trace) -> bool:  # where all raises, only the same words tell something
        if not all(isinstance(o.value, Raised | Untested) for o in seen):
            return True
        return getattr(seen[0].value, "text", "") == getattr(trace[0].value, "text", None)

    wrong = not gives_the_same(known, seen)  # else it is only what it changes
    for alike in (agree, _does_no_less)[: 1 + wrong]:
        for slip, trace in traces_of(known.name):
            if all(alike(o, trace[i], known) for i, o in enumerate(seen)) and likely(trace):
                return slip
    return None


def _does_no_less(seen: Observation, made: Observation, known: Exercise) -> bool:
    """Whether an answer gives what a slip gives, and changes at least the same arguments."""
    whole = known.whole_numbers
    return {*made.changed} <= {*seen.changed} and same(seen.value, made.value, whole)


def _almost(known: Exercise, seen: list[Observation], wrong: list[int]) -> Slip | None:
    """The slip with equal results wherever the answer gives any, wrong ones in at least two."""
    given = [i for i, o in enumerate(seen) if not isinstance(o.value, Raised)]
    few = 2 * len(given) < len(seen) or len({*given} & {*wrong}) < 2
    if few or len(given) == len(seen):
        return None
    slips = traces_of(known.name)
    fits = (s for s, t in slips if all(_does_no_less(seen[i], t[i], known) for i in given))
    return next(fits, None)


def _two_slips(known: Exercise, seen: list[Observation], first: int) -> tuple[Slip, Slip] | None:
    """Two slips that together give what an answer gives; not where it gives too little to tell: it
    raises, or gives one number, always the same, where it is wrong."""
    expected = expected_of(known.name)[first]
    given = [o.value for o in seen if not isinstance(o.value, Raised)]
    few = all(isinstance(x, int | float | str) for x in given) and len({*map(str, given)}) < 4
    if known.trains or 2 * len(given) < len(seen) or few:
        return None
    for a, b in permutations(known.slips, 2):
        trace = pair_of(known.name, a, b)
        if trace is None or agree(trace[first], expected, known):
            continue
        if all(_does_no_less(o, trace[k], known) for k, o in enumerate(seen)):
            return a, b
    return None


def _in_place(seen: list[Observation], made: Trace) -> str:
    """Say which arguments were changed in place that a slip leaves alone."""
    changed = {n for a, b in zip(seen, made, strict=True) for n in a.changed if n not in b.changed}
    return "".join(f" It also changes its argument {n} in place." for n in sorted(changed))


def is_all_there_is(evidence: Evidence) -> bool:
    """Whether the obvious is all there is to say: None, another type, an argument changed alone,
    right numbers of another kind or turned round, a module with other parameters."""
    want, got = evidence.expected, evidence.obtained
    if got is None or in_place_only(evidence):
        return True
    if isinstance(want, np.ndarray) and isinstance(got, np.ndarray):
        turned = want.ndim == got.ndim == 2 and same(got.T, want, whole=True)
        return turned or (want.dtype.kind != got.dtype.kind and np.array_equal(want, got))
    if isinstance(want, dict) and isinstance(got, dict) and {*want} & STATED:
        first = next((k for k in want if not same(want[k], got.get(k))), "result")
        return first not in ("result", "logits")  # what a module has, and how a model is left
    return isinstance(got, Opaque | list | dict) and not isinstance(want, type(got))


def in_place_only(evidence: Evidence) -> bool:
    return isinstance(evidence.obtained, str) and evidence.obtained.endswith("changed in place")


def obvious(evidence: Evidence, seen: list[Observation], known: Exercise) -> str:
    """An error, another type, shape or kind of number, nan: one sentence; "" for other values."""
    want, got, whole = evidence.expected, evidence.obtained, known.whole_numbers
    if in_place_only(evidence) or (isinstance(got, float | str) and type(got) is type(want)):
        return ""
    if not isinstance(want, np.ndarray) or not isinstance(got, np.ndarray):
        return difference(want, got, whole)
    shapes = want.shape != got.shape or kind_of(want, whole) != kind_of(got, whole)
    odd = got.dtype.kind == "f" and not np.isfinite(got).all() and np.isfinite(want).all()
    return difference(want, got, whole) if shapes or odd else ""


def wrong_of(known: Exercise, seen: list[Observation]) -> list[int]:
    """The probes on which an answer differs from the reference."""
    pairs = enumerate(zip(seen, expected_of(known.name), strict=True))
    return [i for i, pair in pairs if not agree(*pair, known)]


def _evidence(probe: Probe, expected: Observation, seen: Observation, known: Exercise) -> Evidence:
    inputs = dict(zip(known.parameters, probe.args, strict=False))
    if same(seen.value, expected.value, known.whole_numbers):  # so it changed its inputs
        names = " and ".join(seen.changed)
        return Evidence(probe.label, inputs, f"{names} unchanged", f"{names} changed in place")
    return Evidence(probe.label, inputs, expected.value, seen.value)


# ---------------------------------------------------------------- in words


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


def sentences(known: Exercise, evidence: Evidence, seen: list[Observation]) -> list[str]:
    """What fails, where no slip explains it: the smallest case first."""
    wrong = wrong_of(known, seen)
    changed = [name for i in wrong for name in seen[i].changed]
    if in_place_only(evidence):
        name, changed = changed[0], []
        told = [f"It changes its argument {name} in place: make a new array, or work on a copy."]
    else:
        text = difference(evidence.expected, evidence.obtained, known.whole_numbers)
        told = [f"{begun(evidence.label)}: {text}"]
    told += [f"It also changes its argument {name} in place." for name in changed[:1]]
    rest = [i for i in tried(known, seen) if i not in wrong and not is_statement(known, i)]
    right = [known.probes[i].label for i in rest]
    return [*told, *([f"It is right on: {'; '.join(right[:4])}."] if right else [])]


def is_statement(known: Exercise, i: int) -> bool:
    """Whether a probe asks only for something that must hold, as that a whole number may come."""
    value = expected_of(known.name)[i].value
    return isinstance(value, dict) and all(held is True for held in value.values())


def begun(label: str) -> str:
    """A label as a sentence begins, unless it begins with code."""
    return label if "=" in label.split()[0] else f"{label[0].upper()}{label[1:]}"


def unexplained(
    verdict: Verdict, seen: list[Observation], known: Exercise, answer: Answer | None
) -> list[str]:
    """What fails, where nothing explains it, with the clues that there are."""
    first, *rest = sentences(known, verdict.evidence, seen)
    text = ast.unparse(answer.tree) if answer else ""
    pattern = clues.in_common(known, wrong_of(known, seen), text)
    unused = clues.unused(answer and answer.tree, known)[:2]
    rest = [*telling(known, seen, verdict.evidence), *([] if pattern else rest)]
    if isinstance(verdict.evidence.obtained, Raised):
        return [*pattern, first, *unused, *rest]
    return [*unused, *pattern, first, *rest]


def telling(known: Exercise, seen: list[Observation], first: Evidence) -> list[str]:
    """Where only numbers differ at first: an error, a shape that a later case shows."""
    if obvious(first, seen, known):
        return []
    expected = expected_of(known.name)
    later = (_evidence(known.probes[i], expected[i], seen[i], known) for i in wrong_of(known, seen))
    told = (f"{begun(e.label)}: {text}" for e in later if (text := obvious(e, seen, known)))
    return [*told][:1]
