"""What an exercise is: one solution, two hints, probes, and slips. Its task stands in the notebook.

    softmax = exercise(
        "def softmax(x, axis=-1): …",      # or the course's own function: its text is the solution
        hints="What does np.exp(1000) give?\\nSubtract the largest along the axis, …",
        probes=[("three scores", [1.0, 2.0, 3.0]), ("a batch", numbers(2, 3, 4))],
        slips=\"\"\"
            axis-ignored: axis=axis → axis=-1
                The axis argument is ignored. The caller chooses along which the weights sum to 1.
        \"\"\",
    )

A slip is a name, an edit of the solution, and below it what the learner reads who made it; it is
recognised by equal results on all probes. `⊕` joins edits that are made together, `⏎` stands for a
new line, `∅` for nothing; an edit is made wherever it fits, below the first line. `ways` are other
solutions: they lend their parts to repairs, and a slip that does not fit the solution is made in
the first of them that it fits. Probes stand in order, the smallest first: the first that tells an
answer from the solution is what the learner sees.
"""

import ast
import copy
import inspect
import math
import re
import textwrap
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

ROOMS = ("text", "attention", "blocks", "decoding")  # of the course, at hand in every solution


@dataclass(frozen=True)
class Draw:
    """Random numbers to try a function on, drawn when a probe takes them: `5 * numbers(2, 3)`."""

    make: Callable[[np.random.Generator], Any]

    __array_ufunc__ = None  # an array to the left of an operator leaves the work to this class

    def then(self, change: Callable[[np.ndarray], Any]) -> "Draw":
        """What a function makes of the numbers."""
        return Draw(lambda rng: change(self.make(rng)))

    __rmul__ = __mul__ = lambda self, other: self.then(lambda x: x * other)
    __radd__ = __add__ = lambda self, other: self.then(lambda x: x + other)


def numbers(*shape: int) -> Draw:
    """Float32 numbers from a normal distribution, drawn anew for each probe, by its label."""
    return Draw(lambda rng: rng.normal(size=shape).astype(np.float32))


def drawn(x: Any, label: str) -> Any:
    """The same with numbers for each Draw, also in tuples, lists and dictionaries."""
    rng = np.random.default_rng(zlib.crc32(label.encode()))

    def real(x: Any) -> Any:
        if isinstance(x, Draw):
            return x.make(rng)
        if isinstance(x, dict):
            return {key: real(value) for key, value in x.items()}
        return type(x)(map(real, x)) if type(x) in (list, tuple) else x

    return real(x)


@dataclass(frozen=True)
class Probe:
    """One experiment on a function: `run(fn)` gives what is compared; fn takes and gives NumPy."""

    label: str
    run: Callable[[Callable], Any]
    args: tuple = ()


@dataclass(frozen=True)
class Slip:
    """A solution with one thing gone wrong; `why` says what to whom made it."""

    name: str
    edits: tuple[tuple[str, str], ...]
    why: str
    right: str  # the text of the solution that it is made of
    wrong: str


@dataclass
class Exercise:
    """A function or class to write, made by `exercise`.

    `backends` are tried in turn: "numpy" hands the function arrays, "torch"
    tensors. Where the result may hold whole numbers or floats alike, `whole_numbers` is True.
    `seconds` is its time limit. `trains` is True where answers may run PyTorch's backward, which
    not every fork can; `prepare` loads what answers need and what would take too much of their
    time. `story` is True where the story asks it, not what is deeper. The loader writes `notebook`.
    """

    solution: str
    hints: tuple[str, ...]
    told: str  # the slips as they are written
    course: Callable | None = None
    ways: tuple[str, ...] = ()
    probes: list[Probe] = field(default_factory=list)
    backends: tuple[str, ...] = ("numpy", "torch")
    whole_numbers: bool = False
    seconds: float = 2.0
    trains: bool = False
    prepare: Callable[[], None] | None = None
    story: bool = False
    notebook: str = ""

    @property
    def name(self) -> str:
        return re.search(r"^(?:def|class) (\w+)", self.solution, re.MULTILINE)[1]

    @property
    def is_class(self) -> bool:
        return f"class {self.name}" in self.solution

    @cached_property
    def tree(self) -> ast.FunctionDef | ast.ClassDef:
        """The solution's definition, the last of its text."""
        return definition_of(self.solution, self.name)

    @cached_property
    def parameters(self) -> list[str]:
        given = [] if self.is_class else self.tree.args.args
        return [arg.arg for arg in given]

    @property
    def header(self) -> str:
        """How an answer begins."""
        return next(x for x in self.solution.splitlines() if x.startswith(("def ", "class ")))[:-1]

    @cached_property
    def reference(self) -> Callable:
        """The course's own, else the solution; what a notebook goes on with."""
        return self.course or made(self.solution, self.name, f"workshop.exercises.n{self.notebook}")

    @cached_property
    def slips(self) -> list[Slip]:
        return [slip_of(*told, (self.solution, *self.ways)) for told in blocks(self.told)]

    def experiment(self, label: str) -> Callable:
        """Compare what the decorated function finds out about an answer.

        A dictionary reads best: statements that must hold, each with True, or named numbers.
        """
        return lambda run: self.probes.append(Probe(label, run)) or run

    def module(self, label: str, sizes: Sequence[int], *inputs: Any, **options: Any) -> None:
        """Compare a module's parameters, and its results for inputs (Draws, or arrays)."""
        from workshop.exercises import modules

        x = drawn(inputs, label)
        self.probes.append(Probe(label, lambda fn: modules.compared(fn, sizes, x, **options)))


def exercise(solution: str | Callable, *, hints: str, slips: str, probes: Sequence[tuple] = (),
             ways: Sequence[str] = (), course: Callable | None = None,
             **about: Any) -> Exercise:  # fmt: skip
    """Make an exercise of its texts; `about` is what Exercise takes besides.

    A solution that is a function of the course stands for its text. Each probe is a label and
    arguments; lists of numbers become arrays, and each Draw its numbers.
    """
    if callable(solution):
        solution, course = text_of(solution), solution
    steps = tuple(map(str.strip, textwrap.dedent(hints).strip().splitlines()))
    known = Exercise(plain(solution), steps, slips, course, tuple(map(plain, ways)), **about)
    for label, *args in probes:
        args = tuple(map(as_array, drawn(args, label)))
        known.probes.append(Probe(label, lambda fn, args=args: fn(*args), args))
    return known


def plain(text: str) -> str:
    """A text from the margin."""
    return textwrap.dedent(text).strip()


def as_array(x: Any) -> Any:
    """A list of numbers, or of such lists, as an array; anything else as it is."""
    if not isinstance(x, list) or not x:
        return x
    array = np.array(x, dtype=object) if any(callable(y) for y in x) else np.array(x)
    return array if array.dtype.kind in "biuf" else x


# ---------------------------------------------------------------- the solution


def made(source: str, name: str, home: str = "workshop.exercises") -> Callable:
    """What a text defines, with the names that a notebook has at hand; PyTorch if it is named."""
    scope = at_hand("torch" in source or "nn." in source) | {"__name__": home}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a slip may be odd Python
        exec(compile(source, f"<{name}>", "exec"), scope)
    return scope[name]


def at_hand(torch: bool) -> dict[str, Any]:
    """NumPy, a few of Python's own, the functions of the course, and maybe PyTorch's."""
    scope: dict[str, Any] = {"np": np, "math": math, "copy": copy, "Counter": Counter}
    scope |= {"pairwise": pairwise, "deepcopy": copy.deepcopy}
    if torch:
        layers, pt = import_module("helpers.layers"), import_module("torch")
        scope |= {"torch": pt, "nn": pt.nn, "F": pt.nn.functional}
        scope |= {n: getattr(layers, n) for n in ("MultiHeadAttention", "FeedForward")}
    for room in ROOMS:
        found = vars(import_module(f"helpers.{room}"))
        scope |= {n: f for n, f in found.items() if inspect.isfunction(f) and n[0] != "_"}
    return scope


def text_of(function: Callable) -> str:
    """A function of the course as a learner writes it: no annotations, docstring, checks."""
    source = textwrap.dedent(inspect.getsource(function))
    lines, node = source.splitlines(), ast.parse(source).body[0]
    for arg in node.args.args:
        arg.annotation = None
    header = f"def {node.name}({ast.unparse(node.args)}):".replace("e-0", "e-")  # 1e-5
    checks = [range(s.lineno, s.end_lineno + 1) for s in node.body if is_check(s)]
    begin, left = node.body[0].lineno, {n for lines in checks for n in lines}
    kept = [line for n, line in enumerate(lines[begin - 1 :], begin) if n not in left]
    return "\n".join([header, *kept])


def is_check(statement: ast.stmt) -> bool:
    """A docstring, an `if` or a loop that does nothing but raise, a call of a check."""
    if isinstance(statement, ast.Expr):
        named = ast.unparse(getattr(statement.value, "func", ast.Name("", ast.Load())))
        checks = named == "need" or named.lstrip("_").startswith("check")
        return isinstance(statement.value, ast.Constant) or checks
    body = getattr(statement, "body", None)
    return isinstance(body, list) and all(isinstance(s, ast.Raise) or is_check(s) for s in body)


def definition_of(source: str, name: str) -> ast.FunctionDef | ast.ClassDef:
    """The definition of a name in a text."""
    return next(n for n in ast.parse(source).body if getattr(n, "name", "") == name)


# ---------------------------------------------------------------- slips


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Each line at the margin, with the lines below it that stand further in, joined.

    A line that ends in a backslash goes on in the next.
    """
    heads: list[list[str]] = []
    for line in plain(text).splitlines():
        if heads and heads[-1][-1].endswith("\\"):
            heads[-1][-1] = heads[-1][-1][:-1] + line.strip()
        elif line[:1].isspace():
            heads[-1].append(line.strip())
        elif line:
            heads.append([line])
    return ((head, " ".join(more)) for head, *more in heads)


def slip_of(head: str, why: str, sources: Sequence[str]) -> Slip:
    """The slip of an edit in the first solution that it fits; ValueError where it fits none."""
    name, _, edit = head.partition(": ")
    parts = [part.partition(" →") for part in edit.split(" ⊕ ")]
    edits = tuple((old.replace("⏎", "\n"), "" if new.strip() == "∅" else
                   new.removeprefix(" ").replace("⏎", "\n")) for old, _, new in parts)  # fmt: skip
    for right in sources:
        if (wrong := edited(right, edits)) != right:
            return Slip(name, edits, why, right, wrong)
    raise ValueError(f"slip {name!r} is {edit!r}, but must be an edit of the solution")


def edited(source: str, edits: Sequence[tuple[str, str]]) -> str:
    """A solution with all the edits, the same where one does not fit."""
    begin = re.search(r"^(?:def|class) .*\n", source, re.MULTILINE).end()
    head, body = source[:begin], source[begin:]
    for old, new in edits:
        if not old or old not in body:
            return source
        body = body.replace(old, new)
    return head + body


# ---------------------------------------------------------------- what experiments return


@dataclass(frozen=True)
class About:
    """A measured number, such as a share of thousands of draws, that is compared within limits."""

    value: float
    within: float


@dataclass(frozen=True)
class Untested:
    """What an experiment returns where an answer lacks the optional thing that it tries.

    It agrees with everything: neither right nor wrong.
    """
