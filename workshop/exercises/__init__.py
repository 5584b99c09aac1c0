"""The exercises, one file a notebook, loaded when the first of them is asked for."""

import difflib
import pkgutil
from functools import cache
from importlib import import_module

from workshop.exercises.exercise import Exercise

# A file is found by its name: the letter n, then the number of its notebook.
FILES = sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name[1:].isdigit())


@cache
def exercises() -> dict[str, Exercise]:
    """All exercises by name, in the order of the course."""
    found: dict[str, Exercise] = {}
    for file in FILES:
        for value in vars(import_module(f"{__name__}.{file}")).values():
            if isinstance(value, Exercise):
                value.notebook = file[1:]
                found[value.name] = value
    return found


@cache
def asked() -> dict[str, tuple[str, ...]]:
    """What each notebook asks for, in the order of its file, which a test holds to the notebook."""
    known = exercises().values()
    return {n: tuple(e.name for e in known if e.notebook == n) for n in (f[1:] for f in FILES)}


def find(name: str) -> Exercise:
    """The exercise of this name. Raises KeyError that names the nearest."""
    if name not in exercises():
        near = nearest(name)
        raise KeyError(f"no exercise is called {name!r}" + (f"; is it {near!r}?" if near else ""))
    return exercises()[name]


def nearest(name: str) -> str:
    """The name of an exercise that is most like this one, "" if none is."""
    return (*difflib.get_close_matches(name, exercises(), n=1, cutoff=0.6), "")[0]
