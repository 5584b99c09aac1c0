"""What `search.js` tells of all pages: places that are there, and nothing that is folded."""

import json
import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))


@pytest.fixture(scope="module")
def site(ci):
    """`tools/site.py`."""
    return ci("site")


@pytest.fixture(scope="module")
def known(site):
    """What search.js holds: [file, title, [heading, [[place, is code, text], …]] …] per page."""
    text = site.index()
    assert text.startswith("window.course = ") and text.endswith(";\n")
    return json.loads(text[len("window.course = ") : -2])


def lines(page) -> list[str]:
    """All lines that are known of a page."""
    return [line for _, cells in page[2] for *_, text in cells for line in text.split("\n")]


def test_search_knows_words_names_and_formulas(known):
    by_file = {file: lines(page) for page in known for file in page[:1]}
    assert "def masked_softmax(S, mask):" in by_file["06_masking.html"]
    assert any(line.endswith("divide by √d_k.") for line in by_file["04_scaling.html"])
    words = "We want a function that makes every number positive and keeps their order."
    assert words in by_file["05_softmax.html"]
    said = [line for found in by_file.values() for line in found]
    assert not [line for line in said if re.search(r"</|&\w+;|\$\$|\\frac|^##+ |^import ", line)]


def test_search_gives_no_answer_away(known):
    """What a notebook folds is not known."""
    said = {line for page in known for line in lines(page)}
    folded = [
        line.strip()
        for path in NOTEBOOKS
        for cell in nbformat.read(path, as_version=4).cells
        if cell.metadata.get("jupyter")
        for line in cell.source.splitlines()
        if "reason=" in line or "answer=" in line
    ]
    assert len(folded) > 50 and not said & set(folded)


def test_search_is_small(site):
    assert len(site.index().encode()) < 500_000  # the pages have 6 million


def test_letters_are_taken_apart_from_their_marks(site, tmp_path):
    """So that the search finds them with and without."""
    cell = {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# 98 · T\n\nLu\u00eds."}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "98_trial.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    assert "Lui\u0301s" in site.index(tmp_path)
