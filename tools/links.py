"""Stamp the repository's address into the links to Colab, setup cells and the README.

python tools/links.py               from [project.urls] of pyproject.toml
python tools/links.py owner/name    write it there first
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = re.compile(
    r"((?:git\+|git clone |^Repository = \")https://github\.com/"
    r"|https://colab\.research\.google\.com/github/)([\w.-]+/[\w.-]+?)(?=\.git\b|[^\w.-]|$)",
    re.MULTILINE,
)
SITE = re.compile(r"https://[\w-]+\.github\.io/[\w.-]+/")  # where its workflow publishes it


def repository(root: Path = ROOT) -> str:
    """The owner and the name, as pyproject.toml has them: its first such place."""
    return PLACE.search((root / "pyproject.toml").read_text("utf-8"))[2]


def stamp(root: Path = ROOT, new: str = "") -> None:
    """Put the address, a new one or that of pyproject.toml, into every file that carries it."""
    repo = new or repository(root)
    for path in [root / "pyproject.toml", root / "README.md", *root.glob("notebooks/*.ipynb")]:
        text = path.read_text(encoding="utf-8")
        owner, name = repo.split("/")
        stamped = SITE.sub(f"https://{owner}.github.io/{name}/", PLACE.sub(rf"\g<1>{repo}", text))
        if stamped != text:
            path.write_text(stamped, encoding="utf-8", newline="\n")
            print(f"{path.name}: stamped")


if __name__ == "__main__":
    new = "".join(sys.argv[1:])
    if new and not re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", new):
        sys.exit(f"REPO is {new!r}, but must have the form owner/name")
    stamp(new=new)
