"""A browser, a real JupyterLab, notebooks in it, and what tests read from and do to a widget.

Tests take these as fixtures (`browser`, `lab`, `page_of`, `axe`; see conftest.py); the benchmark
uses the classes. A notebook is given as the sources of its cells:

    notebook = lab.run("from workshop import DropoutLab", "DropoutLab([[0.5, 0.5]])")
    root = notebook.widget(1)                 # the element .step in the output of cell 1
    numbers(root), notebook.value("6 * 7")    # what is shown; what the kernel says
"""

import base64
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import numpy as np
from ipywidgets.embed import dependency_state
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SIZE = {"width": 1000, "height": 1000}
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
WIDGET = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"
SETTINGS = {
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/apputils-extension:themes": {"theme": THEMES["light"]},
}
# JupyterLab's splash screen, shown twice in 0.2 s, takes itself away twice: an error of its own.
PAGE = {"disabledExtensions": {"@jupyterlab/apputils-extension:splash": True}}
FOLDERS = ["IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR",
           "JUPYTERLAB_WORKSPACES_DIR"]  # fmt: skip
COMMAND = [
    *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
    *("--ServerApp.ip=127.0.0.1", "--LabApp.expose_app_in_browser=True"),
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
]


class Missing(Exception):
    """Something the tests need is not installed; the message says how to get it."""


def launch(playwright, *flags: str):
    """Start the Chromium or Chrome that is installed, without a window."""
    if found := next(filter(None, map(shutil.which, BROWSERS)), None):
        return playwright.chromium.launch(executable_path=found, args=[*FLAGS, *flags])
    try:
        return playwright.chromium.launch(channel="chrome", args=[*FLAGS, *flags])
    except Exception:
        raise Missing("no Chromium or Chrome found: `apt-get install chromium`") from None


class Server:
    """JupyterLab on a free port, with its files, settings and kernels in one folder of its own."""

    token = "browser-tests"

    def __init__(self, folder: Path):
        self.folder, self.files = folder, folder / "files"
        self.files.mkdir(parents=True)
        with socket.socket() as probe:  # a port that nobody listens to
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        settings = folder / "jupyter_config_dir/labconfig"
        settings.mkdir(parents=True)
        (settings / "default_setting_overrides.json").write_text(json.dumps(SETTINGS))
        (settings / "page_config.json").write_text(json.dumps(PAGE))
        own = {name: str(folder / name.lower()) for name in FOLDERS} | {"PYTHONPATH": str(ROOT)}
        with (folder / "log").open("w") as log:
            self.process = subprocess.Popen(
                [*COMMAND, f"--ServerApp.root_dir={self.files}", f"--ServerApp.port={self.port}",
                 f"--IdentityProvider.token={self.token}"],
                env=os.environ | own | {"OMP_NUM_THREADS": "1"}, stdout=log, stderr=log,
            )  # fmt: skip
        self.wait()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}?token={self.token}"

    def wait(self, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            try:
                return urllib.request.urlopen(self.url("api"), timeout=5).close()
            except OSError:
                time.sleep(0.1)
        self.stop()
        raise RuntimeError(f"JupyterLab did not start:\n{(self.folder / 'log').read_text()}")

    def stop(self) -> None:
        """End the server, which ends its kernels."""
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


# ---------------------------------------------------------------- JupyterLab

PATIENCE = 120_000  # ms for what a busy machine has still to draw or to answer
OPEN = """async path => {
  await window.panel?.sessionContext.shutdown();
  window.panel?.dispose();
  const panel = await window.jupyterapp.commands.execute("docmanager:open", { path });
  await panel.context.ready;
  await panel.revealed;
  await panel.sessionContext.ready;
  window.panel = panel;
  const waiting = window.waiting = new Set();
  panel.sessionContext.session?.kernel?.anyMessage.connect((_, { msg, direction }) => {
    const { msg_type: type, msg_id: id } = msg.header;
    if (direction === "send" && type === "comm_msg") waiting.add(id);
    if (type === "status" && msg.content.execution_state === "idle")
      waiting.delete(msg.parent_header.msg_id);
  });
}"""
OUTPUTS = """[...window.panel.content.model.cells]
  .flatMap((cell) => cell.type === "code" ? cell.outputs.toJSON() : [])"""
RUN = f"""async () => {{
  await window.jupyterapp.commands.execute("notebook:run-all-cells");
  return {OUTPUTS}.filter((o) => o.output_type === "error" || o.name === "stderr")
    .map((o) => o.text ?? `${{o.ename}}: ${{o.evalue}}`);
}}"""
RENDERED = f"""() =>
  document.querySelectorAll(".jp-Notebook .jp-OutputArea-output .step").length >=
  {OUTPUTS}.filter((o) => o.data?.["{WIDGET}"]).length"""
# A widget sends its newest value when the kernel has answered the one before. Comm messages may run
# in a subshell, so asking the kernel does not wait for them: the last must be answered first.
VALUE = """async ([code, patience]) => {
  const end = performance.now() + patience;
  for (let quiet = 0; quiet < 3; quiet = window.waiting.size ? 0 : quiet + 1) {
    if (performance.now() > end) throw new Error("the kernel does not answer its widgets");
    await new Promise(requestAnimationFrame);
  }
  const kernel = window.panel.sessionContext.session.kernel;
  const request = { code: "", user_expressions: { value: code }, store_history: false };
  const answer = await kernel.requestExecute(request).done;
  return answer.content.user_expressions.value;
}"""
THEME = "theme => void window.jupyterapp.commands.execute('apputils:change-theme', { theme })"


class Lab:
    """One JupyterLab in one page; it shows one notebook at a time."""

    def __init__(self, browser, server: Server):
        self.server, self.count = server, 0
        self.page = browser.new_context(viewport=SIZE).new_page()
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(error.stack or str(error)))
        self.page.goto(server.url("doc"), wait_until="domcontentloaded")
        self.page.wait_for_function("window.jupyterapp?.restored.then(() => true)", timeout=90_000)

    def open(self, notebook) -> "Notebook":
        """Show a notebook (nbformat) as it is, without running it, and close the one before."""
        opened = self.show(self.write(notebook))
        opened.rendered()
        return opened

    def write(self, notebook) -> Path:
        """Put a notebook beside those that the server has."""
        self.count += 1
        path = self.server.files / f"test_{self.count}.ipynb"
        nbformat.write(notebook, path)
        return path

    def show(self, path: Path) -> "Notebook":
        """Open a file, after the notebook before was closed and its kernel shut down."""
        self.page.evaluate(OPEN, path.name)
        return Notebook(self.page, path)

    def run(self, *sources: str) -> "Notebook":
        """Open a notebook of these code cells, run all, wait until its widgets stand there."""
        opened = self.open(notebook_of(*sources))
        opened.run()
        return opened

    def theme(self, name: str) -> None:
        """Switch to "light" or "dark"."""
        self.page.evaluate(THEME, THEMES[name])
        is_it = "light => document.body.dataset.jpThemeLight === light"
        self.page.wait_for_function(is_it, arg=str(name == "light").lower())


class Notebook:
    """A notebook that is open in JupyterLab."""

    def __init__(self, page, path: Path):
        self.page, self.path = page, path

    def rendered(self) -> None:
        """Wait until every widget in it is drawn."""
        self.page.wait_for_function(RENDERED, timeout=PATIENCE)
        frames(self.page)

    def run(self) -> None:
        """Run all cells, and wait until their widgets are drawn."""
        complaints = self.page.evaluate(RUN)
        assert not complaints, "\n".join(complaints)
        self.rendered()

    def widget(self, cell: int):
        """The root of the widget that a cell shows."""
        return self.page.locator(f".jp-Notebook .jp-Cell >> nth={cell}").locator(".step")

    def value(self, expression: str):
        """What the kernel says an expression is; JSON goes in between."""
        code = f"__import__('json').dumps({expression})"
        answer = self.page.evaluate(VALUE, [code, PATIENCE])
        assert answer["status"] == "ok", answer
        return json.loads(eval(answer["data"]["text/plain"]))

    def save(self):
        """Save it as JupyterLab does, with the widgets' state; read the file back."""
        self.page.evaluate("() => window.panel.context.save()")
        return nbformat.read(self.path, as_version=4)


def notebook_of(*sources: str):
    """A notebook with one code cell per source."""
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    cells = [nbformat.v4.new_code_cell(source, id=f"cell-{i}") for i, source in enumerate(sources)]
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


# ---------------------------------------------------------------- pages without JupyterLab

TITLE = nbformat.v4.new_markdown_cell("# 00 · Test\n\nA test.", id="title")
DRAWN = """() => [...document.querySelectorAll("[data-model]")]
  .every((e) => e.querySelector(".step") || !e.checkVisibility())"""


def watch(context, faults: list[str]) -> None:
    """Note what pages ask the network for, and what errors they report."""
    own = ("file:", "blob:", "data:")
    context.on("request", lambda r: r.url.startswith(own) or faults.append(f"asked for {r.url}"))
    context.on("console", lambda m: faults.append(m.text) if m.type == "error" else None)
    context.on("weberror", lambda error: faults.append(str(error.error)))


class Offline:
    """Pages of saved notebooks from file://, the network cut; `faults` must stay empty."""

    def __init__(self, browser, folder: Path, page, **options):
        self.folder, self.page, self.faults = folder, page, []
        self.context = browser.new_context(viewport=SIZE, offline=True, **options)
        watch(self.context, self.faults)

    def __call__(self, *shown):
        """Open the page of a notebook (nbformat), or of one that shows these widgets."""
        notebook = shown[0] if isinstance(shown[0], dict) else saved(*shown)
        notebook = nbformat.from_dict(notebook | {"cells": [TITLE, *notebook["cells"]]})
        html = self.folder / f"{len(self.context.pages):02}_page.html"
        html.write_text(self.page({html.name: notebook}, html.name), encoding="utf-8")
        page = self.context.new_page()
        page.goto(html.as_uri())
        page.wait_for_function(DRAWN, timeout=PATIENCE)
        frames(page)
        return page


def saved(*widgets):
    """A notebook with the outputs and the state of these widgets, one per cell, as if run."""
    cells = []
    for i, widget in enumerate(widgets):
        data, metadata = widget._repr_mimebundle_()
        output = nbformat.v4.new_output("display_data", data=data, metadata=metadata)
        cells.append(nbformat.v4.new_code_cell("widget", id=f"cell-{i}", outputs=[output]))
    state = dependency_state(widgets, drop_defaults=False)
    kept = {STATE: {"state": state, "version_major": 2, "version_minor": 0}}
    return nbformat.v4.new_notebook(cells=cells, metadata={"widgets": kept})


# ---------------------------------------------------------------- reading and acting


def frames(page, count: int = 2) -> None:
    """Wait until the browser has drawn `count` frames."""
    for _ in range(count):
        page.evaluate("() => new Promise(requestAnimationFrame)")


def numbers(root) -> np.ndarray:
    """All numbers shown under an element, with all their digits: the values of <data>."""
    return np.array(root.locator("data").evaluate_all("all => all.map(d => Number(d.value))"))


# What a canvas was told to draw since it was cleared; `read_of` has a page keep it.
RECORD = """for (const name of ["fillText", "bezierCurveTo", "lineTo", "roundRect"]) {
  const of = CanvasRenderingContext2D.prototype;
  const [draw, clear] = [of[name], of.clearRect];
  of[name] = function (...how) { (this.canvas[name] ??= []).push(how); draw.apply(this, how); };
  of.clearRect = function (...how) { this.canvas[name] = []; clear.apply(this, how); };
}"""


def board(root):
    """The machine's canvas."""
    return root.locator("canvas[tabindex='0']")


def drawn(page, what: str = "fillText") -> list:
    """What the board shows: [text, x, y, …] of each text, or the numbers of each curve or line."""
    frames(page, 3)
    return board(page).evaluate(f"canvas => canvas.{what}")


def words(page) -> list[str]:
    """The texts that the board shows."""
    return [text for text, *_ in drawn(page)]


def pixels(canvas) -> np.ndarray:
    """What a canvas shows: (height, width, 4) red, green, blue, opacity, 0 to 255."""
    address = canvas.evaluate("c => c.toDataURL('image/png')")
    image = Image.open(io.BytesIO(base64.b64decode(address.split(",")[1])))
    return np.array(image.convert("RGBA"))


def press(target, *keys: str) -> None:
    """Press keys in turn on an element, then wait for what they draw."""
    target.focus()
    for key in keys:
        target.page.keyboard.press(key)
    frames(target.page)


def slider(root, label: str):
    return root.get_by_role("slider", name=label)


def slide_by_keys(handle, target: float) -> float:
    """Move a slider (its own scale: logarithms for a log slider) by arrow keys; where it stands."""
    low, step, now = handle.evaluate("s => [s.min, s.step, s.value].map(Number)")
    handle.focus()
    steps = round((target - low) / step) - round((now - low) / step)
    for _ in range(abs(steps)):
        handle.page.keyboard.press("ArrowRight" if steps > 0 else "ArrowLeft")
    frames(handle.page)
    return float(handle.input_value())


def drag(handle, share: float) -> float:
    """Drag a slider's thumb with the mouse to a share of its way, 0 to 1; where it stands."""
    now = handle.evaluate("s => (s.value - s.min) / (s.max - s.min)")
    box, thumb = handle.bounding_box(), 16
    start, end = (
        {"x": thumb / 2 + s * (box["width"] - thumb), "y": box["height"] / 2} for s in (now, share)
    )
    handle.drag_to(handle, source_position=start, target_position=end, steps=4)
    frames(handle.page)
    return float(handle.input_value())
