"""Find the one plausible edit that makes a wrong answer right, and its reason if it has one.

Each edit is run on the probes of the exercise and on fresh ones, in a fork, within a number of
steps, not of seconds: the same answer gets the same words on every machine. A reason is told only
where the edit undoes a slip; otherwise a repair says no more than that it passes every test.
"""

import ast
import contextlib
import copy
import itertools
import json
import re
import signal
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from workshop.checks import sandbox
from workshop.checks.compare import Raised
from workshop.checks.edits import edits
from workshop.checks.rules import Rules
from workshop.checks.safety import kept_inside
from workshop.checks.sandbox import Observation, OutOfTime, agree
from workshop.checks.source import Obstacle, source_at
from workshop.checks.syntax import Definition, bare, pairs
from workshop.exercises.exercise import Exercise, Probe, Slip, definition_of

CANDIDATES = {"numpy": 400, "torch": 230, "trains": 100}  # of a search
LINES = 3000  # that a candidate may run on a probe, or three times what the answer ran
MOST_LINES = 100_000
SECONDS = 20.0  # of the processor, for what hangs in spite of all: no search comes near it
ENDLESS = 0.5  # seconds of the processor for one step that is not Python's
SLOW = 0.1  # seconds of the processor for an answer, all probes: more is too much to try often,
TIMES = 20  # unless the reference needs a part of it: a slow machine is slow for both
LONGEST = 6000  # letters of an answer
MEMORY = 2**28  # bytes that a candidate may take
NATIVE = {"save", "jit", "from_file", "export"}  # PyTorch's own, which Python does not see writing


@dataclass(frozen=True)
class Repair:
    """One change that makes an answer pass every test.

    `line` counts as the cell does, `before` and `after` are code, "" for no line; `why` is the
    reason, "" without one. Where different changes of one place would do, `after` is "" and
    `before` the place.
    """

    line: int
    before: str
    after: str
    why: str = ""
    rivals: bool = False


@dataclass(frozen=True)
class Answer:
    """An answer that can be changed: its tree, its lines, where its cell has the first of them."""

    tree: Definition
    lines: list[str]
    first: int
    scope: dict[str, Any]


def repair_of(answer: Answer | None, known: Exercise, backend: str, expected: list[Observation],
              wrong: list[int]) -> Repair | None:  # fmt: skip
    """The plausible edit that makes an answer right, None where none was found."""
    if answer is None:
        return None
    search = Search(answer, known, backend, expected, wrong)
    seconds = SECONDS if sandbox.has_threads() else 0  # a tab is slow, and counts lines alone
    found, forged, _ = sandbox.lines_of(search.run, seconds, sandbox.can_fork(known), MEMORY)
    ranked = [] if forged else sorted(map(json.loads, found))
    return told(answer, known, ranked) if ranked else None


def answer_of(function: Any, known: Exercise) -> Answer | None:
    """The answer as it can be changed; None where it cannot be read."""
    try:
        source, first, scope = source_at(function)
        tree = bare(definition_of(source, known.name))
    except (Obstacle, TypeError, StopIteration):
        return None
    plain = isinstance(tree, ast.ClassDef) == known.is_class and not tree.decorator_list
    if not plain or len(source) > LONGEST or NATIVE & {*re.findall(r"\w+", source)}:
        return None
    return Answer(tree, source.splitlines(), first, {"np": np} | scope)


# ---------------------------------------------------------------- the search


class Search:
    """Tries the plausible edits of an answer, on the probes that it fails first."""

    def __init__(self, answer: Answer, known: Exercise, backend: str,
                 expected: list[Observation], wrong: list[int]):  # fmt: skip
        self.answer, self.known, self.backend, self.expected = answer, known, backend, expected
        self.order = [*wrong, *(i for i in range(len(known.probes)) if i not in wrong)]
        self.most = CANDIDATES["trains" if known.trains else known.backends[0]]
        self.most_lines = 0 if known.backends == ("torch",) else MOST_LINES

    def run(self, write: Callable[[bytes], None]) -> None:
        """Write each edit that passes: its cost, how far it stays from the solution, its text."""
        with warnings.catch_warnings(), sandbox.undisturbed(), kept_inside():
            warnings.simplefilter("ignore")
            began, tests = time.process_time(), [*self.tests()]
            slow = time.process_time() - began
            if slow > SLOW and slow > TIMES * self.reference_time():
                return
            tests += [(*test, self.most_lines) for test in fresh_probes(self.known)]
            for n, (text, rules) in enumerate(itertools.islice(self.candidates(), self.most)):
                made = self.made(text)
                if made and all(self.passes(made, *test) for test in tests):
                    cost = rules.cost(ast.parse(text).body[0])
                    write(json.dumps([*cost, n, text]).encode())

    def candidates(self) -> Iterator[tuple[str, Rules]]:
        """The texts of an answer after each edit that the rules allow, none twice."""
        work, seen = copy.deepcopy(self.answer.tree), {ast.unparse(self.answer.tree)}
        sources = (self.known.solution, *self.known.ways)
        trees = (bare(definition_of(source, self.known.name)) for source in sources)
        every = ((Rules(work, tree), edits(work, tree)) for tree in trees)
        for rules, changes in ((rules, changes) for rules, found in every for changes in found):
            before = [place.node for place, _ in changes]
            for place, new in changes:
                place.put(new)
            with contextlib.suppress(Exception):  # it cannot be written
                if (text := ast.unparse(work)) not in seen and rules.allow(work, text):
                    seen.add(text)
                    yield text, rules
            for (place, _), old in zip(changes, before, strict=True):
                place.put(old)

    def tests(self) -> Iterator[tuple[Probe, Observation, int]]:
        """The probes, what they give, and three times the lines that the answer itself runs."""
        made = self.made(ast.unparse(self.answer.tree))
        for i in self.order:
            probe = self.known.probes[i]
            with contextlib.suppress(OutOfTime), counted(self.most_lines) as left:
                sandbox.observe_probe(made, self.known, probe, self.backend)
            lines = min(max(LINES, 3 * (MOST_LINES - left[0])), self.most_lines)
            yield probe, self.expected[i], lines

    def reference_time(self) -> float:
        """Seconds of the processor for the reference, all probes, here and now."""
        began, first = time.process_time(), self.known.backends[0]
        for probe in self.known.probes:
            sandbox.observe_probe(self.known.reference, self.known, probe, first)
        return time.process_time() - began

    def made(self, text: str) -> Callable | None:
        """What a candidate's text defines."""
        with contextlib.suppress(Exception):
            scope = dict(self.answer.scope)
            exec(compile(text, "<repair>", "exec"), scope)
            return scope[self.known.name]
        return None

    def passes(self, made: Callable, probe: Probe, wanted: Observation, lines: int) -> bool:
        """Whether a candidate is right on a probe, within its lines."""
        with contextlib.suppress(OutOfTime), counted(lines):
            seen = sandbox.observe_probe(made, self.known, probe, self.backend)
            return agree(seen, wanted, self.known)
        return False


@contextlib.contextmanager
def counted(lines: int) -> Iterator[list[int]]:
    """Raise OutOfTime after so many lines of what a learner wrote; a C step has its seconds.

    Seconds alone with 0: PyTorch's modules are Python, and take long where lines are counted.
    """
    left = [lines or MOST_LINES]

    def count(frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename[:1] != "<" and "ipykernel" not in frame.f_code.co_filename:
            return None  # a library's
        left[0] -= 1
        if left[0] < 0:
            raise OutOfTime
        return count

    if lines or not can_signal():
        sys.settrace(count)
    try:
        with alarmed() if can_signal() else contextlib.nullcontext():
            yield left
    finally:
        sys.settrace(None)


@contextlib.contextmanager
def alarmed() -> Iterator[None]:
    """End a step that is not Python's; what was there before comes back."""
    before = signal.signal(signal.SIGVTALRM, _late)
    signal.setitimer(signal.ITIMER_VIRTUAL, ENDLESS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def can_signal() -> bool:
    main = threading.current_thread() is threading.main_thread()
    return main and hasattr(signal, "setitimer")


def _late(*_: object) -> None:
    raise OutOfTime


def fresh_probes(known: Exercise) -> Iterator[tuple[Probe, Observation]]:
    """The largest probes with other numbers, and what the reference gives for them, if it does."""
    rng = np.random.default_rng(0)
    whole = [probe for probe in known.probes if probe.args]
    whole.sort(key=lambda p: -sum(np.size(x) for x in p.args if isinstance(x, np.ndarray)))
    for probe in whole[:4]:
        args = other(probe.args, rng)
        fresh = Probe(probe.label, lambda fn, a=args: fn(*a), args)
        wanted = sandbox.observe_probe(known.reference, known, fresh, known.backends[0])
        if not isinstance(wanted.value, Raised):
            yield fresh, wanted


def other(x: Any, rng: np.random.Generator) -> Any:
    """Other numbers of the same kind: floats drawn anew, whole numbers in another order."""
    if isinstance(x, dict) or type(x) in (list, tuple):
        return sandbox.each(lambda value: other(value, rng), x)
    if isinstance(x, np.ndarray) and x.dtype.kind == "f" and x.size:
        new = rng.normal(size=x.shape) * (np.nanstd(np.where(np.isfinite(x), x, 0)) or 1)
        free = np.isfinite(x).all() and x.min() < 0
        return new.astype(x.dtype) if free else rng.permuted(x, axis=-1)
    if isinstance(x, np.ndarray) and x.dtype.kind in "iu" and x.ndim:
        return rng.permuted(x, axis=-1)
    return x * float(rng.uniform(0.8, 1.2)) if type(x) is float else x


# ---------------------------------------------------------------- what is told


def told(answer: Answer, known: Exercise, ranked: list[list]) -> Repair:
    """The cheapest repair in the learner's own line; of equal ones at one place the place alone."""
    *best, _, text = ranked[0]
    line, before, after = difference(answer, made := definition_of(text, known.name))
    why = next((s.why for s in known.slips if undoes(s, answer.tree, made, known)), "")
    equal = (definition_of(row[3], known.name) for row in ranked[1:8] if row[:2] == best)
    rivals = not why and any(difference(answer, other)[0] == line for other in equal)
    return Repair(line, before, "" if rivals else after, why, rivals)


def difference(answer: Answer, made: Definition) -> tuple[int, str, str]:
    """Where a repaired answer differs: the cell's line, the learner's code and what it becomes."""
    old, new = ([*statements(tree)] for tree in (answer.tree, made))
    i, j = same_ends([text for text, _ in old], [text for text, _ in new])
    gone, came = old[i : len(old) - j], new[i : len(new) - j]
    node = (gone or old[i : i + 1] or old[-1:])[0][1]
    if len(gone) == len(came) == 1 and (spliced := splice(answer, gone[0][1], came[0][1], made)):
        return (answer.first + spliced[0] - 1, *spliced[1:])
    lines = "\n".join(answer.lines[n - 1].strip() for _, s in gone for n in own_lines(s))
    return answer.first + node.lineno - 1, lines, "\n".join(text for text, _ in came)


def same_ends(x: list[str], y: list[str]) -> tuple[int, int]:
    """How many entries two lists share at their beginning, and behind that at their end."""
    short = min(len(x), len(y))
    begin = next((i for i in range(short) if x[i] != y[i]), short)
    return begin, next((j for j in range(short - begin) if x[~j] != y[~j]), short - begin)


def statements(tree: ast.AST) -> Iterator[tuple[str, ast.stmt]]:
    """Each statement below another with its text: of a loop or a function the first line."""
    for s in [*tree.body, *getattr(tree, "orelse", [])]:
        inner, text = [*statements(s)] if hasattr(s, "body") else [], ast.unparse(s)
        yield (text.partition("\n")[0] if inner else text), s
        yield from inner


def own_lines(s: ast.stmt) -> range:
    """The lines of a statement: of a loop or an `if` the first."""
    return range(s.lineno, (s.lineno if hasattr(s, "body") else s.end_lineno) + 1)


def splice(answer: Answer, old: ast.stmt, new: ast.stmt, made: Definition) -> tuple | None:
    """The learner's line with its smallest part replaced and the rest as it was written."""
    a, b = smallest(old, new)
    if not hasattr(a, "end_lineno") or a.lineno != a.end_lineno or not isinstance(b, ast.expr):
        return None
    made_of, source = ast.unparse(b), "\n".join(answer.lines)
    for n in (n for n in ast.walk(a) if isinstance(n, ast.Constant)):  # 1e9 stays 1e9
        made_of = made_of.replace(ast.unparse(n), ast.get_source_segment(source, n))
    for text in (made_of[1:-1], made_of, f"({made_of})"):
        lines = list(answer.lines)
        row = lines[a.lineno - 1].encode()
        row = row[: a.col_offset] + text.encode() + row[a.end_col_offset :]
        lines[a.lineno - 1] = row.decode()
        with contextlib.suppress(SyntaxError, StopIteration):
            tree = bare(definition_of("\n".join(lines), made.name))
            if ast.unparse(tree) == ast.unparse(made):
                return a.lineno, answer.lines[a.lineno - 1].strip(), lines[a.lineno - 1].strip()
    return None


def smallest(a: ast.AST, b: ast.AST) -> tuple[ast.AST, ast.AST]:
    """The smallest pair of nodes that holds all that differs."""
    for x, y in zip(ast.iter_child_nodes(a), ast.iter_child_nodes(b), strict=False):
        alike = ast.dump(copy.deepcopy(a, {id(x): y})) == ast.dump(b)  # with y for x
        if alike and isinstance(x, ast.expr | ast.stmt) and ast.dump(x) != ast.dump(y):
            return smallest(x, y)
    return a, b


# ---------------------------------------------------------------- why


def undoes(slip: Slip, answer: Definition, made: Definition, known: Exercise) -> bool:
    """Whether a repair is a slip's edit, back: the same words go, and come, between the same."""
    wrong, right = (bare(definition_of(text, known.name)) for text in (slip.wrong, slip.right))
    return change(wrong, right) == change(answer, made)


def change(a: Definition, b: Definition) -> tuple[Counter, Counter]:
    before, after = pairs(a), pairs(b)
    return before - after, after - before
