"""Clues where neither a slip nor one change explains an answer: what it never uses, what has no
effect, what changes from call to call, and what the failing cases have in common."""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from workshop.checks.compare import same
from workshop.checks.rules import reads
from workshop.checks.sandbox import observe, observe_apart
from workshop.checks.syntax import Definition
from workshop.exercises.exercise import Exercise, Probe

Path = tuple[str, ...]  # ("x",), or ("p", "attn", "W_q") inside a dictionary

CHANCE = (
    "Two calls with the same arguments give different results: something random is in it "
    "(dropout, numbers drawn, new weights), or something is kept from call to call. "
    "Use only what is passed in."
)


def unused(answer: Definition | None, known: Exercise) -> list[str]:
    """Sentences on the parameters that the solution reads, and an answer never does."""
    if answer is None or known.is_class:
        return []
    wanted, read = reads(known.tree), reads(answer)
    return [f"`{x}` is never used." for x in known.parameters if wanted[x] > read[x] == 0]


def in_common(known: Exercise, wrong: Sequence[int]) -> list[str]:
    """A sentence on what all failing probes have, and no other: more axes, lengths that differ."""
    arrays = [[x for x in probe.args if isinstance(x, np.ndarray)] for probe in known.probes]
    lengths = [{n for x in found for n in x.shape} for found in arrays]
    right = [i for i in range(len(arrays)) if i not in wrong]
    works, fails = ({x.ndim for i in group for x in arrays[i][:1]} for group in (right, wrong))
    if len(works) == 1 and fails and not works & fails and all(map(arrays.__getitem__, wrong)):
        told = [" or ".join(map(str, sorted(group))) for group in (works, fails)]
        axes = "axis" if told[0] == "1" else "axes"
        return [f"It is right for an array with {told[0]} {axes}, wrong for {told[1]}: "
                "count axes from the end (-1, -2), or write `...`."]  # fmt: skip
    if right and all(len(lengths[i]) == 1 and lengths[i] != {1} for i in right):
        if all(len(lengths[i]) > 1 for i in wrong):
            return ["It is right where all lengths are equal, else not: is one taken for another?"]
    return []


def by_chance(function: Callable, known: Exercise, backend: str) -> bool:
    """Whether two calls with the same arguments give different results."""
    twice = [
        Probe("", lambda fn, p=p: same(fn(*p.args), fn(*p.args)))
        for p in known.probes[:3]
        if p.args
    ]
    seen = observe_apart(function, replace(known, probes=twice), backend) if twice else []
    return any(one.value is False for one in seen)


def without_effect(function: Callable, known: Exercise, backend: str) -> list[str]:
    """Sentences on what the answer's result must depend on, and does not, on no probe."""
    probes = [probe for probe in known.probes if probe.args]
    named = [dict(zip(known.parameters, probe.args, strict=False)) for probe in probes]
    asked = replace(known, probes=[Probe("", lambda fn, n=n: effects(fn, n)) for n in named])
    got = [seen.value for seen in observe_apart(function, asked, backend)]
    want = [seen.value for seen in observe(known.reference, asked, known.backends[0])]
    if not all(isinstance(one, dict) for one in (*got, *want)):
        return []
    names = dict.fromkeys(name for one in want for name in one if one[name])
    missing = [name for name in names if not any(one.get(name, True) for one in got)]
    return [f"The result does not depend on {name}." for name in missing]


def effects(fn: Callable, named: dict[str, Any]) -> dict[str, bool]:
    """For each argument of floats, whether the result changes with it."""
    before = fn(**named)
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
