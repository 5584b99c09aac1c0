// Makes a page's cells live: they are edited in place and run in one worker, in order; what they
// show takes the place of what was saved. Nothing is loaded before a reader asks for it.
const home = new URL("./", document.currentScript.src); // live/VERSION/
const BYTES = 0; // of a first run: filled in when the site is made
const service = navigator.serviceWorker;
const first = !service?.controller; // nobody has kept this page
const cells = new Map();
const models = new Map(); // of widgets that cells have shown
const queue = [];
let busy = false; // while the queue is worked through, or Python starts for it
let worker, python, interrupts, running; // python: a promise, while it starts and after

function make(tag, told, ...inside) {
  const made = Object.assign(document.createElement(tag), told);
  made.append(...inside);
  return made;
}
const button = (textContent, onclick, ariaLabel = null) =>
  make("button", { type: "button", textContent, onclick, ariaLabel });
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// ---------------------------------------------------------------- what stays in this browser

let shelf = {}; // of a browser that keeps nothing: all works, until the page is left
try {
  shelf = localStorage ?? shelf;
} catch {}
function keep(key, text) {
  try {
    shelf[key] = text;
  } catch {} // it is full
}
function answers() {
  const all = Object.entries(shelf);
  return Object.fromEntries(all.filter(([key]) => key.startsWith("my_transformer/")));
}

// ---------------------------------------------------------------- Python

async function begin() {
  bar.value = 0;
  const here = await globalThis.caches?.match(new URL("packages.zip.packed", home));
  const size = Math.round(BYTES / 1e6);
  say(here ? "Python starts." : `Python comes, once: ${size} MB. It stays in this browser.`);
  if (service && !service.controller) {
    const taken = new Promise((done) => service.addEventListener("controllerchange", done));
    await Promise.race([taken, pause(3000)]);
  }
  const own = first ? [location.href, new URL("cells.js", home), new URL("editor.js", home)] : [];
  for (const each of own) fetch(each).catch(() => {}); // they stay too, for days without a network
  await hired();
}

async function hired() {
  if (typeof WebAssembly === "undefined") throw new Error("this browser has no WebAssembly");
  worker = new Worker(new URL("worker.js", home), { type: "module" });
  const shared = globalThis.crossOriginIsolated && globalThis.SharedArrayBuffer; // not in all WebKits
  interrupts = shared && new Uint8Array(new SharedArrayBuffer(1));
  worker.onmessage = ({ data }) => hear[data.kind](data);
  await asked({ interrupts });
}

// What the worker answers when it has done what it was told to do.
function asked(told) {
  worker.postMessage(told);
  return new Promise((done, fail) => {
    hear.done = done;
    hear.broken = ({ text }) => fail(new Error(text));
    worker.onerror = ({ message }) => fail(new Error(message || "its files are gone: reload"));
  });
}

// Ends Python, and with it the names that cells have made.
function end(...why) {
  worker?.terminate();
  worker = python = undefined;
  queue.length = 0;
  for (const cell of cells.values()) told(cell, "");
  say(...why);
  hear.broken?.({ text: "" });
}

async function stop() {
  for (const cell of queue.splice(0)) told(cell, "");
  if (!running) return; // Python starts: it may
  if (!interrupts) return end("Stopped. On this visit that ends Python: names are gone.");
  const late = running;
  for (let times = 0; times < 6 && late === running; times++) {
    interrupts[0] = 2; // once more, if it was heard, and caught by what runs
    await pause(500);
  }
  if (late === running) end("Stopped. It did not hear, so Python ended: names are gone.");
}

async function run(...wanted) {
  const idle = !busy;
  busy = true;
  const fresh = wanted.filter((cell) => cell !== running && !queue.includes(cell));
  queue.push(...fresh);
  for (const cell of fresh) told(cell, "waits");
  if (!idle) return;
  try {
    await (python ??= begin());
    while ((running = queue.shift())) await executed(running);
  } catch (error) {
    if (error.message) end(`Python stopped: ${error.message}. `, ...elsewhere());
  }
  running = undefined;
  busy = false;
  buttons();
}

async function executed(cell) {
  const before = answers();
  cell.fresh = [];
  told(cell, "runs");
  if (interrupts) interrupts[0] = 0; // a Stop that came too late
  const { id, source } = cell;
  const { how, files: now } = await asked({ do: "run", id, source, files: before });
  cell.note?.remove();
  if (how !== "needs PyTorch") cell.outputs.replaceChildren(...cell.fresh);
  else cell.outputs.before((cell.note = make("p", { className: "aside" }, ...cell.fresh)));
  told(cell, how);
  widgets.wake();
  for (const [name, text] of Object.entries(now)) if (before[name] !== text) keep(name, text);
}

// A cell of the story needs the story above it, one that goes deeper its own section too.
function start(cell) {
  const all = [...cells.values()];
  const section = cell.place.closest(".deeper");
  const needed = ({ place }) =>
    !place.dataset.live && [null, section].includes(place.closest(".deeper"));
  run(...all.slice(0, all.indexOf(cell)).filter(needed), cell);
}

function elsewhere() {
  const { href } = document.querySelector('a[href^="https://colab."]');
  const colab = make("a", { href, textContent: "Open the notebook in Colab" });
  const own = make("a", { href: "index.html#start", textContent: "start it on your own machine" });
  return [colab, ", or ", own, ": make lab."];
}

// ---------------------------------------------------------------- what Python says

const hear = {
  loading: ({ bytes }) => (bar.value += bytes / BYTES),
  stream({ text, name = "" }) {
    const last = running?.fresh.at(-1);
    if (last?.className === `printed ${name}`) last.textContent += text;
    else add(printed(text, name));
  },
  torch({ name }) {
    const why = `This cell needs PyTorch (${name}), which does not run in a browser.`;
    running.fresh = [`${why} Its saved output stays. `, ...elsewhere()];
  },
  display: (told) => add(output(told)),
  state: (told) => models.get(told.model)?.receive(told),
  message: ({ model, content, buffers }) => models.get(model)?.tell("msg:custom", content, buffers),
  download: ({ name, data }) =>
    make("a", { download: name, href: `data:application/zip;base64,${data}` }).click(),
};
const printed = (textContent, name = "") =>
  make("pre", { className: `printed ${name}`, textContent });
const add = (shown) => running?.fresh.push(shown); // what a widget prints by itself has no place

function output({ data, metadata, model, state }) {
  const { alt = "", width } = metadata["image/png"] ?? {};
  const src = `data:image/png;base64,${data["image/png"]?.trim()}`;
  const image = data["image/png"] ? [make("img", { src, alt, ...(width && { width }) })] : [];
  if (model) {
    const kernel = (what) => (told) => worker?.postMessage({ do: what, model, told });
    const shown = widgets.model({ state }, { set: kernel("set"), send: kernel("hear") });
    const figure = make("figure", {}, ...image);
    models.set(model, shown);
    widgets.waiting.set(figure, () => shown);
    return figure;
  }
  if (data["text/html"]) return make("div", { className: "made", innerHTML: data["text/html"] });
  return image[0] ?? printed(data["text/plain"] ?? "");
}

// ---------------------------------------------------------------- a cell

// What becomes of a cell: waits, runs, then what Python says; nothing for one to run anew.
function told(cell, state) {
  cell.place.dataset.live = state;
  if (state) say(`${cell.name}: ${state}`);
  buttons();
}

// The text of a cell: what the page says, or what the reader has made of it.
function write(cell, source) {
  const changed = source !== cell.own;
  if (changed) cell.code.textContent = source;
  else cell.code.innerHTML = cell.html;
  cell.place.toggleAttribute("data-changed", changed);
  cell.back.hidden = !changed;
  cell.source = source;
  if (cell !== running && !queue.includes(cell)) told(cell, "");
  if (changed) keep(cell.key, source);
  else delete shelf[cell.key];
}

function put(cell, insert) {
  const { editor, box } = cell;
  editor?.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert } });
  box.value = insert;
  write(cell, insert);
}

// The editor comes when a cell is touched; until then, or without it, a text area does.
async function edit(cell) {
  cell.box.onfocus = null;
  const { edit: open } = await import(new URL("editor.js", home)).catch(() => ({}));
  cell.editor = open?.(cell.box, (text) => write(cell, text));
}

const around = (code, number) => `
<div class="edit"><pre class="code" aria-hidden="true">${code}</pre>
<textarea aria-label="Cell ${number}" spellcheck="false" wrap="off"></textarea></div>
<div class="keys"><button type="button" aria-label="Run cell ${number}">Run</button>
<button type="button" aria-label="Take back what you changed in cell ${number}">Take back</button></div>`;

// Lays a text area over the code, buttons below it, and what was saved below these.
function live(place) {
  const { cell: id, number, kind } = place.dataset;
  const pre = place.querySelector("pre.code");
  const shown = [...place.childNodes].filter((one) => !one.contains(pre));
  const outputs = place.appendChild(make("div", { className: "outputs" }, ...shown));
  pre.outerHTML = around(pre.innerHTML, number);
  const [code, box, go, back] = place.querySelectorAll(".edit code, .edit textarea, .keys button");
  const { textContent: own, innerHTML: html } = code;
  const key = `cell ${location.pathname.split("/").at(-1)} ${id}`;
  const cell = { id, name: `Cell ${number}`, key, place, code, own, html, box, go, back, outputs };
  wire(cell);
  const exercise = kind === "check" && own.split(" ")[0];
  for (const help of exercise ? ["Hint", "Solution"] : [])
    go.parentElement.append(helper(place, help, () => `${help.toLowerCase()}("${exercise}")`));
}

function wire(cell) {
  const { id, key, code, own, box, go, back } = cell;
  go.onclick = () => start(cell);
  back.onclick = () => put(cell, own);
  box.onfocus = () => edit(cell);
  box.oninput = () => write(cell, box.value);
  box.onscroll = () => (code.parentElement.scrollLeft = box.scrollLeft);
  const pressed = (event) => {
    if (event.key !== "Enter" || !event.shiftKey) return;
    event.preventDefault();
    start(cell);
  };
  box.parentElement.addEventListener("keydown", pressed, true); // before the editor's own keys
  cells.set(id, cell);
  put(cell, shelf[key] ?? own);
}

// A cell that the page writes for its reader: its button, and below it what it shows.
function helper(place, name, source) {
  const outputs = make("div", { className: "outputs" });
  const cell = { id: name, name, place: make("div", {}, outputs), outputs };
  place.append(cell.place);
  return button(name, async () => {
    cell.source = await source();
    const [setup] = cells.values();
    run(...(setup.place.dataset.live ? [] : [setup]), cell);
  });
}

// ---------------------------------------------------------------- the page

const status = make("span", { role: "status" });
const bar = make("progress", { ariaLabel: "How much of Python has come" });
const say = (...text) => status.replaceChildren(...text);
const halt = button("Stop", stop);
const again = button("Start again", () => end("Names are gone, what you wrote is not."));
function buttons() {
  halt.hidden = !busy;
  again.hidden = !worker;
  bar.hidden = !busy || Boolean(running);
}

const file = make("input", { type: "file", accept: ".zip" });
async function chosen() {
  file.click();
  await new Promise((done) => (file.onchange = done));
  const bytes = new Uint8Array(await file.files[0].arrayBuffer());
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

function main() {
  service?.register(new URL("../../sw.js", home)).catch(() => {});
  for (const place of document.querySelectorAll(".cell")) live(place);
  if (!cells.size) return;
  const bench = make("section", { className: "bench", ariaLabel: "Run this page" });
  document.body.append(bench);
  const tab = "from tab import answers; answers";
  const back = async () => `${tab}.take_back("${await chosen()}")`;
  const all = button("Run all", () => run(...cells.values()));
  const save = helper(bench, "Save answers", () => `${tab}.save()`);
  const load = helper(bench, "Take answers back", back);
  bench.append(all, halt, again, save, load, bar, status);
}
if (location.protocol !== "file:") main(); // a page in a folder is to read
