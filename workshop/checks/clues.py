"""Clues where neither a slip nor one change explains an answer: what it never uses, what changes
from call to call, and what the failing cases have in common."""

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from workshop.checks.compare import same
from workshop.checks.rules import reads
from workshop.checks.sandbox import observe_apart
from workshop.checks.syntax import Definition
from workshop.exercises.exercise import Exercise, Probe

CHANCE = (
    "Two calls with the same arguments give different results: something random is in it "
    "(dropout, numbers drawn, new weights), or something is kept from call to call. "
    "Use only what is passed in."
)
FROM_THE_END = " Count axes from the end (-1, -2), or use `...` in front."
EQUAL = "It is right only where all lengths of the arrays are equal: is one taken for another?"


def unused(answer: Definition | None, known: Exercise) -> list[str]:
    """Sentences on what is computed and never read, and on parameters that the solution reads."""
    if answer is None:
        return []
    wanted, read = reads(known.tree), reads(answer)
    names = [n for n in ast.walk(answer) if isinstance(n, ast.Name)]
    loaded = {n.id for n in names if isinstance(n.ctx, ast.Load)}
    lines = [n for n in ast.walk(answer) if isinstance(n, ast.Assign) and n.targets[0] in names]
    computed = dict.fromkeys(n.targets[0].id for n in lines if n.targets[0].id not in loaded)
    parts = _parts(known.tree, ast.Load) & _parts(answer, ast.Store) - _parts(answer, ast.Load)
    ignored = [x for x in known.parameters if wanted[x] > read[x] == 0]
    return [*(f"`{x}` is never used." for x in ignored),
            *(f"`self.{x}` is made, and never used." for x in sorted(parts)),
            *(f"`{x}` is computed, and never used." for x in computed)]  # fmt: skip


def _parts(tree: ast.AST, context: type[ast.expr_context]) -> set[str]:
    """The attributes of self that are read, or that are set."""
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute)]
    return {n.attr for n in found if isinstance(n.ctx, context) and ast.unparse(n.value) == "self"}


def in_common(known: Exercise, wrong: Sequence[int], text: str) -> list[str]:
    """What all failing probes of an answer have, and no other: more axes, lengths that differ."""
    arrays = [[x for x in probe.args if isinstance(x, np.ndarray)] for probe in known.probes]
    lengths = [{n for x in found for n in x.shape} for found in arrays]
    right = [i for i in range(len(arrays)) if i not in wrong]
    works, fails = ({x.ndim for i in group for x in arrays[i][:1]} for group in (right, wrong))
    apart = min(len(works), len(fails)) == 1 and not works & fails
    if apart and all(map(arrays.__getitem__, wrong)):
        told = [" or ".join(map(str, sorted(group))) for group in (works, fails)]
        axes = "axis" if told[0] == "1" else "axes"
        return [f"It is right for an array with {told[0]} {axes}, wrong for {told[1]}: "
                "axes in front must stay." + FROM_THE_END * ("shape[-" not in text)]  # fmt: skip
    if right and all(len(lengths[i]) == 1 and lengths[i] != {1} for i in right):
        if all(len(lengths[i]) > 1 for i in wrong):
            return [EQUAL]
    return []


def by_chance(function: Callable, known: Exercise, backend: str) -> bool:
    """Whether two calls with the same arguments give different results."""
    given = [p.args for p in known.probes[:3] if p.args]
    twice = [Probe("", lambda fn, args=args: same(fn(*args), fn(*args))) for args in given]
    seen = observe_apart(function, replace(known, probes=twice), backend) if twice else []
    return any(one.value is False for one in seen)
