"""Prepare what runs a page's cells in the browser, site/live: Python, its packages, the course.

    python tools/live.py  fetch once into .venv/live, then write site/live and site/sw.js

Python is Pyodide from npm. Its packages come out of a wheel on PyPI that carries them, each held to
the sum in Pyodide's own lock file. Everything fetched is held to a sum in site/live/sums.json.
Without a network, or without npm, site/live goes, and the pages are to read.
"""

import base64
import contextlib
import gzip
import hashlib
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
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PARTS = ROOT / "tools/site/live"
CACHE = ROOT / ".venv/live"
SUMS = json.loads((PARTS / "sums.json").read_text("utf-8"))
CORE, CARRIER, TRAITLETS = list(SUMS)[:3]  # the newest core whose wheels the carrier has
FOLDER = "open_webui/frontend/pyodide/"
WHEELS = (
    "numpy matplotlib pillow kiwisolver contourpy cycler packaging pyparsing python-dateutil six"
)
FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
LOADED = (*FILES, "packages.zip", "course.zip")
PACKED = ("pyodide.asm.mjs", "pyodide.asm.wasm")  # by us: a host may send them as they are
RULE = "\n\n" + 79 * "=" + "\n"
PYODIDE = """What runs in a page that is not of this course, and under which licence.

pyodide.mjs, pyodide.asm.*  Mozilla Public License 2.0, https://github.com/pyodide/pyodide
    with Emscripten, MIT, https://github.com/emscripten-core/emscripten
python_stdlib.zip           PSF License, https://docs.python.org/3/license.html
"""
LICENCE = re.compile(r"\.dist-info/.*(LICEN[CS]E|COPYING|METADATA$)")
LEFT_OUT = re.compile(
    r"""\.(pyi|pxd|h|hpp|c|cpp|lib|a|ini|typed|txt|rst|md|afm|pdf|svg|ppm|gif|xpm|js|html|css)$
    |/(tests?|testing|f2py|distutils|_pyinstaller|typing/tests|include|doc|sample_data|toolkits
      |web_backend|pdfcorefonts|afm|stylelib|sphinxext|images|zoneinfo)/
    |\.dist-info/|^mpl_toolkits/|^numpy/random/_examples/|^numpy/_core/lib/
    |^matplotlib/backends/(backend_(?!agg|mixed)|qt_|_backend_(?!agg)|web|registry_none)
    |^PIL/(?!_imaging\.|_util|_version|_binary|_deprecate|_typing|__init__|Image\.|ImageMode|Image(
      Chops|Color|File|Palette|Sequence|)\.|PngImagePlugin|Gimp|PaletteFile|ExifTags|TiffTags
      |features|report)
    |fonts/ttf/(?!DejaVuSans\.|DejaVuSans-Bold\.)|LICENSE_STIX
    |^numpy/(ma/(?!__init__|core|extras)
      |polynomial/(?!__init__|polyutils|_polybase|polynomial\.|cheb|leg|herm|lag))
    |^traitlets/(config|tests)/(?!__init__|configurable|loader|application)
    |^matplotlib/(testing|sphinxext|animation|_type1font)""",
    re.VERBOSE,
)


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
    parts["licences.txt"] = licences(parts["packages.zip"], parts["licences.txt"])
    info = json.loads(parts.pop("lock.json"))["info"]
    sizes = {name: len(parts[name]) for name in ("packages.zip", "course.zip", *FILES[2:])}
    lock = json.dumps({"info": info, "packages": {}})
    told = {"SIZES = {}": f"SIZES = {json.dumps(sizes)}", "LOCK = {}": f"LOCK = {lock}"}
    parts["worker.js"] = filled("worker.js", told)
    loaded = sum(len(parts[f"{name}.gz" if name in PACKED else name]) for name in LOADED)
    parts["cells.js"] = filled("cells.js", {"MEGABYTES = 0": f"MEGABYTES = {loaded / 1e6:.0f}"})
    return parts


def write(site: Path, parts: dict[str, bytes]) -> None:
    """Write site/live/VERSION, named by the digest of what lies in it, and site/sw.js."""
    digest = hashlib.sha256(b"".join(data for _, data in sorted(parts.items())))
    folder = site / "live" / digest.hexdigest()[:12]
    folder.mkdir(parents=True)
    for name, data in parts.items():
        (folder / name).write_bytes(data)
    (site / "sw.js").write_bytes(filled("sw.js", {"VERSION": folder.name}))
    print(f"{folder}: what runs a page's cells")


def filled(name: str, told: dict[str, str]) -> bytes:
    """A program of ours with what is known only now."""
    text = (PARTS / name).read_text("utf-8")
    for old, new in told.items():
        text = text.replace(old, new, 1)
    return text.encode()


def licences(packages: bytes, editor: bytes) -> bytes:
    """The licences of all that is not ours, as one text."""
    return PYODIDE.encode() + zipfile.ZipFile(io.BytesIO(packages)).read("licences.txt") + editor


# ---------------------------------------------------------------- what is fetched, once


def prepared() -> Path:
    """The folder with Python, its packages and the editor, made anew when a part of it changes."""
    parts = [
        Path(__file__),
        *(PARTS / name for name in ("sums.json", "package.json", "editor.mjs")),
    ]
    mark = hashlib.sha256(b"".join(path.read_bytes() for path in [*parts, PARTS / "compile.mjs"]))
    folder = CACHE / mark.hexdigest()[:12]
    if not (folder / "lock.json").exists():
        with aside() as name:
            making = Path(name, "made")
            making.mkdir()
            lock = core(making)
            (making / "packages.zip").write_bytes(asset() or packages(making, lock))
            (making / "editor.js").write_bytes(editor(making))
            with contextlib.suppress(OSError):  # another was faster
                making.rename(folder)
    return folder


def aside() -> tempfile.TemporaryDirectory:
    """A folder of one's own for a moment: tests make the site side by side."""
    CACHE.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryDirectory(dir=CACHE)


def core(folder: Path) -> dict:
    """Write Python itself, and packed what a host may not pack; what its lock file says."""
    data = pulled(["npm", "pack", "--silent", CORE], f"{CORE.replace('@', '-')}.tgz")
    with tarfile.open(fileobj=io.BytesIO(held(data, CORE))) as tar:
        for name in (*FILES, "pyodide-lock.json"):
            (folder / name).write_bytes(tar.extractfile(f"package/{name}").read())
    for name in PACKED:
        packed = gzip.compress((folder / name).read_bytes(), 9, mtime=0)
        (folder / f"{name}.gz").write_bytes(packed)
    return json.loads((folder / "pyodide-lock.json").rename(folder / "lock.json").read_text())


def packages(folder: Path, lock: dict) -> bytes:
    """packages.zip: of each wheel what a page needs, as bytecode, with its licence."""
    carrier = zipfile.ZipFile(io.BytesIO(held(wheel(CARRIER), CARRIER)))
    wheels = [held(wheel(TRAITLETS), TRAITLETS)]
    for told in (lock["packages"][name] for name in WHEELS.split()):
        data, name = carrier.read(FOLDER + told["file_name"]), told["file_name"]
        wheels.append(
            held(data, name, f"sha256-{base64.b64encode(bytes.fromhex(told['sha256'])).decode()}")
        )
    files, told = {}, []
    for whole in map(zipfile.ZipFile, map(io.BytesIO, wheels)):
        names = [info.filename for info in whole.infolist() if not info.is_dir()]
        files |= {name: whole.read(name) for name in names if not LEFT_OUT.search(name)}
        own = filter(LICENCE.search, names)
        told += [f"{RULE}{name}\n\n{whole.read(name).decode()}" for name in own]
    files["licences.txt"] = "".join(told).encode()
    return held(compiled(folder, "packages.zip", files), "packages.zip")


def asset() -> bytes | None:
    """packages.zip as it was kept with a release, None if it is not there or is another one."""
    project = re.search(r'Repository = "(.*)"', (ROOT / "pyproject.toml").read_text("utf-8"))[1]
    try:
        with urllib.request.urlopen(
            f"{project}/releases/download/live/packages.zip", timeout=20
        ) as answer:
            data = answer.read()
    except OSError:
        return None
    return data if digest_of(data, "packages.zip") == SUMS["packages.zip"] else None


def editor(making: Path) -> bytes:
    """CodeMirror as one module; its licences beside."""
    with aside() as folder:
        for name in ("package.json", "editor.mjs"):
            shutil.copy(PARTS / name, folder)
        run(["npm", "install", "--silent", "--no-audit", "--no-fund"], folder)
        bundle = ["npm", "exec", "--", "esbuild", "editor.mjs", "--bundle", "--minify"]
        told = ["--format=esm", "--legal-comments=none", "--outfile=editor.js"]
        run([*bundle, *told, "--log-level=error"], folder)
        own = sorted(Path(folder, "node_modules").rglob("LICENSE*"))
        texts = [f"{RULE}{path.parent.name}, in editor.js\n\n{path.read_text()}" for path in own]
        (making / "licences.txt").write_text("".join(texts), "utf-8")
        return held(Path(folder, "editor.js").read_bytes(), "editor.js")


def wheel(spec: str) -> bytes:
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary",
        ":all:",
    ]
    name = spec.split("==")[0].replace("-", "_")
    return pulled([*pip, "--python-version", "3.12", spec], f"{name}-*.whl")


def pulled(command: list[str], pattern: str) -> bytes:
    """What an ordinary client fetches, unless it lies here already. Raises NotHere."""
    if not (found := sorted(CACHE.glob(pattern))):
        with aside() as folder:
            run(command, folder)
            (new,) = Path(folder).glob(pattern)
            found = [new.rename(CACHE / new.name)]
    return found[0].read_bytes()


def run(command: list[str], folder: str | Path) -> None:
    """Run a program. Raises NotHere if it is missing or fails."""
    whole = [shutil.which(command[0]) or command[0], *command[1:]]  # on Windows it is npm.cmd
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    try:
        subprocess.run(whole, cwd=folder, check=True, **quiet)
    except (OSError, subprocess.CalledProcessError) as error:
        told = " ".join(command[:3])
        raise NotHere(f"`{told}` failed; it needs npm and a network") from error


def held(data: bytes, name: str, sum_: str = "") -> bytes:
    """The same bytes. SystemExit if they are others than were looked at."""
    wanted = sum_ or SUMS[name]
    if (found := digest_of(data, name, wanted.partition("-")[0] or "sha256")) != wanted:
        raise SystemExit(f"{name} is not what it was: {found}, but must be {wanted}")
    return data


def digest_of(data: bytes, name: str, kind: str = "sha256") -> str:
    """The sum of a file; of packages.zip that of what it holds, however it is packed."""
    made = hashlib.new(kind)
    if name != "packages.zip":
        made.update(data)
    else:
        whole = zipfile.ZipFile(io.BytesIO(data))
        for each in sorted(whole.namelist()):
            made.update(f"{each} {len(whole.read(each))}\n".encode() + whole.read(each))
    return f"{kind}-{base64.b64encode(made.digest()).decode()}"


# ---------------------------------------------------------------- the course


def course(core: Path) -> bytes:
    """course.zip: the course's rooms and what stands in for IPython, PyTorch and a clock."""
    kinds = (".py", ".js", ".css", ".csv", ".npz")
    files = {}
    for home in (ROOT / "helpers", ROOT / "workshop", PARTS / "python"):
        above = home if home == PARTS / "python" else ROOT
        for path in sorted(home.rglob("*")):
            if (
                path.suffix in kinds
                and path.name != "writer.npz"
                and "jupyterlab" not in path.parts
            ):
                files[path.relative_to(above).as_posix()] = path.read_bytes()
    return compiled(core, "course.zip", files)


def compiled(core: Path, name: str, files: dict[str, bytes]) -> bytes:
    """A zip of files, with the bytecode of that Python."""
    with aside() as folder:
        path = Path(folder, name)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as pack:
            for each, data in sorted(files.items()):
                pack.writestr(zipfile.ZipInfo(each), data)
        run(["node", str(PARTS / "compile.mjs"), str(core), str(path)], CACHE)
        return path.read_bytes()


if __name__ == "__main__":
    build()
