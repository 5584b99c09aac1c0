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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from helpers.checks.judge import RIGHT, grade, judge
from helpers.checks.sandbox import observe_apart
from helpers.checks.source import Obstacle, Piece, import_lines, names_used, piece_of
from helpers.exercises import exercises
from helpers.exercises.exercise import Exercise
from helpers.stages import TITLES

FILE = "my_transformer.py"
REPAIR = "repair that line, or set the file aside: `make fresh`, or give it another name"
PATIENCE = 10.0  # seconds to wait for another notebook that is writing
TITLE = '''"""My transformer: what I wrote in the course, each part checked.

Edit it as you like: `check` replaces a function by your newest right answer and leaves the rest.
In a notebook, `from helpers import mine` runs on it; `make fresh` starts again.
"""'''
FUTURE = "from __future__ import annotations"
HEADING = re.compile(r"^# -{10,} (\d\d)(?: · .*)?$")


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
            piece.imports["on_tensors"] = "from helpers.checks.sandbox import on_tensors"
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
        return set(read(path).functions()) if path and path.exists() else set(), ""
    except Obstacle as obstacle:
        return set(), str(obstacle)
    except OSError as error:
        return set(), f"{path.name} cannot be read ({error.strerror or 'no reason given'})"


# ---------------------------------------------------------------- the file


@dataclass
class Block:
    """A statement of the file with the comments above it; `binds` are the names it defines."""

    text: str
    binds: tuple[str, ...] = ()
    kind: str = "other"


@dataclass
class Book:
    """The file in sections: "" is its top, then one for each notebook."""

    sections: dict[str, list[Block]] = field(default_factory=lambda: {"": []})
    end: str = ""  # comments after the last statement

    def functions(self) -> dict[str, Block]:
        """The definitions of exercises."""
        blocks = (block for blocks in self.sections.values() for block in blocks)
        defined = {n: b for b in blocks if b.kind == "definition" for n in b.binds}
        return {name: defined[name] for name in exercises() if name in defined}

    def all(self) -> list[Block]:
        """All blocks in order."""
        return [block for blocks in self.sections.values() for block in blocks]


def read(path: Path) -> Book:
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


def parse(text: str) -> Book:
    """Take a file apart into blocks; the comments above a statement belong to it."""
    lines, book, section, done = text.split("\n"), Book(), "", 0
    for node in ast.parse(text).body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        above, section = _without_headings(lines[done : first - 1], section)
        if first <= done:  # a second statement in the same line
            book.sections[section][-1].binds += _kind(node)[1]
            continue
        done = node.end_lineno
        body = "\n".join([*above, *lines[max(first - 1, 0) : node.end_lineno]]).strip("\n")
        kind, binds = _kind(node)
        book.sections.setdefault(section, []).append(Block(body, binds, kind))
    above, _ = _without_headings(lines[done:], section)
    book.end = "\n".join(above).strip()
    return book


def _without_headings(lines: list[str], section: str) -> tuple[list[str], str]:
    """Comments without the headings among them, and the section they lead to."""
    found = [match[1] for line in lines if (match := HEADING.match(line))]
    kept = [line for line in lines if not HEADING.match(line)]
    return kept, found[-1] if found else section


def _kind(node: ast.stmt) -> tuple[str, tuple[str, ...]]:
    """What a statement is, and the names it binds."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return "definition", (node.name,)
    if isinstance(node, ast.Import | ast.ImportFrom):
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        names = tuple(a.asname or a.name.split(".")[0] for a in node.names)
        return ("future", ()) if future else ("import", names)
    if isinstance(node, ast.Assign):
        return "constant", tuple(t.id for t in node.targets if isinstance(t, ast.Name))
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return "title", ()
    return "other", ()


def render(book: Book) -> str:
    """Put a file together: its title, imports, then a heading for each notebook."""
    parts = [_joined(book.sections[""])]
    for notebook in sorted(set(book.sections) - {""}):
        rule = f"# {'-' * 64} {notebook} · {TITLES.get(notebook, 'My own')}"
        parts += [rule, _joined(book.sections[notebook])]
    return "\n\n\n".join(part for part in [*parts, book.end] if part) + "\n"


def _joined(blocks: list[Block]) -> str:
    """Blocks one below the other: two empty lines around definitions, none among imports."""
    text, before = "", None
    for block in blocks:
        if before is not None:
            text += "\n" * _gap(before, block)
        text, before = text + block.text, block
    return text


def _gap(before: Block, block: Block) -> int:
    """Line ends between two blocks; the helpers' imports are a group of their own."""
    if "definition" in (before.kind, block.kind):
        return 3
    ours = ["from helpers" in b.text for b in (before, block)]
    return 1 if before.kind == block.kind and ours[0] == ours[1] else 2


# ---------------------------------------------------------------- a new answer


def write(path: Path, piece: Piece, known: Exercise) -> None:
    """Add an answer to the file, if the file still does what it did; else leave it as it was."""
    path = path.resolve()
    book = read(path) if path.exists() else Book()
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    if not old.strip():
        book = parse(f"{TITLE}\n\n{FUTURE}\n")
    changed = insert(book, piece, known)
    text = render(book)
    if text == old:
        return
    verify(text, path, book, changed | {known.name})
    replace(path, text)


def insert(book: Book, piece: Piece, known: Exercise) -> set[str]:
    """Put the pieces where they belong; returns the names whose meaning has changed."""
    if not any(block.kind == "future" for block in book.all()):
        titles = [i + 1 for i, b in enumerate(book.sections[""][:1]) if b.kind == "title"]
        book.sections[""].insert(max(titles, default=0), Block(FUTURE, kind="future"))
    mine = set(book.functions()) | {known.name}
    lines = import_lines(piece, mine)
    changed = {name for name, line in lines.items() if _add_import(book, name, line)}
    for name, source in piece.definitions.items():
        if _add_definition(book, name, source, known):
            changed.add(name)
    _drop_imports(book, mine)
    return changed


def _add_import(book: Book, name: str, line: str) -> bool:
    """Add an import line, in its place in the alphabet; a name that means another thing stays."""
    found = [block for block in book.all() if name in block.binds]
    if found:
        if any(_last_line(block) == line for block in found):
            return False
        if line.startswith("from helpers"):
            return False  # a function of the file, or another import of it
        raise Obstacle(f"in the file `{name}` is another thing than `{line}`")
    top = book.sections[""]
    later = [
        i for i, b in enumerate(top) if b.kind == "import" and rank(_last_line(b)) > rank(line)
    ]
    ends = [i + 1 for i, b in enumerate(top) if b.kind in ("title", "future", "import")]
    top.insert(later[0] if later else max(ends, default=0), Block(line, (name,), "import"))
    return True


def _last_line(block: Block) -> str:
    return block.text.rpartition("\n")[2]


def rank(line: str) -> tuple[bool, bool, str]:
    """`import` before `from`, the helpers last."""
    return line.startswith("from helpers"), line.startswith("from"), line


def _add_definition(book: Book, name: str, source: str, known: Exercise) -> bool:
    """Replace the definition of this name, or put it into the section of the exercise."""
    for blocks in book.sections.values():
        for i, block in enumerate(blocks):
            if name in block.binds and block.kind in ("definition", "constant"):
                before, blocks[i] = block.text, Block(source, (name,), _kind_of(source))
                return before != source
    section = book.sections.setdefault(known.notebook, [])
    section.insert(_place(section, known), Block(source, (name,), _kind_of(source)))
    return True


def _kind_of(source: str) -> str:
    return _kind(ast.parse(source).body[0])[0]


def _place(section: list[Block], known: Exercise) -> int:
    """Where a new block of an exercise stands: before the answers to later ones."""
    order = list(exercises())
    own = [i for i, b in enumerate(section) if known.name in b.binds]
    later = [
        i for i, b in enumerate(section)
        if any(n in order and order.index(n) > order.index(known.name) for n in b.binds)
    ]  # fmt: skip
    return min(own + later, default=len(section))


def _drop_imports(book: Book, mine: set[str]) -> None:
    """A function that the file now has itself is not imported any more."""
    for blocks in book.sections.values():
        blocks[:] = [
            block for block in blocks
            if block.kind != "import" or len(block.binds) != 1 or block.binds[0] not in mine
            or "from helpers" not in block.text
        ]  # fmt: skip


# ---------------------------------------------------------------- is it still right


def load(text: str, path: Path) -> ModuleType:
    """Run a file as a fresh module. Raises Obstacle that names the line which stops it."""
    module = ModuleType("my_transformer")
    module.__file__ = str(path)
    try:
        exec(compile(text, str(path), "exec", dont_inherit=True), vars(module))
    except (SyntaxError, ValueError) as error:
        raise Obstacle(unreadable(path, error)) from None
    except (Exception, SystemExit) as error:
        raise Obstacle(f"{path.name}{_line_of(error, path)} stops: {_words(error)}") from None
    return module


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _line_of(error: BaseException, path: Path) -> str:
    """The line of the file in which an exception was raised."""
    lines, trace = [], error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == str(path):
            lines.append(trace.tb_lineno)
        trace = trace.tb_next
    return f", line {lines[-1]}," if lines else ""


def verify(text: str, path: Path, book: Book, changed: set[str]) -> None:
    """Grade the answers that the change may touch, as they stand in the new file."""
    module = load(text, path)
    for name in sorted(_touched(book, changed)):
        verdict = grade(getattr(module, name), name)
        if verdict.status != RIGHT:
            if name in changed:
                where = _where_it_runs(name, book)
                text = f"in {path.name}, {where}, it is not right: {verdict.message.rstrip('.')}"
                raise Obstacle(text)
            raise Obstacle(_disturbed(name, path, changed))


def _where_it_runs(name: str, book: Book) -> str:
    """Say what an answer meets in the file that it did not meet in the notebook."""
    used = set(names_used(book.functions()[name].text)) & set(book.functions()) - {name}
    own = ", ".join(f"`{n}`" for n in sorted(used))
    return f"where it runs on your {own}" if own else "away from the notebook"


def _disturbed(name: str, path: Path, changed: set[str]) -> str:
    """Say that an answer which is right in the notebook would spoil an older one."""
    others = ", ".join(f"`{n}`" for n in sorted(changed - set(exercises())))
    cause = f"; give {others} another name" if others else ""
    return f"your `{name}` in {path.name} would not be right any more{cause}"


def _touched(book: Book, changed: set[str]) -> set[str]:
    """The answers in the file that are new, or use what is new, however indirectly."""
    uses = {n: set(names_used(b.text)) for b in book.all() if b.kind == "definition"
            for n in b.binds}  # fmt: skip
    reached = set(changed)
    while more := {name for name in uses if uses[name] & reached} - reached:
        reached |= more
    return reached & set(book.functions())


def replace(path: Path, text: str) -> None:
    """Write a file all at once: a reader sees the old one or the new one, never a half."""
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".my_transformer-", suffix=".tmp")
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
    handle = os.open(folder, os.O_RDONLY)  # the folder itself: no file is left behind
    try:
        _wait_for(lambda: fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB))
        yield
    finally:
        os.close(handle)


def _wait_for(lock: Callable[[], None]) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return lock()
        except BlockingIOError:
            if time.monotonic() > end:
                raise Obstacle("another notebook has been writing it for a while") from None
            time.sleep(0.02)
        except OSError:  # a file system without locks
            return None
