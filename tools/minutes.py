"""Count the minutes of the stories, their tasks and depth, and write them where they are printed.

python tools/minutes.py [05 ...]  those whose file names begin so, else all; prints them, too

They stand in a notebook's first cell, below each closed heading, and in README's table.
"""

import re
import sys
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[1]
VIEW = "application/vnd.jupyter.widget-view+json"
FOLDED = re.compile(r"^<details>.*?^</details>", re.MULTILINE | re.DOTALL)
SIGNS = re.compile(r"\$\$.*?\$\$|\$[^$]*\$|\]\([^)]*\)|[#*`_|\[\]]", re.DOTALL)
ABOUT = re.compile(r"\*\*Your task: \w+\*\* \([^)]*about (\d+) minutes\)")
NEW = {"00": " @ ", "05": "e^"}  # 5 minutes more: what a story meets first, as it is written


def is_drawn(cell) -> bool:
    """Whether the source of a code cell is hidden."""
    return "drawn" in cell["metadata"].get("tags", [])


def layers(cells) -> tuple[list, list[list]]:
    """The cells of the story, and of each closed section; none where it is no story."""
    begins = [i for i, cell in enumerate(cells) if cell["source"].startswith("## Go deeper")]
    sections, closed = [], False
    for cell in cells[begins[0] :] if begins else ():
        if tagged := "deeper" in cell["metadata"].get("tags", []):
            sections.append([])
        closed = tagged or (closed and not cell["source"].startswith("## "))
        if closed:
            sections[-1].append(cell)
    return cells[: begins[0]] if begins else [], sections


def words(cells) -> int:
    """The words that are read: without formulas, link targets, signs, and what is folded."""
    text = "\n\n".join(cell["source"] for cell in cells if cell["cell_type"] == "markdown")
    read = SIGNS.sub(" ", FOLDED.sub("", text)).split()
    return sum(any(letter.isalnum() for letter in word) for word in read)


def visible(cells) -> list[str]:
    """The lines of code that are seen, without empty ones."""
    code = [c["source"] for c in cells if c["cell_type"] == "code" and not is_drawn(c)]
    return [line for source in code for line in source.splitlines() if line.strip()]


def shown(cells) -> tuple[int, int]:
    """How many pictures, and how many widgets, the cells show."""
    found = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    widgets = sum(VIEW in kinds for kinds in found)
    return sum("image/png" in kinds for kinds in found) - widgets, widgets


def tasks(cells) -> int:
    """The minutes of what is to be written."""
    return sum(int(m) for cell in cells for m in ABOUT.findall(cell["source"]))


def minutes(cells, new: str = "") -> int:
    """150 words, 8½ lines, 3 pictures or one widget a minute, and the tasks; 5 more for the new."""
    pictures, widgets = shown(cells)
    read = words(cells) / 150 + len(visible(cells)) * 7 / 60 + pictures / 3 + widgets
    meets = bool(new) and any(new in cell["source"] for cell in cells if not is_drawn(cell))
    return max(1, round(read + tasks(cells) + 5 * meets))


def measured(number: str, cells) -> dict:
    """The minutes of a story, of its task, up to a cell tagged `reached`, and of each section."""
    (story, sections), new = layers(cells), NEW.get(number, "")
    ends = [i for i, c in enumerate(story, 1) if "reached" in c["metadata"].get("tags", [])]
    found = {"story": minutes(story, new), "task": tasks(story)}
    found |= {"reached": minutes(story[: ends[0]], new)} if ends else {}
    return found | {"sections": [minutes(section) for section in sections]}


def printed(cells, found: dict) -> None:
    """Write the minutes into a story's first cell and into the line under each closed heading."""
    depth = found["sections"]
    places = {
        r"(\*\*The story\*\*: )\d+( minutes, )\d+": (found["story"], found["task"]),
        r"(\*\*Go deeper\*\*: )\d+( sections? below it, )\d+": (len(depth), sum(depth)),
        r"(at minute )\d+()": (found.get("reached"), ""),
    }
    for place, (one, other) in places.items():
        said = rf"\g<1>{one}\g<2>{other}"
        cells[0]["source"] = re.sub(place, said, cells[0]["source"], count=1)
    for (heading, *_), number in zip(layers(cells)[1], depth, strict=True):
        said = rf"\g<1>{number} minute{'s' * (number != 1)}:"
        place = r"\A(### [^\n]+\n\n)(?:\d+ minutes?:)?"
        heading["source"] = re.sub(place, said, heading["source"])


def listed(readme: str, number: str, found: dict) -> str:
    """README with the minutes of a notebook's story, its task and its depth in their columns."""
    told = f"{found['story']} | {found['task']} | {sum(found['sections'])}"
    place = rf"^(\| {number} \| .*) \|[^|]*\|[^|]*\|[^|]*(\| \[Colab\])"
    return re.sub(place, rf"\g<1> | {told} \g<2>", readme, flags=re.MULTILINE)


def write(path: Path, readme: Path) -> None:
    """Write and print the minutes of a notebook, if it is a story."""
    notebook, number = nbformat.read(path, as_version=4), path.stem[:2]
    if layers(notebook.cells)[0]:
        found = measured(number, notebook.cells)
        printed(notebook.cells, found)
        text = nbformat.writes(notebook, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
        path.write_text(text, encoding="utf-8", newline="\n")
        told = listed(readme.read_text("utf-8"), number, found)
        readme.write_text(told, encoding="utf-8", newline="\n")
        print(f"{path.stem}:", ", ".join(f"{name} {m}" for name, m in found.items()))


if __name__ == "__main__":
    for name in sys.argv[1:] or [""]:
        for path in sorted((ROOT / "notebooks").glob(f"{Path(name).stem}*.ipynb")):
            write(path, ROOT / "README.md")
