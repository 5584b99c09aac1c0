"""What the tests ask of a notebook: its cells, headings and definitions."""

import ast
import json
import re
import symtable
from functools import cache
from pathlib import Path

from workshop.checks.source import names_used

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
ROOM = re.compile(r"^## (.+)$", re.MULTILINE)
EVERY = sorted(FOLDER.glob("[0-9][0-9]_*.ipynb"))
PATHS = [path for path in EVERY if path.stem[:2] != "99"]  # the lessons, without the appendix
FOLDED = re.compile(r"^<details>.*?^```python\n(.*?)^```$.*?^</details>", re.M | re.S)
VIEW = "application/vnd.jupyter.widget-view+json"
CHECK = r"(\w+) = check\(\1\)"


@cache
def cells(path):
    """The notebook's cells as dicts, sources joined."""
    book = json.loads(path.read_text("utf-8"))
    return [cell | {"source": "".join(cell["source"])} for cell in book["cells"]]


def code_cells(path):
    return [cell for cell in cells(path) if cell["cell_type"] == "code"]


def markdown(path):
    return "\n\n".join(cell["source"] for cell in cells(path) if cell["cell_type"] == "markdown")


def headings(path, level):
    """The texts of all headings of one level."""
    return re.findall(rf"^{'#' * level} (.+)$", markdown(path), re.MULTILINE)


def calls(cell):
    """The names of the functions that a cell calls."""
    found = [node.func for node in ast.walk(tree(cell)) if isinstance(node, ast.Call)]
    return {node.id for node in found if isinstance(node, ast.Name)}


def by_room(path):
    """The cells of each room, by the first words of its heading."""
    rooms, name = {}, ""
    for cell in cells(path):
        if cell["cell_type"] == "markdown" and (heading := ROOM.search(cell["source"])):
            name = re.split(r"[:—]", heading[1])[0].strip()
        rooms.setdefault(name, []).append(cell)
    return rooms


def tree(cell):
    """The syntax tree of a code cell; IPython's magics are taken out."""
    lines = cell["source"].splitlines()
    plain = [re.sub(r"^(\s*)[%!].*", r"\1pass", line) for line in lines]
    return ast.parse("\n".join(plain))


def folded_code(cell):
    """The course's own code that a cell folds below an exercise, "" for any other cell."""
    found = FOLDED.search(cell["source"]) if cell["cell_type"] == "markdown" else None
    return found[1] if found else ""


def exercise_cells(path):
    """The cells of each exercise, wherever it stands: task, stub, check, what follows."""
    every = cells(path)
    at = [i for i, c in enumerate(every) if re.fullmatch(CHECK, c["source"])]
    return [every[i - 2 : i + 2] for i in at]


def is_stub(node):
    """Whether a function, or a class's last method, waits to be written: docstring and `...`."""
    node = node.body[-1] if isinstance(node, ast.ClassDef) else node
    body = node.body[1:] if ast.get_docstring(node) else node.body
    return [ast.unparse(line) for line in body] == ["..."]


def outputs(path):
    """All outputs, each with the id of its cell."""
    return [(cell["id"], output) for cell in code_cells(path) for output in cell["outputs"]]


def binds(source):
    """The names that a piece of code gives a meaning at its top."""
    table = symtable.symtable(source, "cell", "exec")
    return {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}


def needs(cell):
    """The names that a cell uses and does not bind itself before."""
    found, own = set(), set()
    for node in tree(cell).body:
        source = ast.unparse(node)
        before = own if isinstance(node, ast.Assign | ast.AugAssign) else own | binds(source)
        found |= set(names_used(source)) - before
        own |= binds(source)
    return found


def needed(earlier, later):
    """Those of the earlier cells without which the later ones do not run, in order."""
    wanted, found = set(), []
    for cell in reversed(later):
        wanted = wanted - made_by(cell) | needs(cell)
    for cell in reversed(earlier):
        if wanted & made_by(cell):
            found.insert(0, cell)
            wanted = wanted - made_by(cell) | needs(cell)
    return found


def made_by(cell):
    """The names that a cell binds."""
    return binds(ast.unparse(tree(cell)))
