"""Run a learner's cells and report what the answers do; the verdicts are made elsewhere.

`running` hands a job in as JSON, and reads lines: {"at": [3, 1]}, statement 1 of cell 3 begins;
{"failed": "NameError: …"}, it raised that; {"answer": "softmax", …}; {"done": true}. Each begins
with the mark of the job, which the cells do not know. What is imported here is hidden from them:
they import the course anew, and may do with theirs as they like.
"""

import ast
import codeop
import contextlib
import cProfile
import json
import linecache
import os
import re
import sys
import time
import types
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from traceback import format_exception_only
from typing import Any

import psutil

from workshop.checks.compare import TimedOut
from workshop.checks.judge import backends_for, expected_of, is_stub
from workshop.checks.learner import exercise_of
from workshop.checks.sandbox import agree, as_line, as_written, observe_apart, on_tensors
from workshop.classroom.running import COURSE, LARGEST
from workshop.exercises import exercises
from workshop.exercises.exercise import Exercise

TIMED = re.compile(r"^(\s*)%{1,2}(?:time|capture)\b[ \t]*", re.MULTILINE)  # what it times runs
MAGIC = re.compile(r"^(\s*)(?:[%!?].*|.*\?)$", re.MULTILINE)  # the rest of IPython's signs do not


class Seat:
    """One learner at work: a namespace, the answers so far."""

    def __init__(self, job: dict, sink: int):
        self.job, self.sink, self.process = job, open(sink, "wb"), os.getpid()
        sys.modules["__main__"], self.compile = types.ModuleType("__main__"), codeop.Compile()
        self.names = sys.modules["__main__"].__dict__
        self.defined: dict[str, Callable] = {}
        self.answered: set[str] = set()

    def tell(self, **message: Any) -> None:
        """Write a line; what a statement forked goes on no further than that statement."""
        if os.getpid() != self.process:
            os._exit(0)
        self.sink.write((self.job["mark"] + json.dumps(message)).encode() + b"\n")
        self.sink.flush()

    def prepare(self) -> None:
        """Load all exercises, then give the cells a course of their own, and limits."""
        exercises()
        for name in [name for name in sys.modules if name.split(".")[0] in ("helpers", "workshop")]:
            del sys.modules[name]
        for name in ("workshop", "workshop.checks", "workshop.checks.learner"):
            import_module(name).check = self.check
        limit("RLIMIT_FSIZE", LARGEST)
        limit("RLIMIT_AS", psutil.Process().memory_info().vms + 2 * self.job["memory"])

    def run(self) -> None:
        """Run all cells, whatever each of them does; then observe what was not handed in."""
        self.prepare()
        for cell, source in enumerate(self.job["cells"]):
            file = f"<cell {cell}>"  # where tracebacks find the learner's lines
            linecache.cache[file] = (len(source), None, source.splitlines(True), file)
            for i, statement in enumerate(self.statements(source, cell)):
                self.tell(at=[cell, i])
                if [cell, i] not in self.job["skipped"]:
                    self.run_statement(statement, file)
            found = {name: self.names.get(name) for name in self.job["exercises"]}
            self.defined |= {name: it for name, it in found.items() if self.is_answer(it)}
        for name in self.defined.keys() - self.answered:
            self.report(name, self.defined[name])
        self.tell(done=True)

    def statements(self, source: str, cell: int) -> list[ast.stmt]:
        """The statements of a cell, without IPython's magics and shell lines."""
        try:
            with contextlib.suppress(SyntaxError):
                return ast.parse(source).body
            return ast.parse(MAGIC.sub(r"\1pass", TIMED.sub(r"\1", source))).body
        except Exception as error:
            self.tell(at=[cell, 0], failed=format_exception_only(error)[-1])
            return []

    def run_statement(self, node: ast.stmt, file: str) -> None:
        """Run a statement; those after one that raised run all the same: they may not need it."""
        limit("RLIMIT_CPU", int(time.process_time() + self.job["step"]))
        try:
            exec(self.compile(ast.Module([node], []), file, "exec"), self.names)
        except BaseException as error:  # SystemExit is the learner's too
            self.tell(failed=format_exception_only(error)[-1])

    def is_answer(self, value: Any) -> bool:
        """Whether a function is the learner's: not the course's, not from before the tasks."""
        home = str(getattr(value, "__module__", ""))
        if not callable(value) or home.startswith(("helpers", "workshop")):
            return False
        parts = (value, *(vars(value).values() if isinstance(value, type) else ()))
        codes = (part.__code__ for part in parts if hasattr(part, "__code__"))
        made = re.fullmatch(r"<cell (\d+)>", next((code.co_filename for code in codes), ""))
        return not made or int(made[1]) >= self.job["begin"]

    def check(self, function: Any = None, *_: Any, **__: Any) -> Any:
        """What cells get as `check`: hand in an answer, go on with it or with the reference."""
        known = exercise_of(function, sys._getframe(1))
        if known is None:
            return function
        function = as_written(function)
        right = self.report(known.name, function) if self.is_answer(function) else ""
        if right == "torch" and "numpy" in known.backends:  # cells go on with arrays
            return on_tensors(function)
        return function if right else known.reference

    def report(self, name: str, function: Callable) -> str:
        """Observe an answer and say what was seen; the backend on which it is right, or ""."""
        known, stub, runs, right = exercises()[name], is_stub(function), [], ""
        known = replace(known, seconds=known.seconds * self.job["stretch"])
        for backend in [] if stub else backends_for(function, known):
            seen = observe_apart(Watched(function, known), known, backend)
            runs.append((backend, [as_line(one).decode() for one in seen]))
            with contextlib.suppress(Exception):  # no verdict: only how the cells go on
                pairs = zip(seen, expected_of(name), strict=True)
                right = backend if all(agree(*pair, known) for pair in pairs) else ""
            if right or isinstance(seen[-1].value, TimedOut):
                break
        self.tell(answer=name, runs=runs, stub=stub)
        self.answered.add(name)
        return right


class Watched:
    """An answer; its `remarks` say whether it called the course's own, however it came by it."""

    def __init__(self, function: Callable, exercise: Exercise):
        self.function, self.name = function, exercise.name
        self.__code__ = getattr(function, "__code__", None)  # where tracebacks find its lines
        self.profile = cProfile.Profile(builtins=False)  # sees each Python function that begins

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self.profile:
            return self.function(*args, **kwargs)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was noticed while it was called."""
        codes = [e.code for e in self.profile.getstats() if not isinstance(e.code, str)]
        homes = (f"{COURSE}/helpers", f"{COURSE}/workshop", f"<{self.name}>")
        own = any(c.co_qualname == self.name and c.co_filename.startswith(homes) for c in codes)
        return (f"It calls the course's own {self.name}.",) if own else ()


def limit(kind: str, most: int) -> None:
    """Let the system refuse or end what takes more, where it knows limits."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        hard = resource.getrlimit(getattr(resource, kind))[1]
        resource.setrlimit(getattr(resource, kind), (most, hard))


def main() -> None:
    """Do a job; never returns. What cells read and write is nowhere."""
    job, sink, nothing = json.load(sys.stdin), os.dup(1), os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    try:
        Seat(job, sink).run()
    finally:
        os._exit(0)  # threads and exit handlers of the learner's are not waited for


if __name__ == "__main__":
    main()
