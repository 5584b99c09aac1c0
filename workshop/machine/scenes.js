// What the machine shows: the map of a group, a stage as an equation; a head is in head.js.
import { visible } from "../widgets/shared.js";
import { featuresOf, forAll, newest, range, total } from "./engine.js";
import { cellText } from "./formula.js";

const TILE = { w: 92, h: 88, gap: 12 };
const MARGIN = 10; // right of the tiles, for what comes from a memory
const EQUAL = 1e-9;
export const TALL = 26; // the height of a cell
export const CELL = 42; // its width where there is room
const BAR = 130; // the length of a bar for 1
export const numberKey = (name, row, column) => `${name}|${row}|${column}`;

/** Words of a scene, and lines with a head. */
export const say = (x, y, text, how = {}) => ({ draw: "words", x, y, text, ...how });
export const line = (from, to, colour, how = {}) => ({ draw: "arrow", from, to, colour, ...how });
/** A place that opens a path, or does what `how` says. */
export function spot(key, x, y, w, h, label, how) {
  return { draw: "none", key, x, y, w, h, label, ...how };
}
export const opener = (path, x, y, w, h, title) =>
  spot(`open ${path}`, x, y, w, h, `${title}: Enter opens it`, { path, tip: `open ${title}` });

/** The largest size of a finite number; at least a little, to divide by. */
export function largestOf({ data }) {
  let most = EQUAL;
  for (const x of data) if (Number.isFinite(x)) most = Math.max(most, Math.abs(x));
  return most;
}
/** The same for a picture: a few giants among many numbers would leave all others white. */
function scaleOf({ data }) {
  const sum = EQUAL + total(data, (x) => (Number.isFinite(x) ? Math.abs(x) : 0));
  const most = largestOf({ data });
  return data.length > 400 ? Math.min(most, (4 * sum) / data.length) : most;
}
const differs = (a, b) => a !== b && !(Math.abs(a - b) < EQUAL) && (a === a || b === b);
/** Whether any number of a matrix is not as it was before. */
const moved = ({ data }, before) =>
  before?.data.length === data.length && data.some((x, i) => differs(x, before.data[i]));
/** The names of a matrix's rows or columns, as many as it has: words, or numbers from 1. */
export function namesOf({ tokens, engine }, what, count, of, step = "") {
  const { vocab } = engine.program;
  const words = what === "vocab" ? (vocab[of] ?? Object.values(vocab)[0]) : tokens[what];
  const names = words ?? featuresOf(engine, step, count);
  if (names?.length === count) return names;
  if (tokens[what]?.length === count - 1) return [...names, "sink"];
  return count === 1 ? [""] : range(count, (i) => String(i + 1));
}
const CELLS_OF = { scores: "score", sink: "score", weights: "weight" };
/** A number's name in the words of its row and column. */
export function placeOf(view, { name, row, column }) {
  const [op, last] = [view.engine.by[name], name.split("/").pop()];
  if (!view.values[name]) return `${last} ${row + 1}, ${column + 1}`;
  const owner = op ?? view.engine.operations.find(({ weights }) => weights.includes(name));
  const [rows, columns] = sidesOf(view, owner, name);
  const words = [rows[row], columns[column]].filter(Boolean).map((part) => visible(part, 12));
  return `${CELLS_OF[last] ?? op?.title.split(" = ")[0] ?? last} ${words.join(", ")}`;
}

// ---------------------------------------------------------------- the map

/** Whether a name is in a path; all are in "", the whole model. */
export const inside = (name, path) => !path || name === path || name.startsWith(`${path}/`);
export const below = (engine, path) => engine.operations.filter(({ name }) => inside(name, path));
export const isHead = (engine, at) => Boolean(engine.by[`${at}/scores`]);

/** The children of a group in rows, [{path, tiles}]: its own steps, and a row for each group in it. */
export function rowsOf(engine, at) {
  const rows = [];
  const add = (path, tile) => {
    if (rows.at(-1)?.path !== path) rows.push({ path, tiles: [] });
    if (!rows.at(-1).tiles.includes(tile)) rows.at(-1).tiles.push(tile);
  };
  const before = at ? `${at}/` : "";
  for (const { name } of engine.operations) {
    if (!name.startsWith(before)) continue;
    const parts = name.slice(before.length).split("/");
    const tower = !at && parts.length > 1 && /^(en|de)coder$/.test(parts[0]);
    const side = tower ? `${parts.shift()}/` : "";
    const path = before + side + parts[0];
    if (parts.length === 1) add(before + side, path);
    else if (/^(head|expert) \d+$/.test(parts[0]))
      add(`${before}${parts[0].split(" ")[0]}s/`, path);
    else add(path, parts[1] === "head" ? name : `${path}/${parts[1]}`); // one head has no box around it
  }
  return rows;
}
function titleOf(engine, at, { path, tiles }) {
  const own = path.slice(at && at.length + 1);
  if (own && (at || !own.endsWith("/"))) return own.replace(/\/$/, "").replace("/", " "); // also heads
  const kinds = tiles.map((tile) => engine.by[tile]?.kind);
  if (kinds.includes("softmax")) return "prediction";
  if (kinds.includes("add") && !kinds.includes("embed")) return "add & norm";
  if (at) return kinds.includes("join") ? "heads together" : "";
  return `${path.split("/")[0]} words`;
}
/** What a tile shows: a step's matrix, the weights of a group's heads, or what comes out of it. */
export function shownOf(engine, path) {
  const all = below(engine, path);
  const heads = all.filter(({ kind, columns }) => kind === "softmax" && columns !== "vocab");
  return engine.by[path] ? [engine.by[path]] : heads.length ? heads : all.slice(-1);
}
function tileOf(view, path, x, y) {
  const { engine, values, before, off } = view;
  const [one, all] = [engine.by[path], below(engine, path)];
  const shown = shownOf(engine, path).filter(({ name }) => values[name]);
  const [title, first] = [one?.title ?? path.split("/").pop(), values[shown[0]?.name]];
  const elsewhere = shown.some(({ columns, rows }) => columns === "text" && rows === "written");
  const heads = `${shown.length} heads${elsewhere ? " ← encoder" : ""}`;
  const size = first ? `${first.rows} × ${first.columns}` : "";
  const pictureOf = ({ name, colour }) => {
    const matrix = values[name];
    return { ...matrix, colour, largest: scaleOf(matrix) };
  };
  const label = `${title}${one?.note ? `, ${one.note}` : ""}: Enter opens it`;
  return {
    ...spot(path, x, y, TILE.w, TILE.h, label, { path, tip: `open ${title}`, title }),
    draw: "tile",
    pictures: shown.map(pictureOf),
    note: shown.length > 1 ? heads : size,
    colour: one?.colour ?? shown.at(-1)?.colour ?? "x",
    off: all.some(({ name }) => off.has(name)),
    why: view.why?.(path),
    changed: all.some(({ name }) => values[name] && moved(values[name], before[name])),
  };
}
/** Of which vectors a head's queries, keys or values were made. */
export function sourceOf(op) {
  const home = op.name.slice(0, op.name.lastIndexOf("/head") + 1);
  while (op.name.startsWith(home)) [op] = op.inputs;
  return op;
}
/** Of the tiles of a map those that attend to another text, each with the tile of its memory. */
function readers(engine, tiles) {
  const crosses = ({ kind, inputs: [q, k] }) => kind === "scores" && q.rows !== k.rows;
  return tiles.flatMap((tile) => {
    const asks = below(engine, tile).find(crosses);
    const memory = asks && tiles.find((other) => inside(sourceOf(asks.inputs[1]).name, other));
    return memory ? [[tile, memory]] : [];
  });
}
/** Whether a tile is made of what the one before it gives: queries, keys and values stand apart. */
const follows = (engine, tile, before) =>
  below(engine, tile).some(({ inputs }) => inputs.some(({ name }) => inside(name, before)));
/** The map of a group, or of all: a row for each part, a tile for each step; it flows as one reads. */
export function mapScene(view) {
  const { engine, width } = view;
  const items = [];
  const left = width > 560 ? 86 : 4;
  const each = Math.max(1, Math.floor((width - left - MARGIN + TILE.gap) / (TILE.w + TILE.gap)));
  const all = {};
  let y = 6;
  for (const row of rowsOf(engine, view.at)) {
    const title = titleOf(engine, view.at, row);
    const bent = row.tiles.some((tile) => engine.by[tile]?.kind === "add") ? 16 : 4;
    const top = y + bent + (left < 9 ? 18 : 0);
    const high = TILE.h + 10 + bent;
    items.push(...heading(engine, row, title, left < 9 ? y + 10 : top + 12, left < 9));
    const placed = {};
    row.tiles.forEach((tile, i) => {
      const x = left + (i % each) * (TILE.w + TILE.gap);
      const down = top + Math.floor(i / each) * high;
      items.push((placed[tile] = tileOf(view, tile, x, down)));
      if (i && follows(engine, tile, row.tiles[i - 1]))
        items.push(line([x - TILE.gap + 1, down + 48], [x - 1, down + 48], "line"));
    });
    items.push(...around(engine, placed, left, top));
    Object.assign(all, placed);
    y = top + (Math.ceil(row.tiles.length / each) - 1) * high + TILE.h + 14;
  }
  const right = left + each * (TILE.w + TILE.gap) - TILE.gap + MARGIN;
  for (const [tile, memory] of readers(engine, Object.keys(all)))
    items.push(...reading(all[memory], all[tile], right));
  return { width, height: y + 4, items };
}
/** A row's name at its left, in two lines where it is long; where it is narrow, above. */
function heading(engine, { path, tiles }, title, y, flat) {
  const words = flat ? [title] : (title.match(/\S.{0,9}(?= |$)|\S+/g) ?? []);
  const how = { bold: true, room: flat ? 300 : 78 };
  const said = words.map((word, i) => say(4, y + 15 * i, word, how));
  const home = isHead(engine, `${path}/head`) ? `${path}/head` : path;
  const opens = path && !path.endsWith("/") && (tiles.length > 1 || home !== path);
  return opens ? [...said, opener(home, 0, y - 12, 80, 12 + 15 * words.length, title)] : said;
}
/** From the end of a memory, right of all tiles, to one that reads it. */
function reading(memory, tile, right) {
  const [x, from] = [memory.x + TILE.w / 2, memory.y + TILE.h];
  const [end, to] = [tile.x + TILE.w / 2, tile.y + TILE.h];
  const down = [from, from + 6, from + 6, to + 6, to + 6, to];
  const way = [x, x, right, right, end, end].map((across, i) => [across, down[i]]);
  return way.slice(1).map((point, i) => line(way[i], point, "k", { width: 1.6, head: i === 4 }));
}
/** The way around a sub-layer: what each add gets besides, as an arc over the tiles between. */
function around(engine, placed, left, top) {
  return Object.entries(placed).flatMap(([path, tile]) => {
    const op = engine.by[path];
    const from = placed[op?.inputs[0]?.name];
    if (op?.kind !== "add" || (!from && (tile.x === left || tile.y !== top))) return [];
    const [x, end, y] = [from ? from.x + TILE.w / 2 : left - 6, tile.x + TILE.w / 2, tile.y];
    const wrapped = from && from.y !== y; // down to the next line, else over the tiles between
    const start = wrapped ? from.y + TILE.h : from ? y : y + 6;
    const by = wrapped ? [x, start + 24, end, y - 24] : [x + 20, y - 20, end - 30, y - 20];
    return [line([x, start], [end, y], "x", { by, width: 1.6 })];
  });
}

// ---------------------------------------------------------------- cells and matrices

const lengths = new WeakMap();
/** Whether a matrix needs two decimals; then all its cells get them, to stand in line. */
function isLong(matrix) {
  const long = () => matrix.data.some((x) => Number.isFinite(x) && /\.\d\d/.test(cellText(x)));
  if (!lengths.has(matrix)) lengths.set(matrix, long());
  return lengths.get(matrix);
}
const inLine = (text) => text.replace(/^(−?\d+\.\d)$/, "$10");

/** Numbers of a row as cells from x on. `how`: wide, size, or `shown`, numbers that are no step's, and
 *  what they were `before`. */
export function cellsOf(view, name, row, columns, x, y, how = {}) {
  const { values, before, sources, engine } = view;
  const { wide = CELL, size, shown } = how;
  const [matrix, old, { colour = "x" }] = [values[name], before[name], engine.by[name] ?? {}];
  const largest = (view.largest[name] ??= largestOf(old ?? matrix)); // a change keeps the scale
  const same = old?.data.length === matrix.data.length;
  const [fixed, single] = [view.fixed(name), matrix.data.length === 1];
  const lined = !single && (shown || isLong(matrix)) ? inLine : (text) => text;
  return columns.map((column, n) => {
    const [k, key] = [row * matrix.columns + column, numberKey(name, row, column)];
    const value = shown ? shown(column) : matrix.data[k];
    const changed = same && differs(value, shown ? how.before(column) : old.data[k]);
    const place = { number: true, fixed, at: { name, row, column }, source: sources.has(key) };
    const cell = spot(shown ? "" : key, x + n * wide, y, wide, TALL, "", shown ? {} : place);
    const text = lined(cellText(value, single));
    return { ...cell, draw: "cell", text, colour, share: value / largest, size, changed };
  });
}
const SIGNS = { linear: "×+", scores: "×", mix: "×", add: "+", embed: "×", times: "×" };
/** What stands before a matrix: of a step the sign of what is done with it, or what it comes to. */
function signOf({ kind, parts, name }, part, last) {
  if (part === name) return SIGNS[kind] ? "=" : parts[0] === last ? "→" : "";
  return SIGNS[kind]?.[parts.lastIndexOf(part) - 1] ?? "";
}
/** The matrices of a stage, what goes in, what is learned, what comes out; of a single step all of them. */
function partsOf(engine, at) {
  const op = engine.by[at];
  if (op) return [...op.parts, at].map((part) => [op, part]);
  return engine.operations.flatMap((one) => {
    if (one.inputs.length || !one.weights.length)
      return [...one.weights, one.name].map((part) => [one, part]);
    const use = engine.operations.find(({ inputs }) => inputs.indexOf(one) > 0);
    return [[use ?? one, one.name]]; // what is given: it stands with its sign where it is used
  });
}
/** A stage, or a single step: its matrices, each with its numbers, in lines. */
export function stageScene(view) {
  const { engine, values, at, width } = view;
  const items = [];
  let [x, y, tall, last, rows] = [0, 4, 0, "", ""];
  const parts = partsOf(engine, at).filter(([, name]) => values[name]?.data.length);
  const windows = at ? windowsOf(view, parts) : null;
  for (const [op, name] of parts) {
    let box = matrixOf(view, windows, op, name, x, y, rows);
    if (x && box.right > width) {
      [x, y, tall] = [0, y + tall + 14, 0];
      box = matrixOf(view, windows, op, name, x, y);
    }
    const sign = last && signOf(op, name, last);
    if (sign) items.push(say(x + 4, y + 12, sign, { bold: true, size: 16, align: "center" }));
    items.push(...box.items);
    [x, tall, last, rows] = [box.right + 22, Math.max(tall, box.bottom - y), name, box.rows];
  }
  return { width, height: y + tall + 8, items };
}
/** The names of a matrix's rows and of its columns; something learned belongs to an operation, its owner. */
function sidesOf(view, owner, name) {
  const [{ rows, columns }, op] = [view.values[name], view.engine.by[name]];
  const along = op ? namesOf(view, op.rows, rows) : weightRows(view, owner, rows);
  const of = op ?? owner;
  return [along, namesOf(view, of.columns, columns, of.rows, of.name)];
}
/** Of a step's inputs and weights the rows and columns, which some share: [rows, columns] of each; where
 *  nothing is said, they are those of the result, i and j. */
const AXES = {
  ...forAll("linear embed mix", ["ik", "kj"]),
  ...forAll("split blend", ["ik"]),
  scores: ["ik", "jk"],
};
function axesOf({ kind, parts, name }, part) {
  if (part !== name && kind === "join") return "ik";
  return AXES[kind]?.[parts.indexOf(part)] ?? "ij";
}
const within = (start, shown, all) => Math.max(0, Math.min(start, all - shown));
/** How many columns there is room for beside rows with these names. */
const roomFor = (width, rows) => Math.floor((width - longestOf(rows) - 18) / CELL);
const longestOf = (rows) => 7.5 * Math.min(12, Math.max(0, ...rows.map(({ length }) => length)));
/** What is seen of each axis of a stage, { start, count }: as many as fit, moved to where a source lies. */
function windowsOf(view, parts) {
  const found = {};
  for (const [op, name] of parts) {
    const { rows, columns } = view.values[name];
    const axes = axesOf(op, name);
    const room = roomFor(view.width, sidesOf(view, op, name)[0]);
    const most = [axes[0] === "i" ? 24 : 8, Math.max(1, Math.min(room, parts.length > 1 ? 8 : 16))];
    [rows, columns].forEach((size, side) => {
      const axis = (found[axes[side]] ??= { size: 0, count: Infinity });
      axis.size = Math.max(axis.size, size);
      axis.count = Math.min(axis.count, most[side]);
      const place = view.lit.find((one) => one.name === name);
      if (place) axis.lit ??= side ? place.column : place.row;
    });
  }
  for (const [letter, axis] of Object.entries(found)) {
    axis.key = `${view.at} ${letter}`;
    placeWindow(view, axis, letter === "j" ? likeliest(view, view.at) : 0);
  }
  return found;
}
/** Where a window begins: where it was left, else at `first`, but so that what is lit is in it. */
function placeWindow(view, axis, first) {
  const { key, lit, count, size } = axis;
  const start = view.windows[key] ?? first;
  const far = lit !== undefined && (lit < start || lit >= start + count);
  const seen = within(far ? Math.floor(lit / count) * count : start, count, size);
  axis.start = view.windows[key] = seen;
  return axis;
}
/** A matrix with its names; of a large one a window, which small arrows move. It belongs to `owner`; its
 *  rows' names are left out where those of the matrix to its left, `before`, are the same. */
function matrixOf(view, windows, owner, name, x, y, before = "") {
  const { engine, values, width } = view;
  const [op, matrix] = [engine.by[name], values[name]];
  const open = name === view.at || !view.at;
  const upright = op && !op.rows && op.columns === "text"; // one row, of words: a word a line
  const sides = sidesOf(view, owner, name);
  const [rows, columns] = upright ? sides.reverse() : sides;
  const longest = longestOf(rows);
  const beside = view.at ? 0 : roomFor(width - x, rows); // a step's matrices stand in one line where they can
  const some = Math.min(16, beside < 6 ? roomFor(width, rows) : beside);
  const lit = view.lit.find((place) => place.name === name);
  const alone = (side, count) => {
    const [size, at] = side ? [matrix.columns, lit?.column] : [matrix.rows, lit?.row];
    const first = side && op?.columns === "vocab" ? likeliest(view, name) : 0;
    return placeWindow(view, { key: `${name} ${side}`, count, size, lit: at }, first);
  };
  const whole = [0, 1].map((side) => ({ start: 0, count: sides[side].length }));
  const shared = windows && [...axesOf(owner, name)].map((axis) => windows[axis]);
  const own = () => [alone(0, 16), alone(1, Math.max(1, some))];
  const [along, across] = upright ? whole : (shared ?? own());
  const [m, n] = [Math.min(rows.length, along.count), Math.min(columns.length, across.count)];
  const down = within(along.start, m, rows.length);
  const first = within(across.start, n, columns.length);
  const shown = rows.slice(down, down + m).join(" ");
  const bare = before && before === shown;
  const left = bare ? 22 : 14 + longest;
  const [one, other] = owner.inputs;
  const turned = owner.kind === "scores" && name === other.name && other !== one;
  const last = name.split("/").pop();
  const title = turned ? last : (op?.title ?? last);
  const shape = [matrix.rows, matrix.columns];
  const size = turned ? `${last}ᵀ: ${shape.reverse().join(" × ")}` : shape.join(" × ");
  const part = n < columns.length ? `, ${first + 1} to ${first + n}` : "";
  const note = engine.program.step && op?.note ? op.note : size + part;
  const bottom = y + 54 + m * (TALL + 2);
  const bars = upright && op.kind === "softmax" ? BAR : 0;
  const right = x + left + Math.max(n * CELL + bars, 8 * title.length, 6 * note.length);
  const items = [
    say(x + left, y + 10, title, { colour: op?.colour ?? "x", bold: true }),
    say(x + left, y + 26, note, { colour: "line", size: 11 }),
    ...columns.slice(first, first + n).map((word, j) => {
      const how = { align: "center", size: 11, room: CELL - 2 };
      return say(x + left + (j + 0.5) * CELL, y + 43, visible(word, 7), how);
    }),
    ...range(m, (i) => {
      const top = y + 54 + i * (TALL + 2);
      const how = { align: "right", room: left - 8 };
      const label = say(x + left - 6, top + TALL / 2, visible(rows[down + i], 12), how);
      const [row, cells] = upright ? [0, [i]] : [down + i, range(n, (j) => first + j)];
      const drawn = cellsOf(view, name, row, cells, x + left, top);
      const end = [x + left + CELL + 6 + (BAR - 12) * matrix.data[i], top + TALL / 2];
      const bar = line([x + left + CELL + 6, end[1]], end, op?.colour, { width: 14, head: false });
      return [...(bare ? [] : [label]), ...drawn, ...(bars ? [bar] : [])];
    }).flat(),
  ];
  if (op && !open) items.push(opener(name, x + left - 4, y, 60, 20, title));
  const end = x + left + n * CELL;
  const turns = [
    ["›", first + n < columns.length, end - 6, y + 12, across, n],
    ["‹", first > 0, end - 32, y + 12, across, -n],
    ["⌄", down + m < rows.length, x + left - 14, bottom + 4, along, m],
    ["⌃", down > 0, x + left - 14, y + 42, along, -m],
  ];
  for (const [sign, there, u, v, axis, by] of turns) {
    if (!there) continue;
    items.push(say(u, v, sign, { colour: "k", bold: true, size: 15, align: "center" }));
    const [key, label] = [`turn ${name} ${sign}`, `${title}: further`];
    items.push(spot(key, u - 12, v - 12, 24, 24, label, { turn: { ...axis, by } }));
  }
  return { right, bottom, items, rows: shown };
}
/** Of many words the place of the one expected next, which both its logit and its probability show. */
function likeliest({ engine, values }, name) {
  if (engine.by[name].columns !== "vocab" || values[name].columns < 7) return 0;
  const scores = newest(values[name]);
  return scores.indexOf(Math.max(...scores)) - 2;
}
/** What the rows of something learned stand for: words in a table, else features, named or not. */
function weightRows(view, { kind, rows, inputs }, count) {
  if (kind === "embed") return view.engine.program.vocab[rows];
  if (kind === "given" && view.tokens[rows]) return view.tokens[rows];
  return namesOf(view, "", count, "", inputs[0]?.name);
}
