"""Notes what an answer does beside computing: calls of the course's own function, looks into the
interpreter that runs it, processes of its own.

Nothing here changes a verdict. Who takes the interpreter apart by other ways than those listed
here is not noticed.
"""

import cProfile
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from helpers.exercises.exercise import Exercise

HELPERS = str(Path(__file__).resolve().parents[1])
CELL = re.compile(r"<cell \d+>")
CALLS = "It calls the course's own {}."
LOOKS = "Its code looks into the interpreter ({})."
STARTS = "It starts a process of its own while it is tried."
HIDES = "It turns off what notes the calls that it makes."
PEEPS = frozenset(
    "gc.get_objects gc.get_referrers gc.get_referents sys._getframe sys._current_frames "
    "sys._current_exceptions sys.setprofile sys.settrace sys.monitoring.register_callback "
    "ctypes.dlopen ctypes.dlsym ctypes.addressof ctypes.string_at _thread.start_new_thread".split()
)
STARTED = frozenset(
    "os.fork os.forkpty os.exec os.posix_spawn os.spawn os.system subprocess.Popen".split()
)
PRIVATE = re.compile(r"/proc/[^/]+/(mem|fd|maps|environ|root|cwd|task)")


class Lookout:
    """What Python reports of a learner's code, wherever it is called: an audit hook stays for ever.

    Only what cells do themselves counts, or through `inspect`; libraries may do it.
    """

    def __init__(self, tell: Callable[[str], None]):
        self.tell = tell
        self.trying = self.busy = False
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
            path = args[0] if isinstance(args[0], str) else args[0].decode(errors="replace")
            return LOOKS.format(path[:80]) if PRIVATE.match(path) else ""
        return STARTS if self.trying and event in STARTED else ""


def by_a_cell(frame: FrameType | None) -> bool:
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
        self.codes: set[CodeType] = set()
        self.found: set[str] = set()
        self.calls = 0
        self.active = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.active:  # it was handed to itself
            return self.function(*args, **kwargs)
        self.active = self.lookout.trying = True
        tell, self.lookout.tell = self.lookout.tell, self.found.add
        threading.setprofile(self.note)
        self.profile.enable()
        try:
            return self.function(*args, **kwargs)
        finally:
            still_seen()
            self.profile.disable()
            threading.setprofile(None)
            self.calls += 1
            self.active = self.lookout.trying = False
            self.lookout.tell = tell

    def note(self, frame: FrameType, event: str, arg: Any) -> None:
        """Called in the threads that an answer starts."""
        self.codes.add(frame.f_code)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was noticed while it was called."""
        stats = self.profile.getstats()
        codes = self.codes | {e.code for e in stats if not isinstance(e.code, str)}
        seen = sum(e.callcount for e in stats if e.code is still_seen.__code__)
        found = self.found | ({HIDES} if seen < self.calls else set())
        if any(is_reference(code, self.exercise) for code in codes):
            found.add(CALLS.format(self.exercise.name))
        return tuple(sorted(found))


def still_seen() -> None:
    """Called after each call of an answer, to see whether calls are still noted."""


def is_reference(code: CodeType, exercise: Exercise) -> bool:
    """Whether this is the code of the course's function, in its file or copied from there.

    What a cell spells out is the learner's, even if it is the same.
    """
    if code.co_filename.startswith(HELPERS):
        return code.co_qualname == exercise.name
    own = exercise.reference.__code__
    copied = (code.co_code, code.co_names, code.co_varnames) == (
        own.co_code, own.co_names, own.co_varnames
    )  # fmt: skip
    return copied and not CELL.fullmatch(code.co_filename)
