"""Your transformer: your functions where you have them, the course's own elsewhere.

    from workshop import mine

    mine.softmax(scores)    # yours, once `check` has found it right
    mine.parts()            # which parts are yours

Yours are those in the folder my_transformer beside the notebook; what changes is read anew.
"""

import warnings
from importlib import import_module
from typing import Any

from workshop.checks import page
from workshop.checks.keep import RUNNING, Obstacle, kept_names, own
from workshop.course import TITLES
from workshop.exercises import exercises

ROOMS = ("text", "attention", "blocks", "decoding")  # what a transformer is made of
_TOLD: list[Obstacle] = []  # each once


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    known = exercises().get(name)
    if RUNNING and not (known and known.is_class):
        # An answer that is being read uses it, and may be used by it: so it is looked up later.
        return lambda *args, **kwargs: _now(name)(*args, **kwargs)
    return _now(name)


def _now(name: str) -> Any:
    """Yours if there is one that can be read, else the course's."""
    found = own(name)
    if isinstance(found, Obstacle) and found not in _TOLD:
        _TOLD.append(found)
        text = f"{found}. Until that is repaired, the course's own is used."
        warnings.warn(text, stacklevel=3)
    if found is not None and not isinstance(found, Obstacle):
        return found
    if name in exercises():
        return _of_the_course(name)
    raise AttributeError(f"neither my_transformer nor the course has a function {name!r}")


def _of_the_course(name: str) -> Any:
    """The helper of this name; what only an exercise has, from there."""
    known = exercises()[name]
    room = import_module("helpers.layers") if known.backends == ("torch",) else None
    return known.course or getattr(room, name, None) or known.reference


def __dir__() -> list[str]:
    return sorted({*exercises(), "parts"})


def parts() -> None:
    """Show which parts of the transformer are yours, by notebook."""
    own, rows, lines = kept_names()[0], [], []
    for notebook, names in _by_notebook().items():
        yours = ", ".join(name for name in names if name in own) or "–"
        rest = ", ".join(name for name in names if name not in own) or "–"
        rows.append([f"{notebook} · {TITLES[notebook]}", yours, rest])
        lines.append(f"{rows[-1][0]}: yours {yours}; the course's {rest}")
    every = [name for names in _by_notebook().values() for name in names]
    title = f"{len(own & {*every})} of {len(every)} parts are yours"
    markup = page.overview(title, ["notebook", "yours", "the course's"], rows)
    page.display(page.Shown(markup, "\n".join([f"{title}.", *lines])))


def _by_notebook() -> dict[str, list[str]]:
    """The functions of the course that a transformer is made of, by notebook."""
    found: dict[str, list[str]] = {}
    for known in exercises().values():
        room = getattr(known.course, "__module__", "").removeprefix("helpers.")
        is_layer = known.backends == ("torch",) and not known.trains
        if (room in ROOMS or is_layer) and known.notebook >= "01":
            found.setdefault(known.notebook, []).append(known.name)
    return dict(sorted(found.items()))
