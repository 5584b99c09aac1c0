// A matrix as coloured cells with labels, read with the mouse, a finger or the arrow keys.
import { limits, paint } from "./pixels.js";
import { FONT, fmt, h, sheet, visible } from "./shared.js";

const MOVES = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  Home: [0, -Infinity],
  End: [0, Infinity],
  PageUp: [-Infinity, 0],
  PageDown: [Infinity, 0],
};
const clamp = (x, low, high) => Math.max(low, Math.min(high, x));
export class Grid {
  /** `hover(row, column)` while pointing, −1 when it ends; `select` on click, Enter, Space. */
  constructor({ label, redraw, colours, hover = () => {}, select = () => {} }) {
    const none = { row: -1, column: -1, mark: -1 };
    Object.assign(this, { redraw, hover, select, cell: 60, most: 540, ...none });
    this.colours = colours; // of numbers: their pixel, the ink on it, maybe that of lines between
    const point = (event) => this.point(...this.at(event));
    this.canvas = h("canvas", {
      tabIndex: 0,
      role: "application",
      "aria-label": label,
      "aria-roledescription": "grid, arrow keys move, Enter selects",
      onpointermove: point,
      onpointerdown: point,
      onpointerleave: () => this.point(-1, -1),
      onclick: (event) => this.at(event)[0] >= 0 && this.select(...this.at(event)),
      onkeydown: (event) => this.key(event),
    });
    this.scale = h("span", { className: "scale", "aria-hidden": "true" });
    this.element = h("div", { className: "grid" }, this.canvas, this.scale);
    [this.pixels, this.labels] = [h("canvas"), h("canvas")];
  }
  /** What to show at the next `draw`: a matrix; the labels stay as they were unless given. */
  set({ data, rowLabels, columnLabels, low, high }) {
    if (rowLabels) {
      this.names = [rowLabels.map((t) => visible(t, 16)), columnLabels.map((t) => visible(t, 16))];
      [this.rows, this.columns] = [rowLabels.length, columnLabels.length];
      this.drawn = "";
    }
    const range = low === undefined ? limits(data) : { low, high };
    Object.assign(this, { data, ...range, fresh: true });
  }
  key(event) {
    if (event.key === "Enter" || event.key === " ") {
      if (this.row >= 0) this.select(this.row, this.column);
    } else if (event.key === "Escape") this.point(-1, -1);
    else if (MOVES[event.key]) {
      const [down, right] = MOVES[event.key];
      const still = this.row < 0; // the first key only enters the grid
      const row = still ? 0 : clamp(this.row + down, 0, this.rows - 1);
      this.point(row, still ? 0 : clamp(this.column + right, 0, this.columns - 1));
    } else return;
    event.preventDefault();
  }
  point(row, column) {
    if (row === this.row && column === this.column) return;
    [this.row, this.column] = [row, column];
    this.hover(row, column);
    this.redraw();
  }
  /** The cell under the pointer, [row, column], or [−1, −1]. */
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - this.left) / this.wide);
    const row = Math.floor((event.clientY - box.top - this.top) / this.tall);
    const inside = row >= 0 && row < this.rows && column >= 0 && column < this.columns;
    return inside ? [row, column] : [-1, -1];
  }
  /** Sizes from the room there is: cells, the margins of the labels. */
  layout() {
    const context = Object.assign(this.labels.getContext("2d"), { font: FONT });
    const widest = (names) => Math.max(...names.map((text) => context.measureText(text).width));
    const room = this.element.clientWidth;
    this.left = Math.min(widest(this.names[0]) + 8, room / 3);
    const across = widest(this.names[1]);
    this.wide = clamp((room - this.left - 2) / this.columns, 0.1, this.cell);
    this.flat = across + 6 <= this.wide;
    if (!this.flat) this.wide = clamp((room - this.left - 34) / this.columns, 0.1, this.cell);
    this.tall = Math.min(this.wide, this.most / this.rows, Math.max(26, this.cell / 2));
    this.top = this.flat ? 20 : across * 0.71 + 14;
    this.width = Math.ceil(this.left + this.wide * this.columns + (this.flat ? 2 : 34));
    this.height = Math.ceil(this.top + this.tall * this.rows + 2);
  }
  draw() {
    const { look } = (this.root ??= this.element.closest(".step")).dataset;
    if (look !== this.drawn || !this.width) {
      if (!this.data || !this.element.clientWidth) return;
      this.ratio = window.devicePixelRatio || 1;
      this.drawLabels(getComputedStyle(this.element).color);
      [this.drawn, this.fresh] = [look, true];
    }
    const [context, ratio] = [this.canvas.getContext("2d"), this.ratio];
    context.clearRect(0, 0, this.width, this.height);
    context.drawImage(this.labels, 0, 0, this.canvas.width / ratio, this.canvas.height / ratio);
    const [w, t] = [this.wide * this.columns, this.tall * this.rows];
    if (this.fresh) {
      paint(this.pixels, Object.assign(this, this.colours(this)), [t * ratio, w * ratio]);
      this.drawScale();
    }
    this.fresh = false;
    context.imageSmoothingEnabled = false;
    context.drawImage(this.pixels, this.left, this.top, w, t);
    if (this.line) this.drawLines(context, w, t);
    if (this.wide >= 8 && this.tall >= 8) this.drawNumbers(context);
    this.drawMarks(context);
  }
  drawLabels(ink) {
    this.layout();
    sheet(this.canvas, this.width, this.height);
    const context = sheet(this.labels, this.width, this.height);
    Object.assign(context, { font: FONT, fillStyle: (this.ink = ink), textBaseline: "middle" });
    const [each, apart] = [Math.ceil(13 / this.tall), Math.ceil((this.flat ? 13 : 18) / this.wide)];
    context.textAlign = "right";
    for (let i = 0; i < this.rows; i += each) {
      const y = this.top + (i + 0.5) * this.tall;
      context.fillText(this.names[0][i], this.left - 6, y, this.left - 8);
    }
    context.textAlign = this.flat ? "center" : "left";
    for (let j = 0; j < this.columns; j += apart) {
      context.save();
      context.translate(this.left + (j + 0.5) * this.wide, this.top - (this.flat ? 10 : 6));
      if (!this.flat) context.rotate(-Math.PI / 4);
      context.fillText(this.names[1][j], 0, 0);
      context.restore();
    }
  }
  /** The lowest and the highest number, and between them the colours from one to the other. */
  drawScale() {
    const { low, high } = this;
    const stop = (_, k) => {
      const colour = this.pixel(low + (k / 12) * (high - low));
      return `rgb(${[0, 8, 16].map((bits) => (colour >> bits) & 255)})`;
    };
    const style = `background: linear-gradient(90deg, ${Array.from({ length: 13 }, stop)})`;
    const ends = [fmt(low, 2), fmt(high, 2)];
    if ([style, ...ends].join() === this.ends) return;
    this.ends = [style, ...ends].join();
    this.scale.replaceChildren(ends[0], h("i", { style }), ends[1]);
  }
  /** Lines between the cells, or around them all where cells are small. */
  drawLines(context, w, t) {
    const small = Math.min(this.wide, this.tall) < 12;
    const [rows, columns] = small ? [1, 1] : [this.rows, this.columns];
    context.beginPath();
    for (let i = 0; i < rows; i++) context.rect(this.left, this.top + (i * t) / rows, w, t / rows);
    for (let j = 0; j < columns; j++)
      context.rect(this.left + (j * w) / columns, this.top, w / columns, t);
    Object.assign(context, { strokeStyle: this.line, lineWidth: 0.6 }).stroke();
  }
  drawNumbers(context) {
    Object.assign(context, { font: FONT, textAlign: "center", textBaseline: "middle" });
    const narrow = this.wide < 34 || this.tall < 16; // room for × only, which stands for NaN
    for (let k = 0; k < this.data.length; k++) {
      const x = this.data[k];
      if (narrow && !Number.isNaN(x)) continue;
      context.fillStyle = x === -Infinity ? this.ink : this.inkOn(x);
      const [i, j] = [Math.floor(k / this.columns), k % this.columns];
      const [left, top] = [this.left + (j + 0.5) * this.wide, this.top + (i + 0.5) * this.tall];
      context.fillText(fmt(x, 2), left, top, this.wide - 2);
    }
  }
  /** Frames: `mark`, a selected row, drawn bold; the cell pointed at, thin. */
  drawMarks(context) {
    const [t, all] = [this.tall, this.wide * this.columns];
    const cell = [this.left + this.column * this.wide, this.wide, 1.5];
    const marked = [this.mark, this.left, all, 3];
    for (const [row, x, w, width] of [marked, [this.row, ...cell]]) {
      if (row < 0) continue;
      const y = this.top + row * t;
      const fine = clamp(Math.min(w, t) / 8, 0.3, 1); // a thin row is not to vanish under its frame
      for (const [strokeStyle, lineWidth] of [
        ["white", width + 2],
        ["#c2410c", width],
      ]) {
        Object.assign(context, { strokeStyle, lineWidth: lineWidth * fine });
        context.strokeRect(x, y, w, t);
      }
    }
  }
}
