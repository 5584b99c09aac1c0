"""What a result depends on: an argument without effect, a result that changes from call to call."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from workshop.checks.compare import same
from workshop.checks.sandbox import observe, observe_apart
from workshop.exercises.exercise import Exercise, Probe

Path = tuple[str, ...]  # ("x",), or ("p", "attn", "W_q") inside a dictionary

CHANCE = (
    "Two calls with the same arguments give different results: something random is in it "
    "(dropout, numbers drawn, new weights), or something is kept from call to call. "
    "Use only what is passed in."
)


def findings(function: Callable, known: Exercise, backend: str) -> list[str]:
    """Sentences on what the answer's result must depend on, and does not, on no probe."""
    probes = [probe for probe in known.probes if probe.args]
    named = [dict(zip(known.parameters, probe.args, strict=False)) for probe in probes]
    asked = replace(known, probes=[Probe("", lambda fn, n=n: effects(fn, n)) for n in named])
    got = [seen.value for seen in observe_apart(function, asked, backend)]
    want = [seen.value for seen in observe(known.reference, asked, known.backends[0])]
    if any(isinstance(one, dict) and CHANCE in one for one in got):
        return [CHANCE]
    if not all(isinstance(one, dict) for one in (*got, *want)):
        return []
    names = dict.fromkeys(name for one in want for name in one if one[name])
    missing = [name for name in names if not any(one.get(name, True) for one in got)]
    return [f"The result does not depend on {name}." for name in missing]


def effects(fn: Callable, named: dict[str, Any]) -> dict[str, bool]:
    """For each argument of floats, whether the result changes with it."""
    before = fn(**named)
    if not same(before, fn(**named)):
        return {CHANCE: True}
    if not isinstance(before, np.ndarray) or not np.isfinite(before).all():
        return {}
    return {path[-1]: not same(before, fn(**changed(named, path))) for path in paths(named)}


def changed(named: dict[str, Any], path: Path) -> dict[str, Any]:
    """The arguments with other numbers in one array."""
    named = copy.deepcopy(named)
    array = value_at(named, path)
    array += np.random.default_rng(0).normal(size=array.shape).astype(array.dtype)
    return named


def paths(named: dict[str, Any]) -> Iterator[Path]:
    """Where arrays of floats stand in the arguments."""
    for name, value in named.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size:
            yield (name,)
        elif isinstance(value, dict):
            yield from ((name, *path) for path in paths(value))


def value_at(named: dict[str, Any], path: Path) -> np.ndarray:
    """The array at the end of a path."""
    for name in path:
        named = named[name]
    return named
