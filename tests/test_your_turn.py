"""Each notebook goes on to its end, in a kernel: with solutions, answers for tensors, wrong ones.

Only those cells run that use an answer, or what one made, and those that they need; the others run
where the notebook is compared with its outputs. None trains again that names no answer, and a
training ends after forty steps: whether a cell runs does not depend on what was learned.
"""

import ast
import builtins
import re

import nbformat
import pytest
from answers import for_tensors
from lessons import CHECK, FOLDER, PATHS, binds, code_cells, is_stub, made_by, needed, needs, tree
from nbclient import NotebookClient

from workshop.checks.source import names_used
from workshop.exercises import exercises, find

pytestmark = pytest.mark.slow
OF_MINE = ("one_hot", "embed", "add_positions", "encoder_layer")  # what 12 runs of other notebooks
FORGET = """for name in [n for n in globals() if n[0] != "_" and n not in ("In", "Out", "exit")]:
    del globals()[name]"""

SHORT = """import helpers.animals, workshop.training_charts as charts
helpers.animals.learn.__defaults__ = (40,)
charts.live_loss = lambda steps, losses: steps[:40]"""


def checked(cell):
    """The name that a cell checks, "" for any other cell."""
    found = re.fullmatch(CHECK, cell["source"])
    return found[1] if found else ""


def stub_of(cell):
    """The definition that a cell leaves open, if it does."""
    last = tree(cell).body[-1]
    return last if getattr(last, "name", "") in exercises() and is_stub(last) else None


IMPORT = ast.Import | ast.ImportFrom


def parts_of(cells, kinds=ast.stmt):
    """The statements of cells, or those of some kinds."""
    return [part for cell in cells for part in tree(cell).body if isinstance(part, kinds)]


def training(cells):
    """Finds what trains: a loop's `backward`, calls of `fit`, and of functions of the notebook."""
    named = [part for part in parts_of(cells) if ".backward()" in ast.unparse(part)]
    names = {"fit"} | {part.name for part in named if hasattr(part, "name")}
    return re.compile(rf"\.backward\(\)|\b({'|'.join(names)})\(")


def again(cells, names):
    """The cells in which an answer can make a difference, and those that set its name anew."""
    train = training(cells)
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


def changed_by(cell, train):
    """The names that a cell trains with, and those whose methods it merely calls."""
    texts = filter(train.search, map(ast.unparse, parts_of([cell])))
    called = [ast.unparse(part) for part in ast.walk(tree(cell)) if isinstance(part, ast.Expr)]
    return {*re.findall(r"^(\w+)\.[\w.]+\(", "\n".join(called), re.MULTILINE)}.union(
        *map(names_used, texts)
    )


def leading_to(wanted, cells, fixed):
    """Those of the cells without which the wanted ones among them do not run as they do now;
    names that are `fixed` mean the same from the first cell on."""
    train, found, names = training(cells), [], set()
    for cell in reversed(cells):
        parts = [part for part in parts_of([cell]) if not isinstance(part, IMPORT)]
        own = binds("\n".join(map(ast.unparse, parts)))
        if cell in wanted or names & (own | changed_by(cell, train) - fixed):
            found.append(cell)
            names = names - own | needs(cell)
    return found[::-1]


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
        made.execute(SHORT)
        yield made


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_it_goes_on_with_whatever_is_answered(path, room, tmp_path):
    code, on_mine = code_cells(path), path.stem.startswith("12")  # it ends with all that was kept
    before, after = code[:1], code[1:]  # the setup
    names = [checked(cell) for cell in after if checked(cell)]
    changing = again(after, {*names})
    imports = "\n".join(map(ast.unparse, parts_of(code, IMPORT)))
    named = {part.name for part in parts_of(code) if hasattr(part, "name")}
    first = leading_to(changing, after, named | binds(imports) | {*dir(builtins)})
    room.begin(before, first, names, tmp_path if on_mine else "off")
    room.execute(imports)
    room.run(first, lambda name: room.execute(f"solution({name!r})"))
    for name in OF_MINE if on_mine else ():
        said = room.execute(f"{for_tensors(name)}\n{name} = check({name})")
        assert said.startswith(f"{name}: right") and "Kept in" in said, said
    for answer, status in ((for_tensors, "right"), (wrong, "not yet")):
        room.run(changing, answer, status)
