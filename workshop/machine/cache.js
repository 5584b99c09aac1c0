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
  const keys = engine.operations.filter(
    ({ name, kind, rows }) => kind === "linear" && name.endsWith("/k") && rows === grows,
  );
  const words = view.tokens[grows];
  /** How many of the newest words a layer keeps: all, but for a window. */
  const window = (at) =>
    below(engine, at).find(({ kind }) => kind === "mask")?.options.window ?? words.length;
  const lines = keys.map(({ name }) => {
    const at = parent(parent(name));
    const first = words.length - window(at);
    return h(
      "tr",
      {},
      h("th", {}, at.replaceAll("/", " ")),
      ...words.map((word, i) =>
        h(
          "td",
          { className: i === words.length - 1 ? "new" : "" },
          ...(i < first ? [] : [h("i"), h("i")]),
        ),
      ),
    );
  });
  const head = h("tr", {}, h("td"), ...words.map((word) => h("th", {}, visible(word, 10))));
  // Where the kernel computes, it sends of all heads those that are open alone.
  const crossing = (view.kept ? [] : engine.operations).filter(
    ({ kind, columns, rows }) =>
      kind === "softmax" && columns === sides[0] && rows === grows && grows !== sides[0],
  );
  const cross = crossing.filter(
    (
      { name }, // those that are not switched off
    ) => !view.off.has(`${parent(name)}/context`) && !view.off.has(`${parent(parent(name))}/out`),
  );
  const mean = view.tokens[sides[0]].map(
    (_, j) =>
      cross.reduce((sum, { name }) => sum + newest(view.values[name])[j], 0) / (cross.length || 1),
  );
  const reads = crossing.length
    ? [
        h(
          "p",
          {},
          `to write what follows, it reads (mean of ${cross.length} heads of cross-attention): `,
          ...mean.map((w, j) =>
            Object.assign(
              h(
                "span",
                { className: "reads" },
                `${visible(view.tokens[sides[0]][j], 12)} ${cellText(w)}`,
              ),
              { style: `--p: ${Math.min(1, w) * 70}%` },
            ),
          ),
        ),
      ]
    : [];
  return [h("table", {}, head, ...lines), ...reads];
}
