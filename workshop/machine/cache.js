// What a model keeps while it writes.
import { h, visible } from "../widgets/shared.js";
import { cellText } from "./formula.js";
import { below } from "./scenes.js";

/** The path of what a part is in. */
export const parent = (path) => path.split("/").slice(0, -1).join("/");
/** The numbers of the newest word. */
export const newest = ({ data, rows, columns }) => data.slice((rows - 1) * columns, rows * columns);

/** What is kept while the model writes: a key and a value for each word, in each layer. */
export function cacheOf(engine, view, sides) {
  const grows = sides.at(-1);
  const words = view.tokens[grows];
  const isKey = ({ name, kind, rows }) =>
    kind === "linear" && name.endsWith("/k") && rows === grows;
  /** How many of the newest words a layer keeps: all, but for a window. */
  const kept = (at) =>
    below(engine, at).find(({ kind }) => kind === "mask")?.options.window ?? words.length;
  const lines = engine.operations.filter(isKey).map(({ name }) => {
    const at = parent(parent(name));
    const pair = (i) => (i < words.length - kept(at) ? [] : [h("i"), h("i")]);
    const isNew = (i) => ({ className: i === words.length - 1 ? "new" : "" });
    const pairs = words.map((_, i) => h("td", isNew(i), ...pair(i)));
    return h("tr", {}, h("th", {}, at.replaceAll("/", " ")), ...pairs);
  });
  const head = h("tr", {}, h("td"), ...words.map((word) => h("th", {}, visible(word, 10))));
  const reads = grows === sides[0] ? [] : readsOf(engine, view, ...sides);
  return [h("table", {}, head, ...lines), ...reads];
}
/** How much is read of each word of the other text, on average over the heads that are not off. */
function readsOf(engine, view, source, grows) {
  // Where the kernel computes, it sends of all heads those that are open alone.
  const all = (view.kept ? [] : engine.operations).filter(
    ({ kind, columns, rows }) => kind === "softmax" && columns === source && rows === grows,
  );
  const isOff = (at) => view.off.has(`${at}/context`) || view.off.has(`${parent(at)}/out`);
  const heads = all.filter(({ name }) => !isOff(parent(name)));
  const shares = heads.map(({ name }) => newest(view.values[name]));
  const reads = view.tokens[source].map((word, j) => {
    const mean = shares.reduce((sum, own) => sum + own[j], 0) / (heads.length || 1);
    const look = { className: "reads", style: `--p: ${Math.min(1, mean) * 70}%` };
    return h("span", look, `${visible(word, 12)} ${cellText(mean)}`);
  });
  const what = `to write what follows, it reads (mean of ${heads.length} heads of cross-attention): `;
  return all.length ? [h("p", {}, what, ...reads)] : [];
}
