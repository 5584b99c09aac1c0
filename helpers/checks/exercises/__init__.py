"""The exercises, one file for each stage, loaded when the first of them is asked for."""

from functools import cache
from importlib import import_module

from helpers.checks.exercise import Exercise

FILES = (
    "next_word vectors projections scores scaling weights masks dropping heads positions norms "
    "layers stacks decoder training real_weights"
).split()


@cache
def exercises() -> dict[str, Exercise]:
    """All exercises by name, in the order of the course."""
    found: dict[str, Exercise] = {}
    for file in FILES:
        for value in vars(import_module(f"{__name__}.{file}")).values():
            if isinstance(value, Exercise):
                found[value.name] = value
    return found


def find(name: str) -> Exercise:
    """The exercise of this name. Raises KeyError that lists the names."""
    if name not in exercises():
        raise KeyError(f"no exercise is called {name!r}; there are {', '.join(exercises())}")
    return exercises()[name]
