// Python for one page: starts once, with the course, then runs cells in the order they come.
import { loadPyodide } from "./pyodide.mjs";

const here = new URL("./", import.meta.url).href;

// Each part comes packed, whatever its host does, and tells the page how much of it has come.
const { fetch } = globalThis;
async function part(url) {
  const answer = await fetch(`${url}.packed`);
  if (!answer.ok) throw new Error("a part is not there any more: load this page anew");
  const transform = (chunk, out) => {
    postMessage({ kind: "loading", bytes: chunk.byteLength });
    out.enqueue(chunk);
  };
  const counted = answer.body.pipeThrough(new TransformStream({ transform }));
  const headers = { "Content-Type": "application/wasm" }; // for the one that is asked for it
  return new Response(counted.pipeThrough(new DecompressionStream("gzip")), { headers });
}

async function start({ interrupts }) {
  const packs = ["packages.zip", "course.zip"].map((name) => part(here + name)); // meanwhile
  const text = await (await part(`${here}pyodide.asm.mjs`)).text();
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const { default: createPyodideModule } = await import(url);
  const env = { HOME: "/desk", MPLCONFIGDIR: "/tmp" };
  globalThis.fetch = part;
  const python = await loadPyodide({ indexURL: here, createPyodideModule, env });
  globalThis.fetch = fetch;
  for (const pack of packs)
    python.unpackArchive(await (await pack).arrayBuffer(), "zip", { extractDir: "/course" });
  python.runPython('import sys; sys.path.insert(0, "/course")');
  const { hear: heard } = python.pyimport("tab");
  if (interrupts) python.setInterruptBuffer(interrupts);
  hear = (data) => heard(JSON.stringify(data));
  postMessage({ kind: "done" });
}

// What Python says is JSON, with bytes in base 64.
function revived(_, value) {
  if (value?.base64 === undefined) return value;
  const bytes = Uint8Array.from(atob(value.base64), (letter) => letter.charCodeAt(0));
  return new DataView(bytes.buffer);
}
globalThis.tell = (text) => postMessage(JSON.parse(text, revived));

let hear = start; // the first message starts Python, which hears all others, one after another
let last = Promise.resolve();
addEventListener("message", ({ data }) => {
  last = last
    .then(() => hear(data))
    .catch((error) => postMessage({ kind: "broken", text: String(error.message ?? error) }));
});
