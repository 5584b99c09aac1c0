"""What a result depends on: which arguments, and which tokens and sentences of them.

Where no known mistake explains an answer, this finds an argument without effect, a result that sees
what it must not see (a later token, another sentence), one that does not see what it must, and one
that changes from call to call.
"""

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


def findings(function: Callable, known: Exercise, probe: Probe, backend: str) -> list[str]:
    """Sentences on what the answer's result depends on and must not, or must and does not."""
    named = dict(zip(known.parameters, probe.args, strict=False)) | probe.kwargs
    asked = replace(known, probes=[Probe(probe.label, lambda fn: effects(fn, named))])
    got = observe_apart(function, asked, backend)[0].value
    want = next(observe(known.reference, asked, known.backends[0])).value
    if not (isinstance(got, dict) and isinstance(want, dict)):
        return []
    if CHANCE in got:
        return [CHANCE]
    return [text for key in want if (text := _difference(key, want[key], got.get(key)))]


def effects(fn: Callable, named: dict[str, Any]) -> dict[str, Any]:
    """For each change of an argument, which parts of the result it changes."""
    before = fn(**named)
    if not same(before, fn(**named)):
        return {CHANCE: True}
    found: dict[str, Any] = {}
    if not isinstance(before, np.ndarray) or not np.isfinite(before).all():
        return found
    for path in paths(named):
        array = value_at(named, path)
        found[f"all of {path[-1]}"] = _moved(fn, named, path, (...,), before, None)
        if array.ndim == before.ndim >= 2 and not path[-1].startswith("W"):
            found[f"last of {path[-1]}"] = _moved(
                fn, named, path, (..., -1, slice(None)), before, -2
            )
            if array.ndim > 2:
                found[f"first of {path[-1]}"] = _moved(fn, named, path, (0,), before, 0)
    return found


def _moved(fn: Callable, named: dict, path: Path, where: tuple, before: np.ndarray, axis) -> Any:
    """Change part of one argument: does the result change, and where along an axis."""
    changed = copy.deepcopy(named)
    array = value_at(changed, path)
    array[where] += np.random.default_rng(0).normal(size=array[where].shape).astype(array.dtype)
    after = fn(**changed)
    if not isinstance(after, np.ndarray) or after.shape != before.shape:
        return None
    differs = ~np.isclose(after.astype(float), before.astype(float), atol=1e-6, equal_nan=True)
    if axis is None:
        return bool(differs.any())
    return differs.any(axis=tuple(i for i in range(differs.ndim) if i != axis % differs.ndim))


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


def _difference(key: str, want: Any, got: Any) -> str:
    """A sentence where an answer's dependence is another than the reference's."""
    part, _, name = key.partition(" of ")
    if isinstance(want, bool):
        return f"The result does not depend on {name}." if want and got is False else ""
    if not isinstance(want, np.ndarray) or not isinstance(got, np.ndarray):
        return ""
    if want.shape != got.shape or (want == got).all():
        return ""
    unit = "token" if part == "last" else "sentence"
    seen, unseen = np.flatnonzero(got & ~want), np.flatnonzero(want & ~got)
    place = seen[0] if len(seen) else unseen[0]
    verdict = "must not change, but does" if len(seen) else "must change too, but does not"
    return f"When the {part} {unit} of {name} changes, the result for {unit} {place} {verdict}."
