"""Stamp the repository's address into the links to Colab, setup cells and the README.

python tools/links.py               from [project.urls] of pyproject.toml
python tools/links.py owner/name    write it there first
"""

import argparse
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REPO = r"[\w.-]+/[\w.-]+?"
# Before the address …, and what may follow it.
BEFORE = "|".join(
    re.escape(text)
    for text in (
        "git+https://github.com/",
        "git clone https://github.com/",
        "https://colab.research.google.com/github/",
        "https://mybinder.org/v2/gh/",
    )
)
PLACE = re.compile(rf"({BEFORE}){REPO}(?=\.git\b|[^\w.-]|$)", re.MULTILINE)
# The link needs no picture: Colab's own lies in the network, and without one it is a hole.
PICTURE = re.compile(r"\[!\[Open [iI]n Colab\]\([^)\s]*\)\](?=\()")
OWN_LINK = re.compile(r"(colab\.research\.google\.com/github/[^)\s]+/notebooks/)[\w.-]+\.ipynb")
URL = re.compile(rf'^(Repository = "https://github\.com/){REPO}(")$', re.MULTILINE)


def repository(root: Path = ROOT) -> str:
    """`owner/name`, as pyproject.toml has it."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["urls"]["Repository"].removeprefix("https://github.com/")


def stamped(path: Path, text: str, repo: str) -> str:
    """The text of a file with the address in place; a notebook's link opens that notebook."""
    text = PICTURE.sub("[Open in Colab]", PLACE.sub(rf"\g<1>{repo}", text))
    if path.suffix == ".ipynb":
        text = OWN_LINK.sub(rf"\g<1>{path.name}", text)
    return text


def files(root: Path = ROOT) -> list[Path]:
    """The files that carry the address, besides pyproject.toml."""
    return [*sorted((root / "notebooks").glob("*.ipynb")), *root.glob("README.md")]


def replace(path: Path, text: str) -> None:
    """Write a file if that changes it."""
    if text != path.read_text(encoding="utf-8"):
        path.write_text(text, encoding="utf-8", newline="\n")
        print(f"{path.name}: stamped")


def stamp(root: Path = ROOT, new: str | None = None) -> None:
    """Put the address, a new one first into pyproject.toml, into every file that carries it."""
    if new:
        project = root / "pyproject.toml"
        replace(project, URL.sub(rf"\g<1>{new}\g<2>", project.read_text(encoding="utf-8")))
    repo = repository(root)
    for path in files(root):
        replace(path, stamped(path, path.read_text(encoding="utf-8"), repo))


def main() -> int:
    """Check the argument and stamp."""
    top = argparse.ArgumentParser(description="Stamp the repository's address.")
    top.add_argument("repo", nargs="?", metavar="owner/name", help="default: from pyproject.toml")
    new = top.parse_args().repo
    if new and not re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", new):
        print(f"REPO is {new!r}, but must have the form owner/name", file=sys.stderr)
        return 1
    stamp(new=new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
