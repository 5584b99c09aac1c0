// Where a number of the machine comes from: its computation written out with the real terms, so that
// what is printed, evaluated as printed, gives the number that is shown.
import { visible } from "./shared.js";
import { LEFT, RUN, erf, nothing } from "./engine.js";

const MINUS = "−";
// What float32 leaves a hair below a half, 0.175 as 0.17499999, is rounded up as on paper.
const rounded = (x, decimals) => (x * (1 + 1e-7)).toFixed(decimals);
const signed = (text) => (Number(text) === 0 ? text.replace("-", "") : text.replaceAll("-", MINUS).replace("+", ""));
const near = (x, text) => Math.abs(x - Number(text)) <= 5e-7 * Math.max(1, Math.abs(x));
const unwhole = (x) => (Number.isNaN(x) ? "×" : x < 0 ? "−∞" : "∞");
const brief = (x, digits) => signed(x.toExponential(digits));

/** How a number is written in a cell: two decimals (wide: four), one where that is all of it. */
export function cellText(x, wide = false) {
  if (!Number.isFinite(x)) return unwhole(x);
  if (Math.abs(x) >= 10_000) return brief(x, wide ? 3 : 1);
  const short = x.toFixed(1);
  return signed(near(x, short) ? short : rounded(x, wide ? 4 : 2));
}

/** A number in a formula with at most so many decimals, in brackets if it is negative. */
function inFormula(x, decimals) {
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "(−∞)";
  const long = decimals > 15 ? String(x) : x.toFixed(decimals);
  const short = long.replace(/(\.\d+?)0+$/, "$1");
  const text = signed(near(x, short) ? short : long);
  return text.startsWith(MINUS) ? `(${text})` : text;
}

// ---------------------------------------------------------------- a formula, read as it is printed

const CALLED = {
  sin: Math.sin, cos: Math.cos, tanh: Math.tanh, max: Math.max,
  Φ: (x) => (1 + erf(x / Math.SQRT2)) / 2,
};
const TOKEN = /\d+(?:\.\d+)?(?:e−?\d+)?|[a-zΦ]+|[−+×÷√^(),∞π]/g;

/** What "2.0 × 3.0 + √4" is. */
export function evaluated(text) {
  const tokens = text.replace(/\d+ more, together |, all others.*| as it was/g, "").match(TOKEN) ?? [];
  const next = (...wanted) => wanted.includes(tokens[0]) && tokens.shift();
  const row = (part, join) => () => {
    let x = part();
    for (let sign; (sign = next(...Object.keys(join))); ) x = join[sign](x, part());
    return x;
  };
  const one = () => {
    if (next(MINUS)) return -one();
    if (next("√")) return Math.sqrt(one());
    if (next("∞")) return Infinity;
    if (next("π")) return Math.PI;
    if (next("e")) return Math.E;
    const first = tokens.shift();
    if (!(first === "(" || first in CALLED)) return Number(first.replace(MINUS, "-"));
    if (first !== "(") tokens.shift();
    const inside = [sum()];
    while (next(",")) inside.push(sum());
    tokens.shift();
    return first === "(" ? inside[0] : CALLED[first](...inside);
  };
  const raised = row(one, { "^": (x, y) => x ** y });
  const product = row(raised, { "×": (x, y) => x * y, "÷": (x, y) => x / y });
  const sum = row(product, { "+": (x, y) => x + y, [MINUS]: (x, y) => x - y });
  return sum();
}

/** Whether a computation, "1.0 + 2.0 = 3.00", holds in all digits of what it ends in. */
function holds(line) {
  const parts = line.replace(/^[^:]*: /, "").split(" = ");
  const end = parts.pop();
  const number = evaluated(end);
  const decimals = Math.max(2, /\.(\d+)/.exec(end)?.[1].length ?? 0);
  const same = /[e∞×]/.test(end)
    ? (x) => cellText(x) === end
    : (x) => signed(rounded(x, decimals)) === signed(number.toFixed(decimals));
  return parts.every((part) => same(evaluated(part)));
}

/** The first of `build(number, middle)` that holds, with few decimals of the parts if they do. */
function settled(build, shown) {
  let line = "";
  for (const decimals of [2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16]) {
    for (const between of [3, 4, 2, 5, 6, 8]) {
      const number = (most) => (x) => inFormula(x, most);
      const [text, ...claims] = [build(number(decimals), number(between))].flat();
      line = `${text} = ${shown}`.replace(/(^|together |[(,:=] ?)\((−[\d.e−∞]+)\)(?!\^)/g, "$1$2");
      if ([...line.split("; "), ...claims].every(holds)) return line;
    }
  }
  return line;
}

/** Terms, { size, text }, added up; of many the five largest, and what the others are together. */
function added(terms, number) {
  if (terms.length <= 6) return terms.map(({ text }) => text(number)).join(" + ");
  const [largest, others] = [terms.slice(0, 5), terms.slice(5)];
  const rest = others.reduce((sum, { size }) => sum + size, 0);
  const first = largest.map(({ text }) => text(number)).join(" + ");
  return `${first} + ${others.length} more, together ${number(rest)}`;
}

// ---------------------------------------------------------------- of each kind

/** Terms with the largest first where they are many. */
function ordered(terms) {
  const size = (term) => (Number.isNaN(term.size) ? Infinity : Math.abs(term.size));
  return terms.length > 6 ? terms.sort((a, b) => size(b) - size(a)) : terms;
}
const range = (n, f) => Array.from({ length: n }, (_, k) => f(k));
const times = (a, b) => (
  { size: a.x * b.x, text: (n) => `${n(a.x)} × ${n(b.x)}`, from: [a, b] });
const alone = (a) => ({ size: a.x, text: (n) => n(a.x), from: [a] });
const froms = (terms) => terms.flatMap(({ from }) => from);
const root = (by) => (near(by * by, (by * by).toFixed(0)) ? `√${(by * by).toFixed(0)}` : null);
const copy = (cell) => ({ from: [cell] });

/** Of each kind: cells of its inputs and weights, `cell(which, row, column)` → how it is made. */
const MADE = {
  given: ({ cell, i, j }) => copy(cell(0, i, j)),
  embed({ cell, i, j, id, op }) {
    const [{ factor }, word] = [op.options, cell(1, id, j)];
    const by = (n) => (factor ? `${root(factor) ?? n(factor)} × ${n(word.x)}` : one(n));
    const one = (n) => `1 × ${n(word.x)}, all others 0 × …`;
    return { build: by, from: [word, cell(0, i, op.inputs[0].kind === "ids" ? 0 : id)] };
  },
  places: ({ cell, i, j }) => copy(cell(0, i, j)),
  waves({ i, j, op }) {
    const [name, even, { d }] = [j % 2 ? "cos" : "sin", j - (j % 2), op.options];
    const angle = `${i} ÷ 10000^(${even} ÷ ${d})`;
    const build = (_, middle) => {
      const turn = middle(i / 10000 ** (even / d));
      return [`${name}(${angle}) = ${name}(${turn})`, `${angle} = ${turn}`];
    };
    return { build, from: [] };
  },
  same: ({ cell, j }) => copy(cell(0, 0, j)),
  add: ({ cell, i, j }) => sumOf([0, 1].map((which) => alone(cell(which, i, j)))),
  linear({ cell, i, j, size, op }) {
    const terms = range(size(0).columns, (k) => times(cell(0, i, k), cell(1, k, j)));
    return sumOf(terms, op.weights.length > 1 ? cell(2, 0, j) : null);
  },
  scores: ({ cell, i, j, size }) =>
    sumOf(range(size(0).columns, (k) => times(cell(0, i, k), cell(1, j, k)))),
  scale({ cell, i, j, op: { options: { by } } }) {
    const score = cell(0, i, j);
    return { build: (n) => `${n(score.x)} ÷ ${root(by) ?? n(by)}`, from: [score] };
  },
  mask: ({ cell, i, j }) => copy(cell(0, i, j)),
  softmax({ cell, i, j, size, temperature, value }) {
    const cells = range(size(0).columns, (k) => cell(0, i, k));
    const largest = Math.max(...cells.map(({ x }) => x));
    const less = (n, x) => `${n(x)} − ${n(largest)}`;
    const power = (n, x) =>
      temperature === 1 ? `e^(${less(n, x)})` : `e^((${less(n, x)}) ÷ ${temperature})`;
    const share = (x) => Math.exp((x - largest) / temperature);
    const terms = ordered(cells.filter(({ x }) => x !== -Infinity).map((from) => (
      { size: share(from.x), text: (n) => power(n, from.x), from: [from] })));
    const [own, whole] = [cells[j], terms.reduce((sum, { size: part }) => sum + part, 0)];
    const build = (n, middle) => {
      const [top, bottom] = [power(n, own.x), added(terms, n)];
      const claims = [`${top} = ${middle(share(own.x))}`, `${bottom} = ${middle(whole)}`];
      return [`${top} ÷ (${bottom}) = ${middle(share(own.x))} ÷ ${middle(whole)}`, ...claims];
    };
    return { build: terms.length ? build : null, from: [own, ...froms(terms)] };
  },
  mix: ({ cell, i, j, size }) =>
    sumOf(range(size(0).columns, (k) => times(cell(0, i, k), cell(1, k, j)))),
  join({ cell, i, j, size, op }) {
    const width = size(0).columns;
    return copy(cell(Math.floor(j / width), i, j % width));
  },
  norm({ cell, i, j, size, op }) {
    const cells = range(size(0).columns, (k) => cell(0, i, k));
    const [own, d, learned] = [cells[j], cells.length, op.weights.map((_, k) => cell(k + 1, 0, j))];
    const mean = cells.reduce((sum, { x }) => sum + x, 0) / d;
    const apart = (x) => (x - mean) ** 2;
    const spread = Math.sqrt(cells.reduce((sum, { x }) => sum + apart(x), 0) / d + op.options.eps);
    const build = (n, middle) => {
      const square = ({ x }) => (
        { size: apart(x), text: () => `(${n(x)} − ${middle(mean)})^2`, from: [] });
      const [whole, squares] = [ordered(cells.map(alone)), ordered(cells.map(square))];
      const eps = op.options.eps.toFixed(12).replace(/0+$/, "");
      const [gain, shift] = learned.map(({ x }) => n(x));
      return `mean: (${added(whole, n)}) ÷ ${d} = ${middle(mean)}; ` +
        `spread: √((${added(squares, n)}) ÷ ${d} + ${eps}) = ${middle(spread)}; ` +
        `(${n(own.x)} − ${middle(mean)}) ÷ ${middle(spread)}` +
        (gain ? ` × ${gain} + ${shift}` : "");
    };
    return { build, from: [own, ...learned, ...cells] };
  },
  relu({ cell, i, j }) {
    const before = cell(0, i, j);
    return { build: (n) => `max(0, ${n(before.x)})`, from: [before] };
  },
  gelu({ cell, i, j }) {
    const before = cell(0, i, j);
    const build = (n, middle) => {
      const [x, part] = [n(before.x), middle(CALLED.Φ(before.x))];
      return [`${x} × Φ(${x}) = ${x} × ${part}`, `Φ(${x}) = ${part}`];
    };
    return { build, from: [before] };
  },
  gelu_tanh({ cell, i, j }) {
    const before = cell(0, i, j);
    const build = (n) => {
      const x = n(before.x);
      return `0.5 × ${x} × (1 + tanh(√(2 ÷ π) × (${x} + 0.044715 × ${x}^3)))`;
    };
    return { build, from: [before] };
  },
  last: ({ cell, j, size }) => copy(cell(0, size(0).rows - 1, j)),
  mean({ cell, j, size }) {
    const terms = ordered(range(size(0).rows, (k) => alone(cell(0, k, j))));
    return { build: (n) => `(${added(terms, n)}) ÷ ${terms.length}`, from: froms(terms) };
  },
  unit({ cell, i, j, size }) {
    const cells = range(size(0).columns, (k) => cell(0, i, k));
    const square = ({ x }) => ({ size: x * x, text: (n) => `${n(x)}^2`, from: [] });
    const terms = ordered(cells.map(square));
    const build = (n) => `${n(cells[j].x)} ÷ √(${added(terms, n)})`;
    return { build, from: [cells[j], ...cells] };
  },
};

/** Terms added up, and maybe a bias as the last. */
function sumOf(terms, bias) {
  const all = ordered(terms);
  const build = (n) => added(all, n) + (bias ? ` + ${n(bias.x)}` : "");
  return { build, from: [...froms(all), ...(bias ? [bias] : [])] };
}

// ---------------------------------------------------------------- in words

const quoted = (token) => `“${visible(String(token))}”`;
const NOUNS = {
  q: "query", k: "key", v: "value", hidden: "hidden number", out: "what is added",
  embed: "word vector", given: "word vector", waves: "position", places: "position",
  same: "segment", add: "sum", mix: "what is gathered", join: "heads joined", norm: "normed number",
  relu: "hidden number, if positive", gelu: "hidden number, bent", mean: "mean of all words",
  gelu_tanh: "hidden number, bent", last: "vector", unit: "sentence vector, of length 1",
  linear: "new number",
};

/** Names for rows and columns, of the words that a learner typed; they are text, never HTML. */
function naming(engine, texts, tokens) {
  const { vocab = {}, names = {} } = engine.program;
  const word = (rows, i) => {
    const token = tokens?.[rows]?.[i] ?? vocab[rows]?.[texts?.[rows]?.[i]];
    return token === undefined ? `word ${i + 1}${rows === "memory" ? " of the memory" : ""}`
      : quoted(token);
  };
  const home = (op) => (op.rows || !op.inputs.length ? op.rows : home(op.inputs[0]));
  const who = (op, i) => (op.rows ? word(op.rows, i) : "the newest word");
  const column = (op, j) => {
    const named = names[op.name] ?? names[op.columns];
    if (op.columns === "vocab") return quoted(vocab[home(op)]?.[j] ?? j + 1);
    if (op.columns !== "features") return word(op.columns, j);
    return named?.[j] === undefined ? `feature ${j + 1}` : visible(String(named[j]));
  };
  return { who, column, home };
}

/** What an operation's number is. */
function inWords(op, i, j, { who, column }, x) {
  const [a, b] = [who(op, i), column(op, j)];
  const pair = `score of ${a} for ${b}`;
  const of = {
    "one-hot": () => `is ${a} the word ${b}? ${x ? "yes" : "no"}`,
    ids: () => `the number of ${a} in the list of words, counted from 0`,
    scores: () => pair,
    scale: () => `scaled ${pair}`,
    mask: () => (x === -Infinity ? `−∞: ${b} comes later than ${a}` : `${pair}, not hidden`),
    softmax: () => op.columns === "vocab" ? `probability that ${b} comes after ${a}`
      : `weight of ${b} for ${a}`,
    mean: () => `${NOUNS.mean}, ${b}`,
    unit: () => `${NOUNS.unit}, ${b}`,
    split: () => `${NOUNS[op.name.at(-1)]} of ${a}, ${b}: feature ${op.options.start + j + 1} of all heads`,
  };
  if (op.columns === "vocab" && op.kind === "linear") return `score of ${b} as the word after ${a}`;
  const noun = NOUNS[op.name.split("/").at(-1)] ?? NOUNS[op.kind];
  return of[op.kind]?.() ?? `${noun} of ${a}, ${b}`;
}

/** A learned or given number in words. */
function ofWeight(engine, name, i, j, { home }) {
  const op = engine.operations.find(({ weights }) => weights.includes(name));
  const own = name.split("/").at(-1);
  const word = op?.kind === "embed" ? engine.program.vocab?.[home(op)]?.[i] : undefined;
  const place = word === undefined ? `row ${i + 1}` : quoted(word);
  return `${own}, ${place}, column ${j + 1}`;
}

// ---------------------------------------------------------------- of any number

const place = ({ name, row, column }) => ({ name, row, column });
const isHere = (i, j, columns) => ({ row, column, values }) =>
  row === i && (values ? values.length === columns : column === j);

/** The context of MADE for a number of an operation. */
function contextOf(values, op, i, j) {
  const names = [...op.inputs.map((input) => input.name), ...op.weights];
  const size = (which) => values[names[which]];
  const cell = (which, row, column) => {
    const { data, columns } = size(which);
    return { name: names[which], row, column, x: data[row * columns + column] };
  };
  const { texts, temperature } = values[RUN];
  const heated = op.kind === "softmax" && op.columns === "vocab" ? temperature : 1;
  return { op, i, j, cell, size, id: texts[op.rows]?.[i], temperature: heated };
}

/** How an operation's number is made: { note, build, from }. */
function made(values, op, i, j) {
  const context = contextOf(values, op, i, j);
  const { changes } = values[RUN];
  const mine = changes.filter(({ at }) => at === op.name);
  if (mine.findLast(isHere(i, j, values[op.name].columns))) return { note: "set by hand", from: [] };
  if (mine.some(({ off }) => off) && op.kind in LEFT) {
    if (LEFT[op.kind] === nothing) return { note: "switched off: nothing", from: [] };
    const which = op.kind === "add" ? 1 : 0;
    const note = which ? "switched off: what was found alone" : "switched off: as it came in";
    return { note, ...copy(context.cell(which, i, j)) };
  }
  if (op.kind !== "split") return { from: [], ...MADE[op.kind]?.(context) };
  const whole = made(values, op.inputs[0], i, op.options.start + j);
  return { ...whole, from: [context.cell(0, i, op.options.start + j), ...whole.from] };
}

/** Where a number comes from: { words, formula, shown, sources }; `tokens` are the texts' words. */
export function explain(engine, values, name, i, j, tokens) {
  const op = engine.by[name];
  const { data, columns } = values[name] ?? engine.weight(name);
  const [value, names] = [data[i * columns + j], naming(engine, values[RUN].texts, tokens)];
  const shown = cellText(value);
  const what = op ? inWords(op, i, j, names, value) : ofWeight(engine, name, i, j, names);
  const changed = values[RUN].changes.some((c) => c.at === name && isHere(i, j, columns)(c));
  const { note, build, from } = op ? made(values, op, i, j)
    : { note: changed ? "set by hand" : "given, or learned in training", from: [] };
  const strange = Number.isNaN(value) && "no number, as one of its parts is none or too large";
  const words = [what, note, strange].filter(Boolean).join(": ");
  const formula = build && !strange ? settled(build, shown) : shown;
  return { words, formula, shown, sources: from.map(place) };
}

/** The parts of weights that `explain` reads, where they stay with the kernel: [{ name, row or column }]. */
export function needs(engine, name, i, j, texts) {
  const op = engine.by[name];
  if (!op) return [{ name, row: i }];
  if (op.kind === "split") return needs(engine, op.inputs[0].name, i, op.options.start + j, texts);
  const row = { embed: texts[op.rows]?.[i], places: i, same: 0, given: i }[op.kind];
  return op.weights.map((weight) => (row === undefined ? { name: weight, column: j } : { name: weight, row }));
}
