"""Your transformer: your functions where you have them, the course's own elsewhere.

    from workshop import mine

    mine.softmax(scores)    # yours, once `check` has found it right
    mine.parts()            # which parts are yours

Yours are those in my_transformer.py beside the notebook; when the file changes they are read anew.
"""

import warnings
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from workshop.checks import page
from workshop.checks.keep import Obstacle, load, path_of
from workshop.course import TITLES
from workshop.exercises import exercises

ROOMS = ("text", "attention", "blocks", "decoding")  # what a transformer is made of


class _File:
    """The file as it was read last."""

    stamp: tuple | None = None
    module: ModuleType | None = None


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    module = _module()
    if hasattr(module, name):
        return getattr(module, name)
    if name in exercises():
        return _of_the_course(name)
    raise AttributeError(f"neither my_transformer.py nor the course has a function {name!r}")


def _of_the_course(name: str) -> Any:
    """The helper of this name; what only an exercise has, from there."""
    known = exercises()[name]
    room = import_module("helpers.layers") if known.backends == ("torch",) else None
    return getattr(room, name, known.reference)


def __dir__() -> list[str]:
    return sorted({*exercises(), *_own(), "parts"})


def parts() -> None:
    """Show which parts of the transformer are yours, by notebook."""
    own, rows, lines = _own(), [], []
    for notebook, names in _by_notebook().items():
        yours = [name for name in names if name in own]
        rest = [name for name in names if name not in own]
        heading = f"{notebook} · {TITLES.get(notebook, '')}"
        rows.append([heading, ", ".join(yours) or "–", ", ".join(rest) or "–"])
        lines.append(f"{heading}: yours {rows[-1][1]}; the course's {rows[-1][2]}")
    total = sum(map(len, _by_notebook().values()))
    count = total - sum(name not in own for names in _by_notebook().values() for name in names)
    title = f"{count} of {total} parts are yours"
    markup = page.overview(title, ["notebook", "yours", "the course's"], rows)
    page.display(page.Shown(markup, "\n".join([f"{title}.", *lines])))


def _by_notebook() -> dict[str, list[str]]:
    """The functions of the course that a transformer is made of, by notebook."""
    found: dict[str, list[str]] = {}
    for known in exercises().values():
        room = known.reference.__module__.removeprefix("helpers.")
        is_layer = known.backends == ("torch",) and not known.trains
        if (room in ROOMS or is_layer) and known.notebook >= "01":
            found.setdefault(known.notebook, []).append(known.name)
    return dict(sorted(found.items()))


def _own() -> set[str]:
    """The functions of exercises that the file defines, not those that it imports."""
    module = _module()
    made = {n for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__}
    return made & set(exercises())


def _module() -> ModuleType:
    """The file as a module, read anew when it has changed; empty without a file."""
    path = path_of()
    stamp = _stamp(path)
    if _File.module is None or stamp != _File.stamp:
        _File.stamp, _File.module = stamp, _read(path) if stamp[1] else ModuleType("nothing")
    return _File.module


def _stamp(path: Path | None) -> tuple:
    """What changes when the file changes; its second part is None without a file."""
    try:
        stat = path.stat() if path else None
    except OSError:
        stat = None
    return path, stat and (stat.st_mtime_ns, stat.st_size, stat.st_ino)


def _read(path: Path) -> ModuleType:
    """Run the file; one that stops gives a warning, and the course's own functions."""
    try:
        return load(path.read_text(encoding="utf-8"), path)
    except (Obstacle, OSError, ValueError) as error:
        text = f"{error}. Until that is repaired, the course's own functions are used."
        warnings.warn(text, stacklevel=4)
        return ModuleType("nothing")
