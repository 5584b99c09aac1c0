"""A limit of time where there are neither threads nor signals: Python in a browser's tab."""

import contextlib
import sys
import time
from collections.abc import Iterator

AGAIN = 0.05  # seconds until what caught the error gets it again
_running: list[list] = []  # [the second that it ends, the error], one inside of another


@contextlib.contextmanager
def clock(seconds: float, error: type[BaseException]) -> Iterator[None]:
    """Raise an error in what runs longer, where it next jumps or calls, again until it ends.

    One long call of C is not interrupted: nothing but the end of the whole worker ends it.
    """
    own = [time.monotonic() + seconds, error]
    _running.append(own)
    if len(_running) == 1:
        _listen()
    try:
        yield
    finally:
        _running.remove(own)
        if not _running:
            sys.monitoring.set_events(sys.monitoring.PROFILER_ID, 0)
            sys.monitoring.free_tool_id(sys.monitoring.PROFILER_ID)


def _listen() -> None:
    watch, tool = sys.monitoring, sys.monitoring.PROFILER_ID
    watch.use_tool_id(tool, "clock")
    for event in (watch.events.JUMP, watch.events.PY_START):
        watch.register_callback(tool, event, _look)
    watch.set_events(tool, watch.events.JUMP | watch.events.PY_START)


def _look(*_: object) -> None:
    now = time.monotonic()
    for own in _running:
        if now > own[0]:
            own[0] = now + AGAIN
            raise own[1]
