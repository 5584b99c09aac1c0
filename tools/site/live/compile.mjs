// node compile.mjs CORE ZIP…: gives each zip the bytecode of this very Python, so that no tab
// compiles again. Packages lose their source and what draws its docstrings; the course keeps both.
import { readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";

const [core, ...zips] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${core}/pyodide.mjs`));
const info = JSON.parse(readFileSync(`${core}/lock.json`, "utf8")).info;
const lockFileContents = JSON.stringify({ info, packages: {} });
const python = await loadPyodide({ indexURL: core, lockFileContents });
for (const zip of zips) {
  python.FS.writeFile("/in.zip", new Uint8Array(readFileSync(zip)));
  python.globals.set("course", basename(zip) === "course.zip");
  python.runPython(`
import importlib.util, marshal, zipfile
from pathlib import PurePosixPath

def bytecode(name, source, level):
    made = compile(source, "/course/" + name, "exec", dont_inherit=True, optimize=level)
    unchecked = bytes([1, *bytes(11)])  # by its source's time
    return importlib.util.MAGIC_NUMBER + unchecked + marshal.dumps(made)

with zipfile.ZipFile("/in.zip") as old, zipfile.ZipFile("/out.zip", "w", 8, compresslevel=9) as new:
    for name in old.namelist():
        data, path = old.read(name), PurePosixPath(name)
        if path.suffix != ".py" or course:
            new.writestr(zipfile.ZipInfo(name), data, 8, 9)
        if path.suffix == ".py":
            level = 0 if course or name.startswith(("numpy", "traitlets")) else 2
            beside = path.parent / "__pycache__" / f"{path.stem}.cpython-314.pyc"
            place = beside if course else path.with_suffix(".pyc")
            new.writestr(zipfile.ZipInfo(str(place)), bytecode(name, data, level), 8, 9)
`);
  writeFileSync(zip, python.FS.readFile("/out.zip"));
}
process.exit(0); // Pyodide's own timers would keep it
