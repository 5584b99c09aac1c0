"""Cells of a notebook, run as a kernel runs them: one scope, and sources that can be read."""

import itertools
import linecache
import textwrap

from workshop.checks import page

NUMBERS = itertools.count(1)


class Notebook:
    """Runs cells; `shown` gathers what they display, `last` is the newest of it as text."""

    def __init__(self, monkeypatch):
        self.scope, self.shown = {"__name__": "__main__"}, []
        monkeypatch.setattr(page, "display", self.shown.append)
        self.run("import numpy as np\nfrom workshop.checks import check, hint, progress, solution")

    def run(self, source):
        """Run a cell; its source is found where `inspect` looks for it."""
        source, name = textwrap.dedent(source), f"<cell {next(NUMBERS)}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        exec(compile(source, name, "exec", dont_inherit=True), self.scope)
        return self

    @property
    def last(self):
        return self.shown[-1].text

    @property
    def html(self):
        return self.shown[-1].html

    def __getitem__(self, name):
        return self.scope[name]


SOFTMAX = """
def softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
"""
CHECK = "{0} = check({0})"
