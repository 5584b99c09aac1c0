// What the small laboratories share: matrices side by side, tables of numbers.
import { exact, h, readout, visible } from "./shared.js";
import { Grid } from "./grid.js";
/** Something under its title. */
export const panel = (title, ...children) =>
  h("div", {}, h("div", { className: "lab-title" }, title), ...children);

/** Matrices of one shape, a grid in a panel each; pointing at a cell of one frames it in all. */
export function matrices(count, { say, ...options }) {
  let all;
  const hover = (row, column) => grids.forEach((grid) => Object.assign(grid, { row, column }));
  const make = () => new Grid({ ...options, label: "", hover });
  const grids = Array.from({ length: count }, make);
  const [panels, read] = [grids.map((grid) => panel("", grid.element)), readout()];
  /** What to show: of each matrix its name, numbers, range if not its own, more for the title. */
  function set(rowLabels, columnLabels, list) {
    (all = list).forEach(([name, data, range, more = ""], i) => {
      panels[i].firstChild.textContent = name + more;
      grids[i].canvas.setAttribute("aria-label", name);
      grids[i].set({ data, ...range, rowLabels, columnLabels });
    });
  }
  /** Draw them, frame the rows `marked`, and tell what stands in the cell pointed at. */
  function draw(...marked) {
    for (const grid of grids) {
      grid.mark = marked.map((row) => ({ row, column: -1 }));
      grid.draw();
    }
    const { row, column, columns } = grids[0];
    const number = (data) => exact(data[row * columns + column]);
    const parts = all.flatMap(([name, data]) => [` · ${name} `, number(data)]);
    if (row < 0) read.replaceChildren("Point at a cell, or use the arrow keys.");
    else read.replaceChildren(say(row, column), ...parts);
  }
  return { panels, read, set, draw };
}

/** A table under its title; `show(columns, rows)` fills it, a row is [name, x, y, …]. */
export function table(title) {
  const th = (text, scope) => h("th", { scope }, visible(text));
  const tr = ([name, ...x]) =>
    h("tr", {}, th(name, "row"), ...x.map((number) => h("td", {}, exact(number))));
  const lines = h("table");
  const scrolls = { className: "lab-numbers", tabIndex: 0, role: "group", "aria-label": title };
  const show = (columns, rows) => {
    const head = h("tr", {}, h("td"), ...columns.map((text) => th(text, "col")));
    lines.replaceChildren(head, ...rows.map(tr));
  };
  return Object.assign(panel(title, h("div", scrolls, lines)), { show });
}
