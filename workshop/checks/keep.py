"""Keep answers that pass: readable Python in my_transformer.py, beside the notebook.

The environment variable MY_TRANSFORMER names another file; with `off` nothing is kept or read.
The file belongs to the learner: what was added by hand stays, and nothing is written over a file
that Python cannot read.
"""

import ast
import contextlib
import os
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from types import ModuleType

from workshop.checks.judge import RIGHT, grade, judge
from workshop.checks.sandbox import observe_apart
from workshop.checks.source import Obstacle, Piece, import_lines, names_used, piece_of
from workshop.course import TITLES
from workshop.exercises import exercises
from workshop.exercises.exercise import Exercise

FILE = "my_transformer.py"
REPAIR = "repair that line, or set the file aside: `make fresh`, or give it another name"
PATIENCE = 10.0  # seconds to wait for another notebook that is writing
TITLE = '''"""My transformer: what I wrote in the course, each part checked.

Edit it as you like: `check` replaces a function by your newest right answer and leaves the rest.
In a notebook, `from workshop import mine` runs on it; `make fresh` starts again.
"""'''
FUTURE = "from __future__ import annotations"
TENSORS = "from workshop.checks.sandbox import on_tensors"
OLDER = "from workshop.checks.observe import on_tensors"  # where it lived in earlier versions
HEADING = re.compile(r"^# -{10,} (\d\d)(?: · .*)?$")
TOP, END = "", "~"  # sections before and after those of the notebooks


def path_of() -> Path | None:
    """The file of kept answers, None where keeping is switched off."""
    named = os.environ.get("MY_TRANSFORMER", "")
    if named.lower() == "off":
        return None
    return Path(named) if named else Path.cwd() / FILE


def keep(function: Callable, known: Exercise, tensors: bool) -> str:
    """Keep a right answer, one for tensors only as one that takes arrays as well.

    Returns a sentence that says where it is, or why it is not kept.
    """
    path = path_of()
    if path is None:
        return ""
    try:
        piece = piece_of(function, known.name)
        if tensors:
            piece.imports["on_tensors"] = TENSORS
            piece.definitions[known.name] = "@on_tensors\n" + piece.definitions[known.name]
        with locked(path.parent):
            write(path, piece, known)
    except Obstacle as obstacle:
        return f"Right, and not kept: {obstacle}."
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return f"Right, and not kept: {path.name} cannot be written ({reason.lower()})."
    except Exception as error:  # a right answer stays right, whatever its source looks like
        return f"Right, and not kept: {_words(error)}."
    return kept_where(path)


def wants_tensors(function: Callable, known: Exercise) -> bool:
    """Whether an answer is right on tensors only."""
    if known.backends == ("torch",):
        return False
    with contextlib.suppress(Exception):  # an addition: a right answer stays right without it
        return judge(known, observe_apart(function, known, "numpy")).status != RIGHT
    return False


def kept_where(path: Path) -> str:
    """Say where a kept answer lies; on Colab, how to take it home."""
    if "google.colab" in sys.modules:
        return f"Kept in `{path}`: the files panel on the left downloads it."
    beside = path.parent.resolve() == Path.cwd().resolve()
    return f"Kept in `{path.name}`, beside this notebook." if beside else f"Kept in `{path}`."


def kept_names() -> tuple[set[str], str]:
    """The exercises that have an answer in the file, and what keeps it from being read, or ""."""
    path = path_of()
    try:
        return set(functions(read(path))) if path and path.exists() else set(), ""
    except Obstacle as obstacle:
        return set(), str(obstacle)
    except OSError as error:
        return set(), f"{path.name} cannot be read ({error.strerror or 'no reason given'})"


# ---------------------------------------------------------------- the file


@dataclass
class Block:
    """A statement of the file with the comments above it; `binds` are the names it defines, and
    `section` is the notebook under whose heading it stands."""

    text: str
    binds: tuple[str, ...] = ()
    kind: str = "other"
    section: str = TOP


def functions(blocks: Iterable[Block]) -> dict[str, Block]:
    """The definitions of exercises, in the order of the course."""
    defined = {n: b for b in blocks if b.kind == "definition" for n in b.binds}
    return {name: defined[name] for name in exercises() if name in defined}


def read(path: Path) -> list[Block]:
    """Take the file apart. Raises Obstacle when it is no Python."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError) as error:
        raise Obstacle(f"{unreadable(path, error)}; {REPAIR}") from None


def unreadable(path: Path, error: Exception) -> str:
    """Name the line of a file that stops Python, and why."""
    line = getattr(error, "lineno", None)
    reason = getattr(error, "msg", None) or str(error) or type(error).__name__
    if isinstance(error, UnicodeDecodeError):
        line, reason = error.object[: error.start].count(b"\n") + 1, "it is not UTF-8 text"
    return f"{path.name} cannot be read" + (f", line {line}: {reason}" if line else f": {reason}")


def parse(text: str) -> list[Block]:
    """Take a file apart; the comments above a statement belong to it."""
    lines, blocks, section, done = text.replace(OLDER, TENSORS).split("\n"), [], TOP, 0
    for node in ast.parse(text).body:
        block = block_of(node, "")
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        if first <= done:  # a second statement in the same line
            blocks[-1].binds += block.binds
            continue
        above, block.section = _without_headings(lines[done : first - 1], section)
        section, done = block.section, node.end_lineno
        block.text = "\n".join([*above, *lines[first - 1 : done]]).strip("\n")
        blocks.append(block)
    end = "\n".join(_without_headings(lines[done:], section)[0]).strip()
    return [*blocks, *([Block(end, section=END)] if end else [])]


def _without_headings(lines: list[str], section: str) -> tuple[list[str], str]:
    """Comments without the headings among them, and the section they lead to."""
    found = [match[1] for line in lines if (match := HEADING.match(line))]
    return [line for line in lines if not HEADING.match(line)], found[-1] if found else section


def block_of(node: ast.stmt, text: str) -> Block:
    """A statement, what it is and which names it binds."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return Block(text, (node.name,), "definition")
    if isinstance(node, ast.ImportFrom) and node.module == "__future__":
        return Block(text, kind="future")
    if isinstance(node, ast.Import | ast.ImportFrom):
        return Block(text, tuple(a.asname or a.name.split(".")[0] for a in node.names), "import")
    if isinstance(node, ast.Assign):
        return Block(text, tuple(t.id for t in node.targets if hasattr(t, "id")), "constant")
    title = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return Block(text, kind="title" if title else "other")


def render(blocks: Iterable[Block]) -> str:
    """Put a file together: its title, imports, then a heading for each notebook."""
    parts = []
    for section, found in groupby(sorted(blocks, key=lambda b: b.section), lambda b: b.section):
        if section not in (TOP, END):
            parts.append(f"# {'-' * 64} {section} · {TITLES.get(section, 'My own')}")
        first, *rest = found
        pairs = pairwise([first, *rest])
        parts.append(first.text + "".join(gap(*pair) + pair[1].text for pair in pairs))
    return "\n\n\n".join(parts) + "\n"


def gap(before: Block, block: Block) -> str:
    """Two empty lines around definitions, none among imports; the helpers' are their own group."""
    if "definition" in (before.kind, block.kind):
        return "\n\n\n"
    ours = ["from helpers" in b.text for b in (before, block)]
    return "\n" if before.kind == block.kind and ours[0] == ours[1] else "\n\n"


# ---------------------------------------------------------------- a new answer


def write(path: Path, piece: Piece, known: Exercise) -> None:
    """Add an answer to the file, if the file still does what it did; else leave it as it was."""
    path = path.resolve()
    old = read(path) if path.exists() else []
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    blocks = old or parse(f"{TITLE}\n\n{FUTURE}\n")
    changed = insert(blocks, piece, known)
    if (text := render(blocks)) != before:
        verify(load(text, path), path.name, blocks, changed | {known.name})
        replace(path, text)


def insert(blocks: list[Block], piece: Piece, known: Exercise) -> set[str]:
    """Put the pieces where they belong; returns the names whose meaning has changed."""
    if not any(block.kind == "future" for block in blocks):
        titled = bool(blocks) and blocks[0].kind == "title"
        blocks.insert(int(titled), Block(FUTURE, kind="future"))
    mine = {*functions(blocks), known.name}
    lines = import_lines(piece, mine)
    changed = {name for name, line in lines.items() if _add_import(blocks, name, line)}
    for name, source in piece.definitions.items():
        if _add_definition(blocks, name, source, known):
            changed.add(name)
    own = [b for b in blocks if b.kind == "import" and len(b.binds) == 1 and b.binds[0] in mine]
    blocks[:] = [b for b in blocks if b not in own or "from helpers" not in b.text]
    return changed


def _add_import(blocks: list[Block], name: str, line: str) -> bool:
    """Add an import line, in its place in the alphabet; a name that means another thing stays."""
    if found := [_last_line(block) for block in blocks if name in block.binds]:
        if line in found or line.startswith("from helpers"):
            return False  # it is there, or a function of the file, or another import of it
        raise Obstacle(f"in the file `{name}` is another thing than `{line}`")
    top = [(i, b) for i, b in enumerate(blocks) if b.section == TOP]
    later = [i for i, b in top if b.kind == "import" and rank(_last_line(b)) > rank(line)]
    ends = [i + 1 for i, b in top if b.kind in ("title", "future", "import")]
    blocks.insert(later[0] if later else max(ends, default=0), Block(line, (name,), "import"))
    return True


def _last_line(block: Block) -> str:
    return block.text.rpartition("\n")[2]


def rank(line: str) -> tuple[bool, bool, str]:
    """`import` before `from`, the helpers last."""
    return line.startswith("from helpers"), line.startswith("from"), line


def _add_definition(blocks: list[Block], name: str, source: str, known: Exercise) -> bool:
    """Replace the definition of this name, or put it before the answers to later exercises."""
    new = block_of(ast.parse(source).body[0], source)
    for i, block in enumerate(blocks):
        if name in block.binds and block.kind in ("definition", "constant"):
            new.section, blocks[i] = block.section, new
            return block.text != source
    new.section, order = known.notebook, list(exercises())
    later = {known.name, *order[order.index(known.name) + 1 :]}
    places = (i for i, b in enumerate(blocks) if b.section == new.section and later & {*b.binds})
    blocks.insert(next(places, len(blocks)), new)
    return True


# ---------------------------------------------------------------- is it still right


def load(text: str, path: Path) -> ModuleType:
    """Run a file as a fresh module. Raises Obstacle that names the line which stops it."""
    module = ModuleType("my_transformer")
    module.__file__ = str(path)
    try:
        code = compile(text.replace(OLDER, TENSORS), str(path), "exec", dont_inherit=True)
        exec(code, vars(module))
    except (SyntaxError, ValueError) as error:
        raise Obstacle(unreadable(path, error)) from None
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(path)]
        line = f", line {lines[-1]}," if lines else ""
        raise Obstacle(f"{path.name}{line} stops: {_words(error)}") from None
    return module


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def verify(module: ModuleType, file: str, blocks: list[Block], changed: set[str]) -> None:
    """Grade the answers that the change may touch, as they stand in the new file."""
    found = functions(blocks)
    for name in _touched(blocks, changed):
        verdict = grade(getattr(module, name), name)
        if verdict.status == RIGHT:
            continue
        if name in changed:  # say what it meets in the file that it did not meet in the notebook
            own = _listed(set(names_used(found[name].text)) & set(found) - {name})
            where = f"where it runs on your {own}" if own else "away from the notebook"
            said = verdict.message.rstrip(".")
            raise Obstacle(f"in {file}, {where}, it is not right: {said}")
        others = _listed(changed - set(exercises()))
        cause = f"; give {others} another name" if others else ""
        raise Obstacle(f"your `{name}` in {file} would not be right any more{cause}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def _touched(blocks: list[Block], changed: set[str]) -> list[str]:
    """The answers in the file that are new, or use what is new, however indirectly."""
    definitions = [block for block in blocks if block.kind == "definition"]
    uses = {name: set(names_used(b.text)) for b in definitions for name in b.binds}
    reached = set(changed)
    while more := {name for name in uses if uses[name] & reached} - reached:
        reached |= more
    return sorted(reached & set(functions(blocks)))


def replace(path: Path, text: str) -> None:
    """Write a file all at once: a reader sees the old one or the new one, never a half."""
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=".tmp")
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder while a file in it is read, changed and written back.

    Where the system has no such lock, two notebooks that pass a check in the same moment may lose
    one of the two answers; the next check brings it back.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle, end = os.open(folder, os.O_RDONLY), time.monotonic() + PATIENCE  # no file is left
    try:
        while _is_taken(lambda: fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)):
            if time.monotonic() > end:
                raise Obstacle("another notebook has been writing it for a while")
            time.sleep(0.02)
        yield
    finally:
        os.close(handle)


def _is_taken(lock: Callable[[], None]) -> bool:
    try:
        lock()
    except OSError as error:  # any other: a file system without locks
        return isinstance(error, BlockingIOError)
    return False
