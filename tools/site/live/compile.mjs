// node compile.mjs CORE ZIP: gives a zip the bytecode of this very Python, so that no tab compiles
// again. Packages lose their source and what draws its docstrings; the course keeps both.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [core, zip] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${core}/pyodide.mjs`));
const python = await loadPyodide({ indexURL: core });
python.FS.writeFile("/in.zip", readFileSync(zip));
python.globals.set("course", zip.endsWith("course.zip"));
python.runPython(`
import importlib.util, marshal, zipfile

UNCHECKED = importlib.util.MAGIC_NUMBER + bytes([1, *bytes(11)])  # by its source's time
with zipfile.ZipFile("/in.zip") as old, zipfile.ZipFile("/out.zip", "w") as new:
    for name in old.namelist():
        data = old.read(name)
        if course or not name.endswith(".py"):
            new.writestr(zipfile.ZipInfo(name), data, 8, 9)
        if name.endswith(".py"):
            level = 0 if course or name.startswith(("numpy", "traitlets")) else 2
            made = compile(data, "/course/" + name, "exec", dont_inherit=True, optimize=level)
            place = importlib.util.cache_from_source(name) if course else f"{name}c"
            new.writestr(zipfile.ZipInfo(place), UNCHECKED + marshal.dumps(made), 8, 9)
`);
writeFileSync(zip, python.FS.readFile("/out.zip"));
process.exit(0); // Pyodide's own timers would keep it
