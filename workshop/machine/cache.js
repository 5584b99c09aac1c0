// What a model keeps while it writes.
import { h, visible } from "../widgets/shared.js";
import { cellText } from "./formula.js";
import { newest, parent } from "./engine.js";
import { below } from "./scenes.js";

/** What is kept while the model writes: a key and a value for each word, in each layer. */
export function cacheOf(engine, view, sides) {
  const grows = sides.at(-1);
  const words = view.tokens[grows];
  const isKey = ({ name, kind, rows }) =>
    kind === "linear" && name.endsWith("/k") && rows === grows;
  const lines = engine.operations.filter(isKey).map(({ name, inputs: [x] }) => {
    const at = parent(parent(name));
    // All words are kept, but for a window; of a small vector, which both are made of, that alone.
    const mask = below(engine, at).find(({ kind }) => kind === "mask");
    const { window = words.length, keep_first = 0 } = mask?.options ?? {};
    const both = x.name.endsWith("c normed") ? [0] : [0, 1];
    const pair = (i) =>
      i < words.length - window && i >= keep_first ? [] : both.map(() => h("i"));
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
