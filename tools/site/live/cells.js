// Makes a page's cells live: they are edited in place and run in one worker, in order; what they
// show takes the place of what was saved. Nothing is loaded before a reader asks for it.
const home = new URL("./", document.currentScript.src); // live/VERSION/
const MEGABYTES = 0; // of a first run: filled in when the site is made
const colab = document.querySelector('a[href^="https://colab."]')?.href;
const first = !navigator.serviceWorker?.controller; // nobody has kept this page
const cells = new Map();
const models = new Map(); // of widgets that cells have shown
const queue = [];
let busy = false; // while the queue is worked through, or Python starts for it
let worker, python, interrupts, running; // python: a promise, while it starts and after

function make(tag, { label, ...told } = {}, ...inside) {
  const made = Object.assign(document.createElement(tag), told);
  if (label) made.ariaLabel = label;
  made.append(...inside);
  return made;
}
const button = (textContent, onclick, label) =>
  make("button", { type: "button", textContent, onclick, label });

// ---------------------------------------------------------------- what stays in this browser

let opened;
async function store(mode, work) {
  const answered = (asked) =>
    new Promise((done, fail) => {
      asked.onsuccess = () => done(asked.result);
      asked.onerror = () => fail(asked.error);
      asked.onupgradeneeded = () => asked.result.createObjectStore("kept", { keyPath: "key" });
    });
  try {
    opened ??= answered(indexedDB.open("attention, step by step", 1));
    return await answered(work((await opened).transaction("kept", mode).objectStore("kept")));
  } catch {
    return []; // a browser that keeps nothing: all works, until the page is left
  }
}
const keep = (key, text) => store("readwrite", (kept) => kept.put({ key, text }));
const forget = (key) => store("readwrite", (kept) => kept.delete(key));
async function kept(prefix) {
  const range = IDBKeyRange.bound(prefix, `${prefix}\uffff`);
  const found = await store("readonly", (all) => all.getAll(range));
  return Object.fromEntries(found.map(({ key, text }) => [key.slice(prefix.length), text]));
}

// ---------------------------------------------------------------- Python

async function begin() {
  const service = navigator.serviceWorker;
  const here = await globalThis.caches?.match(new URL("packages.zip", home));
  say(here ? "Python starts." : `Python comes, once: ${MEGABYTES} MB. It stays in this browser.`);
  if (service && !service.controller) {
    const taken = new Promise((done) => service.addEventListener("controllerchange", done));
    await Promise.race([taken, new Promise((done) => setTimeout(done, 3000))]);
  }
  const own = first ? [location.href, new URL("cells.js", home), new URL("editor.js", home)] : [];
  for (const each of own) fetch(each).catch(() => {}); // they stay too, for days without a network
  if (typeof WebAssembly === "undefined") throw new Error("this browser has no WebAssembly");
  worker = new Worker(new URL("worker.js", home), { type: "module" });
  const shared = globalThis.crossOriginIsolated && globalThis.SharedArrayBuffer; // not in all WebKits
  interrupts = shared && new Uint8Array(new SharedArrayBuffer(1));
  worker.onmessage = ({ data }) => hear[data.kind](data);
  bar.hidden = false;
  await asked({ do: "start", interrupts, files: await kept("file ") });
  bar.hidden = true;
}

// What the worker answers when it has done what it was told to do.
function asked(told) {
  const answer = new Promise((done, fail) => {
    hear.done = done;
    hear.broken = ({ text }) => fail(new Error(text));
    worker.onerror = ({ message }) => fail(new Error(message || "its files are gone: reload"));
  });
  worker.postMessage(told);
  return answer;
}

// Ends Python, and with it the names that cells have made.
function end(...why) {
  worker?.terminate();
  worker = python = undefined;
  bar.hidden = true;
  for (const cell of cells.values()) told(cell, "");
  say(...why);
  hear.broken?.({ text: "" });
}

function stop() {
  for (const cell of queue.splice(0)) told(cell, "");
  if (!running) return; // Python starts: it may
  if (!interrupts) return end("Stopped. On this visit that ends Python: names are gone.");
  const late = running;
  const last = performance.now() + 3000;
  interrupts[0] = 2;
  const asking = setInterval(() => {
    if (late === running && performance.now() < last) {
      interrupts[0] ||= 2; // it was heard, and caught by what runs: once more
      return;
    }
    clearInterval(asking);
    if (late === running) end("Stopped. It did not hear, so Python ended: names are gone.");
  }, 500);
}

async function run(...wanted) {
  const fresh = wanted.filter((cell) => cell !== running && !queue.includes(cell));
  queue.push(...fresh);
  for (const cell of fresh) told(cell, "waits");
  if (busy) return;
  busy = true;
  buttons();
  try {
    await (python ??= begin());
    while ((running = queue.shift())) await executed(running);
  } catch (error) {
    if (error.message) end(`Python stopped: ${error.message}. `, ...elsewhere());
  }
  for (const cell of queue.splice(0)) told(cell, "");
  running = undefined;
  busy = false;
  buttons();
}

async function executed(cell) {
  const files = await kept("file ");
  cell.fresh = [];
  told(cell, "runs");
  if (interrupts) interrupts[0] = 0; // a Stop that came too late
  const { how, files: now } = await asked({ do: "run", id: cell.id, source: cell.source, files });
  cell.note?.remove();
  if (how !== "torch") cell.outputs.replaceChildren(...cell.fresh);
  else cell.outputs.before((cell.note = make("p", { className: "aside" }, ...cell.fresh)));
  told(cell, how);
  widgets.wake();
  for (const [name, text] of Object.entries(now))
    if (files[name] !== text) await keep(`file ${name}`, text);
}

// A cell of the story needs the story above it, one that goes deeper its own section too.
function start(cell) {
  const all = [...cells.values()].filter((one) => one.code);
  const section = cell.place.closest(".deeper");
  const needed = (one) => !one.state && [null, section].includes(one.place.closest(".deeper"));
  run(...all.slice(0, all.indexOf(cell)).filter(needed), cell);
}

const elsewhere = () => [
  ...(colab
    ? [make("a", { href: colab, textContent: "Open the notebook in Colab" }), ", or "]
    : []),
  make("a", { href: "index.html#start", textContent: "start it on your own machine" }),
  ": make lab.",
];

// ---------------------------------------------------------------- what Python says

const printed = (textContent, name = "") =>
  make("pre", { className: `printed ${name}`, textContent });
const add = (shown) => running?.fresh.push(shown); // what a widget prints by itself has no place
const hear = {
  loading: ({ part }) => (bar.value = part),
  stream({ text }) {
    const last = running?.fresh.at(-1);
    if (last?.className === "printed ") last.textContent += text;
    else add(printed(text));
  },
  error: ({ text }) => add(printed(text, "error")),
  torch({ name }) {
    const why = `This cell needs PyTorch (${name}), which does not run in a browser.`;
    running.fresh = [`${why} Its saved output stays. `, ...elsewhere()];
  },
  display: (told) => add(output(told)),
  state: (told) => models.get(told.model)?.receive(told),
  message({ model, content, buffers }) {
    const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const views = buffers.map((text) => new DataView(bytes(text).buffer));
    models.get(model)?.tell("msg:custom", content, views);
  },
  download: ({ name, data }) =>
    make("a", { download: name, href: `data:application/zip;base64,${data}` }).click(),
};

function output({ data, metadata, model: id, state }) {
  const { alt = "", width } = metadata["image/png"] ?? {};
  const src = `data:image/png;base64,${data["image/png"]?.trim()}`;
  const image = data["image/png"] ? [make("img", { src, alt, ...(width && { width }) })] : [];
  if (id) {
    const kernel = (what) => (told) => worker?.postMessage({ do: what, model: id, told });
    const shown = widgets.model(state, { set: kernel("set"), send: kernel("send") });
    const figure = make("figure", {}, ...image);
    models.set(id, shown);
    widgets.waiting.set(figure, () => shown);
    return figure;
  }
  if (data["text/html"]) return make("div", { className: "made", innerHTML: data["text/html"] });
  return image[0] ?? printed(data["text/plain"] ?? "");
}

// ---------------------------------------------------------------- the page

const status = make("span", { role: "status" });
const bar = make("progress", { label: "How much of Python has come", hidden: true });
const say = (...text) => status.replaceChildren(...text);
const halt = button("Stop", stop);
const again = button("Start again", () => end("Names are gone, what you wrote is not."));
const file = make("input", { type: "file", accept: ".zip" });
const SAID = {
  waits: "waits",
  runs: "runs",
  ok: "done",
  error: "an error",
  torch: "needs PyTorch",
};

function buttons() {
  halt.hidden = !busy;
  again.hidden = !worker;
}

function told(cell, state) {
  cell.state = cell.place.dataset.live = state;
  if (state) say(`${cell.name}: ${SAID[state]}`);
  buttons();
}

// The text of a cell: what the page says, or what the reader has made of it.
function write(cell, source) {
  const changed = source !== cell.own;
  const key = `cell ${location.pathname.split("/").at(-1)} ${cell.id}`;
  if (changed) cell.code.firstChild.textContent = source;
  else cell.code.firstChild.innerHTML = cell.html;
  cell.place.toggleAttribute("data-changed", changed);
  cell.back.hidden = !changed;
  Object.assign(cell, { source, state: "" });
  return changed ? keep(key, source) : forget(key);
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
  if (!open) return;
  const { selectionStart: anchor, selectionEnd: head, parentElement: frame } = cell.box;
  const focused = document.activeElement === cell.box;
  frame.replaceChildren();
  const does = { changed: (text) => write(cell, text), run: () => start(cell) };
  cell.editor = open(frame, cell.source, cell.name, does);
  cell.editor.dispatch({ selection: { anchor, head } });
  if (focused) cell.editor.focus();
}

function live(place) {
  const code = place.querySelector("pre.code");
  const { cell: id, number, kind } = place.dataset;
  const own = code.textContent;
  const cell = { id, name: `Cell ${number}`, place, code, own, source: own };
  cell.html = code.firstChild.innerHTML;
  cell.box = make("textarea", { value: own, spellcheck: false, wrap: "off", label: cell.name });
  cell.box.onfocus = () => edit(cell);
  cell.box.oninput = () => write(cell, cell.box.value);
  cell.box.onscroll = () => (code.scrollLeft = cell.box.scrollLeft);
  cell.box.onkeydown = (event) => {
    if (event.key !== "Enter" || !event.shiftKey) return;
    event.preventDefault();
    start(cell);
  };
  cell.back = button(
    "Take back",
    () => put(cell, own),
    `Take back what you changed in cell ${number}`,
  );
  cell.back.hidden = true;
  const keys = make("div", { className: "keys" });
  keys.append(
    button("Run", () => start(cell), `Run cell ${number}`),
    cell.back,
  );
  const shown = [...place.childNodes].filter((one) => !one.contains(code));
  cell.outputs = make("div", { className: "outputs" }, ...shown);
  const frame = make("div", { className: "edit" });
  code.replaceWith(frame);
  code.ariaHidden = true;
  frame.append(code, cell.box);
  frame.after(keys);
  place.append(cell.outputs);
  cells.set(id, cell);
  const exercise = kind === "check" && own.split(" ")[0];
  for (const help of exercise ? ["Hint", "Solution"] : [])
    keys.append(helper(place, help, () => `${help.toLowerCase()}("${exercise}")`));
}

// A cell that the page writes for its reader: its button, and below it what it shows.
function helper(place, name, source, ask = (go) => go()) {
  const outputs = make("div", { className: "outputs" });
  const cell = {
    id: `${place.id}-${name}`.replace(/\W+/g, "-"),
    name,
    place: make("div", {}, outputs),
    outputs,
  };
  cells.set(cell.id, cell);
  place.append(cell.place);
  return button(name, () =>
    ask(() => {
      const setup = [...cells.values()][0];
      cell.source = source();
      run(...(setup.state ? [] : [setup]), cell);
    }),
  );
}

async function main() {
  navigator.serviceWorker?.register(new URL("../../sw.js", home)).catch(() => {});
  for (const place of document.querySelectorAll(".cell")) live(place);
  if (!cells.size) return;
  const all = [...cells.values()].filter((one) => one.code);
  const bench = make("section", { className: "bench", label: "Run this page" });
  document.body.append(bench);
  const answers = "from tab import answers; answers";
  let zip;
  const save = helper(bench, "Save answers", () => `${answers}.save()`);
  const load = helper(
    bench,
    "Take answers back",
    () => `${answers}.take_back("${zip}")`,
    (go) => {
      file.onchange = async () => {
        const bytes = new Uint8Array(await file.files[0].arrayBuffer());
        zip = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
        go();
      };
      file.click();
    },
  );
  bench.append(
    button("Run all", () => run(...all)),
    halt,
    again,
    save,
    load,
    bar,
    status,
  );
  buttons();
  for (const [id, text] of Object.entries(
    await kept(`cell ${location.pathname.split("/").at(-1)} `),
  ))
    if (cells.has(id)) put(cells.get(id), text);
}
if (location.protocol !== "file:") main(); // a page in a folder is to read
