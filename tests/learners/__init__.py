"""Answers of learners, right and wrong, written without looking at the checks that judge them.

Each module beside this file registers answers with `wrong` and `right`; `answers` collects them,
and `load` makes the function anew from its source text, as a learner's cell would.
"""

import copy
import importlib
import inspect
import math
import pkgutil
import random
from collections import Counter
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from helpers import attention, blocks, decoding, layers, text


@dataclass(frozen=True)
class Answer:
    exercise: str
    summary: str
    patterns: tuple[str, ...]  # empty: a right answer
    source: str
    place: str  # module:line, which tells two answers apart

    @property
    def right(self):
        return not self.patterns


REGISTRY = []


def register(summary, patterns):
    def keep(function):
        lines, start = inspect.getsourcelines(function)
        first = next(i for i, line in enumerate(lines) if line.startswith("def "))
        place = f"{function.__module__.rpartition('.')[2]}:{start + first}"
        source = "".join(lines[first:])
        REGISTRY.append(Answer(function.__name__, summary, patterns, source, place))
        return function

    return keep


def wrong(summary, patterns):
    """A wrong answer; a hint names its mistake if it matches all `patterns`, split at " & "."""
    return register(summary, tuple(patterns.split(" & ")))


def right(summary):
    """An unusual right answer."""
    return register(summary, ())


def answers():
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return list(REGISTRY)


def namespace():
    """What a learner's cell has at hand: the libraries and the functions of the course."""
    names = {
        name: thing
        for home in (text, layers, attention, blocks, decoding)  # arrays come before tensors
        for name, thing in vars(home).items()
        if inspect.isfunction(thing) and not name.startswith("_")
    }
    names |= {"np": np, "torch": torch, "nn": nn, "F": F, "math": math}
    return names | {"copy": copy, "random": random, "Counter": Counter}


def load(answer):
    names = namespace()
    exec(compile(answer.source, f"<{answer.place}>", "exec"), names)
    return names[answer.exercise]
