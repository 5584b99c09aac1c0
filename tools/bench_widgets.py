"""Measure the heatmap and the machine in JupyterLab and headless Chromium on this machine.

    python tools/bench_widgets.py    four to five minutes

The heatmap stands beside `ipywidgets.interact` + matplotlib, and its size beside BertViz's head
view; the machine beside PyTorch: a slider whose callback in the kernel sets one number of the
model, runs all of it again and sends eight numbers back. A row of WAYS says what is shown, what is
done to it, and its bars; exit status 1 if one is missed. Times are in milliseconds:

first paint  from the command to run the cell to the end of the first frame with the picture
ms, 95 %     median and percentile, from the time stamp of a key press or a mouse move to the end
             of the frame in which the picture has changed. The machine's: a number of the sentence
             changes where a head is open, then where the map is
frames       median number of frames until then; 1 is the very next
handler      our handler, arithmetic and drawing alone, called one after the other: median
of 60        60 events in one second: how many pictures were seen, in how many frames
kB           what the cell adds to a notebook run by nbclient; of this the widgets' state
sweep        *why this word*: until it is known what is missed without each of so many parts
frame        the longest that the page computes at once for it, its way back and its notes
"""

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import nbformat
import numpy as np
from nbclient import NotebookClient
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests"))

from browser.harness import Lab, Server, launch, notebook_of  # noqa: E402

from workshop.machine.wire import joined, packed  # noqa: E402
from workshop.widgets.base import module  # noqa: E402

LIMIT = 20_000  # milliseconds that one measurement may take


class Act(NamedTuple):
    """What a reader does where: by keys, or without them by the mouse.

    `fire` is JavaScript that does it at once, the k-th of many, `first` what is done before all.
    """

    where: str
    keys: tuple[str, ...] = ("ArrowRight", "ArrowLeft")
    fire: str = ""
    first: str = "null"


class Way(NamedTuple):
    """A way to show something: cells, the second draws it; what is done to it; its bars."""

    name: str
    cells: tuple[str, ...]
    acts: dict[str, Act]
    bars: dict[str, float]


CANVAS, SLIDER = ".step canvas[tabindex='0']", ".widget-hslider .noUi-handle"
ATTENTION = """
import numpy as np
words = "the animal did not cross the street because it was too tired to go on .".split()
tokens = [words[i % 16] for i in range({n})]
scores = np.random.default_rng(0).normal(size=(12, {n}, {n})) * 2
weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
"""
OURS = "from workshop.widgets import AttentionHeatmap"
SHOW = "AttentionHeatmap(scores=scores, tokens=tokens, d_k=64, softmax=True)"
PLOT = "%matplotlib inline\nimport matplotlib.pyplot as plt\nfrom ipywidgets import interact"
INTERACT = """
@interact(temperature=(0.1, 5.0, 0.1))
def draw(temperature=1.0):
    x = np.exp(scores[0] / temperature)
    plt.figure(figsize=(6, 6))
    plt.imshow(x / x.sum(-1, keepdims=True), cmap="cividis")
    plt.xticks(range(len(tokens)), tokens, rotation=90)
    plt.yticks(range(len(tokens)), tokens)
    plt.show()
"""
BERTVIZ = "import torch\nfrom bertviz import head_view"
HEATMAP = {
    "temperature": Act(".step input[aria-label='temperature']",
        fire="(slider, k) => { slider.value = k / 30 - 1; bench.send(slider, 'input'); }"),
    "head": Act(".step select[aria-label='head']",
        fire="(select, k) => { select.value = k % 12; bench.send(select, 'change'); }"),
    "hover": Act(CANVAS, (), """(canvas, k) => {
          const { right, bottom } = canvas.getBoundingClientRect();
          const [clientX, clientY] = [right - 40 - 61 * (k % 5), bottom - 8 - 41 * (k % 6)];
          bench.send(canvas, "pointermove", { clientX, clientY });
        }"""),
}  # fmt: skip

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
MACHINE = {
    "number": Act(CANVAS, ("+", "-"),
        "(canvas, k) => bench.send(canvas, 'keydown', { key: k < 30 ? '+' : '-' })",
        f"""['ArrowRight', 'ArrowDown'].forEach((key) =>
          bench.send(document.querySelector("{CANVAS}"), 'keydown', {{ key }}))"""),
    "map": Act(".step .hand input", ("ArrowUp", "ArrowDown"), """(input, k) => {
          input.value = Number(input.value) + (k < 30 ? 0.1 : -0.1);
          bench.send(input, "input");
        }""", "bench.run(3)"),
    "PyTorch": Act(SLIDER),
}  # fmt: skip
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
text, written = (" ".join(list(some)[-12:]) for some in words)
table = model.src_tokens.weight
"""
WRITER = "from helpers.writer import load_writer\nmodel, pieces = load_writer()"
LINE = "Machine(model, 'The value of the expression is the list of all', tokenizer=pieces)"
LAYERS = """
words = [f"word{i}" for i in range(64)]
model, text = DecoderOnly(64, 64, 64, 8, 256, 4).eval(), " ".join(words)
table = model.tokens.weight
"""


def machine(name: str, model: str, run: str, shown: str, bars: dict[str, float]) -> Way:
    """The machine on a model, open at a head, a slider that lets PyTorch run it, and the map."""
    data, show = MODELS.format(model=model, run=run), f"machine = Machine({shown})\nmachine"
    cells = (data, show, CALLBACK, "machine.at = ''")
    return Way(f"Machine, {name}", cells, MACHINE, {"first paint": 1000} | bars)


def heatmap(name: str, n: int, imports: str, show: str, acts: dict = HEATMAP, **bars: float) -> Way:
    """A picture of attention among n tokens."""
    return Way(f"{name}, {n} tokens", (imports + ATTENTION.format(n=n), show), acts, bars)


SMOOTH = {"frames": 1, "of 60": 60}
AT = "model, text, words, written=written, at='encoder/layer 1/attention/head 1'"
WAYS = [
    machine("apple", APPLES, "attend(*(table[:6] @ w for w in W))",
            "APPLE, 'the shop sells apple and banana', APPLE_WORDS, at='attention/head'",
            SMOOTH | {"kB": 60}),
    machine("thrones", THRONES, BOTH, AT, SMOOTH | {"kB": 150}),
    machine("translator", TRANSLATOR, BOTH, AT, {"ms": 33, "kB": 900}),
    machine("4 × 8 heads", LAYERS, "model(torch.arange(64)[None])",
            "model, text, words, at='layer 1/attention/head 1'", {"ms": 50}),
    heatmap("AttentionHeatmap", 64, OURS, SHOW, **SMOOTH, state=100, handler=2),
    heatmap("AttentionHeatmap", 512, OURS, SHOW, **SMOOTH, handler=10),
    heatmap("interact + imshow", 64, PLOT, INTERACT, {"temperature": Act(SLIDER)}),
    heatmap("BertViz head_view", 64, BERTVIZ, "head_view([torch.tensor(weights)[None]], tokens)",
            {}),
    Way("Why, translator", (MODELS.format(model=TRANSLATOR, run="_"), f"Machine({AT})"), {},
        {"sweep": 300}),
    Way("Why, writer", (MODELS.format(model=WRITER, run="_"), LINE), {}, {"frame": 50}),
]  # fmt: skip
OTHERS = (  # the heatmap must be so many times faster, or smaller, than what others offer
    ("temperature ms", "AttentionHeatmap, 64 tokens", "interact + imshow, 64 tokens", 10),
    ("kB", "AttentionHeatmap, 64 tokens", "BertViz head_view, 64 tokens", 1),
)

# --------------------------------------------------------------------------------- in the page
BENCH = """(canvas) => {
  // A message sent in a frame arrives when all of the frame is done: handlers, drawing, painting.
  const frameDone = async () => {
    const { port1, port2 } = new MessageChannel();
    const time = await new Promise(requestAnimationFrame);
    await new Promise((done) => { port1.onmessage = done; port2.postMessage(0); });
    return time;
  };
  // Of a canvas all pixels or, quickly, a few lines and its words: all takes some milliseconds,
  // which a frame does not have to spare.
  const hashed = (canvas, quick) => {
    const { width, height } = canvas;
    let hash = 0;
    for (const y of quick ? [0.3, 0.5, 0.7, 0.9].map((share) => Math.floor(share * height)) : [0]) {
      const { data } = canvas.getContext("2d").getImageData(0, y, width, quick ? 1 : height);
      for (const pixel of new Uint32Array(data.buffer)) hash = (Math.imul(hash, 31) + pixel) | 0;
    }
    return (hash || "") + (quick ? document.querySelector(".step .hand")?.textContent ?? "" : "");
  };
  window.bench = {
    // The fingerprint of what is drawn or answered, "" while there is nothing.
    look(quick) {
      const [board, image, answer] = [canvas, ".jp-OutputArea img", ".widget-html-content"]
        .map((place) => document.querySelector(place));
      return (board?.width ? hashed(board, quick) : "") + (image?.naturalWidth ? image.src : "")
        + (answer?.textContent ?? "");
    },

    send(element, type, options = {}) {
      const kind = { keydown: KeyboardEvent, pointermove: PointerEvent }[type] ?? Event;
      element.dispatchEvent(new kind(type, { bubbles: true, ...options }));
    },

    run(i) {
      panel.content.activeCellIndex = i;
      return window.jupyterapp.commands.execute("notebook:run-cell");
    },

    // [milliseconds, frames] from a moment until the picture is another one.
    async changed(before, start, limit) {
      let [time, frames, now] = [0, 0, before];
      for (; (!now || now === before) && time < limit; frames++) {
        await frameDone();
        time = performance.now() - start;
        now = bench.look();
      }
      return [time, frames];
    },

    // The same of a cell from the command to run it, and from the next event of a type.
    paint(i, limit) {
      const start = performance.now();
      bench.run(i);
      return bench.changed("", start, limit);
    },
    arm(type, limit) {
      const before = bench.look();
      bench.found = new Promise((done) => addEventListener(type, ({ timeStamp }) =>
        done(bench.changed(before, timeStamp, limit)), { once: true, capture: true }));
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
    async sixty(fire, element) {
      let [fired, shown, last, quiet, frames] = [0, 0, bench.look(true), 0, 0];
      const start = await frameDone();
      for (let time = start; quiet < 60; time = await frameDone()) {
        const now = bench.look(true);
        const changed = now && now !== last;
        if (changed) [shown, last] = [shown + 1, now];
        quiet = changed || fired < 60 ? 0 : quiet + 1;
        if (fired < 60) frames++;
        const due = Math.min(60, 1 + Math.round((time - start) * 0.06));
        for (; fired < due; fired++) fire(element, fired);
      }
      return [shown, frames];
    },
  };
}"""
ASK = """async ([js, program, learned, texts, word]) => {
  const { Engine, Why, inFrames } = await import(`data:text/javascript,${encodeURIComponent(js)}`);
  const bytes = Uint8Array.from(learned, (sign) => sign.charCodeAt());
  const engine = new Engine(program, new Float32Array(bytes.buffer));
  const why = new Why(engine, texts, word, null, []);
  const [times, frames] = [[], []];
  for (const all of [why.stepping(), why.sweeping(), why.noting()]) {
    let [start, begun] = Array(2).fill(performance.now());
    const end = () => frames.push(performance.now() - begun);
    await inFrames(all, () => (begun = performance.now()), end);
    times.push(performance.now() - start);
  }
  return { parts: why.sweep.size, sweep: times[1], frame: Math.max(...frames) };
}"""


class Stage(Lab):
    """JupyterLab in a page, in which one way after the other is measured."""

    def paint(self, way: Way) -> float:
        """Run the first cell, measure until the second has drawn its picture, run the third."""
        self.open(notebook_of(*way.cells))
        self.page.evaluate(BENCH, CANVAS)
        self.page.evaluate("bench.run(0)")
        time, _ = self.page.evaluate(f"bench.paint(1, {LIMIT})")
        if way.cells[2:]:
            self.page.evaluate("bench.run(2)")
        self.page.wait_for_timeout(1500)  # exact numbers arrive, scripts settle
        return time

    def latency(self, act: Act, count: int = 30) -> np.ndarray:
        """Milliseconds and frames from event to change, of real keys and moves: (count, 2)."""
        found: list[list[float]] = []
        while len(found) < count + 2 and sum(ms for ms, _ in found) < LIMIT:
            self.page.wait_for_timeout(random.uniform(50, 70))  # any moment between two frames
            self.do(act, len(found))
            found.append(self.page.evaluate("bench.found"))
        return np.array(found[2:] or found)  # two to warm up

    def do(self, act: Act, k: int) -> None:
        """Press a key or move the mouse: the k-th time."""
        target, event = self.page.locator(act.where), "keydown" if act.keys else "pointermove"
        target.focus() if act.keys else target.scroll_into_view_if_needed()
        box, share = target.bounding_box(), 0.25 + 0.7 * (0.618 * k % 1)
        self.page.evaluate(f"bench.arm('{event}', {LIMIT})")
        if act.keys:
            self.page.keyboard.press(act.keys[k % 22 >= 11])
        else:
            self.page.mouse.move(box["x"] + share * box["width"], box["y"] + share * box["height"])

    def figures(self, name: str, act: Act, sixty: bool) -> dict[str, float]:
        """What is measured of an act; its handler alone, where no kernel answers."""
        self.page.evaluate(act.first)
        times, frames = self.latency(act).T
        found = {"ms": np.median(times), "95 %": np.percentile(times, 95)}
        found["frames"] = np.median(frames)
        if act.fire:
            element = self.page.locator(act.where)
            call = f"(element, k) => bench.cost({act.fire}, element, k)"
            found["handler"] = np.median([element.evaluate(call, k) for k in range(30)])
        found = {f"{name} {what}": float(x) for what, x in found.items()}
        if act.fire and sixty:
            call = f"element => bench.sixty({act.fire}, element)"
            found["of 60"], found["in frames"] = element.evaluate(call)
        return found

    def ask(self, cells: tuple[str, ...]) -> dict[str, float]:
        """Let a page of its own say why a machine says its likeliest word: medians of five."""
        exec(cells[0], made := {})
        why = (machine := eval(cells[1], made)).why(next(iter(machine.output))).why
        code = module("machine/why.js") + "\nexport { Engine, Why, inFrames };"
        learned = joined(why.p.weights).decode("latin-1")  # a character a byte
        given = [code, packed(why.p) | {"others": why.others}, learned, why.texts, why.word]
        page = self.page.context.new_page()
        found = [page.evaluate(ASK, given) for _ in range(5)]
        return {what: float(np.median([one[what] for one in found])) for what in found[0]}


# --------------------------------------------------------------------------------- measuring
def sizes(cells: tuple[str, ...]) -> dict[str, float]:
    """kB that the second cell adds to a notebook run by nbclient; those of widgets' state."""
    notebook = notebook_of(*cells[:2])
    quiet = {"extra_arguments": ["--log-level=ERROR"], "timeout": 90}
    NotebookClient(notebook, kernel_name="python3", **quiet).execute()

    def size() -> float:
        return len(nbformat.writes(notebook).encode()) / 1000

    full = size()
    notebook.metadata.pop("widgets", None)
    state = full - size()
    notebook.cells[1].outputs = []
    return {"kB": full - size(), "state": state}


def measure(stage: Stage, way: Way) -> dict[str, float]:
    """All figures of one way; those up to an error, if there is one."""
    found = stage.ask(way.cells) if way.name.startswith("Why") else sizes(way.cells)
    try:
        if way.acts:
            found["first paint"] = stage.paint(way)
        for i, (name, act) in enumerate(way.acts.items()):
            found |= stage.figures(name, act, sixty=not i)
    except PlaywrightError as error:
        print(f"{way.name}: {str(error).splitlines()[0]}", file=sys.stderr)
    return found


def held(way: Way, found: dict[str, float]) -> Iterator[tuple[bool, str]]:
    """Each bar of a way: whether it holds, and what was measured."""
    own = [f"{name} " for name, act in way.acts.items() if act.fire]  # no kernel answers these
    for bar, limit in way.bars.items():
        for figure in [f"{act}{bar}" for act in own if bar in ("ms", "frames", "handler")] or [bar]:
            x = found.get(figure, float("nan"))  # what was not measured holds no bar
            good = x >= limit if bar == "of 60" else x <= limit
            yield good, f"{way.name}: {figure} {x:,.4g} (bar: {limit:g})"


def main() -> int:
    """Measure and print every way, then the bars; 1 if one is missed."""
    found, bars = {}, []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"}
        pip = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--python"]
        subprocess.run([*pip, sys.executable, "--target", folder, "bertviz"], check=True)
        server = Server(Path(folder) / "jupyterlab")
        try:
            stage = Stage(launch(playwright), server)
            for way in WAYS:
                found[way.name] = measure(stage, way)
                told = (f"{what} {x:,.4g}" for what, x in found[way.name].items())
                print(f"{way.name}: {', '.join(told)}", flush=True)
                bars += held(way, found[way.name])
        finally:
            server.stop()
    for figure, ours, other, times in OTHERS:
        x, y = (found[name].get(figure, float("nan")) for name in (ours, other))
        told = f"{figure}: {ours} {x:,.4g}, {other} {y:,.4g} (bar: {times}×)"
        bars.append((y >= times * x, told))
    print("", *(f"{'holds ' if good else 'MISSED'}  {text}" for good, text in bars), sep="\n")
    return int(not all(good for good, _ in bars))


if __name__ == "__main__":
    sys.exit(main())
