"""Everything the source documents contain is covered, and their certain mistakes are shown false.

tests/data/coverage.csv and errata.csv say in which cells.
"""

import csv
import re
from pathlib import Path

import pytest
from lessons import FOLDER, cells

DATA = Path(__file__).parent / "data"
ITEMS = {"000": 35, "001": 42, "002": 49, "003": 8, "004": 31}  # per source, and the sequel 000.S


def rows(name):
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def cell(notebook, cell_id):
    (found,) = [c for c in cells(FOLDER / f"{notebook}.ipynb") if c["id"] == cell_id]
    return found


def test_every_item_of_the_sources_is_covered():
    wanted = {f"{source}.{i}" for source, last in ITEMS.items() for i in range(1, last + 1)}
    assert {row["item"] for row in rows("coverage.csv")} == wanted | {"000.S"}


@pytest.mark.parametrize("row", rows("coverage.csv"), ids=lambda r: f"{r['item']}-{r['notebook']}")
def test_the_covering_cells_exist(row):
    for cell_id in row["cells"].split():
        assert cell(row["notebook"], cell_id)["source"]


@pytest.mark.parametrize("row", rows("errata.csv"), ids=lambda r: f"{r['erratum']}-{r['notebook']}")
def test_the_mistake_is_shown_false_by_a_computation(row):
    """One of its cells is code that asserts something."""
    found = [cell(row["notebook"], cell_id) for cell_id in row["cells"].split()]
    assert any(c["cell_type"] == "code" and re.search(r"assert", c["source"]) for c in found), row[
        "mistake"
    ]
