"""The notebook that a page runs: its names, and its cells, one after the other."""

import ast
import linecache
import re
import signal
import symtable
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout
from types import ModuleType, SimpleNamespace, TracebackType

from tab.no_torch import NeedsTorch
from tab.outputs import Stream, display, post

MAGIC = re.compile(r"^(\s*)[%!].*$", re.MULTILINE)


class Shell:
    """Runs cells as IPython does: their names stay, and their last value is shown."""

    kernel = None  # nobody redraws a picture while a cell runs

    def __init__(self) -> None:
        main = sys.modules["__main__"] = ModuleType("__main__")
        self.names = main.__dict__
        self.names |= {"get_ipython": lambda: self, "display": display}
        self.history_manager = SimpleNamespace(input_hist_raw=[""])
        self.lacking: dict[str, str] = {}  # names of cells that needed PyTorch, and its name

    def run(self, source: str, cell: str) -> str:
        """Run a cell; says what became of it."""
        file = f"<{cell}, run {len(self.history_manager.input_hist_raw)}>"
        self.history_manager.input_hist_raw.append(source)
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
        source, stream = MAGIC.sub(r"\1pass", source), Stream()
        with redirect_stdout(stream), redirect_stderr(stream):
            try:
                self._run(source, file)
            except BaseException as error:  # KeyboardInterrupt and SystemExit end the cell alone
                return self._failed(error, source, file)
        return "done"

    def _run(self, source: str, file: str) -> None:
        tree = ast.parse(source, file)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            exec(compile(tree, file, "exec"), self.names)
            value = last and eval(compile(ast.Expression(last.value), file, "eval"), self.names)
            if value is not None and not source.rstrip().endswith(";"):
                self.names["_"] = value
                display(value)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Stop comes too late: it must end nothing

    def _failed(self, error: BaseException, source: str, file: str) -> str:
        own = error.__traceback__
        while own and own.tb_frame.f_code.co_filename != file:
            own = own.tb_next
        if name := self._needs(error):
            for lost in unfinished(ast.parse(source).body, own):
                self.names.pop(lost, None)  # an older value would be taken for the new one
                self.lacking[lost] = name
            post("torch", name=name)
            return "needs PyTorch"
        lines = traceback.format_exception(type(error), error, own, chain=False)
        post("stream", text="".join(lines).rstrip(), name="error")  # from the learner's own line on
        return "an error"

    def _needs(self, error: BaseException | None) -> str:
        """The name of PyTorch that a cell needs, or that an earlier cell needed; else ""."""
        while error is not None:
            if isinstance(error, NeedsTorch):
                return error.missing
            if isinstance(error, NameError) and error.name in self.lacking:
                return self.lacking[error.name]
            error = error.__cause__ or error.__context__
        return ""


def unfinished(cell: list[ast.stmt], own: TracebackType | None) -> set[str]:
    """The names that a cell would have made, and those that it was just filling in a loop."""
    line = own.tb_lineno if own else 0
    done = [node for node in cell if node.end_lineno < line]
    stopped = [node for node in cell[len(done) :][:1] if hasattr(node, "body")]
    used = {n.id for node in stopped for n in ast.walk(node) if isinstance(n, ast.Name)}
    return bound(cell[len(done) :]) | bound(done) & used


def bound(statements: list[ast.stmt]) -> set[str]:
    """The names that statements make at the top of a cell."""
    told = symtable.symtable(ast.unparse(ast.Module(statements, [])), "", "exec")
    return {name.get_name() for name in told.get_symbols() if name.is_local()}


shell = Shell()
