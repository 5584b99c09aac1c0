// Brings the saved widgets of a page to life: no kernel, no network, no widget manager.
const saved = JSON.parse(document.getElementById("widgets").textContent);
const made = {}; // every model, and every program, once

// A model as widgets know it. There is no kernel: nobody hears what it sends.
function model({ state, buffers = [] }) {
  for (const { data, path } of buffers) {
    const { buffer } = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    path.slice(0, -1).reduce((at, key) => at[key], state)[path.at(-1)] = new DataView(buffer);
  }
  const heard = [];
  return {
    get: (name) => state[name],
    set(name, value) {
      if (Object.is(state[name], value)) return;
      state[name] = value;
      for (const [event, listener] of heard) if (event === `change:${name}`) listener(this, value);
    },
    on: (...listener) => void heard.push(listener),
    save_changes() {},
    send() {},
  };
}

async function program(text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const { default: found } = await import(url);
  return typeof found === "function" ? found() : found;
}

// The picture stays until its widget is drawn, and for good if that fails.
async function bring(figure) {
  const { model: id } = figure.dataset;
  const shown = (made[id] ??= model(saved[id]));
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
const waiting = new Set(document.querySelectorAll("[data-model]"));
const boxes = document.querySelectorAll("pre, .wide, .made, .made div, .formula");
function wake() {
  for (const figure of waiting)
    if (figure.checkVisibility()) {
      waiting.delete(figure);
      bring(figure);
    }
  // What is wider than its place scrolls with the keyboard too.
  for (const box of boxes) if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
}
document.addEventListener("toggle", wake, true);
wake();
