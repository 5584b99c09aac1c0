"""*Your turn* in each notebook, in a kernel: with the hints' lines, the solutions, answers for
tensors, and with every answer wrong. The notebook must go on to its end each time.

Before the room run the imports and those cells that the room, its answers and what follows it need:
no answer changes a cell before it, and `--nbval` runs them all.
"""

import inspect
import re

import nbformat
import pytest
from answers import for_tensors, hinted
from lessons import FOLDER, PATHS, code_cells, needed, touched
from nbclient import NotebookClient

from workshop.exercises import ASKED, exercises, find

pytestmark = pytest.mark.slow
CHECK = re.compile(r"^(\w+) = check\(\1\)$", re.MULTILINE)
OF_MINE = ("one_hot", "embed", "add_positions", "encoder_layer")  # what 12 runs of other notebooks
FORGET = """
for name in [name for name in globals() if name[0] != "_" and name not in ("In", "Out", "exit")]:
    del globals()[name]
"""
each_notebook = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def halves(path):
    """The code cells before the room *Your turn*, and the others."""
    code = code_cells(path)
    (begin,) = [i for i, c in enumerate(code) if c["source"].startswith("from workshop.checks ")]
    return code[:begin], code[begin:]


def stub_of(cell):
    """The exercise that a cell leaves open, "" for any other cell."""
    found = re.search(r"^def (\w+)\(", cell["source"], re.MULTILINE)
    is_open = cell["source"].rstrip().endswith("\n    ...")
    return found[1] if found and is_open and found[1] in exercises() else ""


def filled(cell, answer):
    """A stub with an answer; what stands above it, an import, stays."""
    start = re.search(rf"^def {stub_of(cell)}\(", cell["source"], re.MULTILINE).start()
    return cell["source"][:start] + answer.strip("\n")


def wrong(name):
    return f"def {name}(*args, **kwargs):\n    raise RuntimeError('not yet')"


def written(names):
    """All that is written into a room, as cells."""
    made = [make(name) for name in names for make in (hinted, for_tensors)]
    references = [inspect.getsource(find(name).reference) for name in names]
    return [{"source": source} for source in (*made, *references)]


class Room:
    """A kernel in which cells run; it forgets the names of a notebook before the next begins."""

    def __init__(self):
        self.book = nbformat.v4.new_notebook()
        resources = {"metadata": {"path": FOLDER}}
        self.client = NotebookClient(self.book, timeout=120, resources=resources)

    def execute(self, source):
        """Run a cell, and return what it shows as text; its exception is raised here."""
        cell = nbformat.v4.new_code_cell(source)
        self.book.cells.append(cell)
        self.client.execute_cell(cell, len(self.book.cells) - 1)
        return "\n".join(o["data"]["text/plain"] for o in cell.outputs if "data" in o)

    def shown_solution(self, name):
        """What `solution` shows in this notebook, and nothing else."""
        return self.execute(f"solution({name!r})")

    def begin(self, cells, kept):
        """Forget the notebook before, and run cells of another; `kept` is where answers go."""
        self.execute(FORGET)
        self.execute(f"import os\nos.environ['MY_TRANSFORMER'] = {str(kept)!r}")
        for cell in cells:
            self.execute(cell["source"])

    def run(self, cells, answer, status="right"):
        """Run the room and what follows with an answer in each stub.

        After its check a name must stand for the learner's function if it is right, else for the
        reference.
        """
        for cell in cells:
            source = filled(cell, answer(stub_of(cell))) if stub_of(cell) else cell["source"]
            for name in CHECK.findall(source):
                own = f"{name}.__module__ == '__main__'"
                source += f"\nassert ({own}) is {status == 'right'}, {name!r}"
            said = self.execute(source)
            for name in CHECK.findall(source):
                assert said.startswith(f"{name}: {status}"), said


@pytest.fixture(scope="module")
def room():
    """One kernel for all: PyTorch and the pictures load once."""
    made = Room()
    with made.client.setup_kernel():
        yield made


@each_notebook
def test_it_goes_on_with_whatever_is_answered(path, room, tmp_path):
    before, after = halves(path)
    names = ASKED[path.stem[:2]]
    further = [c for c in after[1:] if not stub_of(c) and not CHECK.search(c["source"])]
    changed = touched(further, {*names, "mine"})
    again = [cell for cell in after if cell not in further or cell in changed]
    on_mine = path.stem.startswith("12")  # it ends with a transformer of all that was kept
    cells = [before[0], *needed(before[1:], [*written(names), *after])]
    room.begin(cells, kept=tmp_path / "mine.py" if on_mine else "off")
    room.run(after, hinted)
    room.run(again, room.shown_solution)
    for name in OF_MINE if on_mine else ():
        said = room.execute(f"{for_tensors(name)}\n{name} = check({name})")
        assert said.startswith(f"{name}: right") and "Kept in" in said, said
    if further:
        room.run(again, for_tensors)
    room.run(again, wrong, "not yet")
