"""Run learners' cells, each notebook in a process of its own, and report what the answers do.

`workshop.classroom` starts it and makes all verdicts; here functions are only observed. Where
the system can fork (Linux), this process loads the libraries once and forks for each notebook: it
keeps the learner's process within its limits and passes its lines on. Elsewhere it runs one
notebook and ends. A job comes as a line of JSON on stdin. What a learner's process says begins
with the mark of its job, which the cells do not know:

    {"cell": 3}                                       cell 3 begins
    {"cut": 3}                                        its time is over
    {"trying": "softmax"}                             that function is tried now
    {"seen": "softmax", "backend": …, "run": […]}     what that function did on the probes
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
import cProfile
import ctypes
import importlib
import json
import linecache
import os
import re
import select
import shutil
import signal
import struct
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import psutil

from workshop.checks.judge import backends_for, is_stub
from workshop.checks.learner import exercise_of
from workshop.checks.sandbox import as_written, observe_apart, on_tensors
from workshop.classroom_lines import pack, unpack
from workshop.exercises import exercises
from workshop.exercises.exercise import Exercise

FORKS = sys.platform == "linux"
LARGEST = 64 * 2**20  # bytes of a file that cells write, and of what a learner's process reports
UNIT = 0.010  # seconds that `unit` takes on the processor on which the limits were chosen
AGAIN = 0.5  # seconds until a cell that swallowed its interruption is interrupted again
PROCESSES = 200  # more than that is an accident or an attack
CLOCK = 100  # times the seconds of a notebook, on the clock: whatever keeps it from ending
IDLE = {psutil.STATUS_SLEEPING, psutil.STATUS_ZOMBIE, psutil.STATUS_STOPPED}
TICK = 0.1  # seconds from one look at the processes to the next
WARM = (
    "numpy torch torch.nn.functional matplotlib.pyplot IPython workshop.mine workshop.widgets "
    "helpers.text helpers.attention helpers.blocks helpers.decoding helpers.layers helpers.models "
    "helpers.training helpers.training.ablations helpers.pretrained workshop.figures "
    "workshop.checks"
).split()
TORCH = re.compile(
    r"\btorch\b|helpers\.(cache|layers|models|training|pretrained)|from helpers import"
)
DEFINITION = re.compile(r"^(?:(?:def|class)\s+(\w+)|(\w+)\s*=\s*lambda)\b", re.MULTILINE)
TIMED = re.compile(r"^(\s*)%{1,2}(?:time|capture)\b[ \t]*", re.MULTILINE)  # what it times runs
MAGIC = re.compile(r"^(\s*)(?:[%!?].*|.*\?)$", re.MULTILINE)  # the rest of IPython's signs do not
SIMPLE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


class CellTimeout(BaseException):
    """Raised inside a cell whose time is over."""


class Line:
    """Lines of JSON from and to the teacher's process; `mark` begins each that leaves."""

    def __init__(self, source: int, sink: int, mark: str = ""):
        self.source, self.sink, self.mark, self.data = source, sink, mark, b""

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


# ---------------------------------------------------------------- a learner at work


class Seat:
    """One learner at work: a namespace, the cells run so far, the answers handed in."""

    def __init__(self) -> None:
        self.module = types.ModuleType("__main__")
        self.names = self.module.__dict__
        self.names["get_ipython"] = lambda: MagicMock()  # a shell that does nothing
        self.defined: dict[str, Callable] = {}
        self.answered: set[str] = set()
        self.lacking: set[str] = set()  # names that a cell which did not end would have bound
        self.cell, self.armed = -1, False

    def run(self, job: dict, line: Line) -> None:
        """Run all cells, whatever each of them does; then observe what was not handed in."""
        self.job, self.tell, self.hear, self.begin = job, line.tell, line.hear, job["begin"]
        self.torch = any(TORCH.search(source) for source in job["cells"])
        self.lookout = Lookout(lambda remark: self.tell(remark=remark))
        sys.addaudithook(self.lookout)
        for self.cell, source in enumerate(job["cells"]):
            self.tell(cell=self.cell)
            self.remember(source, self.run_cell(source, self.cell in job["reduced"]))
        for name in job["exercises"]:
            if name not in self.answered and name in self.defined:
                self.report(name, self.defined[name])
        self.tell(done=True)

    def run_cell(self, source: str, reduced: bool) -> str:
        """Run a cell, or of a reduced one what defines names; the error that it raised, or ""."""
        file = f"<cell {self.cell}>"  # where tracebacks find the learner's lines
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
        try:
            tree = parsed(source)
        except Exception as error:
            return in_words(error)
        whole = "" if reduced else self.run_limited(tree)
        cut = reduced or whole.startswith("CellTimeout")
        if cut and not reduced:
            self.tell(cut=self.cell)
        ran = [node for node in tree.body if not cut or is_simple(node)]
        self.track(ran, [node for node in tree.body if node not in ran])
        errors = [self.run_limited(ast.Module([node], [])) for node in ran if cut]
        return next(filter(None, [*errors, "" if cut else whole]), "")

    def track(self, ran: list[ast.stmt], left_out: list[ast.stmt]) -> None:
        """Note what the cells after this one lack: what it did not make, or made of such things."""
        tainted = used(ran) & self.lacking
        self.lacking = self.lacking | bound(ran) if tainted else self.lacking - bound(ran)
        self.lacking |= bound(left_out)

    def run_limited(self, tree: ast.Module) -> str:
        """Run a piece of a cell within the cell's time."""
        try:
            self.alarm(self.job["cell_seconds"])
            exec(compile(tree, f"<cell {self.cell}>", "exec"), self.names)
        except BaseException as error:  # SystemExit is the learner's too
            return in_words(error)
        finally:
            self.alarm(0)
        return ""

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
                words = set(re.findall(r"\w+", source))  # Python may not be able to read it
                self.tell(broken=name, error=error, lacks=sorted(words & self.lacking))

    def is_answer(self, value: Any, cell: int | None = None) -> bool:
        """Whether a function is the learner's: not the course's, not from before the tasks."""
        home = str(getattr(value, "__module__", ""))
        if not callable(value) or home.startswith(("helpers", "workshop")):
            return False
        parts = (value, *(vars(value).values() if isinstance(value, type) else ()))
        codes = (part.__code__ for part in parts if hasattr(part, "__code__"))
        file = next((code.co_filename for code in codes), "")
        made = re.fullmatch(r"<cell (\d+)>", file)
        if cell is None:
            return not made or int(made[1]) >= self.begin
        return bool(made) and int(made[1]) == cell >= self.begin

    def check(self, function: Any = None, *_: Any, **__: Any) -> Any:
        """What cells get as `check`: hand in an answer, go on with it or with the reference."""
        known = exercise_of(function, sys._getframe(1))
        if known is None:
            return function
        function, left = as_written(function), self.armed
        self.alarm(0)
        try:
            right = self.report(known.name, function) if self.is_answer(function) else ""
        finally:
            self.alarm(self.job["cell_seconds"] if left else 0)
        if right == "torch" and "numpy" in known.backends:  # cells go on with arrays
            return on_tensors(function)
        return function if right else self.course[known.name].reference

    def report(self, name: str, function: Callable) -> str:
        """Observe an answer and send what was seen; the backend on which it is right, or ""."""
        known, stub, right = exercises()[name], is_stub(function), ""
        known = replace(known, seconds=known.seconds * self.job["stretch"])
        answer = Watched(function, known, self.lookout)
        self.tell(trying=name)
        backends = [b for b in known.backends if self.torch or b == "numpy"] or known.backends
        for backend in () if stub else [b for b in backends_for(function, known) if b in backends]:
            seen = observe_apart(answer, known, backend, (pack, unpack))
            self.tell(seen=name, backend=backend, run=[pack(one).decode() for one in seen])
            told = self.hear()
            right = backend if told == "right" else ""
            if right or told == "enough":
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
    """The syntax tree of a cell, without IPython's magics and shell lines."""
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.parse(MAGIC.sub(r"\1pass", TIMED.sub(r"\1", source)))


def used(nodes: list[ast.stmt]) -> set[str]:
    """The names that statements read, in their functions too."""
    inside = (n for node in nodes for n in ast.walk(node))
    return {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def bound(nodes: list[ast.stmt]) -> set[str]:
    """The names that statements make, or whose values they may change."""
    return {name for node in nodes for n in ast.walk(node) for name in _bound_by(n)}


def _bound_by(node: ast.AST) -> Iterator[str]:
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


def is_simple(node: ast.stmt) -> bool:
    """Whether it defines something: also imports, checks, and assignments that call nothing."""
    if isinstance(node, SIMPLE):
        return True
    if not isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr) or node.value is None:
        return False
    if calls := called(node.value):
        return all(getattr(function, "id", "") == "check" for function in calls)
    plain = ast.Name | ast.Tuple | ast.List
    return isinstance(node, ast.Assign) and all(isinstance(t, plain) for t in node.targets)


# ---------------------------------------------------------------- what an answer does beside

HELPERS = str(Path(__file__).resolve().parents[1])
CALLS = "It calls the course's own {}."
LOOKS = "Its code looks into the interpreter ({})."
STARTS = "It starts a process of its own while it is tried."
PEEPS = frozenset(
    "gc.get_objects gc.get_referrers gc.get_referents sys._getframe sys._current_frames "
    "sys._current_exceptions sys.setprofile sys.settrace sys.monitoring.register_callback "
    "ctypes.dlopen ctypes.dlsym ctypes.addressof ctypes.string_at _thread.start_new_thread".split()
)
STARTED = "os.fork os.forkpty os.exec os.posix_spawn os.spawn os.system subprocess.Popen".split()
PRIVATE = re.compile(r"/proc/[^/]+/(mem|fd|maps|environ|root|cwd|task)")


class Lookout:
    """What Python reports of a learner's code, wherever it is called: an audit hook stays for ever.

    Only what cells do themselves counts, or through `inspect`; libraries may do it. Who takes the
    interpreter apart by other ways is not noticed.
    """

    def __init__(self, tell: Callable[[str], None]):
        self.tell, self.trying, self.busy = tell, False, False
        self.found: set[str] = set()

    def __call__(self, event: str, args: tuple) -> None:
        """Called by Python before it does something."""
        if self.busy or not (remark := self.remark(event, args)) or remark in self.found:
            return
        self.busy = True  # to look at the stack is an event itself
        try:
            if remark == STARTS or by_a_cell(sys._getframe(1)):
                self.found.add(remark)
                self.tell(remark)
        finally:
            self.busy = False

    def remark(self, event: str, args: tuple) -> str:
        """What there is to say about an event."""
        if event in PEEPS or (event == "object.__getattr__" and args[1] == "tb_frame"):
            return LOOKS.format(args[1] if event[0] == "o" else event)
        if event in ("open", "os.listdir") and args and isinstance(args[0], str | bytes):
            path = os.fsdecode(args[0])
            return LOOKS.format(path[:80]) if PRIVATE.match(path) else ""
        return STARTS if self.trying and event in STARTED else ""


def by_a_cell(frame: types.FrameType | None) -> bool:
    """Whether a cell's code, or text that it runs, is at work here."""
    while frame and frame.f_globals.get("__name__") == "inspect":
        frame = frame.f_back
    name = frame.f_code.co_filename if frame else ""
    return name.startswith("<") and not name.startswith(("<frozen", "<__array"))


class Watched:
    """An answer whose calls are noted; `remarks` say what was noticed so far.

    The profiler sees each Python function that begins, however the answer has come by it.
    """

    def __init__(self, function: Callable, exercise: Exercise, lookout: Lookout):
        self.function, self.exercise, self.lookout = function, exercise, lookout
        self.__code__ = getattr(function, "__code__", None)  # where tracebacks find its lines
        self.profile = cProfile.Profile(builtins=False)
        self.codes: set[types.CodeType] = set()
        self.found: set[str] = set()
        self.active = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.active:  # it was handed to itself
            return self.function(*args, **kwargs)
        self.active = self.lookout.trying = True
        tell, self.lookout.tell = self.lookout.tell, self.found.add
        threading.setprofile(lambda frame, *_: self.codes.add(frame.f_code))
        self.profile.enable()
        try:
            return self.function(*args, **kwargs)
        finally:
            self.profile.disable()
            threading.setprofile(None)
            self.active = self.lookout.trying = False
            self.lookout.tell = tell

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was noticed while it was called."""
        called = (entry.code for entry in self.profile.getstats())
        codes = self.codes | {code for code in called if not isinstance(code, str)}
        if any(is_reference(code, self.exercise) for code in codes):
            self.found.add(CALLS.format(self.exercise.name))
        return tuple(sorted(self.found))


def is_reference(code: types.CodeType, exercise: Exercise) -> bool:
    """Whether this is the code of the course's function, in its file or copied from there.

    What a cell spells out is the learner's, even if it is the same.
    """
    if code.co_filename.startswith(HELPERS):
        return code.co_qualname == exercise.name
    own, parts = (
        getattr(exercise.reference, "__code__", None),
        ("co_code", "co_names", "co_varnames"),
    )
    copied = own and all(getattr(code, part) == getattr(own, part) for part in parts)
    return bool(copied) and not re.fullmatch(r"<cell \d+>", code.co_filename)


# ---------------------------------------------------------------- a room of its own, on Linux

NEW_MOUNTS, NEW_IPC, NEW_USER, NEW_PIDS, NEW_NET = 1 << 17, 1 << 27, 1 << 28, 1 << 29, 1 << 30
PRIVATE_MOUNTS, BIND, RECURSIVE, NO_SPECIALS = 1 << 18, 1 << 12, 1 << 14, 2 | 4 | 8
DEATH_SIGNAL, DROP_CAPABILITY, SUBREAPER, NO_NEW_PRIVILEGES = 1, 24, 36, 38
SET_MOUNTS = 442  # the number of mount_setattr, the same on every processor
TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")
Room = tuple[list[str], list[str]]  # hidden folders, and what Python needs in them


def call(name: str, *args: int | bytes | None) -> None:
    """Call a function of the C library. Raises OSError."""
    wide = [ctypes.c_ulong(arg) if isinstance(arg, int) else arg for arg in args]
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*wide) < 0:
        raise OSError(ctypes.get_errno(), name)


def control(option: int, value: int = 1) -> None:
    """Set a property of this process, where the system knows it."""
    with contextlib.suppress(OSError, AttributeError):
        call("prctl", option, value, 0, 0, 0)


def go_on_in_a_fork() -> None:
    """Leave a parent that waits: this ends when the parent is ended, and the worker lives."""
    control(DEATH_SIGNAL, signal.SIGKILL)
    if child := os.fork():
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 255)
    control(DEATH_SIGNAL, signal.SIGKILL)


def enter_a_room(hidden: list[str], needed: list[str]) -> None:
    """Go on in a fork that can write nothing, has no network and sees no other process.

    Temporary and hidden folders are empty there, but for what Python needs in them. Raises OSError
    where the system does not lend user namespaces.
    """
    user, group = os.getuid(), os.getgid()
    maps = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
    call("unshare", NEW_USER | NEW_MOUNTS | NEW_NET | NEW_IPC | NEW_PIDS)
    for name, text in maps.items():
        Path(f"/proc/self/{name}").write_text(text)
    call("mount", b"none", b"/", None, PRIVATE_MOUNTS | RECURSIVE, None)
    read_only = struct.pack("4Q", 1, 0, 0, 0)
    call("syscall", SET_MOUNTS, -100 % 2**64, b"/", 0x8000, read_only, len(read_only))
    go_on_in_a_fork()
    call("mount", b"proc", b"/proc", b"proc", NO_SPECIALS, None)
    for folder in sorted({*hidden, *TEMPORARY}, key=len):
        if os.path.isdir(folder):
            _empty(folder, needed)


def _empty(folder: str, needed: list[str]) -> None:
    """Lay an empty folder over one; what Python needs in it stays visible."""
    inside = [path for path in needed if path.startswith(f"{folder}/") and os.path.isdir(path)]
    kept = [(path, os.open(path, os.O_PATH)) for path in inside]
    call("mount", b"tmpfs", os.fsencode(folder), b"tmpfs", 2 | 4, b"size=256m,mode=1777")
    for path, handle in kept:
        os.makedirs(path, exist_ok=True)
        call("mount", b"/proc/self/fd/%d" % handle, os.fsencode(path), None, BIND | RECURSIVE, None)
        os.close(handle)


def lends_rooms(*room: list[str]) -> bool:
    """Whether this system lends such rooms; a fork tries it."""
    if (child := os.fork()) == 0:
        with contextlib.suppress(OSError):
            enter_a_room(*room)
            os._exit(0)
        os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def give_up_rights() -> None:
    """What the learner's process may not undo: no rights over the room that it is in."""
    control(NO_NEW_PRIVILEGES)
    for capability in range(64):
        control(DROP_CAPABILITY, capability)
    with contextlib.suppress(OSError):
        call("capset", struct.pack("Ii", 0x20080522, 0), bytes(24))


def limit(memory: int, seconds: float) -> None:
    """Let this process take so much and no more, where the system knows limits."""
    with contextlib.suppress(ImportError):
        import resource

        wanted = {
            resource.RLIMIT_AS: (psutil.Process().memory_info().vms if FORKS else 0) + memory,
            resource.RLIMIT_FSIZE: LARGEST,
            resource.RLIMIT_CPU: int(2 * seconds) + 60,  # beside `Watch`, which sees all
            resource.RLIMIT_CORE: 0,
        }
        for kind, most in wanted.items():
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(kind, (most, most))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a file too large raises OSError


# ---------------------------------------------------------------- limits on all its processes


def reap() -> set[int]:
    """The children that have ended since the last time."""
    ended = set()
    with contextlib.suppress(ChildProcessError):
        while pid := os.waitpid(-1, os.WNOHANG)[0]:
            ended.add(pid)
    return ended


def end_descendants() -> None:
    """End all, and those that they start meanwhile."""
    for _ in range(500):
        reap()
        if not (living := psutil.Process().children(recursive=True)):
            return
        for process in living:
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(0.005)


class Watch:
    """Starts a learner's process, passes its lines on, counts what it and its descendants take.

    Time counts as waiting only if all sleep, or are stopped: on a slow machine, or a busy one,
    nobody does.
    """

    def __init__(self, job: dict, line: Line):
        self.job, self.line, self.data, self.total, self.asked = job, line, b"", 0, False
        self.cpu = self.before = self.slept = self.looked = 0.0
        self.ticks, self.ended = 0, sum(psutil.Process().cpu_times()[2:4])

    def run(self, work: Callable[[Line], None]) -> str:
        """Let a fork work until it ends or must be ended; says why."""
        (below, up), (self.source, sink) = os.pipe(), os.pipe()
        if (child := os.fork()) == 0:
            for handle in (self.line.source, self.line.sink, self.source, up):
                os.close(handle)
            work(Line(below, sink, self.job["mark"]))
        os.close(below), os.close(sink)
        reason, ended = "", set()
        while not reason:
            ready = select.select([self.source, self.line.source], [], [], TICK)[0]
            if self.line.source in ready:
                self.reply(up)
            reason = self.take() if self.source in ready else "left" if child in ended else ""
            ended, reason = ended | reap(), reason or self.look()
        os.close(up), os.close(self.source)
        return reason

    def reply(self, up: int) -> None:
        """Pass on what the teacher's process says; without it there is nothing to do."""
        if (told := self.line.hear()) is None:
            os._exit(1)
        self.asked = False
        with contextlib.suppress(OSError):
            os.write(up, json.dumps(told).encode() + b"\n")

    def take(self) -> str:
        """Pass on what the learner's process says; why it ends, if it does."""
        chunk = os.read(self.source, 1 << 20)
        self.total += len(chunk)
        *lines, self.data = (self.data + chunk).split(b"\n")
        for text in (line.decode("utf-8", "replace") for line in lines):
            self.line.tell(line=text)
            said = text.removeprefix(self.job["mark"]) if text.startswith(self.job["mark"]) else ""
            if said.startswith('{"cell"'):
                self.before, self.slept = self.cpu, 0.0
            if said.startswith('{"trying"'):  # it may take and wait so much more
                self.before += self.job["test"]
                self.slept -= self.job["test"]
            self.asked |= said.startswith('{"seen"')
        return "" if chunk and self.total <= LARGEST else "shouts" if chunk else "left"

    def look(self) -> str:
        """Why they must be ended: "cell", "time", "waits", "memory", "processes", or ""."""
        if time.monotonic() - self.looked < TICK:
            return ""
        number, size = self.count()
        self.looked, self.ticks = time.monotonic(), self.ticks + 1
        reasons = {
            "processes": number > PROCESSES,
            "memory": size > self.job["memory"],
            "cell": self.cpu - self.before > self.job["cell_limit"],
            "time": self.cpu > self.job["seconds"],
            "waits": self.slept > self.job["patience"]
            or self.ticks * TICK > CLOCK * self.job["seconds"],
        }
        return next((reason for reason, true in reasons.items() if true), "")

    def count(self) -> tuple[int, int]:
        """The number of descendants and their bytes; adds the tick to what they took or waited."""
        own, size, states = psutil.Process(), 0, []
        cpu, shared = sum(own.cpu_times()[2:4]) - self.ended, own.memory_info().rss
        for process in own.children(recursive=True):
            with contextlib.suppress(psutil.Error), process.oneshot():
                states.append(process.status())
                cpu += sum(process.cpu_times()[:4])  # with those of its children that ended
                size += max(0, process.memory_info().rss - shared)
        still = cpu - self.cpu < TICK / 100 and {*states} <= IDLE
        self.slept += TICK if still and not self.asked else 0
        self.cpu = max(self.cpu, cpu)
        return len(states), size


def silent() -> Line:
    """Keep stdin and stdout for the teacher's process; what cells read and write is nowhere."""
    line = Line(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    return line


def warm(seat: Seat) -> None:
    """Load what cells import, with a course of their own: these here are hidden from them."""
    exercises()
    sys.modules["__main__"] = seat.module
    for name in [name for name in sys.modules if name.split(".")[0] in ("helpers", "workshop")]:
        del sys.modules[name]
    for name in WARM if FORKS else ["workshop.checks"]:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    for name in ("workshop", "workshop.checks", "workshop.checks.learner"):
        sys.modules[name].check = seat.check
    seat.course = importlib.import_module("workshop.exercises").exercises()
    for known in seat.course.values():  # nothing there to read off what an answer must give
        known.probes.clear()
        known.slips.clear()


def unit() -> float:
    """Seconds on the processor for a piece of work like that of notebooks."""
    began, total = time.process_time(), 0
    for i in range(300_000):
        total += i % 7
    return time.process_time() - began


def run(seat: Seat, job: dict, line: Line, room: Room | None = None) -> None:
    """In the learner's process: run the cells where the notebook lies; never returns."""
    try:
        if room:
            enter_a_room(*room)
            give_up_rights()
        elif FORKS:
            go_on_in_a_fork()
        if FORKS:
            os.setsid()
            os.nice(10)
        os.makedirs(job["desk"], exist_ok=True)
        os.chdir(job["desk"])
        limit(job["memory"], job["seconds"])
        seat.run(job, line)
    finally:
        os._exit(0)  # threads and exit handlers of the learner's are not waited for


def serve(seat: Seat, job: dict, line: Line, room: Room | None) -> None:
    """Do a job, and leave nothing of it but what was said."""
    if not FORKS:
        run(seat, job, Line(line.source, line.sink, job["mark"]))
    watch = Watch(job, line)
    reason = watch.run(lambda own: run(seat, job, own, room))
    end_descendants()
    if not room:
        shutil.rmtree(job["desk"], ignore_errors=True)
    line.tell(over=reason, cpu=watch.cpu)


def main() -> None:
    """Load the libraries and take jobs until there are no more."""
    line, seat = silent(), Seat()
    first = line.hear()
    room = first["hidden"], first["needed"]
    rooms = FORKS and first["protect"] and lends_rooms(*room)
    if FORKS:
        control(DEATH_SIGNAL, signal.SIGKILL), control(SUBREAPER)
    warm(seat)
    pace = max(1.0, min(unit() for _ in range(5)) / UNIT)
    line.tell(ready=True, pace=pace, forks=FORKS, rooms=rooms)
    while (job := line.hear()) is not None:
        if isinstance(job, dict):  # else a reply to one that has ended
            serve(seat, job, line, room if rooms else None)
    os._exit(0)


OWN = sys.modules[__name__]  # stays alive when __main__ is another module
if __name__ == "__main__":
    main()
