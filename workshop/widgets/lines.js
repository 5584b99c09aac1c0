// A small line chart: lines told apart by dash and by a name at their end.
import { FONT, fmt, h, sheet, visible } from "./shared.js";

const DASHES = [[], [6, 4], [2, 3], [9, 3, 2, 3]];

export class Lines {
  constructor({ label, x, y, height = 190 }) {
    this.canvas = h("canvas", { role: "img", "aria-label": label });
    this.element = h("div", { className: "lines" }, this.canvas);
    Object.assign(this, { axis: { x, y }, height });
  }
  /** Draw `lines`, [{ name, points: [[x, y], …] }], and a ring around each point of `marks`. */
  draw(lines, marks = []) {
    const width = this.element.clientWidth;
    if (!width) return;
    const context = sheet(this.canvas, width, this.height);
    const fillStyle = getComputedStyle(this.element).color;
    Object.assign(context, { font: FONT, fillStyle, strokeStyle: fillStyle });
    const place = this.axes(
      context,
      width,
      lines.flatMap((line) => line.points),
    );
    lines.forEach(({ name, points }, i) => {
      context.lineWidth = 1.8;
      context.setLineDash(DASHES[i % DASHES.length]);
      context.beginPath();
      for (const point of points) context.lineTo(...place(point));
      context.stroke();
      if (points.length) context.fillText(visible(name, 18), width - 108, place(points.at(-1))[1]);
    });
    context.setLineDash([]);
    for (const mark of marks) {
      context.beginPath();
      context.arc(...place(mark), 5, 0, 7);
      context.stroke();
    }
  }
  /** The two axes with their ends in numbers; how a point becomes a place on the canvas. */
  axes(context, width, points) {
    const [xs, ys] = [points.map((point) => point[0]), points.map((point) => point[1])];
    const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
    const [y0, y1] = [Math.min(0, ...ys), Math.max(...ys)];
    const [left, right, top, bottom] = [52, width - 118, 26, this.height - 32];
    const place = ([x, y]) => [
      left + ((x - x0) / (x1 - x0 || 1)) * (right - left),
      bottom - ((y - y0) / (y1 - y0 || 1)) * (bottom - top),
    ];
    context.textBaseline = "middle";
    for (const [text, x, y, align] of [
      [fmt(y1, 2), left - 6, top, "right"],
      [fmt(y0, 2), left - 6, bottom, "right"],
      [fmt(x0, 0), left, bottom + 12, "center"],
      [fmt(x1, 0), right, bottom + 12, "center"],
      [this.axis.x, (left + right) / 2, bottom + 22, "center"],
      [this.axis.y, 4, 8, "left"],
    ]) {
      context.textAlign = align;
      context.fillText(text, x, y);
    }
    Object.assign(context, { textAlign: "left", lineWidth: 1 });
    context.strokeRect(left, top, right - left, bottom - top);
    return place;
  }
}
