"""What an exercise is: a reference, probes that run a function, and known mistakes.

    softmax = Exercise(attention.softmax, "05", level=2, minutes=8, task=..., hints=(...))
    softmax.probe("three scores", np.array([1.0, 2.0, 3.0]))

    @softmax.mistake
    def one_sum_for_everything(x, axis=-1):
        \"\"\"All entries together sum to 1. Each row needs its own sum: axis=-1.\"\"\"
        ...

Probes stand in order, the smallest first: the first that tells an answer from the reference is
what the learner sees. The name of a mistake is its id, its docstring what the learner reads.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


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
    mistakes: list[Mistake] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.reference.__name__

    @property
    def parameters(self) -> list[str]:
        return list(inspect.signature(self.reference).parameters)

    def probe(self, label: str, *args: Any, **kwargs: Any) -> None:
        """Compare what the function returns for these arguments."""
        self.probes.append(Probe(label, lambda fn: fn(*args, **kwargs), args, kwargs))

    def experiment(self, label: str) -> Callable:
        """Compare what the decorated function finds out about an answer.

        A dictionary reads best: statements that must hold, each with True, or named numbers.
        """
        return lambda run: self.probes.append(Probe(label, run)) or run

    def mistake(self, function: Callable) -> Callable:
        """Add a known mistake; its docstring tells the learner what is wrong and what is needed."""
        message = " ".join(inspect.getdoc(function).split())
        self.mistakes.append(Mistake(function.__name__.replace("_", "-"), message, function))
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
