// A canvas of cells, tiles and arrows, with one way through them for mouse, finger and keys.
import { h, sheet, visible } from "../widgets/shared.js";
import { css, Palette } from "../widgets/palette.js";
import { paint } from "../widgets/pixels.js";

const AROUND = 200; // pixels above and below what is in sight that are drawn, too
const drags = (item) => item.number && !item.fixed;
const SIZE = "px system-ui, sans-serif";

export class Board {
  /** `on`: focus(item), open(item), drag(item, pixels, done), nudge(item, steps), back(item), up(). */
  constructor({ label, redraw, on }) {
    Object.assign(this, { redraw, on, items: [], places: [], key: "" });
    this.canvas = h("canvas", {
      tabIndex: 0,
      role: "application",
      "aria-label": label,
      "aria-roledescription":
        "picture: arrows move, Enter opens, Escape goes back, plus and minus change a number",
      onpointerdown: (event) => this.press(event),
      onpointermove: (event) => this.move(event),
      onpointerup: (event) => this.release(event),
      onpointercancel: () => (this.held = null),
      ondblclick: (event) => this.under(event) && on.open(this.under(event)),
      onkeydown: (event) => this.type(event),
    });
    this.spot = h("i"); // where the focus is, to be brought into sight
    const pane = { className: "board", onscroll: () => redraw() };
    this.element = h("div", pane, this.canvas, this.spot);
    // A finger on a number drags it; anywhere else it scrolls. Only this can say so in time.
    const hold = (event) =>
      event.cancelable && drags(this.under(event.touches[0]) ?? {}) && event.preventDefault();
    this.canvas.addEventListener("touchstart", hold, { passive: false });
    this.pixels = h("canvas");
  }
  /** How wide it may be; and what is in sight now, for only that is drawn. */
  get room() {
    const { clientWidth, clientHeight, scrollTop } = this.element;
    this.seen = [scrollTop - AROUND, scrollTop + Math.max(clientHeight, 640) + AROUND];
    return clientWidth;
  }
  inSight({ y, h: tall = 0, from, to }) {
    const [top, end] = from ? [Math.min(from[1], to[1]), Math.max(from[1], to[1])] : [y, y + tall];
    return end * this.scale > this.seen[0] && top * this.scale < this.seen[1];
  }
  /** What to show: { width, height, items }; an item with a `key` can be reached. */
  set({ width, height, items }, room) {
    // Where it is a little narrow, all gets a little smaller; where it is very narrow, one scrolls.
    const scale = Math.max(0.8, Math.min(1, room / width));
    Object.assign(this, { width, height, items, scale });
    this.places = items.filter((item) => item.key);
    if (!this.places.some((item) => item.key === this.key)) this.key = "";
  }
  get item() {
    return this.places.find((item) => item.key === this.key);
  }
  under({ clientX, clientY }) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [clientX - box.left, clientY - box.top].map((c) => c / this.scale);
    return this.places.findLast((p) => x >= p.x && x <= p.x + p.w && y >= p.y && y <= p.y + p.h);
  }
  press(event) {
    const item = this.under(event);
    if (!item) return;
    this.focus(item);
    this.held = { item, y: event.clientY, moved: 0 };
    if (drags(item)) this.canvas.setPointerCapture(event.pointerId);
  }
  move(event) {
    const item = this.held?.item;
    if (!item) {
      const over = this.under(event);
      this.canvas.style.cursor = over ? (drags(over) ? "ns-resize" : "pointer") : "";
      this.canvas.title = over?.fixed || over?.tip || "";
      return;
    }
    const moved = this.held.y - event.clientY;
    if (!drags(item) || (!this.held.moved && Math.abs(moved) < 4)) return;
    this.held.moved = moved;
    this.on.drag(item, moved, false);
  }
  release() {
    const { item, moved } = this.held ?? {};
    this.held = null;
    if (item && moved) this.on.drag(item, moved, true);
    else if (item && !item.number) this.on.open(item);
  }
  focus(item) {
    this.key = item.key;
    this.on.focus(item);
    this.redraw();
  }
  type(event) {
    const { key } = event;
    const step = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
    if (key === "Escape") this.on.up();
    else if (step[key]) this.walk(...step[key]);
    else if (!this.item) return;
    else if (key === "Enter" || key === " ") this.on.open(this.item);
    else if (key === "+" || key === "=") this.on.nudge(this.item, 1);
    else if (key === "-" || key === "−") this.on.nudge(this.item, -1);
    else if (key === "Backspace" || key === "Delete") this.on.back(this.item);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
  /** To the nearest place in a direction; the first key only enters. */
  walk(right, down) {
    const from = this.item;
    if (!from) return this.places[0] && this.focus(this.places[0]);
    const middle = (p) => [p.x + p.w / 2, p.y + p.h / 2];
    const [x, y] = middle(from);
    const far = (place) => {
      const [dx, dy] = [middle(place)[0] - x, middle(place)[1] - y];
      const ahead = dx * right + dy * down;
      return ahead > 2 ? ahead + 3 * Math.abs(dx * down + dy * right) : Infinity;
    };
    const best = this.places.reduce((one, other) => (far(other) < far(one) ? other : one));
    if (far(best) < Infinity) this.focus(best);
  }
  /** Scroll the board and the page, where they must, to the place that has the focus. */
  reveal({ x, y, w, h: tall }) {
    const sides = { left: x, top: y, width: w, height: tall };
    for (const side in sides) this.spot.style[side] = `${sides[side] * this.scale}px`;
    this.spot.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  draw() {
    const { look } = (this.root ??= this.element.closest(".step")).dataset;
    if (!this.palette || look !== this.drawn) this.palette = new Palette(this.element);
    this.drawn = look;
    const context = this.sized();
    context.clearRect(0, 0, this.width, this.height);
    for (const item of this.items) if (this.inSight(item)) this[item.draw](context, item);
    if (!this.item) return;
    this.ring(context, this.item, css(this.palette.ink), 2.5);
    const come = this.key !== this.revealed && document.activeElement === this.canvas && !this.held;
    if (come) this.reveal(this.item);
    this.revealed = this.key;
  }
  /** The context of a canvas of the right size; a new size clears all, and takes time. */
  sized() {
    const { width, height, scale } = this;
    const size = [width, height, scale, window.devicePixelRatio].join();
    if (size !== this.size) {
      this.context = sheet(this.canvas, Math.ceil(width * scale), Math.ceil(height * scale));
      this.context.scale(scale, scale);
    }
    this.size = size;
    return this.context;
  }
  ring(context, { x, y, w, h: tall }, strokeStyle, lineWidth, dash = []) {
    Object.assign(context, { strokeStyle, lineWidth });
    context.setLineDash(dash);
    context.beginPath();
    context.roundRect(x, y, w, tall, 3);
    context.stroke();
    context.setLineDash([]);
  }
  /** A place that can be reached where something else is drawn. */
  none() {}
  /** A number on its tint; framed if it is a source; a corner if it is not as before. */
  cell(context, item) {
    const { x, y, w, h: tall, text, colour, share, source, changed } = item;
    const ground = this.palette.tint(colour, share);
    context.fillStyle = ground.css;
    context.beginPath();
    context.roundRect(x, y, w, tall, 3);
    context.fill();
    this.ring(context, item, css(this.palette[source ? "q" : "line"]), source ? 2.5 : 0.6);
    if (changed) {
      context.fillStyle = css(this.palette.q);
      context.beginPath();
      context.moveTo(x + w - 9, y + 1);
      context.lineTo(x + w - 1, y + 1);
      context.lineTo(x + w - 1, y + 9);
      context.fill();
    }
    Object.assign(context, { font: `${item.size ?? 12}${SIZE}`, fillStyle: ground.ink });
    Object.assign(context, { textAlign: "center", textBaseline: "middle" });
    context.fillText(text, x + w / 2, y + tall / 2 + 0.5, w - 3);
  }
  words(context, { x, y, text, colour = "ink", align = "left", bold, size = 12, room = 300 }) {
    context.font = `${bold ? "600 " : ""}${size}${SIZE}`;
    Object.assign(context, { textAlign: align, textBaseline: "middle" });
    context.fillStyle = css(this.palette[colour]);
    context.fillText(visible(text, 200), x, y, room);
  }
  /** A line with a head; `by` bends it. */
  arrow(context, { from, to, colour = "line", width = 1, by = null, head = true }) {
    const [strokeStyle, [x, y]] = [css(this.palette[colour]), to];
    Object.assign(context, { strokeStyle, fillStyle: strokeStyle, lineWidth: width });
    Object.assign(context, { globalAlpha: 0.7 });
    context.beginPath();
    context.moveTo(...from);
    if (by) context.bezierCurveTo(...by, x, y);
    else context.lineTo(x, y);
    context.stroke();
    const [u, v] = by ? by.slice(2) : from;
    const turn = Math.atan2(y - v, x - u);
    context.beginPath();
    for (const side of head ? [0, 0.4, -0.4] : []) {
      const back = side ? 6 + width : 0;
      context.lineTo(x - back * Math.cos(turn + side), y - back * Math.sin(turn + side));
    }
    context.fill();
    context.globalAlpha = 1;
  }
  /** A stage or a group in small: its matrices as tinted pixels, its name above. */
  tile(context, item) {
    const { x, y, w, h: tall, title, note, colour, pictures, off, changed } = item;
    const middle = { x: x + w / 2, align: "center", room: w - 4 };
    this.words(context, { ...middle, y: y + 9, text: title, colour, bold: true });
    const [top, high] = [y + 19, tall - 19 - (note ? 17 : 4)];
    const across = Math.ceil(Math.sqrt(pictures.length));
    const down = Math.ceil(pictures.length / across);
    pictures.forEach((picture, i) => {
      const [wide, t] = [(w - 8) / across, high / down];
      const [left, up] = [x + 4 + (i % across) * wide, top + Math.floor(i / across) * t];
      this.picture(context, picture, left + 1, up + 1, wide - 2, t - 2);
    });
    if (note)
      this.words(context, { ...middle, y: y + tall - 9, text: note, colour: "line", size: 11 });
    const [tone, width, dash] = off ? ["q", 2, [5, 4]] : ["line", 0.7, []];
    this.ring(context, item, css(this.palette[tone]), width, dash);
    if (item.why) this.because(context, item);
    if (changed) {
      context.fillStyle = css(this.palette.q);
      context.beginPath();
      context.arc(x + w - 8, y + tall - 9, 4, 0, 7);
      context.fill();
    }
  }
  /** What a part adds, as a bar at its foot; what is lost without it, as a veil. */
  because(context, { x, y, w, h: tall, why: { adds, share, lost } }) {
    const [middle, long] = [x + w / 2, (w / 2) * share];
    Object.assign(context, { globalAlpha: 0.45 * lost, fillStyle: css(this.palette.q) });
    context.fillRect(x, y, w, tall);
    const tone = css(this.palette[adds < 0 ? "line" : "ink"]);
    Object.assign(context, { globalAlpha: 1, fillStyle: tone });
    if (adds !== null) context.fillRect(adds < 0 ? middle - long : middle, y + tall + 2, long, 5);
  }
  /** A matrix, a pixel a number, drawn large. */
  picture(context, { data, rows, columns, colour, largest }, x, y, w, tall) {
    const { pixels } = this;
    const pixel = this.palette.pixels(colour, largest);
    paint(pixels, { data, rows, columns, pixel }, [rows, columns]);
    context.imageSmoothingEnabled = columns > w;
    const room = Math.min(w, (tall * columns * 2.5) / rows);
    context.drawImage(pixels, x + (w - room) / 2, y, room, tall);
    this.ring(context, { x: x + (w - room) / 2, y, w: room, h: tall }, css(this.palette.line), 0.5);
  }
}
