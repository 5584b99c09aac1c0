"""Run a function on the probes of an exercise, away from the notebook and for a limited time.

On Linux the probes run in a fork of this process: whatever the function does — loop for ever, call
`sys.exit`, fill the memory, change a module — stays there, and ends with it. Elsewhere they run in
a thread that is interrupted when the time is over; in a browser, which has none, by a clock.
"""

import builtins
import contextlib
import copy
import ctypes
import faulthandler
import functools
import io
import json
import linecache
import math
import os
import random
import select
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

from workshop.checks.clock import clock
from workshop.checks.compare import Opaque, Raised, TimedOut, same
from workshop.checks.lines import pack, unpack
from workshop.exercises.exercise import About, Exercise, Probe, Untested

MEMORY = 2 * 2**30  # bytes that an answer may take on top of what the notebook has
LONGEST = 4.0  # seconds that an answer may wait; those of an exercise count on the processor
TICK = 0.1  # seconds from one look at an answer to the next
STUCK = 15  # times LONGEST, on the clock: whatever keeps it from computing
LARGEST = 10**6  # numbers in an array, letters in a text that is looked at
MOST = 64 * 2**20  # bytes that are read of all results


@dataclass(frozen=True)
class Observation:
    """What a probe saw, which arguments the function changed in place, what else was noticed."""

    value: Any
    changed: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def agree(a: Observation, b: Observation, exercise: Exercise) -> bool:
    """Whether two functions did the same on a probe, to the inputs too."""
    return a.changed == b.changed and same(a.value, b.value, exercise.whole_numbers)


# ---------------------------------------------------------------- one call


class Subject:
    """A function that takes and gives NumPy, whatever it is written for.

    Each call gets copies of its arguments, as tensors for the backend "torch"; the names of those
    that it changed in place gather in `changed`.
    """

    def __init__(self, function: Callable, backend: str, parameters: list[str]):
        self.function, self.backend, self.parameters = function, backend, parameters
        self.changed: list[str] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        named = dict(zip(self.parameters, args, strict=False)) | kwargs
        before, given = copy.deepcopy(named), copy.deepcopy((args, kwargs))
        args, kwargs = _to_torch(given) if self.backend == "torch" else given
        result = self.function(*args, **kwargs)
        after = dict(zip(self.parameters, args, strict=False)) | kwargs
        changed = [name for name in named if _changed(before[name], after[name])]
        self.changed += [name for name in changed if name not in self.changed]
        return plain(result, self.backend)


def _to_torch(x: Any) -> Any:
    """The same with tensors for arrays, and functions that take and give tensors."""
    import torch

    if isinstance(x, np.ndarray):
        return torch.from_numpy(np.array(x))
    if isinstance(x, np.random.Generator):
        return torch.Generator().manual_seed(int(x.integers(2**31)))
    if isinstance(x, dict | list | tuple):
        return each(_to_torch, x)
    if callable(x) and not isinstance(x, torch.nn.Module | type):
        return lambda *args: _to_torch(x(*(plain(arg, "torch") for arg in args)))
    return x


def on_tensors(function: Callable) -> Callable:
    """Let a function written for tensors take and give arrays as well: `@on_tensors`."""

    @functools.wraps(function)
    def either(*args: Any, **kwargs: Any) -> Any:
        import torch

        if any(isinstance(x, torch.Tensor) for x in (*args, *kwargs.values())):
            return function(*args, **kwargs)
        args, kwargs = _to_torch((args, kwargs))
        return _from_torch(function(*args, **kwargs))

    return either


def as_written(function: Any) -> Any:
    """The learner's own function where `on_tensors` has made another of it."""
    made = isinstance(function, FunctionType) and function.__code__ is on_tensors(len).__code__
    return function.__wrapped__ if made else function


def _from_torch(x: Any) -> Any:
    """The same with arrays for tensors, and a number for one without axes."""
    if isinstance(x, sys.modules["torch"].Tensor):
        return _to_numpy(x) if x.ndim else x.item()
    return each(_from_torch, x) if type(x) in (dict, list, tuple) else x


def each(change: Callable, x: Any) -> Any:
    """A dictionary, list or tuple with each entry changed."""
    if isinstance(x, dict):
        return {key: change(value) for key, value in x.items()}
    return type(x)(map(change, x))


def _changed(before: Any, after: Any) -> bool:
    """Whether an array, or one in a list or dictionary, is no longer what it was."""
    if isinstance(before, dict):
        same_keys = isinstance(after, dict) and before.keys() == after.keys()
        return not same_keys or any(_changed(before[key], after[key]) for key in before)
    if isinstance(before, list | tuple):
        return len(before) != len(after) or any(map(_changed, before, after))
    if not isinstance(before, np.ndarray):
        return False
    after = np.asarray(after)
    nan = before.dtype.kind == "f"
    return before.shape != after.shape or not np.array_equal(before, after, equal_nan=nan)


def plain(x: Any, backend: str = "numpy") -> Any:
    """A result as None, truth, number, text, array, list or dictionary; else an Opaque."""
    if (torch := sys.modules.get("torch")) and isinstance(x, torch.Tensor):
        return Opaque("torch.Tensor") if backend == "numpy" else _array(_to_numpy(x))
    if isinstance(x, np.ndarray | np.generic):
        return _array(x)
    if isinstance(x, int) and abs(x) > 1e300:
        return Opaque("whole number too large for a float")
    if isinstance(x, str | list | tuple | dict) and len(x) > LARGEST:
        return Opaque(f"{type(x).__name__} of length {len(x)}")
    if isinstance(x, dict):
        return {_key(key): plain(value, backend) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [plain(value, backend) for value in x]
    if x is None or isinstance(x, bool | int | float | str | About | Untested | Opaque):
        return x
    return Opaque(type(x).__name__)


def _to_numpy(x: Any) -> np.ndarray:
    x = x.detach().cpu().resolve_conj().resolve_neg()
    return (x.float() if x.dtype == sys.modules["torch"].bfloat16 else x).numpy()


def _array(x: np.ndarray) -> Any:
    """An array of numbers that is not too large, one without axes as a number."""
    if x.dtype.kind not in "biuf" or x.size > LARGEST:
        return Opaque(f"array of {x.dtype}, shape {x.shape}")
    return x.item() if x.ndim == 0 else np.asarray(x)


def _key(key: Any) -> Any:
    key = key.item() if isinstance(key, np.generic) else key
    return key if isinstance(key, bool | int | float | str) else repr(key)


def observe(function: Callable, exercise: Exercise, backend: str) -> Iterator[Observation]:
    """Run all probes here and now."""
    for probe in exercise.probes:
        yield observe_probe(function, exercise, probe, backend)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Leave the global random states of Python, NumPy and PyTorch as they were."""
    torch = sys.modules.get("torch")
    states = random.getstate(), np.random.get_state(), torch and torch.get_rng_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        if torch:
            torch.set_rng_state(states[2])


def observe_probe(function: Callable, exercise: Exercise, probe: Probe,
                  backend: str) -> Observation:  # fmt: skip
    """Run one probe here and now."""
    subject = Subject(function, backend, exercise.parameters)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            value = plain(probe.run(subject))
    except OutOfTime:
        raise
    except BaseException as error:  # also SystemExit and KeyboardInterrupt of the learner's code
        value = _raised(error, function)
    return Observation(value, tuple(subject.changed), getattr(function, "remarks", ()))


def _raised(error: BaseException, function: Callable) -> Raised:
    """The exception in words, with the last line that is the learner's own."""
    files = {f.__code__.co_filename for f in (function, *vars(function).values())
             if isinstance(f, FunctionType)} if hasattr(function, "__dict__") else ()  # fmt: skip
    own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename in files]
    line = linecache.getline(own[-1].filename, own[-1].lineno).strip() if own else ""
    return Raised(type(error).__name__, " ".join(str(error).split())[:300], line)


# ---------------------------------------------------------------- away from the notebook


def as_line(observation: Observation) -> bytes:
    """An observation as a line of JSON."""
    told = [pack(observation.value), observation.changed, observation.remarks]
    return json.dumps(told).encode()


def from_line(line: bytes) -> Observation:
    """An observation from a line; ValueError for what `as_line` would not write."""
    try:
        value, *notes = json.loads(line)
        changed, remarks = (tuple(map(str, texts)) for texts in notes)
        return Observation(unpack(value), changed, remarks)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"not an observation: {line[:80]!r}") from error


def observe_apart(function: Callable, exercise: Exercise, backend: str) -> list[Observation]:
    """Run all probes within the exercise's time; the first that does not end is TimedOut."""

    def work(write: Callable[[bytes], None]) -> None:
        random.seed(0), np.random.seed(0)  # noqa: NPY002 (the same words each time)
        if torch := sys.modules.get("torch"):
            torch.manual_seed(0)
        for observation in observe(function, exercise, backend):
            write(as_line(observation))

    lines, _, late = lines_of(work, exercise.seconds, can_fork(exercise))
    seen: list[Observation] = []
    with contextlib.suppress(ValueError):  # an answer may write
        seen.extend(map(from_line, lines))
    return _complete([*seen, *([Observation(late)] if late else [])], exercise)


Work = Callable[[Callable[[bytes], None]], None]
Lines = tuple[list[bytes], bool, TimedOut | Opaque | None]


def lines_of(work: Work, seconds: float, forks: bool, memory: int = MEMORY) -> Lines:
    """Let `work(write)` write lines, away from the notebook and for some seconds of the processor.

    Gives the lines, whether somebody else wrote into the pipe, and what ended it early.
    """
    return _in_a_fork(work, seconds, memory) if forks else _in_a_thread(work, seconds)


def can_fork(exercise: Exercise) -> bool:
    """Whether a fork can run the answers to an exercise.

    Where there is an accelerator, the first backward starts a thread for it; a fork has no such
    thread, and PyTorch raises there ("Unable to handle autograd's threading …").
    """
    return sys.platform == "linux" and not (exercise.trains and has_accelerator())


def has_accelerator() -> bool:
    """Whether PyTorch is loaded and sees a device beside the processor, such as a GPU."""
    torch = sys.modules.get("torch")
    kinds = (getattr(torch, kind, None) for kind in ("cuda", "accelerator"))  # since PyTorch 2.6
    return any(kind is not None and kind.is_available() for kind in kinds)


def _in_a_fork(work: Work, seconds: float, memory: int) -> Lines:
    source, sink = os.pipe()
    mark = os.urandom(16).hex().encode()  # begins what the grader writes, and nobody else
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the other threads of a kernel are not needed there
        child = os.fork()
    if child == 0:
        _report(sink, mark, work, seconds, memory)
    os.close(sink)
    try:
        lines, lost = _read(source, child)
    finally:
        os.close(source)
        used_up = _end(child, seconds)
    own = [told for line in lines if (told := line.partition(mark)[2])]
    forged = any(not line.startswith(mark) for line in lines)
    return own, forged, TimedOut() if used_up else lost


def _report(sink: int, mark: bytes, work: Work, seconds: float, memory: int) -> None:
    """In the fork: write each line as it is made; never returns."""
    try:
        os.dup2(sink, 3)
        os.closerange(4, 1 << 16)  # the kernel's own connections are nothing to write into
        _quiet_and_small(seconds, memory)
        with os.fdopen(3, "wb") as stream:

            def write(line: bytes) -> None:
                stream.write(mark + line + b"\n")
                stream.flush()

            work(write)
    finally:
        os._exit(0)


def _end(child: int, seconds: float) -> bool:
    """End a fork and what it started; whether it had used up its time on the processor."""
    for kill in (os.killpg, os.kill):  # it may have no group of its own yet
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(child, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):  # the learner's code waits for it, or for none
        _, status, used = os.wait4(child, 0)
        late = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU
        return late or used.ru_utime + used.ru_stime >= seconds
    return False


def _quiet_and_small(seconds: float, memory: int) -> None:
    """In the fork: no output, one thread, little memory and time, a process group of its own."""
    import gc
    import resource

    os.setsid()
    gc.disable()
    faulthandler.disable()  # a crash is a finding, not a page of traces
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    sys.stdout = sys.stderr = open(os.devnull, "w")
    sys.stdin, builtins.input = None, _nobody
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)  # its pool of threads did not come along
    with contextlib.suppress(OSError, ValueError):
        soft, most = math.ceil(seconds), resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (soft, soft + 1 if most < 0 else most))
        pages = int(open("/proc/self/statm").read().split()[0])
        limit = pages * resource.getpagesize() + memory
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _nobody(prompt: Any = "") -> str:
    raise EOFError("there is nobody to ask: work with the arguments alone")


def _read(source: int, child: int) -> tuple[list[bytes], TimedOut | Opaque | None]:
    """The lines of a fork until it ends, waits too long or says too much, and what that means.

    Time is counted while it is asleep: one that computes has its limit on the processor, and one
    that others keep from the processor is not late.
    """
    data, asleep, ticks = bytearray(), 0, 0
    while asleep * TICK < LONGEST and ticks * TICK < STUCK * LONGEST:
        if not select.select([source], [], [], TICK)[0]:
            asleep, ticks = asleep + _sleeps(child), ticks + 1
            continue
        chunk = os.read(source, 1 << 20)
        data += chunk
        if not chunk or len(data) > MOST:
            lost = Opaque("more than can be looked at") if chunk else None
            return bytes(data).split(b"\n")[:-1], lost
    return bytes(data).split(b"\n")[:-1], TimedOut(waited=True)


def _sleeps(child: int) -> bool:
    """Whether a process waits: it neither computes nor is kept from it."""
    with contextlib.suppress(OSError), open(f"/proc/{child}/stat") as stream:
        return stream.read().rpartition(")")[2].split()[0] == "S"
    return False


def _complete(seen: list[Observation], exercise: Exercise) -> list[Observation]:
    """What no probe reported, because the process ended or the time was over, counts as raised."""
    lost = Observation(Raised("SystemExit", "it ended the process that ran it"))
    if seen and isinstance(seen[-1].value, TimedOut):
        lost = seen[-1]
    return (seen + [lost] * len(exercise.probes))[: len(exercise.probes)]


class OutOfTime(BaseException):
    """Raised inside a thread whose time is over."""


def _in_a_thread(work: Work, seconds: float) -> Lines:
    lines: list[bytes] = []

    def quiet() -> None:
        with contextlib.suppress(OutOfTime), contextlib.redirect_stdout(io.StringIO()):
            work(lines.append)

    thread = threading.Thread(target=quiet, daemon=True)
    with undisturbed():
        if not has_threads():
            return lines, False, _in_turn(quiet, seconds)
        thread.start()
        late = _interrupt(thread, seconds)
    return lines, False, late


def _in_turn(work: Callable[[], None], seconds: float) -> TimedOut | None:
    """Run it here, within the time; without one for 0 seconds, and where no clock can run."""
    began, limited = time.monotonic(), seconds and hasattr(sys, "monitoring")  # Python 3.12
    with clock(seconds, OutOfTime) if limited else contextlib.nullcontext():
        work()
    return TimedOut() if limited and time.monotonic() - began > seconds else None


@functools.cache
def has_threads() -> bool:
    """Whether threads can be started here: Python in a browser has none."""
    try:
        threading.Thread(target=int, daemon=True).start()
    except RuntimeError:
        return False
    return True


def _interrupt(thread: threading.Thread, seconds: float) -> TimedOut | None:
    """Wait for a thread; one that is late gets OutOfTime, again and again for a second.

    This thread does nothing meanwhile: the process's time on the processor is that of the answer.
    """
    began, waited, used = time.process_time(), 0.0, 0.0
    while thread.is_alive() and used < seconds and waited < LONGEST:
        thread.join(TICK)
        before, used = used, time.process_time() - began
        waited += TICK if used - before < TICK / 100 else 0
    late = TimedOut(waited=used < seconds) if thread.is_alive() else None
    end = time.monotonic() + 1
    while thread.is_alive() and time.monotonic() < end:
        late_one, error = ctypes.c_ulong(thread.ident), ctypes.py_object(OutOfTime)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(late_one, error)
        thread.join(0.05)
    return late
