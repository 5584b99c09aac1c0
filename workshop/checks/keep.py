"""Keep answers that pass, each in its own file: my_transformer/softmax.py, beside the notebook.

MY_TRANSFORMER names another folder; with `off` nothing is kept or read. A my_transformer.zip that a
page of the site has saved, beside the notebook, fills what the folder lacks. What earlier versions
kept in one my_transformer.py is read where no newer file holds it, and never written.
"""

import contextlib
import os
import re
import sys
import tempfile
import traceback
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType

from workshop.checks.judge import RIGHT, judge
from workshop.checks.sandbox import observe_apart
from workshop.checks.source import Obstacle, Piece, piece_of
from workshop.course import TITLES
from workshop.exercises import exercises
from workshop.exercises.exercise import Exercise

REPAIR = "repair it, or set it aside: `make fresh`, or another name"
# Imports that earlier versions wrote, and where those things are now.
OLDER = (
    rb"(?m)^(\s*\w+ )(?:helpers|workshop)(\.| import )(?:checks\.(?=exercises))?(checks\.observe|"
    rb"exercises|checks|colours|drawings|mine|shown|widgets)\b(?:(?<=exercises)\.\w+)?"
)
MOVED = {b"checks.observe": b"checks.sandbox", b"exercises": b"mine", b"shown": b"tables"}
MINE = re.compile(r"my_transformer/\w+\.py")  # in a zip of the site
FOUND: dict[Path, tuple] = {}  # when a file was read last, and the module or what stops it
RUNNING: dict[Path, ModuleType] = {}  # what runs just now, or is tried in the place of a file


def folder() -> Path | None:
    """Where answers are kept, None where keeping is switched off."""
    named = os.environ.get("MY_TRANSFORMER") or "my_transformer"
    return None if named.lower() == "off" else Path(named.removesuffix(".py"))


def keep(function: Callable, known: Exercise, tensors: bool) -> str:
    """Keep a right answer, one for tensors as one that takes arrays too; says where, or why not."""
    if (where := folder()) is None:
        return ""
    path = where / f"{known.name}.py"
    try:
        write(path, piece_of(function, known.name), known, tensors)
    except OSError as error:
        return f"Right, and not kept: {path} cannot be written ({error.strerror or error})."
    except Exception as error:  # a right answer stays right, whatever its source looks like
        return f"Right, and not kept: {error if isinstance(error, Obstacle) else repr(error)}."
    home = ": the files panel on the left downloads it" if "google.colab" in sys.modules else ""
    home = ", in this browser" if sys.platform == "emscripten" else home
    return f"Kept in `{path}`{home}."


def wants_tensors(function: Callable, known: Exercise) -> bool:
    """Whether an answer is right on tensors only."""
    if known.backends == ("torch",):
        return False
    try:
        return judge(known, observe_apart(function, known, "numpy")).status != RIGHT
    except Exception:  # an addition: a right answer stays right without it
        return False


def kept_names() -> tuple[set[str], str]:
    """The exercises that have an answer of the learner's, and what keeps one from being read."""
    found, where = {name: own(name) for name in exercises()}, folder()
    told = dict.fromkeys(str(x) for x in found.values() if isinstance(x, Obstacle))
    if where and os.path.lexists(where) and not (where.is_dir() and os.access(where, os.X_OK)):
        told[f"{where} cannot be read: it is closed, or no folder"] = None
    return {n for n, x in found.items() if callable(x)}, "; ".join([*told, REPAIR] if told else [])


def write(path: Path, piece: Piece, known: Exercise, tensors: bool) -> None:
    """Write an answer if it is new. Raises Obstacle where it is not right by itself."""
    about = f"My {known.name}, {known.notebook} · {TITLES[known.notebook]}: passed its check"
    text = piece.text(f"{about}; a newer one replaces it.", tensors)
    if not path.is_file() or path.read_bytes() != text.encode():
        verify(path, text, piece, known)
        path.parent.mkdir(exist_ok=True)
        replace(path.resolve(), text)  # a link stays one


def verify(path: Path, text: str, piece: Piece, known: Exercise) -> None:
    """Judge an answer as it will stand in its file. Raises Obstacle where it is not right there."""
    if isinstance(module := load(path, text.encode()), Obstacle):
        raise module
    RUNNING[path] = module  # whoever asks `mine` for their own name get themselves
    try:
        seen = observe_apart(vars(module)[known.name], known, known.backends[0])
    finally:
        del RUNNING[path]
    if (verdict := judge(known, seen)).status != RIGHT:
        yours = ", ".join(f"`{name}`" for name in sorted(piece.wanted) if callable(own(name)))
        place = f"where it runs on your {yours}" if yours else "away from the notebook"
        raise Obstacle(f"in {path}, {place}, it is not right: {verdict.message}".rstrip("."))


def replace(path: Path, text: str) -> None:
    """Write a file all at once: a reader sees the old one or the new one, never a half."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=".tmp")
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.chmod(temporary, path.stat().st_mode & 0o777 if path.exists() else 0o644)
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def own(name: str) -> object:
    """The learner's own of a name, None without one, an Obstacle where it cannot be read."""
    if where := folder():
        zipped = where.with_name(f"{where.name}.zip")
        unpack(where, zipped, zipped.stat().st_mtime_ns if zipped.is_file() else 0)
    for path in (where / f"{name}.py", where.parent / f"{where.name}.py") if where else ():
        found = read(path)
        value = found if isinstance(found, Obstacle) else getattr(found, name, None)
        ours = str(getattr(value, "__module__", "")).startswith(("helpers", "workshop"))
        if value is not None and (value is found or not ours):
            return value
    return None


@cache
def unpack(where: Path, zipped: Path, changed: int) -> None:
    """Put answers of a zip into the folder, once, but none in the place of another."""
    with contextlib.suppress(OSError, zipfile.BadZipFile):
        whole = zipfile.ZipFile(zipped)
        for name in filter(MINE.fullmatch, whole.namelist()):
            path = where / Path(name).name
            if not os.path.lexists(path):
                where.mkdir(exist_ok=True)
                path.write_bytes(whole.read(name))


def read(path: Path) -> ModuleType | Obstacle | None:
    """A file as a module, run anew when it or the folder of answers has changed; None without."""
    if path in RUNNING:
        return RUNNING[path]
    stats = [place.stat() if os.path.exists(place) else None for place in (path, folder())]
    now = [stat and (stat.st_mtime_ns, stat.st_size, stat.st_ino) for stat in stats]
    if FOUND.get(path, ((),))[0] != now:
        FOUND[path] = now, load(path) if now[0] else None
    return FOUND[path][1]


def load(path: Path, code: bytes | None = None) -> ModuleType | Obstacle:
    """Run what a file holds, or will hold, as a new module; an Obstacle says where it stops."""
    name = f"my_transformer.{path.stem}"
    RUNNING[path] = sys.modules[name] = module = ModuleType(name)  # dataclasses look there
    try:
        code = path.read_bytes() if code is None else code
        code = re.sub(OLDER, lambda m: m[1] + b"workshop" + m[2] + MOVED.get(m[3], m[3]), code)
        exec(compile(code, str(path), "exec", dont_inherit=True), vars(module))
    except (Exception, SystemExit) as error:
        frames, file = traceback.extract_tb(error.__traceback__), str(path)
        lines = [getattr(error, "lineno", 0), *(f.lineno for f in frames if f.filename == file)]
        line = f", line {lines[-1]}" if lines[-1] else ""
        said = traceback.format_exception_only(error)[-1].strip()
        return Obstacle(f"{path} cannot be read{line}: {said}")
    finally:
        del RUNNING[path]
    return module
