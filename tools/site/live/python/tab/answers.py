"""The learner's answers: in the page, and as one file, my_transformer.zip, and back."""

import base64
import io
import zipfile
from pathlib import Path

from tab.outputs import post
from workshop.checks.keep import MINE

FOLDER = Path("my_transformer")
FOLDER.mkdir()


def there() -> dict[str, str]:
    """All answers, by their files."""
    found = sorted(FOLDER.glob("*.py"))
    return {path.as_posix(): path.read_text("utf-8", "replace") for path in found}


def lay(files: dict[str, str]) -> None:
    """Write what any page has kept; a file with nothing new stays, and its time."""
    for name, text in files.items() - there().items():
        Path(name).write_text(text, "utf-8")


def save() -> None:
    """Give the page all answers in one file, which `check` and `mine` read beside a notebook."""
    found, made = there(), io.BytesIO()
    with zipfile.ZipFile(made, "w") as pack:
        for name, text in found.items():
            pack.writestr(name, text)
    if found:
        post("download", name=f"{FOLDER}.zip", data=base64.b64encode(made.getvalue()).decode())
    print(f"Answers saved: {len(found)}. Those that a check finds right are kept in this browser.")


def take_back(data: str) -> None:
    """Take answers out of such a file, each in the place of an older one; other files stay out."""
    try:
        whole = zipfile.ZipFile(io.BytesIO(base64.b64decode(data)))
    except zipfile.BadZipFile:
        print("This is no zip file. Choose the my_transformer.zip that you saved.")
        return
    found = [name for name in whole.namelist() if MINE.fullmatch(name)]
    whole.extractall(members=found)
    print(f"Answers taken back: {len(found)}.")
