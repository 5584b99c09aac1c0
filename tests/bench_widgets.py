"""Measure the heatmap widget beside `ipywidgets.interact` + matplotlib and BertViz's head view.

    python tests/bench_widgets.py            16, 64, 128 and 512 tokens × 12 heads: a quarter hour
    python tests/bench_widgets.py --quick    16 and 64 tokens, few events: two minutes

All in one run, in JupyterLab and headless Chromium on this machine. The columns:

first paint  from the command to run the cell to the end of the first frame with the picture
head, temperature, hover
             from the time stamp of a key press or a mouse move to the end of the frame in which
             the picture has changed: median / 95th percentile
frames       median number of frames until then, of the three in turn; 1 is the very next
handler      our handler and our drawing alone, called one after the other: median
of 60        60 events in one second: how many pictures were seen (frames in that second)
kB           what the cell adds to a notebook run by nbclient, outputs and widgets' state; and of
             this the state alone

BertViz is installed into a temporary folder; the scripts that it loads from a CDN come from npm.
Exit status 1 if a goal is missed.
"""

import argparse
import io
import os
import random
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import numpy as np
from browser.harness import Lab, Server, launch, notebook_of
from nbclient import NotebookClient
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
HEADS = 12
LIMIT = 60.0  # seconds that one measurement may take
CDN = {  # the end of an address that BertViz asks for → package and file at npm
    "require.min.js": ("requirejs@2.3.6", "require.js"),
    "d3.min.js": ("d3@5.7.0", "dist/d3.min.js"),
    "jquery.min.js": ("jquery@2.2.4", "dist/jquery.min.js"),
}

# ---------------------------------------------------------------- three ways to show attention

DATA = """
import numpy as np
{imports}
words = "the animal did not cross the street because it was too tired to go on .".split()
N = {n}
tokens = [words[i % 16] for i in range(N)]
scores = np.random.default_rng(0).normal(size=({heads}, N, N)) * 2
weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
"""
INTERACT = """
each = -(-N // 64)  # past 64 tokens not every label is drawn, as in the widget

@interact(head=(0, 11), temperature=(0.1, 5.0, 0.1))
def draw(head=0, temperature=1.0):
    x = np.exp(scores[head] / temperature)
    plt.figure(figsize=(6, 6))
    plt.imshow(x / x.sum(-1, keepdims=True), cmap="cividis")
    plt.xticks(range(0, N, each), tokens[::each], rotation=90)
    plt.yticks(range(0, N, each), tokens[::each])
    plt.show()
"""
# `look` gives a picture's fingerprint, 0 or "" while there is none. `quick` reads a few lines of
# a canvas: all of it takes some milliseconds, which a frame does not have to spare.
LOOK = """(quick) => {
  const canvas = document.querySelector(".step canvas[tabindex='0']");
  if (!canvas?.width) return 0;
  const { width, height } = canvas;
  const tall = quick ? 1 : height;
  let hash = 0;
  for (const y of quick ? [0.3, 0.5, 0.7, 0.9].map((share) => Math.floor(share * height)) : [0]) {
    const { data } = canvas.getContext("2d").getImageData(0, y, width, tall);
    for (const pixel of new Uint32Array(data.buffer)) hash = (Math.imul(hash, 31) + pixel) | 0;
  }
  return hash;
}"""
LOOK_INTERACT = """() => {
  const picture = document.querySelector(".jp-OutputArea img");
  return picture?.complete && picture.naturalWidth ? picture.src : "";
}"""
LOOK_BERTVIZ = """() => {
  const squares = document.querySelectorAll("#vis > svg > g:last-of-type > rect");
  const greys = document.querySelectorAll("#vis #left .background");
  return [...squares].map((rect) => rect.getAttribute("fill")).join()
    + [...greys].map((rect) => rect.style.opacity).join();
}"""


@dataclass
class Way:
    """A way to show attention.

    `acts`: what a reader does → how (key, move or click) and where, a selector.
    `fire`: what a reader does → JavaScript that does it at once, the k-th of many.
    """

    name: str
    imports: str
    source: str
    look: str
    acts: dict[str, tuple[str, str]]
    fire: dict[str, str]


WAYS = [
    Way(
        "AttentionHeatmap",
        "from helpers.widgets import AttentionHeatmap",
        "AttentionHeatmap(scores=scores, tokens=tokens, d_k=64, softmax=True)",
        LOOK,
        {
            "temperature": ("key", ".step input[aria-label='temperature']"),
            "head": ("key", ".step select[aria-label='head']"),
            "hover": ("move", ".step canvas[tabindex='0']"),
        },
        {
            "temperature": """(slider, k) => {
              slider.value = k / 30 - 1;
              bench.send(slider, "input");
            }""",
            "head": "(select, k) => { select.value = k % 12; bench.send(select, 'change'); }",
            "hover": """(canvas, k) => {
              const { right, bottom } = canvas.getBoundingClientRect();
              const [clientX, clientY] = [right - 40 - 61 * (k % 5), bottom - 8 - 41 * (k % 6)];
              bench.send(canvas, "pointermove", { clientX, clientY });
            }""",
        },
    ),
    Way(
        "interact + imshow",
        "%matplotlib inline\nimport matplotlib.pyplot as plt\nfrom ipywidgets import interact",
        INTERACT,
        LOOK_INTERACT,
        {
            "temperature": ("key", ".widget-hslider:nth-of-type(2) .noUi-handle"),
            "head": ("key", ".widget-hslider:nth-of-type(1) .noUi-handle"),
        },
        {
            "temperature": """(handle, k) => bench.send(handle, "keydown", {
              key: k < 30 ? "ArrowRight" : "ArrowLeft",
            })"""
        },
    ),
    Way(
        "BertViz head_view",
        "import sys; sys.path.append({site!r})\nimport torch\nfrom bertviz import head_view",
        "head_view([torch.tensor(weights)[None]], tokens)",
        LOOK_BERTVIZ,
        {
            "head": ("click", "#vis > svg > g:last-of-type > rect"),
            "hover": ("move each", "#vis #left > g:last-of-type > g:nth-of-type(-n + 12)"),
        },
        {"head": "(square) => bench.send(square, 'click')"},
    ),
]


def get_bertviz(folder: Path) -> dict[str, str]:
    """Install BertViz below the folder, alone; the texts of the scripts that it wants."""
    pip = ["uv", "pip", "install", "--quiet", "--no-deps", "--python", sys.executable]
    pip = [*pip, "--target", str(folder), "bertviz"]
    subprocess.run([sys.executable, "-m", *pip], check=True)
    return {end: npm_file(*source, folder) for end, source in CDN.items()}


def npm_file(package: str, path: str, folder: Path) -> str:
    """One file of a package at npm."""
    pack = ["npm", "pack", "--silent", package, "--pack-destination", str(folder)]
    name = subprocess.run(pack, check=True, capture_output=True, text=True).stdout.split()[-1]
    with tarfile.open(fileobj=io.BytesIO((folder / name).read_bytes())) as archive:
        return archive.extractfile(f"package/{path}").read().decode()


# ---------------------------------------------------------------- in the page

BENCH = """(look) => {
  const nextFrame = () => new Promise(requestAnimationFrame);
  // A message sent in a frame arrives when all of the frame is done: handlers, drawing, painting.
  const frameDone = async () => {
    const { port1, port2 } = new MessageChannel();
    const time = await nextFrame();
    await new Promise((done) => { port1.onmessage = done; port2.postMessage(0); });
    return time;
  };
  window.bench = {
    send(element, type, options = {}) {
      const kind = { keydown: KeyboardEvent, pointermove: PointerEvent, click: MouseEvent }[type];
      element.dispatchEvent(new (kind ?? Event)(type, { bubbles: true, ...options }));
    },

    run: () => window.jupyterapp.commands.execute("notebook:run-cell"),

    // Milliseconds from the command to run the cell until its picture is there.
    async paint() {
      const start = performance.now();
      bench.run();
      while (!look()) await frameDone();
      bench.painted = performance.now() - start;
    },

    // Wait for one event; then [milliseconds, frames] until the picture has changed.
    arm(type, limit) {
      const before = look();
      bench.changed = new Promise((done) => addEventListener(type, async (event) => {
        let [time, frames, now] = [0, 0, before];
        for (; [before, 0, ""].includes(now) && time < 1000 * limit; frames++) {
          await frameDone();
          time = performance.now() - event.timeStamp;
          now = look();
        }
        done([time, frames]);
      }, { once: true, capture: true }));
    },

    // Milliseconds that a handler and its drawing take, pixels included.
    cost(fire, element, k) {
      const waiting = [];
      const own = window.requestAnimationFrame;
      window.requestAnimationFrame = (draw) => waiting.push(draw);
      const start = performance.now();
      fire(element, k);
      for (const draw of waiting) draw(performance.now());
      for (const canvas of document.querySelectorAll(".step canvas:not([hidden])"))
        canvas.getContext("2d").getImageData(0, 0, 1, 1); // a browser draws when somebody looks
      const time = performance.now() - start;
      window.requestAnimationFrame = own;
      return time;
    },

    // 60 events in a second, in step with the frames; how many pictures they made, and how many
    // frames the browser had in that second: two events in one frame make one picture.
    async sixty(fire, elements) {
      let [fired, shown, last, quiet, frames] = [0, 0, look(true), 0, 0];
      const start = await frameDone();
      for (let time = start; quiet < 60; time = await frameDone()) {
        const now = look(true);
        const changed = now && now !== last;
        if (changed) [shown, last] = [shown + 1, now];
        quiet = changed || fired < 60 ? 0 : quiet + 1;
        if (fired < 60) frames++;
        const due = Math.min(60, 1 + Math.round((time - start) * 0.06));
        for (; fired < due; fired++) fire(elements[fired % elements.length], fired);
      }
      return [shown, frames];
    },
  };
}"""


class Stage:
    """One way and size in a browser of its own: a way that hangs harms no other."""

    def __init__(self, playwright, server: Server, way: Way, scripts: dict[str, str]):
        self.way, self.browser = way, launch(playwright)
        self.lab = Lab(self.browser, server)
        self.page = self.lab.page
        self.page.route(re.compile("^https://"), lambda route: answer(route, scripts))
        self.page.evaluate(f"({BENCH})({way.look})")
        if "BertViz" in way.name:  # it asks for RequireJS and does not wait for it
            self.page.add_script_tag(content=scripts["require.min.js"])

    def paint(self, cells: tuple[str, str]) -> float:
        """Run the first cell, then measure until the second has drawn its picture."""
        self.lab.open(notebook_of(*cells))
        run = "i => { panel.content.activeCellIndex = i; return bench.run(); }"
        self.page.evaluate(run, 0)
        self.page.evaluate("() => { panel.content.activeCellIndex = 1; bench.paint(); }")
        self.page.wait_for_function("bench.painted", timeout=1000 * LIMIT)
        self.page.wait_for_timeout(2000)  # exact numbers arrive, scripts settle
        return self.page.evaluate("bench.painted")

    def latency(self, action: str, count: int) -> np.ndarray:
        """Milliseconds and frames from event to change, of real keys and moves: (count, 2)."""
        found: list[list[float]] = []
        while len(found) < count + 2 and sum(ms for ms, _ in found) < 1000 * LIMIT:
            self.page.wait_for_timeout(random.uniform(50, 70))  # any moment between two frames
            self.act(*self.way.acts[action], len(found))
            found.append(self.page.evaluate("bench.changed"))
        return np.array(found[2:] or found)  # two to warm up

    def act(self, how: str, selector: str, k: int) -> None:
        """Press a key, click or move the mouse: the k-th time."""
        target, mouse = self.page.locator(selector), self.page.mouse
        if how in ("click", "move each"):
            target = target.nth(k // 2 * 7 % 12 if how == "click" else k * 7 % 12)  # off, on, next
        if how == "key":
            target.focus()
            self.arm("keydown")
            return self.page.keyboard.press("ArrowRight" if k % 22 < 11 else "ArrowLeft")
        target.scroll_into_view_if_needed()
        box = target.bounding_box()
        share = 0.25 + 0.7 * (0.618 * k % 1) if how == "move" else 0.5
        x, y = box["x"] + share * box["width"], box["y"] + share * box["height"]
        self.arm("click" if how == "click" else "pointermove")
        (mouse.click if how == "click" else mouse.move)(x, y)

    def arm(self, kind: str) -> None:
        self.page.evaluate("([type, limit]) => bench.arm(type, limit)", [kind, LIMIT])

    def cost(self, action: str, count: int) -> float:
        """Median milliseconds of handler and drawing, called at once."""
        element = self.page.locator(self.way.acts[action][1])
        call = f"(element, k) => bench.cost({self.way.fire[action]}, element, k)"
        return float(np.median([element.evaluate(call, k) for k in range(count)]))

    def sixty(self) -> list[int]:
        """How many pictures 60 events in one second make, and the frames of that second."""
        action, fire = next(iter(self.way.fire.items()))
        elements = self.page.locator(self.way.acts[action][1])
        return elements.evaluate_all(f"elements => bench.sixty({fire}, elements)")


def answer(route, scripts: dict[str, str]) -> None:
    """Give the page what it asks the network for, or nothing."""
    for end, text in scripts.items():
        if route.request.url.endswith(end):
            return route.fulfill(body=text, content_type="text/javascript")
    return route.abort()


# ---------------------------------------------------------------- measuring


@dataclass
class Row:
    """What was measured of one way at one size."""

    way: str
    n: int
    size: int  # bytes in the notebook
    state: int  # bytes of the widgets' state among them
    paint: float | None = None
    events: dict[str, np.ndarray] = field(default_factory=dict)
    handler: dict[str, float] = field(default_factory=dict)
    shown: int | None = None
    room: int | None = None  # frames of the second in which 60 events came

    def ms(self, action: str, percent: float = 50) -> float:
        """A percentile of the milliseconds from event to changed frame."""
        return float(np.percentile(self.events[action][:, 0], percent))

    def frames(self, action: str) -> int:
        return round(float(np.median(self.events[action][:, 1])))


def sizes(cells: tuple[str, str]) -> tuple[int, int]:
    """Bytes that the second cell adds to a notebook run by nbclient; those of widgets' state."""
    notebook = notebook_of(*cells)
    quiet = {"extra_arguments": ["--log-level=ERROR"], "timeout": 90}
    NotebookClient(notebook, kernel_name="python3", **quiet).execute()
    full = len(nbformat.writes(notebook).encode())
    notebook.metadata.pop("widgets", None)
    stateless = len(nbformat.writes(notebook).encode())
    notebook.cells[1].outputs = []
    return full - len(nbformat.writes(notebook).encode()), full - stateless


def measure(playwright, server: Server, way: Way, cells, scripts, count: int) -> Row:
    """Everything about one way at one size."""
    row = Row(way.name, int(cells[0].split("N = ")[1].split()[0]), *sizes(cells))
    stage = Stage(playwright, server, way, scripts)
    try:
        row.paint = stage.paint(cells)
        for action in way.acts:
            row.events[action] = stage.latency(action, count)
            if way is WAYS[0]:
                row.handler[action] = stage.cost(action, count)
        row.shown, row.room = stage.sixty()  # last: a kernel may have work for long
    except PlaywrightError as error:
        print(f"{way.name}, {row.n} tokens: {str(error).splitlines()[0]}", file=sys.stderr)
    finally:
        stage.browser.close()
    return row


def run(sizes: list[int], count: int, folder: Path) -> Iterator[Row]:
    """Measure every way at every size, one after the other."""
    scripts = get_bertviz(folder / "bertviz")
    server = Server(folder / "jupyterlab")
    try:
        with sync_playwright() as playwright:
            for n in sizes:
                for way in WAYS:
                    imports = way.imports.format(site=str(folder / "bertviz"))
                    cells = (DATA.format(n=n, heads=HEADS, imports=imports), way.source)
                    yield measure(playwright, server, way, cells, scripts, count)
    finally:
        server.stop()


# ---------------------------------------------------------------- the table and the goals

ACTIONS = ("head", "temperature", "hover")
HEADINGS = ["tokens", "way", "first paint", *ACTIONS, "frames", "handler", "of 60", "kB (state)"]


def line(row: Row) -> list[str]:
    """A row as text."""
    bytes_ = f"{row.size / 1000:,.0f} ({row.state / 1000:,.0f})"
    if row.paint is None:
        return [str(row.n), row.way, f"> {LIMIT:.0f} s", *["–"] * 6, bytes_]
    times = [
        f"{row.ms(a):,.0f} / {row.ms(a, 95):,.0f}" if a in row.events else "–" for a in ACTIONS
    ]
    frames = " ".join(str(row.frames(a)) if a in row.events else "–" for a in ACTIONS)
    handler = " ".join(f"{row.handler[a]:.1f}" if a in row.handler else "–" for a in ACTIONS)
    shown = "–" if row.shown is None else f"{row.shown} ({row.room})"
    return [str(row.n), row.way, f"{row.paint:,.0f}", *times, frames, handler, shown, bytes_]


def table(rows: list[Row]) -> str:
    """All rows below their headings, in columns."""
    lines = [HEADINGS, *map(line, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(w) if i == 1 else text.rjust(w) for i, (text, w) in enumerate(pairs))
        for pairs in (list(zip(texts, widths, strict=True)) for texts in lines)
    )


def goals(rows: list[Row]) -> Iterator[tuple[bool, str]]:
    """Each goal at each size: whether it holds, and what was measured."""
    by_size: dict[int, list[Row]] = {}
    for row in rows:
        by_size.setdefault(row.n, []).append(row)
    for n, (ours, interact, bertviz) in by_size.items():
        if ours.shown is None:
            yield False, f"{n}: the widget was not measured to the end"
            continue
        yield from own_goals(n, ours)
        for action in interact.events:
            times = interact.ms(action) / ours.ms(action)
            yield times >= 10, f"{n}: {action} {times:.0f}× faster than interact (goal: 10×)"
        sizes = f"{ours.size / 1000:,.0f} kB, BertViz {bertviz.size / 1000:,.0f} kB"
        yield ours.size < bertviz.size, f"{n}: {sizes} (goal: fewer)"


def own_goals(n: int, ours: Row) -> Iterator[tuple[bool, str]]:
    """The goals that compare with nothing else."""
    for action in ACTIONS:
        frames = ours.frames(action)
        yield frames == 1, f"{n}: {action} seen in frame {frames} after the event (goal: 1)"
        if limit := {128: 2, 512: 10}.get(n):
            took = ours.handler[action]
            yield took <= limit, f"{n}: {action}: handler and drawing {took:.1f} ms (goal: {limit})"
    yield ours.shown == 60, f"{n}: {ours.shown} of 60 events in {ours.room} frames shown (goal: 60)"
    if n == 64:
        yield ours.state <= 100_000, f"{n}: {ours.state / 1000:.0f} kB of state (goal: at most 100)"


def main() -> int:
    """Measure, print the table and the goals; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="16 and 64 tokens, few events")
    quick = parser.parse_args().quick
    os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for row in run([16, 64] if quick else [16, 64, 128, 512], 6 if quick else 30, Path(folder)):
            print(*line(row), sep="  ", file=sys.stderr)
            rows.append(row)
    held = list(goals(rows))
    print(f"{HEADS} heads; milliseconds: median / 95th percentile", "", table(rows), "", sep="\n")
    print(*(f"{'holds ' if good else 'MISSED'}  {text}" for good, text in held), sep="\n")
    return 0 if all(good for good, _ in held) else 1


if __name__ == "__main__":
    sys.exit(main())
