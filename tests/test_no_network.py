"""Nothing is loaded from the network when a notebook or the README is opened.

The pages of `make site` are held to the same in `test_site.py` and in the browser.
"""

import json
import re
from pathlib import Path

import mistune
import nbformat
import pytest
from lessons import EVERY

ROOT = Path(__file__).resolve().parents[1]
# What a tag loads as soon as it is shown, and what a program or a style imports or asks for.
LOADS = re.compile(
    r"""(?:\s(?:src|srcset|poster|data|background)=|<(?:link|image|use)\b[^>]*\shref="""
    r"""|(?:from|import|import\(|url\(|fetch\(|@import)\s*)["']?(?:https?:)?//[^"')]+""",
    re.IGNORECASE,
)


def loaded(markdown: str) -> list[str]:
    """What a piece of Markdown or HTML loads, shown as JupyterLab and GitHub show it."""
    return LOADS.findall(mistune.html(markdown))


@pytest.mark.parametrize("path", [*EVERY, ROOT / "README.md"], ids=lambda path: path.stem)
def test_nothing_is_loaded_from_the_network(path):
    if path.suffix == ".md":
        assert loaded(path.read_text(encoding="utf-8")) == []
        return
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        shown = [output.get("data", {}) for output in cell.get("outputs", [])]
        assert not [data for data in shown if "application/javascript" in data], cell.id
        texts = [data.get(f"text/{kind}", "") for data in shown for kind in ("html", "markdown")]
        texts += [data.get("image/svg+xml", "") for data in shown]
        texts += [cell.source] if cell.cell_type == "markdown" else []
        assert [found for text in texts for found in loaded(text)] == [], cell.id
    assert LOADS.findall(json.dumps(notebook.metadata).replace('\\"', '"')) == []


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
