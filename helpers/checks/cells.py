"""Run one learner's cells in a process of its own, and report what the answers do.

`helpers.checks.classroom` starts it and makes all verdicts; here functions are only observed. A
job comes as JSON on stdin, lines of JSON leave on what was stdout when the process began:

    {"cell": 3}                                           cell 3 begins
    {"answer": "softmax", "stub": false, "runs": [[…]]}   what that function did, per backend
    {"broken": "softmax", "error": "SyntaxError: …"}      its cell failed before it was defined
    {"done": true}

The modules imported here are loaded before the learner's cells and then hidden from them: the
cells import the helpers anew, and may do with theirs as they like.
"""

import ast
import contextlib
import importlib
import json
import linecache
import os
import re
import signal
import sys
import types
from collections.abc import Callable
from typing import Any

from helpers.checks.compare import TimedOut
from helpers.checks.exercises import exercises
from helpers.checks.judge import agree, backends_for, expected_of, is_stub
from helpers.checks.observe import observe_apart, pack
from helpers.checks.show import exercise_of

LARGEST_FILE = 64 * 2**20  # bytes
AGAIN = 0.5  # seconds until a cell that swallowed its interruption is interrupted again
DEFINITION = re.compile(r"^(?:def\s+(\w+)|(\w+)\s*=\s*lambda)\b", re.MULTILINE)
SIMPLE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


class CellTimeout(BaseException):
    """Raised inside a cell whose time is over."""


class NoShell:
    """Stands for IPython's shell: magics and shell lines do nothing, timed code runs."""

    def __init__(self, run: Callable[[str], None]):
        self.run = run

    def run_line_magic(self, name: str, line: str, *_: Any, **__: Any) -> None:
        """Run what `%time` would have timed."""
        if name == "time":
            self.run(line)

    def run_cell_magic(self, name: str, line: str, body: str) -> None:
        """Run the cell under `%%time` and `%%capture`."""
        if name in ("time", "capture"):
            self.run(body)

    def __getattr__(self, name: str) -> Callable:
        return lambda *args, **kwargs: None


class Seat:
    """One learner at work: a namespace, the cells run so far, the answers handed in."""

    def __init__(self, job: dict, channel: int):
        self.job, self.channel = job, channel
        self.module = types.ModuleType("__main__")
        self.names = self.module.__dict__
        self.names["get_ipython"] = lambda: NoShell(self.run_source)
        self.defined: dict[str, Callable] = {}
        self.answered: set[str] = set()
        self.armed = False
        self.cell = -1

    def tell(self, **message: Any) -> None:
        """Write a line to the teacher's process."""
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(self.channel, data) :]

    # ------------------------------------------------------------ cells

    def run(self) -> None:
        """Run all cells, whatever each of them does; then observe what was not handed in."""
        for i, source in enumerate(self.job["cells"]):
            self.cell = i
            self.tell(cell=i)
            error = self.run_cell(source, reduced=i in self.job["reduced"])
            self.remember(source, error)
        for name in self.job["exercises"]:
            if name not in self.answered and name in self.defined:
                self.report(name, self.defined[name])
        self.tell(done=True)

    def run_cell(self, source: str, reduced: bool) -> str:
        """Run a cell, or of a reduced one what defines names; the error that it raised, or ""."""
        file = f"<cell {self.cell}>"  # where tracebacks find the learner's lines
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
        try:
            parts = definitions(source) if reduced else [source]
        except Exception as error:
            return in_words(error)
        errors = [self.run_limited(part) for part in parts]
        return next(filter(None, errors), "")

    def run_limited(self, source: Any) -> str:
        """Run a piece of a cell within the cell's time."""
        try:
            self.alarm(self.job["cell_seconds"])
            self.run_source(source)
        except BaseException as error:  # SystemExit is the learner's too
            return in_words(error)
        finally:
            self.alarm(0)
        return ""

    def run_source(self, source: Any) -> None:
        """Run text as IPython would, or a syntax tree."""
        tree = parsed(source) if isinstance(source, str) else source
        exec(compile(tree, f"<cell {self.cell}>", "exec"), self.names)

    def alarm(self, seconds: float) -> None:
        """Interrupt the cell after so many seconds, and again until it ends; 0 is never."""
        self.armed = seconds > 0
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, self.interrupt)
            signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN if seconds else 0)

    def interrupt(self, *_: Any) -> None:
        """Called by the alarm."""
        if self.armed:
            raise CellTimeout("the cell took too long")

    # ------------------------------------------------------------ answers

    def remember(self, source: str, error: str) -> None:
        """Keep the functions that a cell has defined; say which of them its error prevented."""
        for name, value in list(self.names.items()):
            if name in self.job["exercises"] and self.is_answer(value, self.cell):
                self.defined[name] = value
        for name in {a or b for a, b in DEFINITION.findall(source)} & set(self.job["exercises"]):
            if error and not self.is_answer(self.names.get(name), self.cell):
                self.answered.discard(name)
                self.tell(broken=name, error=error)

    def is_answer(self, value: Any, cell: int | None = None) -> bool:
        """Whether a function is the learner's: not the helpers', not from before *Your turn*."""
        if not callable(value) or str(getattr(value, "__module__", "")).startswith("helpers"):
            return False
        file = getattr(getattr(value, "__code__", None), "co_filename", "")
        made = re.fullmatch(r"<cell (\d+)>", file)
        if cell is not None:
            return bool(made) and int(made[1]) == cell >= self.job["begin"]
        return not made or int(made[1]) >= self.job["begin"]

    def check(self, function: Any = None, *_: Any, **__: Any) -> Any:
        """What cells get as `check`: hand in an answer, go on with it or with the reference."""
        known = exercise_of(function, sys._getframe(1))
        if known is None:
            return function
        name, left = known.name, self.armed
        self.alarm(0)
        try:
            right = self.is_answer(function) and self.report(name, function)
        finally:
            self.alarm(self.job["cell_seconds"] if left else 0)
        return function if right else known.reference

    def report(self, name: str, function: Callable) -> bool:
        """Observe an answer and send what was seen; whether it is right."""
        known, runs, right = exercises()[name], [], False
        stub = is_stub(function)
        for backend in () if stub else backends_for(function, known):
            seen = observe_apart(function, known, backend)
            runs.append([pack(observation).decode() for observation in seen])
            right = all(agree(*p, known) for p in zip(seen, expected_of(name), strict=True))
            if right or isinstance(seen[-1].value, TimedOut):
                break
        self.tell(answer=name, stub=stub, runs=runs)
        self.answered.add(name)
        return right


def in_words(error: BaseException) -> str:
    """An exception in a line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def parsed(source: str) -> ast.Module:
    """The syntax tree of a cell; IPython turns magics and shell lines into calls."""
    try:
        return ast.parse(source)
    except SyntaxError:
        from IPython.core.inputtransformer2 import TransformerManager

        return ast.parse(TransformerManager().transform_cell(source))


def definitions(source: str) -> list[ast.Module]:
    """Of a cell, one by one: definitions, imports, checks, and assignments that call nothing."""
    kept = [node for node in parsed(source).body if _is_simple(node)]
    return [ast.Module([node], []) for node in kept]


def _is_simple(node: ast.stmt) -> bool:
    if isinstance(node, SIMPLE):
        return True
    if not isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr) or node.value is None:
        return False
    calls = [n for n in ast.walk(node.value) if isinstance(n, ast.Call)]
    named = all(getattr(call.func, "id", "") == "check" for call in calls)
    return named and (bool(calls) or (isinstance(node, ast.Assign) and _binds_names(node)))


def _binds_names(node: ast.Assign) -> bool:
    simple = ast.Name | ast.Tuple | ast.List
    return all(isinstance(target, simple) for target in node.targets)


def limit(memory: int, seconds: float) -> None:
    """Let this process take so much and no more, where the system knows limits."""
    with contextlib.suppress(ImportError):
        import resource

        wanted = {
            resource.RLIMIT_AS: memory,
            resource.RLIMIT_FSIZE: LARGEST_FILE,
            resource.RLIMIT_CPU: int(seconds) + 1,
            resource.RLIMIT_CORE: 0,
        }
        for kind, most in wanted.items():
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(kind, (most, most))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a file too large raises OSError


def silent() -> int:
    """Keep stdout for the teacher's process alone; what cells read and write is nowhere."""
    channel = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    return channel


def fresh_helpers(seat: Seat) -> None:
    """Hide the helpers loaded so far; cells import their own, whose `check` hands answers in."""
    sys.modules["__main__"] = seat.module
    for name in [name for name in sys.modules if name.split(".")[0] == "helpers"]:
        del sys.modules[name]
    for name in ("helpers.checks", "helpers.checks.show"):
        importlib.import_module(name).check = seat.check


def main() -> None:
    """Run a job."""
    job = json.loads(sys.stdin.buffer.read())
    channel = silent()
    exercises()
    seat = Seat(job, channel)
    limit(job["memory"], job["seconds"])
    fresh_helpers(seat)
    try:
        seat.run()
    finally:
        os._exit(0)  # threads and exit handlers of the learner's are not waited for


OWN = sys.modules[__name__]  # stays alive when __main__ is another module
if __name__ == "__main__":
    main()
