"""What Linux offers to keep a learner's processes from everything else, to count and to end them.

Where the system lends user namespaces to everyone, the worker enters one (`enter`), in which
nothing can be written and there is no network; each notebook then gets a room of its own (`apart`):
processes that see only each other and end together, empty temporary folders, and no folder of the
class. Elsewhere nothing of this is in force, and only `Guard` counts and ends.
"""

import contextlib
import ctypes
import glob
import os
import resource
import signal
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

NEW_MOUNTS, NEW_IPC, NEW_USER, NEW_PIDS, NEW_NET = 1 << 17, 1 << 27, 1 << 28, 1 << 29, 1 << 30
PRIVATE, BIND, RECURSIVE, NO_SPECIALS = 1 << 18, 1 << 12, 1 << 14, 2 | 4 | 8
DEATH_SIGNAL, DUMPABLE, DROP_CAPABILITY, SUBREAPER, NO_NEW_PRIVILEGES = 1, 4, 24, 36, 38
SET_MOUNTS = 442  # the number of mount_setattr, the same on every processor
ROOM = "size=256m,mode=1777"  # of a temporary folder
TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")
PROCESSES = 200  # more than that is an accident or an attack
CLOCK = 100  # times the seconds of a notebook, on the clock: whatever keeps it from ending
TICK = 0.1  # seconds from one look at the processes to the next
PAGE = resource.getpagesize()
HERTZ = os.sysconf("SC_CLK_TCK")


def call(name: str, *args: int | bytes | None) -> None:
    """Call a function of the C library. Raises OSError."""
    wide = [ctypes.c_ulong(arg) if isinstance(arg, int) else arg for arg in args]
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*wide) < 0:
        raise OSError(ctypes.get_errno(), name)


def control(option: int, value: int = 1) -> None:
    """Set a property of this process, where the system knows it."""
    with contextlib.suppress(OSError, AttributeError):
        call("prctl", option, value, 0, 0, 0)


@dataclass
class Shelter:
    """Folders that nobody inside sees, but for those in them that Python needs."""

    desk: str
    hidden: list[str]
    needed: list[str]
    rooms: bool = False  # whether there are namespaces

    def try_and_enter(self) -> None:
        """Enter where that works. A fork tries it first: what was entered cannot be left."""
        child = os.fork()
        if child == 0:
            with contextlib.suppress(OSError):
                self.enter()
                os._exit(0 if self.apart(lambda: os._exit(7)) == 7 else 1)
            os._exit(1)
        if os.waitpid(child, 0)[1] == 0:
            self.enter()

    def enter(self) -> None:
        """Where nothing can be written and there is no network. Raises OSError."""
        user, group = os.getuid(), os.getgid()
        call("unshare", NEW_USER | NEW_MOUNTS | NEW_NET | NEW_IPC)
        for name, text in ("setgroups", "deny"), ("uid_map", user), ("gid_map", group):
            line = text if isinstance(text, str) else f"{text} {text} 1"
            Path(f"/proc/self/{name}").write_text(line)
        call("mount", b"none", b"/", None, PRIVATE | RECURSIVE, None)
        read_only = struct.pack("4Q", 1, 0, 0, 0)
        call("syscall", SET_MOUNTS, -100 % 2**64, b"/", 0x8000, read_only, len(read_only))
        self.rooms = True

    def apart(self, work: Callable[[], None], processes: bool = True) -> int:
        """Run in a fork with a room of its own, wait for its end; its exit status."""
        child = os.fork()
        if child:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        control(DEATH_SIGNAL, signal.SIGKILL)
        try:
            if self.rooms:
                call("unshare", NEW_MOUNTS | (NEW_PIDS | NEW_IPC if processes else 0))
            if self.rooms and processes and (first := os.fork()):
                os._exit(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]) & 255)
            control(DEATH_SIGNAL, signal.SIGKILL)
            self.furnish(processes)
            work()
        finally:
            os._exit(1)

    def furnish(self, processes: bool) -> None:
        """Empty temporary folders, nothing where the class is, a /proc of these processes only."""
        if not self.rooms:
            return
        if processes:
            call("mount", b"proc", b"/proc", b"proc", NO_SPECIALS, None)
        for folder in sorted({*self.hidden, self.desk, *TEMPORARY}, key=len):
            if os.path.isdir(folder):
                self._empty(folder)

    def _empty(self, folder: str) -> None:
        """Lay an empty folder over one; what Python needs in it stays visible."""
        inside = [path for path in self.needed if path.startswith(f"{folder}/")]
        kept = [(path, os.open(path, os.O_PATH)) for path in inside if os.path.isdir(path)]
        call("mount", b"tmpfs", os.fsencode(folder), b"tmpfs", 2 | 4, ROOM.encode())
        for path, handle in kept:
            os.makedirs(path, exist_ok=True)
            source = b"/proc/self/fd/%d" % handle
            call("mount", source, os.fsencode(path), None, BIND | RECURSIVE, None)
            os.close(handle)


def give_up_rights() -> None:
    """What the learner's process may not undo: no rights over the room that it is in."""
    control(NO_NEW_PRIVILEGES)
    for capability in range(64):
        control(DROP_CAPABILITY, capability)
    header, none = struct.pack("Ii", 0x20080522, 0), bytes(24)
    with contextlib.suppress(OSError):
        call("capset", header, none)


# ---------------------------------------------------------------- counting, ending


@dataclass
class Census:
    """The living descendants of this process: their states, seconds computed, bytes."""

    pids: list[int] = field(default_factory=list)
    states: set[str] = field(default_factory=set)
    cpu: float = 0.0
    memory: int = 0


def descendants() -> Census:
    """Count them; those that ended count with their seconds."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = Census(cpu=ended.ru_utime + ended.ru_stime)
    known = _processes()
    family, own = {os.getpid()}, int(known.get(os.getpid(), [0] * 22)[21])
    while more := {p for p, stat in known.items() if int(stat[1]) in family} - family:
        family |= more
    for pid in family - {os.getpid()}:
        stat = known[pid]
        found.pids.append(pid)
        found.cpu += sum(map(int, stat[11:15])) / HERTZ
        found.memory += max(0, int(stat[21]) - own) * PAGE
        found.states.add(stat[0])
    return found


def _processes() -> dict[int, list[str]]:
    """What /proc says of each process: its state, its parent …"""
    found = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError), open(path) as stream:
            found[int(path.split("/")[2])] = stream.read().rpartition(")")[2].split()
    return found


def end_descendants() -> None:
    """End all, and those that they start meanwhile."""
    for _ in range(500):
        if not (living := descendants().pids):
            return
        for pid in living:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.005)


@dataclass
class Guard:
    """Counts what the descendants of this process take, tick by tick.

    Time counts as waiting only if all sleep: on a slow machine, or a busy one, nobody does. Who was
    stopped, and is not sent on for as long, waits too.
    """

    seconds: float  # on the processor, of all
    cell_seconds: float  # of each cell
    patience: float  # seconds that a cell may wait
    memory: int
    cpu: float = 0.0
    before: float = 0.0  # what was taken when the cell began
    slept: float = 0.0
    stopped: float = 0.0
    ticks: int = 0
    looked: float = 0.0

    def next_cell(self) -> None:
        """Begin to count anew."""
        self.before, self.slept, self.stopped = self.cpu, 0.0, 0.0

    def allow(self, seconds: float) -> None:
        """Let the cell take and wait so much more."""
        self.before, self.slept = self.before + seconds, self.slept - seconds

    def look(self, may_wait: bool) -> str:
        """Why they must be ended: "cell", "time", "waits", "memory", "processes", or ""."""
        if time.monotonic() - self.looked < TICK:
            return ""
        found = descendants()
        self.count(found, may_wait)
        self.looked, self.ticks = time.monotonic(), self.ticks + 1
        self.cpu = max(self.cpu, found.cpu)
        reasons = {
            "processes": len(found.pids) > PROCESSES,
            "memory": found.memory > self.memory,
            "cell": self.cpu - self.before > self.cell_seconds,
            "time": self.cpu > self.seconds,
            "waits": max(self.slept, self.stopped) > self.patience
            or self.ticks * TICK > CLOCK * self.seconds,
        }
        return next((reason for reason, true in reasons.items() if true), "")

    def count(self, found: Census, may_wait: bool) -> None:
        """Add a tick to what was waited, if it was."""
        still = found.cpu - self.cpu < TICK / 100
        if still and found.states <= {"S", "Z"}:
            self.slept += 0 if may_wait else TICK
        halted = still and "T" in found.states and found.states <= {"S", "T", "Z"}
        self.stopped = self.stopped + TICK if halted else 0.0
