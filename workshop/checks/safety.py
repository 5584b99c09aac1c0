"""Keep what runs away from files, processes and the network: an answer runs as its learner wrote
it, a changed one might delete what the learner meant to read."""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from functools import cache
from typing import Any

OUTSIDE = ("os.", "shutil.", "subprocess.", "socket.", "ctypes.", "_thread.", "pty.", "signal.")
READS = ("os.listdir", "os.scandir", "os.walk")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_kept: set[int] = set()  # the threads that may not reach outside


@contextlib.contextmanager
def kept_inside() -> Iterator[None]:
    """Refuse what this thread does outside, by whatever name, with a PermissionError."""
    _hook()
    _kept.add(threading.get_ident())
    try:
        yield
    finally:
        _kept.discard(threading.get_ident())


@cache
def _hook() -> None:
    """Python asks an audit hook before it opens, starts or connects; none can be taken back."""
    sys.addaudithook(_refuse)


def _refuse(event: str, args: tuple[Any, ...]) -> None:
    if threading.get_ident() in _kept:
        writes = event == "open" and bool(args[2] & WRITES)
        if writes or (event.startswith(OUTSIDE) and event not in READS):
            raise PermissionError(f"{event} reaches outside")
