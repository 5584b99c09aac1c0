"""Run learners' cells, each notebook in a process of its own, and report what the answers do.

`helpers.checks.proctor` starts it and makes all verdicts; here functions are only observed. Where
the system can fork (Linux), this process loads the libraries once and forks for each notebook; the
fork (`Watch`) keeps the learner's process within its limits and passes its lines on. Elsewhere it
runs one notebook and ends. Orders come as lines of JSON on stdin:

    {"lesson": […]}    run these cells, the course's own; notebooks that begin with them go on there
    {"leave": true}    forget the lesson
    {"cells": […], …}  a job: run these cells

and what a learner's process says begins with the mark of its job, which the cells do not know:

    {"cell": 3}                                       cell 3 begins
    {"cut": 3}                                        its time is over
    {"trying": "softmax"}                             that function is tried now
    {"seen": "softmax", "run": […]}                   what that function did on the probes
    {"answer": "softmax", "stub": false, "lacks": …}  that was all; it lacks what a cut cell makes
    {"broken": "softmax", "error": …, "lacks": …}     its cell failed before it was defined
    {"remark": "…"}                                   the cells do what answers need not do
    {"done": true}

To "seen" comes the answer "right", "enough", or "more" where other inputs may tell more.

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
import select
import shutil
import signal
import sys
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from helpers.checks.judge import backends_for, is_stub
from helpers.checks.learner import exercise_of
from helpers.checks.lookout import Lookout, Watched
from helpers.checks.sandbox import observe_apart, pack
from helpers.exercises import exercises

FORKS = sys.platform == "linux"
if FORKS:
    from helpers.checks import shelter

LARGEST = 64 * 2**20  # bytes of a file that cells write, and of what a learner's process reports
UNIT = 0.010  # seconds that `unit` takes on the processor on which the limits were chosen
AGAIN = 0.5  # seconds until a cell that swallowed its interruption is interrupted again
WARM = (
    "numpy torch torch.nn.functional matplotlib.pyplot IPython helpers.mine helpers.widgets "
    "helpers.text helpers.attention helpers.blocks helpers.decoding helpers.figures helpers.layers "
    "helpers.models helpers.training helpers.training.ablations helpers.pretrained helpers.checks"
).split()
TORCH = re.compile(
    r"\btorch\b|helpers\.(cache|layers|models|training|pretrained)|from helpers import"
)
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


class Line:
    """Lines of JSON from and to the teacher's process; `mark` begins each that leaves."""

    def __init__(self, source: int, sink: int, mark: str = ""):
        self.source, self.sink, self.mark = source, sink, mark
        self.data = b""

    def tell(self, **message: Any) -> None:
        """Write a line."""
        data = (self.mark + json.dumps(message)).encode() + b"\n"
        while data:
            data = data[os.write(self.sink, data) :]

    def hear(self) -> Any:
        """Read a line; None at the end of the stream."""
        while b"\n" not in self.data:
            if not (chunk := os.read(self.source, 1 << 16)):
                return None
            self.data += chunk
        line, _, self.data = self.data.partition(b"\n")
        return json.loads(line)


class Seat:
    """One learner at work: a namespace, the cells run so far, the answers handed in."""

    def __init__(self) -> None:
        self.module = types.ModuleType("__main__")
        self.names = self.module.__dict__
        self.names["get_ipython"] = lambda: NoShell(self.run_source)
        self.defined: dict[str, Callable] = {}
        self.answered: set[str] = set()
        self.lacking: set[str] = set()  # names that a cell which did not end would have bound
        self.lookout = Lookout(lambda remark: self.tell(remark=remark))
        self.cell, self.begin, self.armed = -1, 0, False

    def sit_down(self, job: dict, line: Line) -> None:
        """Take a job."""
        self.job, self.tell, self.hear = job, line.tell, line.hear
        self.begin, self.names["__name__"] = job["begin"], "__main__"
        self.torch = any(TORCH.search(source) for source in job["cells"])
        sys.addaudithook(self.lookout)

    # ------------------------------------------------------------ cells

    def learn(self, cells: list[str]) -> None:
        """Run the course's own cells."""
        for self.cell, source in enumerate(cells):
            self.show(source)
            with contextlib.suppress(BaseException):
                self.run_source(source)

    def run(self) -> None:
        """Run all cells, whatever each of them does; then observe what was not handed in."""
        for i, source in enumerate(self.job["cells"]):
            if i < self.job["start"]:
                continue
            self.cell = i
            self.tell(cell=i)
            error = self.run_cell(source, reduced=i in self.job["reduced"])
            self.remember(source, error)
        for name in self.job["exercises"]:
            if name not in self.answered and name in self.defined:
                self.report(name, self.defined[name])
        self.tell(done=True)

    def show(self, source: str) -> None:
        """Let tracebacks find the learner's lines."""
        file = f"<cell {self.cell}>"
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)

    def run_cell(self, source: str, reduced: bool) -> str:
        """Run a cell, or of a reduced one what defines names; the error that it raised, or ""."""
        self.show(source)
        try:
            tree = parsed(source)
        except Exception as error:
            return in_words(error)
        whole = "" if reduced else self.run_limited(tree)
        cut = reduced or whole.startswith("CellTimeout")
        if not reduced and cut:
            self.tell(cut=self.cell)
        ran = [node for node in tree.body if not cut or is_simple(node)]
        self.track(ran, [node for node in tree.body if node not in ran])
        errors = [self.run_limited(ast.Module([node], [])) for node in ran if cut]
        return next(filter(None, [*errors, "" if cut else whole]), "")

    def track(self, ran: list[ast.stmt], left_out: list[ast.stmt]) -> None:
        """Note what the cells after this one lack: what it did not make, or made of such things."""
        if used(ran) & self.lacking:
            self.lacking |= bound(ran)
        else:
            self.lacking -= bound(ran)
        self.lacking |= bound(left_out)

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
        """Interrupt the cell after so many seconds on the processor, and again until it ends."""
        self.armed = seconds > 0
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGPROF, self.interrupt)
            signal.setitimer(signal.ITIMER_PROF, seconds, AGAIN if seconds else 0)

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
                self.tell(broken=name, error=error, lacks=sorted(words(source) & self.lacking))

    def is_answer(self, value: Any, cell: int | None = None) -> bool:
        """Whether a function is the learner's: not the helpers', not from before *Your turn*."""
        if not callable(value) or str(getattr(value, "__module__", "")).startswith("helpers"):
            return False
        file = getattr(getattr(value, "__code__", None), "co_filename", "")
        made = re.fullmatch(r"<cell (\d+)>", file)
        if cell is not None:
            return bool(made) and int(made[1]) == cell >= self.begin
        return not made or int(made[1]) >= self.begin

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
        return function if right else self.course[name].reference

    def report(self, name: str, function: Callable) -> bool:
        """Observe an answer and send what was seen; whether it is found right."""
        known, stub, right = exercises()[name], is_stub(function), False
        known = replace(known, seconds=known.seconds * self.job["stretch"])
        answer = Watched(function, known, self.lookout)
        self.tell(trying=name)
        backends = [b for b in known.backends if self.torch or b == "numpy"] or known.backends
        for backend in () if stub else [b for b in backends_for(function, known) if b in backends]:
            seen = observe_apart(answer, known, backend)
            self.tell(seen=name, run=[pack(observation).decode() for observation in seen])
            told = self.hear()
            if (right := told == "right") or told == "enough":
                break
        self.tell(answer=name, stub=stub, lacks=sorted(self.lacking_in(name, function)))
        self.answered.add(name)
        return right

    def lacking_in(self, name: str, function: Callable) -> set[str]:
        """The names an answer uses that it lacks, itself or through functions that it calls."""
        found, codes, seen = {name}, [getattr(function, "__code__", None)], set()
        while codes:
            if not isinstance(code := codes.pop(), types.CodeType) or code in seen:
                continue
            seen.add(code)
            found |= set(code.co_names)
            codes += code.co_consts
            codes += [getattr(self.names.get(n), "__code__", None) for n in code.co_names]
        return found & self.lacking


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


def used(nodes: list[ast.stmt]) -> set[str]:
    """The names that statements read, in their functions too."""
    inside = (n for node in nodes for n in ast.walk(node))
    return {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def bound(nodes: list[ast.stmt]) -> set[str]:
    """The names that statements make, or whose values they may change."""
    return {name for node in nodes for n in ast.walk(node) for name in _bound_by(n)}


def _bound_by(node: ast.AST) -> Iterator[str]:
    """The names that one part of the syntax makes or changes."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).split(".")[0]
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
        yield from used([node.value])
    elif isinstance(node, ast.Expr):  # it may be called for a change: x.sort(), shuffle(x)
        yield from used([node]) - {getattr(n, "id", "") for n in called(node)}


def called(node: ast.AST) -> list[ast.expr]:
    """What is called in a piece of code."""
    return [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]


def words(source: str) -> set[str]:
    """All names in a cell, even in one that Python cannot read."""
    return set(re.findall(r"\w+", source))


def is_simple(node: ast.stmt) -> bool:
    """Whether it defines something: also imports, checks, and assignments that call nothing."""
    if isinstance(node, SIMPLE):
        return True
    if not isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr) or node.value is None:
        return False
    calls = called(node.value)
    named = all(getattr(function, "id", "") == "check" for function in calls)
    return named and (bool(calls) or (isinstance(node, ast.Assign) and _binds_names(node)))


def _binds_names(node: ast.Assign) -> bool:
    simple = ast.Name | ast.Tuple | ast.List
    return all(isinstance(target, simple) for target in node.targets)


# ---------------------------------------------------------------- a process for each notebook


def limit(memory: int, seconds: float) -> None:
    """Let this process take so much and no more, where the system knows limits."""
    with contextlib.suppress(ImportError, OSError):
        import resource

        mapped = 0
        if FORKS:
            mapped = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        wanted = {
            resource.RLIMIT_AS: mapped + memory,
            resource.RLIMIT_FSIZE: LARGEST,
            resource.RLIMIT_CPU: int(2 * seconds) + 60,  # beside `shelter.Guard`, which sees all
            resource.RLIMIT_CORE: 0,
        }
        for kind, most in wanted.items():
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(kind, (most, most))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a file too large raises OSError


def silent() -> Line:
    """Keep stdin and stdout for the teacher's process; what cells read and write is nowhere."""
    line = Line(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)
    return line


def warm(seat: Seat) -> None:
    """Load what cells import, with helpers of their own: these here are hidden from them."""
    exercises()
    sys.modules["__main__"] = seat.module
    for name in [name for name in sys.modules if name.split(".")[0] == "helpers"]:
        del sys.modules[name]
    for name in WARM if FORKS else ["helpers.checks"]:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    for name in ("helpers.checks", "helpers.checks.learner"):
        sys.modules[name].check = seat.check
    seat.course = importlib.import_module("helpers.exercises").exercises()
    for known in seat.course.values():  # nothing there to read off what an answer must give
        known.probes.clear()
        known.mistakes.clear()


def unit() -> float:
    """Seconds on the processor for a piece of work like that of notebooks."""
    began, total = time.process_time(), 0
    for i in range(300_000):
        total += i % 7
    return time.process_time() - began


def run(seat: Seat, job: dict, line: Line) -> None:
    """In the learner's process: run the cells; never returns."""
    try:
        limit(job["memory"], job["seconds"])
        seat.sit_down(job, line)
        seat.run()
    finally:
        os._exit(0)  # threads and exit handlers of the learner's are not waited for


def desk(job: dict, home: Any) -> None:
    """Sit down where the notebook lies."""
    os.makedirs(home, exist_ok=True)
    os.chdir(home)
    cells = [{"cell_type": "code", "source": source} for source in job["cells"]]
    book = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    with open("notebook.ipynb", "w", encoding="utf-8") as file:
        json.dump(book, file)


class Watch:
    """In a fork for one notebook: starts the learner's process, passes its lines on, ends it."""

    def __init__(self, seat: Seat, job: dict, line: Line, home: "shelter.Shelter"):
        self.seat, self.job, self.line, self.home = seat, job, line, home
        seconds = job["seconds"], job["cell_limit"], job["patience"]
        self.guard = shelter.Guard(*seconds, job["memory"])
        self.data, self.total, self.asked = b"", 0, False

    def run(self) -> None:
        """Do all of this; never returns."""
        shelter.control(shelter.SUBREAPER)
        (below, self.up), (self.source, sink) = os.pipe(), os.pipe()
        if os.fork() == 0:
            for handle in (self.line.source, self.line.sink, self.source, self.up):
                os.close(handle)
            self.begin(Line(below, sink, self.job["mark"]))
        os.close(below), os.close(sink)
        shelter.control(shelter.DUMPABLE, 0)  # its memory is not to be read
        self.line.tell(ended=self.relay(), cpu=self.guard.cpu)
        if not self.home.rooms:
            shelter.end_descendants()
        os._exit(0)

    def begin(self, line: Line) -> None:
        """In the learner's process: alone, at the back of the queue, without rights."""
        os.setsid()
        os.nice(10)
        desk(self.job, self.home.desk)
        if self.home.rooms:
            shelter.give_up_rights()
        run(self.seat, self.job, line)

    def relay(self) -> str:
        """Pass lines on until the learner's process ends or must be ended; says why."""
        reason = ""
        while not reason:
            ready = select.select([self.source, self.line.source], [], [], shelter.TICK)[0]
            if self.line.source in ready:
                self.reply()
            reason = self.take() if self.source in ready else ""
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            reason = reason or self.guard.look(may_wait=self.asked)
        return reason

    def reply(self) -> None:
        """Pass on what the teacher's process says; without it there is nothing to do."""
        if (told := self.line.hear()) is None:
            os._exit(1)
        self.asked = False
        with contextlib.suppress(OSError):
            os.write(self.up, json.dumps(told).encode() + b"\n")

    def take(self) -> str:
        """Pass on what the learner's process says; why it ends, if it does."""
        chunk = os.read(self.source, 1 << 20)
        self.total += len(chunk)
        *lines, self.data = (self.data + chunk).split(b"\n")
        for text in (line.decode("utf-8", "replace") for line in lines):
            self.line.tell(line=text)
            begins = text.startswith
            if begins(f'{self.job["mark"]}{{"cell"'):
                self.guard.next_cell()
            if begins(f'{self.job["mark"]}{{"trying"'):
                self.guard.allow(self.job["test"])
            self.asked |= begins(f'{self.job["mark"]}{{"seen"')
        return "" if chunk and self.total <= LARGEST else "shouts" if chunk else "left"


def serve(seat: Seat, line: Line, home: Any) -> None:
    """Take orders until there are no more."""
    while (order := line.hear()) is not None and "leave" not in order:
        if "lesson" in order:
            home.apart(lambda cells=order["lesson"]: teach(seat, cells, line, home), False)
            line.tell(forgotten=True)
        elif FORKS:
            home.apart(Watch(seat, order, line, home).run)
            tidy(home)
            line.tell(over=True)
        else:
            desk(order, "desk")
            run(seat, order, Line(line.source, line.sink, order["mark"]))


def teach(seat: Seat, cells: list[str], line: Line, home: "shelter.Shelter") -> None:
    """In a fork: run a lesson, then serve notebooks that begin with it."""
    os.makedirs(home.desk, exist_ok=True)
    os.chdir(home.desk)
    seat.learn(cells)
    line.tell(learnt=True)
    serve(seat, line, home)
    os._exit(0)


def tidy(home: "shelter.Shelter") -> None:
    """After a notebook: end what it left running, and forget its files."""
    if not home.rooms:
        shelter.end_descendants()
        shutil.rmtree(home.desk, ignore_errors=True)


def main() -> None:
    """Load the libraries and take orders."""
    line, home, seat = silent(), None, Seat()
    first = line.hear()
    if FORKS:
        home = shelter.Shelter(first["desk"], first["hidden"], first["needed"])
        if first["protect"]:
            home.try_and_enter()
        shelter.control(shelter.DEATH_SIGNAL, signal.SIGKILL)
        shelter.control(shelter.SUBREAPER)
    warm(seat)
    pace = max(1.0, min(unit() for _ in range(5)) / UNIT)
    line.tell(ready=True, pace=pace, forks=FORKS, rooms=bool(home and home.rooms))
    serve(seat, line, home)
    os._exit(0)


OWN = sys.modules[__name__]  # stays alive when __main__ is another module
if __name__ == "__main__":
    main()
