"""Measure the heatmap and the machine in JupyterLab and headless Chromium on this machine.

    python tests/bench_widgets.py    some four minutes

The heatmap stands beside `ipywidgets.interact` + matplotlib, and its size beside that of BertViz's
head view; the machine beside PyTorch: a slider whose callback in the kernel sets one number of the
model, runs all of it again and sends eight numbers back. Times are in milliseconds:

first paint  from the command to run the cell to the end of the first frame with the picture
temperature, head, hover; number, map, PyTorch
             from the time stamp of a key press or a mouse move to the end of the frame in which
             the picture has changed: median / 95th percentile. The machine's: a number of the
             sentence changes where a head is open, then where the map is
frame        median number of frames until then; 1 is the very next
handler      our handler, arithmetic and drawing alone, called one after the other: median
of 60        60 events in one second: how many pictures were seen, in how many frames
kB           what the cell adds to a notebook run by nbclient; of this the widgets' state

Exit status 1 if a bar is missed.
"""

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import nbformat
import numpy as np
from browser.harness import Lab, Server, launch, notebook_of
from nbclient import NotebookClient
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 20.0  # seconds that one measurement may take


class Act(NamedTuple):
    """What a reader does, how and where (a selector), and how one sees that the picture changed.

    `fire` is JavaScript that does it at once, the k-th of many, `first` what is done before all.
    """

    how: str
    where: str
    look: str
    fire: str = ""
    first: str = ""


@dataclass
class Way:
    """A way to show something: cells, the second draws it; what is done to it; its bars."""

    name: str
    of: str
    cells: tuple[str, ...]
    acts: dict[str, Act]
    bars: dict[str, float] = field(default_factory=dict)
    count: int = 30


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
  const words = quick ? document.querySelector(".step .hand")?.textContent ?? "" : "";
  for (const sign of words) hash = (Math.imul(hash, 31) + sign.charCodeAt()) | 0;
  return hash;
}"""

# ---------------------------------------------------------------- the heatmap and others

ATTENTION = """
import numpy as np
{imports}
words = "the animal did not cross the street because it was too tired to go on .".split()
N = {n}
tokens = [words[i % 16] for i in range(N)]
scores = np.random.default_rng(0).normal(size=(12, N, N)) * 2
weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
"""
INTERACT = """
@interact(temperature=(0.1, 5.0, 0.1))
def draw(temperature=1.0):
    x = np.exp(scores[0] / temperature)
    plt.figure(figsize=(6, 6))
    plt.imshow(x / x.sum(-1, keepdims=True), cmap="cividis")
    plt.xticks(range(N), tokens, rotation=90)
    plt.yticks(range(N), tokens)
    plt.show()
"""
LOOK_INTERACT = """() => {
  const picture = document.querySelector(".jp-OutputArea img");
  return picture?.complete && picture.naturalWidth ? picture.src : "";
}"""
HEATMAP = {
    "temperature": Act("arrow", ".step input[aria-label='temperature']", LOOK,
        "(slider, k) => { slider.value = k / 30 - 1; bench.send(slider, 'input'); }"),
    "head": Act("arrow", ".step select[aria-label='head']", LOOK,
        "(select, k) => { select.value = k % 12; bench.send(select, 'change'); }"),
    "hover": Act("move", ".step canvas[tabindex='0']", LOOK, """(canvas, k) => {
          const { right, bottom } = canvas.getBoundingClientRect();
          const [clientX, clientY] = [right - 40 - 61 * (k % 5), bottom - 8 - 41 * (k % 6)];
          bench.send(canvas, "pointermove", { clientX, clientY });
        }"""),
}  # fmt: skip
SLIDER = ".widget-hslider .noUi-handle"
PLOT = "%matplotlib inline\nimport matplotlib.pyplot as plt\nfrom ipywidgets import interact"


def heatmap(n: int, bars: dict[str, float]) -> Way:
    """The heatmap of 12 heads on n tokens."""
    data = ATTENTION.format(imports="from workshop.widgets import AttentionHeatmap", n=n)
    show = "AttentionHeatmap(scores=scores, tokens=tokens, d_k=64, softmax=True)"
    bars = {"frames": 1, "of 60": 60} | bars
    return Way("AttentionHeatmap", f"{n} tokens", (data, show), HEATMAP, bars)


HEATMAPS = [heatmap(64, {"state": 100, "handler": 2}), heatmap(512, {"handler": 10})]


def others(site: Path) -> list[Way]:
    """What others offer for 64 tokens; BertViz lies in `site`."""
    imports = f"import sys, torch; sys.path.append({str(site)!r})\nfrom bertviz import head_view"
    view = "head_view([torch.tensor(weights)[None]], tokens)"
    plot = {"temperature": Act("arrow", SLIDER, LOOK_INTERACT)}
    return [
        Way("interact + imshow", "64 tokens", (ATTENTION.format(imports=PLOT, n=64), INTERACT),
            plot, count=12),
        Way("BertViz head_view", "64 tokens", (ATTENTION.format(imports=imports, n=64), view), {}),
    ]  # fmt: skip


# ---------------------------------------------------------------- the machine and PyTorch

MODELS = """
import ipywidgets, numpy as np, torch
from helpers import training
from helpers.examples import APPLE, APPLE_WORDS
from helpers.models import DecoderOnly, Transformer
from workshop import Machine

torch.manual_seed(0)
torch.set_num_threads(1)
{model}
def again(change):
    with torch.no_grad():
        table[1, 0] = change.new
        answer.value = " ".join(f"{{x:.6f}}" for x in {run}.flatten()[-8:])
"""
CALLBACK = """
slider, answer = ipywidgets.FloatSlider(min=-2, max=2, step=0.05), ipywidgets.HTML("ready")
slider.observe(again, "value")
ipywidgets.VBox([slider, answer])
"""
LOOK_ANSWER = "() => document.querySelector('.widget-html-content')?.innerText"
CANVAS = ".step canvas[tabindex='0']"
MACHINE = {
    "number": Act("plus", CANVAS, LOOK,
        "(canvas, k) => bench.send(canvas, 'keydown', { key: k < 30 ? '+' : '-' })",
        f"""() => ["ArrowRight", "ArrowDown"].forEach((key) =>
          bench.send(document.querySelector("{CANVAS}"), "keydown", {{ key }}))"""),
    "map": Act("up", ".step .hand input", LOOK, """(input, k) => {
          input.value = Number(input.value) + (k < 30 ? 0.1 : -0.1);
          bench.send(input, "input");
        }""", "() => document.querySelector('.step .crumbs button').click()"),
    "PyTorch": Act("arrow", SLIDER, LOOK_ANSWER),
}  # fmt: skip


def machine(of: str, model: str, run: str, text: str, bars: dict[str, float]) -> Way:
    """The machine on a model, open at a head, and a slider that lets PyTorch run it."""
    cells = (MODELS.format(model=model, run=run), f"Machine({text})", CALLBACK)
    return Way("Machine", of, cells, MACHINE, bars | {"first paint": 1000})


HEAD = "at='encoder/layer 1/attention/head 1'"
BOTH = "model(*(torch.arange(1, 1 + len(text.split()))[None] for text in (text, written)))"
APPLES = """
table, *W = (torch.tensor(APPLE[name]) for name in ("table", "W_q", "W_k", "W_v"))
attend = torch.nn.functional.scaled_dot_product_attention
"""
THRONES = """
words = ("<pad> <start> <end> when you play the game of thrones win or die i drink and know things"
         " true enemy won't wait out storm he brings").split()
model = Transformer(26, 26, 12, 3, 48, 1).eval()
text, written = "when you play the game of thrones", "<start> you win or"
table = model.src_tokens.weight
"""
TRANSLATOR = """
words = training.vocabularies(training.corpus(13_000, np.random.default_rng(13)))
model = training.translator(*words).eval()
text, written = (" ".join(list(some)[:12]) for some in words)
table = model.src_tokens.weight
"""
LAYERS = """
words = [f"word{i}" for i in range(64)]
model, text = DecoderOnly(64, 64, 64, 8, 256, 4).eval(), " ".join(words)
table = model.tokens.weight
"""
MACHINES = [
    machine("apple", APPLES, "attend(*(table[:6] @ w for w in W))",
            "APPLE, 'the shop sells apple and banana', APPLE_WORDS, at='attention/head'",
            {"frames": 1, "of 60": 60, "kB": 60}),
    machine("thrones", THRONES, BOTH, f"model, text, words, written=written, {HEAD}",
            {"frames": 1, "of 60": 60, "kB": 150}),
    machine("translator", TRANSLATOR, BOTH, f"model, text, words, written=written, {HEAD}",
            {"ms": 33, "kB": 900}),
    machine("4 × 8 heads", LAYERS, "model(torch.arange(64)[None])",
            "model, text, words, at='layer 1/attention/head 1'", {"ms": 50}),
]  # fmt: skip

# ---------------------------------------------------------------- in the page

BENCH = """() => {
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

    run(i) {
      panel.content.activeCellIndex = i;
      return window.jupyterapp.commands.execute("notebook:run-cell");
    },

    // Milliseconds from the command to run the cell until its picture is there.
    async paint(i) {
      const start = performance.now();
      bench.run(i);
      while (!bench.look()) await frameDone();
      bench.painted = performance.now() - start;
    },

    // Wait for one event; then [milliseconds, frames] until the picture has changed.
    arm(type, limit) {
      const before = bench.look();
      bench.changed = new Promise((done) => addEventListener(type, async (event) => {
        let [time, frames, now] = [0, 0, before];
        for (; [before, 0, ""].includes(now) && time < 1000 * limit; frames++) {
          await frameDone();
          time = performance.now() - event.timeStamp;
          now = bench.look();
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
      let [fired, shown, last, quiet, frames] = [0, 0, bench.look(true), 0, 0];
      const start = await frameDone();
      for (let time = start; quiet < 60; time = await frameDone()) {
        const now = bench.look(true);
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
KEYS = {"arrow": ("ArrowRight", "ArrowLeft"), "plus": ("+", "-"), "up": ("ArrowUp", "ArrowDown")}


class Stage:
    """A page of JupyterLab in which one way after the other is measured."""

    def __init__(self, browser, server: Server):
        self.lab = Lab(browser, server)
        self.page = self.lab.page
        self.page.evaluate(BENCH)

    def look(self, act: Act) -> None:
        """From now on look at what this act changes."""
        self.page.evaluate(f"() => void (bench.look = {act.look})")

    def paint(self, way: Way) -> float:
        """Run the first cell, measure until the second has drawn its picture, run the others."""
        self.lab.open(notebook_of(*way.cells))
        self.look(next(iter(way.acts.values())))
        self.page.evaluate("() => { delete bench.painted; return bench.run(0); }")
        self.page.evaluate("() => void bench.paint(1)")
        self.page.wait_for_function("bench.painted", timeout=1000 * LIMIT)
        for i in range(2, len(way.cells)):
            self.page.evaluate("i => bench.run(i)", i)
        self.page.wait_for_timeout(1500)  # exact numbers arrive, scripts settle
        return self.page.evaluate("bench.painted")

    def latency(self, act: Act, count: int) -> np.ndarray:
        """Milliseconds and frames from event to change, of real keys and moves: (count, 2)."""
        found: list[list[float]] = []
        while len(found) < count + 2 and sum(ms for ms, _ in found) < 1000 * LIMIT:
            self.page.wait_for_timeout(random.uniform(50, 70))  # any moment between two frames
            self.do(act, len(found))
            found.append(self.page.evaluate("bench.changed"))
        return np.array(found[2:] or found)  # two to warm up

    def do(self, act: Act, k: int) -> None:
        """Press a key or move the mouse: the k-th time."""
        target, mouse = self.page.locator(act.where), self.page.mouse
        if act.how in KEYS:
            target.focus()
            self.arm("keydown")
            return self.page.keyboard.press(KEYS[act.how][k % 22 >= 11])
        target.scroll_into_view_if_needed()
        box = target.bounding_box()
        share = 0.25 + 0.7 * (0.618 * k % 1)
        self.arm("pointermove")
        mouse.move(box["x"] + share * box["width"], box["y"] + share * box["height"])

    def arm(self, kind: str) -> None:
        self.page.evaluate("([type, limit]) => bench.arm(type, limit)", [kind, LIMIT])

    def cost(self, act: Act, count: int) -> float:
        """Median milliseconds of handler and drawing, called at once."""
        element = self.page.locator(act.where)
        call = f"(element, k) => bench.cost({act.fire}, element, k)"
        return float(np.median([element.evaluate(call, k) for k in range(count)]))

    def sixty(self, act: Act) -> list[int]:
        """How many pictures 60 events in one second make, and the frames of that second."""
        elements = self.page.locator(act.where)
        return elements.evaluate_all(f"elements => bench.sixty({act.fire}, elements)")


# ---------------------------------------------------------------- measuring


@dataclass
class Row:
    """What was measured of one way."""

    way: Way
    kB: float  # in the notebook
    state: float  # kB of the widgets' state among them
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


def sizes(cells: tuple[str, ...]) -> tuple[float, float]:
    """kB that the second cell adds to a notebook run by nbclient; those of widgets' state."""
    notebook = notebook_of(*cells[:2])
    quiet = {"extra_arguments": ["--log-level=ERROR"], "timeout": 90}
    NotebookClient(notebook, kernel_name="python3", **quiet).execute()
    full = len(nbformat.writes(notebook).encode())
    notebook.metadata.pop("widgets", None)
    stateless = len(nbformat.writes(notebook).encode())
    notebook.cells[1].outputs = []
    return (full - len(nbformat.writes(notebook).encode())) / 1000, (full - stateless) / 1000


def measure(stage: Stage, way: Way) -> Row:
    """Everything about one way."""
    row = Row(way, *sizes(way.cells))
    if not way.acts:
        return row
    try:
        row.paint = stage.paint(way)
        for name, act in way.acts.items():
            stage.look(act)
            stage.page.evaluate(act.first or "() => {}")
            row.events[name] = stage.latency(act, way.count)
            if way.bars and act.fire:
                row.handler[name] = stage.cost(act, way.count)
            if row.shown is None and act.fire:
                row.shown, row.room = stage.sixty(act)
    except PlaywrightError as error:
        print(f"{way.name}, {way.of}: {str(error).splitlines()[0]}", file=sys.stderr)
    return row


# ---------------------------------------------------------------- the bars


def told(row: Row) -> str:
    """What was measured, in a few lines."""
    lines = [f"{row.way.name}, {row.way.of}: {row.kB:,.0f} kB, {row.state:,.0f} of them state"]
    if row.paint is not None:
        lines[0] += f"; first paint {row.paint:,.0f}"
    for act in row.events:
        own = f", handler {row.handler[act]:.1f}" if act in row.handler else ""
        times = f"{row.ms(act):,.0f} / {row.ms(act, 95):,.0f}"
        lines.append(f"{act:>14} {times:>15}, frame {row.frames(act)}{own}")
    if row.shown is not None:
        lines.append(f"{'of 60':>14} {row.shown} shown in {row.room} frames")
    return "\n".join(lines)


def bars(row: Row) -> Iterator[tuple[bool, str]]:
    """Each bar of a way: whether it holds, and what was measured."""
    if row.way.bars and row.shown is None:
        yield False, f"{row.way.of}: not measured to the end"
        return
    for bar, limit in row.way.bars.items():
        own = row.handler  # the acts that no kernel answers
        found = {"frames": {a: row.frames(a) for a in own}, "ms": {a: row.ms(a) for a in own},
                 "handler": own, "of 60": {"": row.shown}, "kB": {"": row.kB},
                 "state": {"": row.state}, "first paint": {"": row.paint}}  # fmt: skip
        for act, x in found[bar].items():
            good = x >= limit if bar == "of 60" else x <= limit
            yield good, f"{row.way.name}, {row.way.of}: {act} {bar} {x:,.4g} (bar: {limit:g})"


def beside(ours: Row, interact: Row, bertviz: Row) -> Iterator[tuple[bool, str]]:
    """The heatmap against what others offer."""
    times = interact.ms("temperature") / ours.ms("temperature")
    yield times >= 10, f"temperature {times:.0f}× faster than interact (bar: 10×)"
    yield ours.kB < bertviz.kB, f"{ours.kB:,.0f} kB, BertViz {bertviz.kB:,.0f} kB (bar: fewer)"


def run(folder: Path) -> Iterator[Row]:
    """Measure every way, one after the other; BertViz is installed into the folder, alone."""
    pip = ["uv", "pip", "install", "--quiet", "--no-deps", "--python", sys.executable]
    pip = [*pip, "--target", str(folder / "bertviz"), "bertviz"]
    subprocess.run([sys.executable, "-m", *pip], check=True)
    server = Server(folder / "jupyterlab")
    try:
        with sync_playwright() as playwright:
            stage = Stage(launch(playwright), server)
            for way in [*MACHINES, *HEATMAPS, *others(folder / "bertviz")]:
                yield measure(stage, way)
    finally:
        server.stop()


def main() -> int:
    """Measure, print the tables and the bars; 1 if a bar is missed."""
    os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for row in run(Path(folder)):
            print(told(row), flush=True)
            rows.append(row)
    ours, _, interact, bertviz = rows[len(MACHINES) :]
    held = [*(bar for row in rows for bar in bars(row)), *beside(ours, interact, bertviz)]
    print("", *(f"{'holds ' if good else 'MISSED'}  {text}" for good, text in held), sep="\n")
    return 0 if all(good for good, _ in held) else 1


if __name__ == "__main__":
    sys.exit(main())
