"""Start the exercises again: put my_transformer.py aside, under a name with a number.

    python tools/fresh.py    notebooks/my_transformer.py → notebooks/my_transformer-1.py

Nothing is lost, and nothing else is touched. MY_TRANSFORMER names another file, as for `check`.
"""

import os
import sys
from pathlib import Path

FILE = Path(__file__).resolve().parents[1] / "notebooks" / "my_transformer.py"


def fresh(path: Path) -> str:
    """Put a file of kept answers aside; say what was done."""
    if not path.exists():
        return f"There is no {path.name} yet: the first right answer begins it."
    number = 1
    while (backup := path.with_name(f"{path.stem}-{number}{path.suffix}")).exists():
        number += 1
    path.rename(backup)
    return f"{path.name} is now {backup.name}, beside it. The next right answer begins a new one."


def main() -> int:
    """Put aside the file that `check` writes."""
    named = os.environ.get("MY_TRANSFORMER", "")
    try:
        print(fresh(FILE if named.lower() in ("", "off") else Path(named)))
    except OSError as error:
        print(f"It cannot be moved: {error.strerror}.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
