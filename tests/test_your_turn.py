"""*Your turn* in each notebook: with every exercise solved, and with every one of them wrong.

A notebook runs top to bottom with the references filled in; then its room *Your turn* and what
comes after run again with wrong answers, as nothing before the room depends on it.
"""

import ast
import inspect
import re
import textwrap

import nbformat
import pytest
from lessons import FOLDER, PATHS
from nbclient import NotebookClient

from helpers.checks.exercises import exercises, find

CHECK = re.compile(r"^(\w+) = check\(\1\)$", re.MULTILINE)
BOOKS = {path: nbformat.read(path, as_version=4) for path in PATHS}
each_notebook = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def start_of(book):
    """The place of the heading *Your turn*."""
    rooms = [i for i, cell in enumerate(book.cells) if cell.source.startswith("## Your turn")]
    assert len(rooms) == 1
    return rooms[0]


def asked_in(book):
    """The exercises of a notebook's room, in order."""
    return [name for cell in book.cells for name in CHECK.findall(cell.source)]


def stub_of(cell):
    """The exercise that a cell leaves open, "" for any other cell."""
    found = re.search(r"^def (\w+)\(", cell.source, re.MULTILINE)
    is_open = cell.cell_type == "code" and cell.source.rstrip().endswith("\n    ...")
    return found[1] if found and is_open and found[1] in exercises() else ""


# ---------------------------------------------------------------- answers


def as_answer(function, name):
    """A function's source under another name, with imports of what it uses: one cell."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    [made] = tree.body
    assert isinstance(made, ast.FunctionDef) and function.__closure__ is None
    made.name, made.decorator_list, made.returns = name, [], None
    for argument in (*made.args.args, *made.args.kwonlyargs):
        argument.annotation = None
    known = inspect.getmodule(function).__dict__
    used = {n.id for n in ast.walk(made) if isinstance(n, ast.Name)} - {name}
    imports = ", ".join(sorted(used & known.keys()))
    start = f"from {function.__module__} import {imports}\n" if imports else ""
    return f"{start}\n\n{ast.unparse(made)}"


def right(name):
    return as_answer(find(name).reference, name)


def wrong(name):
    """A known mistake, or for some exercises a function that raises."""
    if len(name) % 3:
        for mistake in find(name).mistakes:
            try:
                return as_answer(mistake.function, name)
            except (AssertionError, SyntaxError):
                continue  # made by another function: it has no source of its own
    return f"def {name}(*args, **kwargs):\n    raise RuntimeError('not yet')"


class Room:
    """A kernel in which cells run; it forgets the names of a notebook before the next begins."""

    def __init__(self):
        self.book = nbformat.v4.new_notebook()
        resources = {"metadata": {"path": FOLDER}}
        self.client = NotebookClient(self.book, timeout=120, resources=resources)

    def run(self, cells, answer):
        """Run cells, stubs with an answer; an exception in a cell is raised here.

        After a check the name must hold the learner's function if it is right, else the reference.
        """
        for cell in (cell for cell in cells if cell.cell_type == "code"):
            name = stub_of(cell)
            source = cell.source
            if name:  # what stands above the stub, an import, stays
                head = source[: re.search(rf"^def {name}\(", source, re.MULTILINE).start()]
                source = f"{head}{answer(name)}"
            self.execute(source)
            for checked in CHECK.findall(source):
                mine = f"{checked}.__module__ == '__main__'"
                self.execute(f"assert ({mine}) is {answer is right}, {checked!r}")

    def execute(self, source):
        cell = nbformat.v4.new_code_cell(source)
        self.book.cells.append(cell)
        self.client.execute_cell(cell, len(self.book.cells) - 1)


# ---------------------------------------------------------------- tests


@each_notebook
def test_the_room_asks_for_two_to_four_exercises(path):
    book = BOOKS[path]
    names = asked_in(book)
    assert 2 <= len(names) <= 4
    assert {find(name).notebook for name in names} == {path.stem[:2]}
    room = book.cells[start_of(book) :]
    assert [stub for cell in room if (stub := stub_of(cell))] == names


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    """One kernel for all: PyTorch and the pictures load once."""
    kept = tmp_path_factory.mktemp("kept") / "mine.py"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MY_TRANSFORMER", str(kept))
        made = Room()
        with made.client.setup_kernel():
            yield made


@each_notebook
def test_solved_and_wrong(path, room):
    book = BOOKS[path]
    room.execute("%reset -f")
    room.run(book.cells, right)
    room.run(book.cells[start_of(book) :], wrong)
