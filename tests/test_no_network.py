"""Nothing is loaded from the network when a notebook or the README is opened.

The pages of `make site` are held to the same in `test_site.py` and in the browser.
"""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import mistune
import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = [*sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")), ROOT / "README.md"]
LOADING = ("src", "srcset", "poster", "data", "background")
# In a widget's program or style: what it would import, load or ask for.
ASKS = re.compile(
    r"""(?:from|import|import\(|url\(|fetch\(|@import)\s*["']?(?:https?:)?//[^"')]+"""
)


class Loads(HTMLParser):
    """The addresses elsewhere that a piece of HTML loads as soon as it is shown."""

    def __init__(self, markup: str):
        super().__init__()
        self.found = ASKS.findall(markup)
        self.feed(markup)

    def handle_starttag(self, tag, attributes):
        loading = LOADING + (("href",) if tag in ("link", "image", "use") else ())
        self.found += [v for name, v in attributes if name in loading and "//" in (v or "")[:8]]


def loaded(markdown: str) -> list[str]:
    """What a piece of Markdown loads, shown as JupyterLab and GitHub show it."""
    return Loads(mistune.html(markdown)).found


def loaded_by_outputs(cell) -> list[str]:
    """What the saved outputs of a cell load."""
    shown = [output.get("data", {}) for output in cell.get("outputs", [])]
    texts = [text for data in shown for kind in ("text/html", "image/svg+xml", "text/markdown")
             if (text := data.get(kind))]  # fmt: skip
    scripts = [data for data in shown if "application/javascript" in data]
    return [*scripts, *(found for text in texts for found in Loads(mistune.html(text)).found)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_is_loaded_from_the_network(path):
    if path.suffix == ".md":
        assert loaded(path.read_text(encoding="utf-8")) == []
        return
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        found = loaded(cell.source) if cell.cell_type == "markdown" else loaded_by_outputs(cell)
        assert found == [], cell.id
    assert ASKS.findall(json.dumps(notebook.metadata).replace('\\"', '"')) == []


@pytest.mark.parametrize(
    "text",
    [
        "[![Open](https://a.example/badge.svg)](https://b.example)",
        '<img src="//a.example/x.png">',
        '<link rel="stylesheet" href="https://a.example/x.css">',
        '<style>@import "https://a.example/x.css";</style>',
        '<p style="background: url(https://a.example/x.png)">x</p>',
        '<script>import x from "https://a.example/x.js"</script>',
    ],
)
def test_it_would_be_found(text):
    assert len(loaded(text)) == 1
