"""What an exercise is: a reference, probes, answers, the whys of its expressions, misconceptions.

    softmax = Exercise(attention.softmax, "05", level=2, minutes=8, task=..., hints=(...))
    softmax.answer("def softmax(x, axis=-1): ...")  # as a learner writes it, on several lines
    softmax.why("keepdims=True", "Each sum keeps its axis, so that it divides its own row.")
    softmax.probe("three scores", np.array([1.0, 2.0, 3.0]))
    softmax.probe("a batch of two sentences", numbers(2, 3, 4))

    @softmax.mistake
    def one_sum_for_everything(x, axis=-1):
        \"\"\"All entries together sum to 1. Each row needs its own sum: axis=-1.\"\"\"
        ...

Probes stand in order, the smallest first: the first that tells an answer from the reference is
what the learner sees. The name of a mistake is its id, its docstring what the learner reads.
"""

import inspect
import textwrap
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Draw:
    """Random numbers to try a function on, drawn when a probe takes them: `5 * numbers(2, 3)`."""

    make: Callable[[np.random.Generator], np.ndarray]

    __array_ufunc__ = None  # an array to the left of an operator leaves the work to this class

    def then(self, change: Callable[[np.ndarray], Any]) -> "Draw":
        """What a function makes of the numbers."""
        return Draw(lambda rng: change(self.make(rng)))

    def __mul__(self, other: Any) -> "Draw":
        return self.then(lambda x: x * other)

    def __add__(self, other: Any) -> "Draw":
        return self.then(lambda x: x + other)

    __rmul__, __radd__ = __mul__, __add__


def numbers(*shape: int) -> Draw:
    """Float32 numbers from a normal distribution; each probe draws its own, by its label.

    So a new probe moves no number of another.
    """
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
    kwargs: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Mistake:
    """A function that makes one mistake, and the sentence that names it."""

    id: str
    message: str
    function: Callable


@dataclass(frozen=True)
class Why:
    """What an expression is for; `code` is the expression, in one or more spellings."""

    code: tuple[str, ...]
    text: str


@dataclass
class Exercise:
    """A function to write.

    `level` is 1 to 3; `task` two sentences; `hints` a nudge, the idea, the line. `backends` are
    tried in turn: "numpy" hands the function arrays, "torch" tensors. Where the result may hold
    whole numbers or floats alike, `whole_numbers` is True. `seconds` is its time limit. `trains` is
    True where answers may run PyTorch's backward, which not every fork can; `prepare` loads what
    answers need and what would take too much of their time.
    """

    reference: Callable
    notebook: str
    level: int
    minutes: int
    task: str
    hints: tuple[str, str, str]
    backends: tuple[str, ...] = ("numpy", "torch")
    whole_numbers: bool = False
    seconds: float = 2.0
    trains: bool = False
    prepare: Callable[[], None] | None = None
    probes: list[Probe] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    whys: list[Why] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.reference.__name__

    @property
    def parameters(self) -> list[str]:
        return list(inspect.signature(self.reference).parameters)

    def probe(self, label: str, *args: Any, **kwargs: Any) -> None:
        """Compare what the function returns for these arguments, each Draw of them drawn."""
        args, kwargs = drawn((args, kwargs), label)
        self.probes.append(Probe(label, lambda fn: fn(*args, **kwargs), args, kwargs))

    def experiment(self, label: str) -> Callable:
        """Compare what the decorated function finds out about an answer.

        A dictionary reads best: statements that must hold, each with True, or named numbers.
        """
        return lambda run: self.probes.append(Probe(label, run)) or run

    def answer(self, source: str) -> None:
        """Add a right answer as a learner writes it, with the names that its notebook has.

        The first is the solution that is shown; all lend their parts to the repair of wrong ones.
        """
        self.answers.append(textwrap.dedent(source).strip())

    def why(self, code: str, text: str) -> None:
        """Say what an expression is for; `code` may hold several spellings, split at " | "."""
        self.whys.append(Why(tuple(code.split(" | ")), text))

    def mistake(self, function: Callable, told_by: Callable | None = None) -> Callable:
        """Add a known mistake; its docstring tells the learner what is wrong and what is needed.

        Where one function makes several, another lends name and docstring: `told_by`.
        """
        said = told_by or function
        message = " ".join(inspect.getdoc(said).split())
        self.mistakes.append(Mistake(said.__name__.replace("_", "-"), message, function))
        return function


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
