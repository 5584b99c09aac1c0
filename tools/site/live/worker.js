// Python for one page: starts once, with the course, then runs cells in the order they come.
import { loadPyodide } from "./pyodide.mjs";

const here = new URL("./", import.meta.url).href;
const DESK = "/desk/my_transformer"; // the learner's answers: they live beyond this page
const SIZES = {}; // bytes as they are used: filled in when the site is made
const LOCK = {}; // which Python this is: filled in too
let python, outputs, shell;

// Tells the page how much of what it waits for has come.
const fetched = globalThis.fetch;
const all = Object.values(SIZES).reduce((sum, size) => sum + size, 0);
let got = 0;
globalThis.fetch = async (...asked) => {
  const answer = await fetched(...asked);
  if (!answer.ok) throw new Error("a part is not there any more: load this page anew");
  const transform = (chunk, out) => {
    postMessage({ kind: "loading", part: Math.min(1, (got += chunk.byteLength) / all) });
    out.enqueue(chunk);
  };
  return new Response(answer.body.pipeThrough(new TransformStream({ transform })), answer);
};

async function start({ interrupts, files }) {
  const bytes = async (name) => (await fetch(here + name)).arrayBuffer();
  const packs = ["packages.zip", "course.zip"].map(bytes); // while Python comes
  const lockFileContents = JSON.stringify(LOCK); // nothing of another host
  python = await loadPyodide({ indexURL: here, lockFileContents });
  for (const pack of packs) python.unpackArchive(await pack, "zip", { extractDir: "/course" });
  python.FS.mkdirTree(DESK);
  lay(files);
  python.runPython(`
import os, sys
os.chdir("/desk")
sys.path.insert(0, "/course")
import tab.start`);
  outputs = python.pyimport("tab.outputs").Page;
  shell = python.pyimport("tab.shell").shell;
  outputs.send = (text) => postMessage(JSON.parse(text));
  if (interrupts) python.setInterruptBuffer(interrupts);
}

const text = (name) => python.FS.readFile(`${DESK}/${name}`, { encoding: "utf8" });
const names = () => python.FS.readdir(DESK).filter((name) => name.endsWith(".py"));
function lay(files) {
  const there = names();
  for (const [name, told] of Object.entries(files))
    if (!there.includes(name) || text(name) !== told) python.FS.writeFile(`${DESK}/${name}`, told);
}

// A value that a widget's own checks refuse ends nothing, as in a notebook.
function touched(work) {
  try {
    work();
  } catch (error) {
    console.error(error);
  }
}

const does = {
  async start(told) {
    await start(told);
    postMessage({ kind: "done" });
  },
  run({ id, source, files }) {
    lay(files);
    const how = shell.run(source, id);
    const now = Object.fromEntries(names().map((name) => [name, text(name)]));
    postMessage({ kind: "done", how, files: now });
  },
  set: ({ model, told }) =>
    touched(() => outputs.widgets.get(model)?.tab_receive(python.toPy(told))),
  send: ({ model, told }) => touched(() => outputs.widgets.get(model)?.tab_hear(python.toPy(told))),
};
let last = Promise.resolve(); // one after another
addEventListener("message", ({ data }) => {
  last = last
    .then(() => does[data.do](data))
    .catch((error) => postMessage({ kind: "broken", text: String(error.message ?? error) }));
});
