"""Measure how the notebooks read, in JupyterLab and headless Chromium: a table in Markdown.

    python tests/measure_lessons.py [NAME ...]    those whose names begin so; else 00 to 07

minutes     words at 130 a minute and half a minute for each code cell, without exercises and what
            is folded; `head` is when the first cell has computed a whole attention head
words       of its Markdown, counted as above
tables      that cells print, those of folded answers left out
drawings    made from arrays by `workshop.drawings`
screens     in the longest run without a picture (a drawing, plot or widget; no question): the page
            1,400 px wide, a screen 900 px high
watch out   its items
first       exercises that stand in *In code*, before their folded answer
"""

import ast
import re
import sys
import tempfile
from pathlib import Path

import nbformat
from browser.harness import Lab, Server, launch
from lessons import (
    PATHS,
    by_room,
    code_cells,
    exercise_cells,
    lesson_of,
    minutes_of,
    tree,
    words_of,
)
from nbformat.sign import NotebookNotary
from playwright.sync_api import sync_playwright
from test_anatomy import PICTURES, calls

SCREEN, WIDE = 900, 1400  # px
RUN = """() => {
  const lesson = document.querySelector(".jp-Notebook");
  const begin = lesson.querySelector(".jp-Cell").getBoundingClientRect().top;
  const shown = [...lesson.querySelectorAll(".jp-OutputArea-output img, .step")]
    .filter((e) => !e.closest("details") && !e.querySelector("fieldset") && e.offsetHeight > 40)
    .map((e) => e.getBoundingClientRect()).sort((a, b) => a.top - b.top);
  const all = [...lesson.querySelectorAll(".jp-Cell")].at(-1).getBoundingClientRect().bottom;
  let [longest, from, end] = [0, 0, begin];
  for (const { top, bottom } of [...shown, { top: all, bottom: all }]) {
    if (top - end > longest) [longest, from] = [top - end, end - begin];
    end = Math.max(end, bottom);
  }
  return [longest, from, all - begin];
}"""


def told(path) -> dict:
    """What a notebook's cells tell."""
    read, rooms = lesson_of(path), by_room(path)
    outputs = [(calls(c), o.get("data", {})) for c in code_cells(path) for o in c["outputs"]]
    warned = [cell for cell in rooms["Watch out"] if cell["cell_type"] == "markdown"]
    heads = [i for i, cell in enumerate(read, start=1) if is_code(cell) and "context" in made(cell)]
    return {
        "minutes": round(minutes_of(read), 1),
        "head": round(minutes_of(read[: heads[0]]), 1) if heads else "",
        "words": words_of(read),
        "tables": sum("show" in c and "folded" not in c and "text/html" in o for c, o in outputs),
        "drawings": sum(bool(c & PICTURES) and "image/png" in o for c, o in outputs),
        "watch out": sum(len(re.findall(r"^### ", c["source"], re.M)) for c in warned),
        "first": sum(task in rooms["In code"] for task, *_ in exercise_cells(path)),
    }


def is_code(cell) -> bool:
    """Whether it is run."""
    return cell["cell_type"] == "code"


def made(cell) -> set[str]:
    """The names that a code cell assigns at its top."""
    assigned = [node for node in tree(cell).body if isinstance(node, ast.Assign)]
    return {n.id for node in assigned for n in ast.walk(node) if isinstance(n, ast.Name)}


def main(names) -> None:
    """Print a row for each notebook."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        try:
            lab = Lab(launch(playwright), server)
            lab.page.set_viewport_size({"width": WIDE, "height": SCREEN})
            for i, path in enumerate(p for p in PATHS if p.name.startswith(tuple(names))):
                found = told(path) | screens(lab, path)
                if not i:
                    print("| |", " | ".join(found), "|\n|" + "---|" * (len(found) + 1))
                print(f"| {path.stem[:2]} |", " | ".join(map(str, found.values())), "|", flush=True)
        finally:
            server.stop()


def screens(lab, path) -> dict:
    """Screens of the longest run without a picture, where it begins, and of the whole notebook."""
    book = nbformat.read(path, as_version=4)
    NotebookNotary().sign(book)
    longest, start, whole = (y / SCREEN for y in lab.open(book).page.evaluate(RUN))
    return {"screens": f"{longest:.1f}", "from": f"{start:.1f}", "of": f"{whole:.1f}"}


if __name__ == "__main__":
    main(sys.argv[1:] or [f"0{i}" for i in range(8)])
