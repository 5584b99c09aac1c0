"""Count the minutes of the stories, their tasks and depth, and write them where they are printed.

    python tools/minutes.py [05 ...]  those whose file names begin so, else all; prints the table

They stand in a notebook's first cell, below the heading of each section that is closed at first,
and in README's table of notebooks.
"""

import re
import sys
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[1]
VIEW = "application/vnd.jupyter.widget-view+json"
FOLDED = re.compile(r"^<details>.*?^</details>", re.MULTILINE | re.DOTALL)
SIGNS = re.compile(r"\$\$.*?\$\$|\$[^$]*\$|\]\([^)]*\)|[#*`_|\[\]]", re.DOTALL)
DEEPER = re.compile(r"^## Go deeper$", re.MULTILINE)
ABOUT = re.compile(r"\*\*Your task: \w+\*\* \([^)]*about (\d+) minutes\)")
NEW = {
    "00": " @ ",
    "05": "e^",
}  # what a story meets for the first time, as it is written: 5 minutes


def is_drawn(cell) -> bool:
    """Whether the source of a code cell is hidden."""
    return "drawn" in cell["metadata"].get("tags", [])


def layers(cells) -> tuple[list, list[list]]:
    """The cells of the story, and of each closed section; none where it is no story."""
    begin = next((i for i, cell in enumerate(cells) if DEEPER.match(cell["source"])), None)
    sections, closed = [], False
    for cell in cells[begin:] if begin is not None else ():
        tagged = "deeper" in cell["metadata"].get("tags", [])
        closed = tagged or (closed and not cell["source"].startswith("## "))
        if tagged:
            sections.append([])
        if closed:
            sections[-1].append(cell)
    return cells[: begin or 0], sections


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
    found = [set(o.get("data", {})) for cell in cells for o in cell.get("outputs", [])]
    widgets = sum(VIEW in kinds for kinds in found)
    return sum("image/png" in kinds for kinds in found) - widgets, widgets


def tasks(cells) -> int:
    """The minutes of what is to be written."""
    return sum(int(m) for cell in cells for m in ABOUT.findall(cell["source"]))


def minutes(cells, new: str = "") -> int:
    """150 words, 8½ lines, 3 pictures or one widget a minute, and the tasks; 5 more for the new."""
    pictures, widgets = shown(cells)
    read = words(cells) / 150 + len(visible(cells)) * 7 / 60 + pictures / 3 + widgets
    seen = [c["source"] for c in cells if not is_drawn(c)]
    return max(1, round(read + tasks(cells) + 5 * (bool(new) and any(new in s for s in seen))))


def measured(number: str, cells) -> dict:
    """The minutes of a story by name: story, task, reached (a cell of that tag) and sections."""
    story, sections = layers(cells)
    new, tags = NEW.get(number, ""), [c["metadata"].get("tags", []) for c in story]
    end = next((i for i, tagged in enumerate(tags, 1) if "reached" in tagged), 0)
    found = {"story": minutes(story, new), "task": tasks(story)}
    found["reached"] = minutes(story[:end], new) if end else 0
    return found | {"sections": [minutes(section) for section in sections]}


def printed(cells, found: dict) -> None:
    """Write the minutes into a story's first cell and into the line under each closed heading."""
    depth = found["sections"]
    numbers = {
        r"(\*\*The story\*\*: )\d+": found["story"],
        r"(\*\*The story\*\*: \d+ minutes, )\d+": found["task"],
        r"(\*\*Go deeper\*\*: )\d+": len(depth),
        r"(sections? below it, )\d+": sum(depth),
        r"(at minute )\d+": found["reached"],
    }
    for place, number in numbers.items():
        cells[0]["source"] = re.sub(place, rf"\g<1>{number}", cells[0]["source"], count=1)
    for (heading, *_), number in zip(layers(cells)[1], depth, strict=True):
        said = f"{number} minute{'s' * (number != 1)}:"
        place = r"\A(### [^\n]+\n\n)(?:\d+ minutes?:)?"
        heading["source"] = re.sub(place, rf"\g<1>{said}", heading["source"])


def listed(readme: str, number: str, found: dict) -> str:
    """README with the minutes of a notebook's story, its task and its depth in their columns."""
    told = f"{found['story']} | {found['task']} | {sum(found['sections'])}"
    place = rf"^(\| {number} \| .*) \|[^|]*\|[^|]*\|[^|]*(\| \[Colab\])"
    return re.sub(place, rf"\g<1> | {told} \g<2>", readme, flags=re.MULTILINE)


def main() -> None:
    """Write and print the minutes of the notebooks named."""
    path = ROOT / "README.md"
    readme = path.read_text("utf-8")
    for name in sys.argv[1:] or [""]:
        for file in sorted((ROOT / "notebooks").glob(f"{Path(name).stem}*.ipynb")):
            notebook, number = nbformat.read(file, as_version=4), file.stem[:2]
            if not layers(notebook.cells)[0]:
                continue
            found = measured(number, notebook.cells)
            printed(notebook.cells, found)
            text = nbformat.writes(notebook, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
            file.write_text(text, encoding="utf-8", newline="\n")
            readme = listed(readme, number, found)
            print(f"{file.stem}:", ", ".join(f"{k} {v}" for k, v in found.items()))
    path.write_text(readme, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
