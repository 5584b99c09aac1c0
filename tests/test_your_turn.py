"""Each notebook goes on to its end, in a kernel: with solutions, answers for tensors, wrong ones.

Before the tasks run only those cells that are needed: no answer changes a cell before it. After the
solutions, only those that use an answer, or what one made, run again; and none trains again that
names no answer.
"""

import ast
import re

import nbformat
import pytest
from answers import for_tensors
from lessons import CHECK, FOLDER, PATHS, code_cells, is_stub, made_by, needed, needs, tree
from nbclient import NotebookClient

from workshop.checks.learner import TOOLS
from workshop.exercises import exercises, find

pytestmark = pytest.mark.slow
OF_MINE = ("one_hot", "embed", "add_positions", "encoder_layer")  # what 12 runs of other notebooks
FORGET = """for name in [n for n in globals() if n[0] != "_" and n not in ("In", "Out", "exit")]:
    del globals()[name]"""


def checked(cell):
    """The name that a cell checks, "" for any other cell."""
    found = re.fullmatch(CHECK, cell["source"])
    return found[1] if found else ""


def stub_of(cell):
    """The definition that a cell leaves open, if it does."""
    last = tree(cell).body[-1]
    return last if getattr(last, "name", "") in exercises() and is_stub(last) else None


def trainers(cells):
    """The names of the functions that train: the course's own, and those of the notebook."""
    parts = (part for cell in cells for part in tree(cell).body if hasattr(part, "name"))
    return {"fit"} | {part.name for part in parts if ".backward()" in ast.unparse(part)}


def again(cells, names):
    """The cells in which an answer can make a difference, and those that set its name anew."""
    train = re.compile(rf"\b({'|'.join(trainers(cells))})\(")
    found, given, made = [], set(), {"mine"}
    for cell in cells:
        used, own = needs(cell), made_by(cell)
        trains = train.search(cell["source"]) and not used & given
        if checked(cell):
            given.add(checked(cell))
        elif used & (given | made) and not trains:
            made |= {name for name in own if not re.search(rf"import .*\b{name}\b", cell["source"])}
        elif not stub_of(cell):
            given, made = given - own, made - own
            if not own & names:
                continue
        found.append(cell)
    return found


def filled(cell, answer):
    """A stub with an answer, below the imports above it; any other cell as it is."""
    if (stub := stub_of(cell)) is None:
        return cell["source"]
    return "\n".join([*cell["source"].splitlines()[: stub.lineno - 1], answer(stub.name)])


def wrong(name):
    """An answer that does nothing but raise; of a class its objects do."""
    init = "def __init__(self, *args):\n        " * find(name).is_class
    return f"{find(name).header}:\n    {init}raise RuntimeError('not yet')"


class Room:
    """A kernel in which cells run; it forgets the names of a notebook before the next begins."""

    def __init__(self):
        self.book, place = nbformat.v4.new_notebook(), {"metadata": {"path": FOLDER}}
        self.client = NotebookClient(self.book, timeout=120, resources=place)

    def execute(self, source):
        """Run a cell, and return what it shows as text; its exception is raised here."""
        cell = nbformat.v4.new_code_cell(source)
        self.book.cells.append(cell)
        self.client.execute_cell(cell, len(self.book.cells) - 1)
        return "\n".join(o["data"]["text/plain"] for o in cell.outputs if "data" in o)

    def begin(self, before, after, names, kept):
        """Forget the notebook before, and run what another needs; `kept` is where answers go."""
        texts = [text for name in names for text in (find(name).solution, for_tensors(name))]
        parts = [after, *([{"source": text}] for text in texts)]
        wanted = [before[0], *(cell for part in parts for cell in needed(before, part))]
        starts = [FORGET, f"import os\nos.environ['MY_TRANSFORMER'] = {str(kept)!r}"]
        end = f"_lesson = {{n: x for n, x in globals().items() if n in {names}}}"
        for source in [*starts, *(cell["source"] for cell in before if cell in wanted), end]:
            self.execute(source)

    def run(self, cells, answer, status="right"):
        """Run cells with an answer in each stub: the right ones stay, else comes the course's."""
        self.execute("globals().update(_lesson)")  # what a lesson has defined itself
        for cell in cells:
            source, name = filled(cell, answer), checked(cell)
            if name:
                source += f"\nassert ({name}.__module__ == '__main__') is {status == 'right'}"
            said = self.execute(source)
            assert said.startswith(f"{name}: {status}" if name else ""), said


@pytest.fixture(scope="module")
def room():
    """One kernel for all: PyTorch and the pictures load once."""
    made = Room()
    with made.client.setup_kernel():
        yield made


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_it_goes_on_with_whatever_is_answered(path, room, tmp_path):
    code, on_mine = code_cells(path), path.stem.startswith("12")  # it ends with all that was kept
    begin = next(i for i, cell in enumerate(code) if TOOLS.search(cell["source"]))
    before, after = code[:begin], code[begin:]
    names = [checked(cell) for cell in after if checked(cell)]
    room.begin(before, after, names, tmp_path if on_mine else "off")
    room.run(after, lambda name: room.execute(f"solution({name!r})"))
    for name in OF_MINE if on_mine else ():
        said = room.execute(f"{for_tensors(name)}\n{name} = check({name})")
        assert said.startswith(f"{name}: right") and "Kept in" in said, said
    for answer, status in ((for_tensors, "right"), (wrong, "not yet")):
        room.run(again(after, {*names}), answer, status)
