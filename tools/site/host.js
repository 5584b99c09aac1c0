// Brings the widgets of a page to life: saved ones without a kernel, and those that live/cells.js
// makes, whose kernel hears.
const saved = JSON.parse(document.getElementById("widgets").textContent);
const made = {}; // every model, and every program, once

function filled(state, buffers = []) {
  for (const { data, path } of buffers) {
    const { buffer } = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    path.slice(0, -1).reduce((at, key) => at[key], state)[path.at(-1)] = new DataView(buffer);
  }
  return state;
}

// A model as widgets know it. Without a kernel nobody hears what it sends.
function model({ state, buffers }, kernel) {
  filled(state, buffers);
  const heard = [];
  const fresh = {}; // what the kernel has not heard of
  const self = {
    get: (name) => state[name],
    set(name, value) {
      if (Object.is(state[name], value)) return;
      fresh[name] = value;
      self.receive({ state: { [name]: value } });
    },
    on: (...listener) => void heard.push(listener),
    save_changes() {
      kernel?.set({ ...fresh });
      for (const name in fresh) delete fresh[name];
    },
    send: (content) => kernel?.send(content),
    tell(event, ...told) {
      for (const [name, listener] of heard) if (name === event) listener(...told);
    },
    receive({ state: values, buffers: apart }) {
      for (const [name, value] of Object.entries(filled(values, apart))) {
        state[name] = value;
        self.tell(`change:${name}`, self, value);
      }
    },
  };
  return self;
}

async function program(text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const { default: found } = await import(url);
  return typeof found === "function" ? found() : found;
}

// The picture stays until its widget is drawn, and for good if that fails.
async function draw(figure, shown) {
  const el = figure.appendChild(document.createElement("div"));
  try {
    const widget = await (made[shown.get("_esm")] ??= program(shown.get("_esm")));
    await widget.render({ model: shown, el });
    figure.querySelector("img")?.remove();
  } catch (error) {
    el.remove();
    console.error(error);
  }
}

// What lies in a closed section has no size: it waits until somebody opens it.
const waiting = new Map();
const WIDE = "pre:not([aria-hidden]), .wide, .made, .made div, .formula";
function wake() {
  for (const [figure, shown] of waiting)
    if (figure.checkVisibility()) {
      waiting.delete(figure);
      draw(figure, shown());
    }
  // What is wider than its place scrolls with the keyboard too.
  for (const box of document.querySelectorAll(WIDE))
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
}
for (const figure of document.querySelectorAll("[data-model]")) {
  const { model: id } = figure.dataset;
  waiting.set(figure, () => (made[id] ??= model(saved[id])));
}
globalThis.widgets = { model, waiting, wake };
document.addEventListener("toggle", wake, true);
wake();
