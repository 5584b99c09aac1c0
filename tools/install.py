"""Install the course into the environment that runs this file: `make` calls it in `.venv`.

pip fetches uv, and uv the rest. PyTorch comes from a local folder of wheels if
UV_FIND_LINKS or PIP_FIND_LINKS names one that has a fitting torch (an air-gapped
classroom, say); else as the build for this machine's GPU, or for the CPU without one.
"""

import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

ROOT = Path(__file__).resolve().parents[1]


def places() -> list[str]:
    """The folders and addresses of wheels; uv's list has commas, pip's has spaces."""
    if uv := os.environ.get("UV_FIND_LINKS"):
        return [place.strip() for place in uv.split(",") if place.strip()]
    return os.environ.get("PIP_FIND_LINKS", "").split()


def uv_install(*arguments: str, python: Path | str = sys.executable) -> bool:
    """Install into the environment of a Python, by default into this one; True if it worked."""
    call = [sys.executable, "-m", "uv", "pip", "install", "--python", str(python), *arguments]
    return subprocess.run(call, cwd=ROOT).returncode == 0


def install_torch(requirement: str, python: Path | str = sys.executable) -> bool:
    """Install torch from a folder of wheels, else from PyTorch's index, else as the rest."""
    paths = [url2pathname(urlsplit(p).path) if p.startswith("file:") else p for p in places()]
    alone = ["--quiet", "--quiet", "--no-index", "--no-deps", "--find-links"]
    offline = [[*alone, path] for path in paths if Path(path).is_dir()]
    ways = [*offline, ["--torch-backend", "auto"], []]
    return any(uv_install(*way, requirement, python=python) for way in ways)


def starts() -> bool:
    """Whether a new Python, somewhere else and in the machine's own encoding, finds the course.

    It also lets matplotlib list this machine's fonts: later that would say so in a notebook.
    """
    own = {name: os.environ[name] for name in os.environ.keys() - {"PYTHONUTF8", "PYTHONPATH"}}
    call = [sys.executable, "-c", "import helpers.layers, workshop.widgets"]
    with tempfile.TemporaryDirectory() as elsewhere:
        return subprocess.run(call, cwd=elsewhere, env=own).returncode == 0


def main() -> str | None:
    """Install uv, torch, and then everything else, which keeps the torch that is there."""
    if places():
        os.environ.update(UV_FIND_LINKS=",".join(places()), PIP_FIND_LINKS=" ".join(places()))
    subprocess.check_call([sys.executable, "-m", "pip", "install", "--quiet", "uv>=0.7"])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    torch = next(line for line in project["dependencies"] if line.startswith("torch"))
    course = ["--editable", ".[lab,pretrained]", "--group", "dev"]
    if not (install_torch(torch) and uv_install(*course)):
        return "The course could not be installed; the lines above say why."
    return None if starts() else "Installed, but Python cannot import the course."


if __name__ == "__main__":
    sys.exit(main())
