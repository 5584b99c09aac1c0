"""Find the one change that makes a wrong answer right: where the mistake is, and why.

The source of the answer is changed in one place at a time (`edits`), and each change is run on the
probes of the exercise. A change that passes all of them, and fresh random inputs in a fork of its
own, is the diagnosis: it was verified, whatever the exercise. Where none does, a change that mends
a part is kept, and a second one is looked for.
"""

import ast
import contextlib
import copy
import functools
import itertools
import json
import re
import signal
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from workshop.checks import sandbox
from workshop.checks.compare import ATOL, RTOL, Raised, same
from workshop.checks.donors import Donors, Plain, donors_of
from workshop.checks.edits import Edit, Surgeon
from workshop.checks.safety import is_safe
from workshop.checks.sandbox import Observation, OutOfTime, agree
from workshop.checks.source import written_or_at_hand
from workshop.checks.syntax import arguments, assigned, text
from workshop.checks.whys import Change, Repair, change_of
from workshop.exercises.exercise import Exercise, Probe

SECONDS = 2.0  # of the processor, for the whole search
SECOND = 0.6  # of these, for a second change where one is not enough
MORE = 0.3  # seconds to look for a better one after the first
EACH = 0.05  # seconds a candidate may take on a probe, or three times what the answer takes
FIRST = 0.2  # seconds that the answer itself may take
NEAR, DEAR, ODD = 0.5, 0.03, 0.2  # what likeness is worth, what a changed word and odd code cost
LIKELY = {"sign": 0.05, "copy": 0.05, "name": 0.02, "order": 0.02, "overwritten": 0.03}
FAR = -1.0  # a change that leads so far away from all right answers is an accident
SHOWN = 5  # candidates that are verified
LONGEST = 6000  # letters of an answer


# ---------------------------------------------------------------- the answer's source


def tree_of(function: Any) -> ast.FunctionDef | None:
    """The definition of an answer, None where it cannot be read or is not safe to change."""
    if not isinstance(function, FunctionType) or function.__code__.co_freevars:
        return None
    try:
        source = written_or_at_hand(function)
        node = ast.parse(source).body[0]
    except (OSError, TypeError, SyntaxError, ValueError, IndexError):
        return None
    plain = isinstance(node, ast.FunctionDef) and not node.decorator_list
    return node if plain and len(source) <= LONGEST and is_safe(function, node) else None


# ---------------------------------------------------------------- likeness


def tokens(tree: ast.AST, own: frozenset[str] = frozenset()) -> Counter:
    """The words of a piece of code and their neighbours; all local names count as one."""
    words = re.findall(r"\w+(?:\.\d+)?|\*\*|//|@|[^\w\s]", text(tree))
    words = ["v" if word in own else word for word in words]
    return Counter(words) + Counter(itertools.pairwise(words))


def words_of(found: Counter) -> int:
    """How many words, without the pairs of neighbours."""
    return sum(count for word, count in found.items() if isinstance(word, str))


class Likeness:
    """How near a function is to the nearest right answer, from 0 to 1."""

    def __init__(self, donors: Donors):
        self.donors = [_body_tokens(function) for function in donors.functions]

    def __call__(self, function: ast.FunctionDef) -> tuple[float, Counter]:
        own = _body_tokens(function)
        size = own.total()
        shares = [2 * (own & d).total() / (size + d.total() or 1) for d in self.donors]
        return max(shares, default=0.0), own


def _body_tokens(function: ast.FunctionDef) -> Counter:
    names = frozenset(assigned(function)) - set(arguments(function))
    return tokens(ast.Module(function.body, []), names)


# ---------------------------------------------------------------- the search


@dataclass
class Found:
    """A change that passes: how good it is, what it changes, and the whole function after it."""

    rank: float
    change: Change
    source: str


class Search:
    """Try changes of one answer on the probes of its exercise, the failing ones first."""

    def __init__(self, function: FunctionType, known: Exercise, backend: str,
                 expected: list[Observation]):  # fmt: skip
        self.known, self.backend, self.expected = known, backend, expected
        self.name, self.scope = known.name, dict(function.__globals__)
        self.scope.setdefault("np", np)
        self.source = written_or_at_hand(function)
        self.wrong: list[int] = []
        self.order: list[int] = []
        self.limit, self.near = FIRST, 0.0
        self.chance = self.in_place = False  # it differs from call to call; it changes an input
        self.tried: set[str] = set()
        self.donors = donors_of(known.name)
        self.likeness = Likeness(self.donors)
        self.found = False
        self.partial: list[tuple[float, float, Change, str]] = []

    def run(self, node: ast.FunctionDef, write: Callable[[Found], None]) -> None:
        """Look for one change; without any, for a second one after the best that mends a part."""
        self.write, self.node = write, copy.deepcopy(node)
        self.start, self.before = self.likeness(node)
        self.unused, self.odd = unused(node), odd(node)
        self.try_answer(node)
        if self.chance:  # no change of a line is verified by chance
            return
        end, self.deadline = self.deadline, self.deadline - SECOND
        self.look(node, None)
        if not self.found:
            self.deadline = end
        self.partial.sort(key=lambda p: (-p[0], -p[1]))
        for _, _, change, source in self.partial[:4] if not self.found else []:
            self.look(ast.parse(source).body[0], change)

    def try_answer(self, node: ast.FunctionDef) -> None:
        """Which probes the answer itself fails, and how long a candidate may take."""
        function, longest, values = self.made(compiled(node)), 0.0, []
        for i in range(len(self.expected)):
            began, right = time.process_time(), False
            with contextlib.suppress(OutOfTime):
                seen = self.seen(function, i)
                right = self.agrees(seen, i)
                values.append(same(seen.value, self.expected[i].value, self.known.whole_numbers))
                again = self.seen(function, i) if not right else seen
                self.chance = self.chance or not same(seen.value, again.value)
                self.near = self.near or (
                    0.0 if right else nearness(self.expected[i].value, seen.value)
                )
                longest = max(longest, time.process_time() - began)
            if not right:
                self.wrong.append(i)
        self.order = [*self.wrong, *(i for i in range(len(self.expected)) if i not in self.wrong)]
        self.limit = max(EACH, 3 * longest)
        self.in_place = len(values) == len(self.expected) and all(values)

    def look(self, node: ast.FunctionDef, first: Change | None) -> None:
        """Try every edit of a function: of the answer itself, or of one that is mended in part."""
        original = copy.deepcopy(node)
        for edit in Surgeon(node, self.donors, set(self.scope)).edits(small=first is not None):
            if time.process_time() > self.deadline:
                return
            with edit, contextlib.suppress(OutOfTime, RecursionError, ValueError, TypeError):
                if (code := compiled(node)) is None:
                    continue
                passed, near = self.passed(code)
                if passed == len(self.order):
                    self.hit(edit, original, node, first)
                elif first is None and near > self.near:
                    self.mends(edit, original, node, near)

    def passed(self, code: CodeType) -> tuple[int, float]:
        """How many probes in a row a candidate passes, the failing ones first, and how near to
        right it is on the first of them."""
        function, near = self.made(code), 0.0
        if function is None:
            return 0, near
        for count, i in enumerate(self.order):
            seen = self.seen(function, i)
            if not self.agrees(seen, i):
                return count, near or nearness(self.expected[i].value, seen.value) + 4 * count
            near = 4.0
        return len(self.order), near

    def seen(self, function: Callable, i: int) -> Observation:
        """What a candidate does on a probe, within its time."""
        with limited(self.limit):
            return sandbox.observe_probe(function, self.known, self.known.probes[i], self.backend)

    def agrees(self, seen: Observation, i: int) -> bool:
        return agree(seen, self.expected[i], self.known)

    def made(self, code: Any) -> Callable | None:
        """The function of a candidate; its default values may raise."""
        with contextlib.suppress(Exception):
            scope = dict(self.scope)
            exec(code, scope)
            return scope[self.name]
        return None

    def rank(self, node: ast.FunctionDef) -> float:
        """How much nearer to a right answer, for how few words that come, go or are more."""
        after, own = self.likeness(node)
        changed = words_of((own - self.before) + (self.before - own))
        longer = max(0, words_of(own) - words_of(self.before))
        strange = max(0, odd(node) - self.odd)
        return NEAR * (after - self.start) - DEAR * (changed + longer) - ODD * strange

    def hit(
        self, edit: Edit, old: ast.FunctionDef, node: ast.FunctionDef, first: Change | None
    ) -> None:
        """Report a change that passes, unless it is absurd."""
        rank, source = self.rank(node) + self.likely(edit, first), text(node)
        if rank < FAR or source in self.tried or leaves_dead_code(node) or forgets(old, node):
            return
        self.tried.add(source)
        change = self.change(edit, old, node, first)
        if change is None:
            return
        # It goes past the learner's own lines, or nobody writes so: better another, or two changes.
        if unused(node) - self.unused or odd(node) > self.odd:
            self.write(Found(rank - 1, change, source))
            return
        if not self.found:
            self.deadline = min(self.deadline, time.process_time() + MORE)
        self.found = True
        self.write(Found(rank, change, source))

    def likely(self, edit: Edit, first: Change | None) -> float:
        """What the kind of a change is worth: a copy most, where nothing but an input is wrong."""
        worth = LIKELY.get(edit.kind, 0) - (0.2 if first else 0)
        return worth + (0.5 if edit.kind == "copy" and self.in_place else 0)

    def change(
        self, edit: Edit, old: ast.FunctionDef, node: ast.FunctionDef, first: Change | None
    ) -> Change | None:
        """What was changed; two changes of one line are one."""
        if first is None:
            return change_of(edit.kind, old, node, self.source)
        whole = change_of(edit.kind, self.node, node, self.source)
        if whole is None or "\n" not in whole.before + whole.after:
            return whole
        second = change_of(edit.kind, old, node, text(old))
        return second and replace(first, also=second)

    def mends(self, edit: Edit, old: ast.FunctionDef, node: ast.FunctionDef, near: float) -> None:
        """Keep a change that brings the result nearer to the right one."""
        source = text(node)
        if source in self.tried or len(self.partial) > 200 or leaves_dead_code(node):
            return
        self.tried.add(source)
        if (change := change_of(edit.kind, old, node, self.source)) is not None:
            self.partial.append((near, self.rank(node), change, source))


def nearness(wanted: Any, seen: Any) -> float:
    """How far a result agrees: its type, its shape, its kind, the share of equal numbers."""
    if type(wanted) is not type(seen):
        return 1.0 - isinstance(seen, Raised)
    if isinstance(wanted, np.ndarray):
        if wanted.shape != seen.shape:
            return 1.2 + 0.1 * (wanted.ndim == seen.ndim)
        equal = np.isclose(wanted.astype(float), seen.astype(float), rtol=RTOL, atol=ATOL)
        return 2.0 + 0.5 * (wanted.dtype.kind == seen.dtype.kind) + float(equal.mean())
    if isinstance(wanted, dict | list):
        keys = wanted if isinstance(wanted, dict) else range(len(wanted))
        if len(wanted) != len(seen) or (isinstance(wanted, dict) and wanted.keys() != seen.keys()):
            return 1.2
        return 2.0 + sum(same(wanted[k], seen[k]) for k in keys) / (len(wanted) or 1)
    return 1.5


def leaves_dead_code(function: ast.FunctionDef) -> bool:
    """Whether lines stand behind a `return`: nobody means that."""
    return any(isinstance(s, ast.Return | ast.Continue | ast.Break)
               for node in ast.walk(function) for name in ("body", "orelse")
               if isinstance(block := getattr(node, name, None), list)
               for s in block[:-1])  # fmt: skip


def odd(function: ast.FunctionDef) -> int:
    """How often something is written that nobody means: + 0, two minus signs, f(x, x), x = x."""
    count = 0
    for node in ast.walk(function):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            sides = [node.right] if isinstance(node.op, ast.Sub) else [node.left, node.right]
            count += any(isinstance(s, ast.Constant) and s.value == 0 for s in sides)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.UnaryOp):
            count += 1
        elif isinstance(node, ast.Call) and len(node.args) > 1:
            count += len({text(arg) for arg in node.args}) == 1
        elif isinstance(node, ast.Assign):
            count += text(node.targets[0]) == text(node.value)
        elif isinstance(node, ast.Compare):
            count += any(text(node.left) == text(other) for other in node.comparators)
            turned = [x for x in (node.left, *node.comparators) if isinstance(x, ast.UnaryOp)]
            count += sum(not isinstance(x.operand, ast.Constant) for x in turned)
    return count


def unused(function: ast.FunctionDef) -> set[str]:
    """The local names that nobody reads."""
    read = {n.id for n in ast.walk(function)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}  # fmt: skip
    return set(assigned(function)) - read


def forgets(old: ast.FunctionDef, new: ast.FunctionDef) -> bool:
    """Whether what is returned no longer has anything to do with the lines before."""

    def local(function: ast.FunctionDef) -> set[str]:
        last = function.body[-1]
        names = {n.id for n in ast.walk(last) if isinstance(n, ast.Name)}
        return names & set(assigned(function)) if isinstance(last, ast.Return) else {"?"}

    return len(old.body) > 2 and bool(local(old)) and not local(new)


def compiled(function: ast.FunctionDef) -> Any:
    """The code of a changed function, None where Python cannot read it."""
    try:
        return compile(ast.fix_missing_locations(ast.Module([function], [])), "<repair>", "exec")
    except (SyntaxError, ValueError, TypeError, RecursionError):
        return None


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise OutOfTime in a candidate that takes too long: by a signal, or from another thread."""
    if can_signal():
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    elif sandbox.has_threads():
        clock = threading.Timer(4 * seconds, sandbox.interrupt, [threading.current_thread()])
        clock.daemon = True
        clock.start()
        try:
            yield
        finally:
            clock.cancel()
    else:
        yield


def can_signal() -> bool:
    main = threading.current_thread() is threading.main_thread()
    return main and hasattr(signal, "setitimer")


def _late(*_: object) -> None:
    raise OutOfTime


# ---------------------------------------------------------------- fresh inputs


def fresh_probes(known: Exercise) -> Iterator[Probe]:
    """The largest probes with other numbers, where the reference can take them."""
    rng = np.random.default_rng(0)
    whole = [probe for probe in known.probes if probe.args or probe.kwargs]
    whole.sort(key=lambda p: -sum(np.size(x) for x in (*p.args, *p.kwargs.values())))
    for probe in whole[:4]:
        args, kwargs = other(probe.args, rng), other(probe.kwargs, rng)
        yield Probe(probe.label, lambda fn, a=args, k=kwargs: fn(*a, **k), args, kwargs)


def other(x: Any, rng: np.random.Generator) -> Any:
    """Other numbers of the same kind: floats drawn anew, whole numbers in another order."""
    if isinstance(x, dict):
        return {key: other(value, rng) for key, value in x.items()}
    if type(x) in (list, tuple):
        return type(x)(other(value, rng) for value in x)
    if isinstance(x, np.ndarray) and x.dtype.kind == "f" and x.size:
        drawn = rng.normal(size=x.shape) * (np.nanstd(np.where(np.isfinite(x), x, 0)) or 1)
        free = np.isfinite(x).all() and x.min() < 0
        return drawn.astype(x.dtype) if free else rng.permuted(x, axis=-1)
    if isinstance(x, np.ndarray) and x.dtype.kind in "iu" and x.ndim:
        return rng.permuted(x, axis=-1)
    return x * float(rng.uniform(0.8, 1.2)) if type(x) is float else x


# ---------------------------------------------------------------- from the outside


def repair_of(
    function: Any, known: Exercise, backend: str, expected: list[Observation]
) -> Repair | None:
    """The change that makes an answer right, None where none was found in time."""
    node, forks = tree_of(function), sandbox.can_fork(known)
    if node is None or node.name != known.name:
        return None
    if (
        not forks
        and not sandbox.has_threads()
        and any(isinstance(n, ast.While) for n in ast.walk(node))
    ):
        return None  # nothing could end it
    search = Search(function, known, backend, expected)

    def work(write: Callable[[bytes], None]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if can_signal():
                signal.signal(signal.SIGVTALRM, _late)
            search.deadline = time.process_time() + SECONDS
            search.run(bare_answer(node), lambda found: write(packed(found)))

    lines, forged, _ = sandbox.lines_of(work, SECONDS + 1, forks)
    if forged:
        return None
    best = sorted(map(unpacked, lines), key=lambda found: -found.rank)
    for found in best[:SHOWN]:
        if holds(found.source, function, known, backend):
            return found.change.told(function.__code__.co_firstlineno, known)
    return None


def bare_answer(node: ast.FunctionDef) -> ast.FunctionDef:
    """The learner's definition without its docstring and annotations, lines where they were."""
    node = Plain().visit(copy.deepcopy(node))
    if ast.get_docstring(node) is not None and len(node.body) > 1:
        node.body = node.body[1:]
    return node


def holds(source: str, function: FunctionType, known: Exercise, backend: str) -> bool:
    """Whether a repaired answer is right once more, in a fork of its own, on fresh inputs too."""
    fresh = list(fresh_probes(known))
    asked = replace(known, probes=[*known.probes, *fresh])

    @functools.wraps(function)  # with its parameters: some experiments ask for them
    def answer(*args: Any, **kwargs: Any) -> Any:
        if "made" not in cell:
            scope = dict(function.__globals__)
            scope.setdefault("np", np)
            exec(source, scope)
            cell["made"] = scope[known.name]
        return cell["made"](*args, **kwargs)

    cell: dict[str, Callable] = {}
    with sandbox.undisturbed():
        wanted = list(sandbox.observe(known.reference, asked, known.backends[0]))
    got = sandbox.observe_apart(answer, asked, backend)
    return all(
        isinstance(w.value, Raised) or agree(g, w, known) for g, w in zip(got, wanted, strict=True)
    )


def packed(found: Found) -> bytes:
    return json.dumps([found.rank, found.change.fields(), found.source]).encode()


def unpacked(line: bytes) -> Found:
    rank, fields, source = json.loads(line)
    return Found(rank, Change.of(fields), source)
