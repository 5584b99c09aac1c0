"""Start the exercises again: put the folder of kept answers aside, under a name with a number.

    python tools/fresh.py    notebooks/my_transformer → notebooks/my_transformer-1

The file my_transformer.py of earlier versions goes with it. Nothing is lost, and nothing else is
touched. MY_TRANSFORMER names another folder, as for `check`.
"""

import os
import sys
from pathlib import Path


def fresh(folder: Path) -> str:
    """Put a folder of kept answers aside, and the file of earlier versions; say what was done."""
    found = [end for end in ("", ".py") if os.path.lexists(f"{folder}{end}")]
    if not found:
        return f"There is no {folder.name} yet: the first right answer begins it."
    number = 1
    while any(os.path.lexists(f"{folder}-{number}{end}") for end in ("", ".py")):
        number += 1
    for end in found:
        Path(f"{folder}{end}").rename(f"{folder}-{number}{end}")
    names = " and ".join(f"{folder.name}-{number}{end}" for end in found)
    return f"Your answers are in {names} now. The next right one begins a new {folder.name}."


if __name__ == "__main__":
    named = os.environ.get("MY_TRANSFORMER", "").removesuffix(".py")
    beside = Path(__file__).resolve().parents[1] / "notebooks" / "my_transformer"
    try:
        print(fresh(beside if named.lower() in ("", "off") else Path(named)))
    except OSError as error:
        sys.exit(f"It cannot be moved: {error.strerror}.")
