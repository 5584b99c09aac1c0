// Where a number of the machine comes from: its computation written out with the real terms, so that
// what is printed, evaluated as printed, gives the number that is shown.
import { visible } from "../widgets/shared.js";
import { CALLED, cellText, holds, inFormula, near } from "./formula.js";
import { LEFT, RUN, featuresOf, largestAt, nothing, optionsOf } from "./engine.js";
import { forAll, range, speedOf, total } from "./engine.js";

/** The first of `build(number, middle)` that holds, with few decimals of the parts if they do. Where none
 *  does, as numbers of a kernel are rounded to float32 at each step, its end is called near: ≈. */
function settled(build, shown) {
  let line = "";
  for (const decimals of [2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16]) {
    for (const between of [3, 4, 2, 5, 6, 8]) {
      const number = (most) => (x) => inFormula(x, most);
      const [text, ...claims] = [build(number(decimals), number(between))].flat();
      line = `${text} = ${shown}`.replace(
        /(^|together |; |[(,:=] ?)\((−[\d.e−∞]+)\)(?!\^)/g,
        "$1$2",
      );
      if ([...line.split("; "), ...claims].every(holds)) return line;
    }
  }
  return line.replace(/ = (?!.* = )/, " ≈ ");
}

/** Terms, { size, text }, added up; of many the five largest, and what the others are together. */
function added(terms, number) {
  if (terms.length <= 6) return terms.map(({ text }) => text(number)).join(" + ");
  const [largest, others] = [terms.slice(0, 5), terms.slice(5)];
  const first = largest.map(({ text }) => text(number)).join(" + ");
  return `${first} + ${others.length} more, together ${number(total(others, ({ size }) => size))}`;
}

// ---------------------------------------------------------------- of each kind

/** Terms with the largest first where they are many. */
function ordered(terms) {
  const size = (term) => (Number.isNaN(term.size) ? Infinity : Math.abs(term.size));
  return terms.length > 6 ? terms.sort((a, b) => size(b) - size(a)) : terms;
}
const times = (a, b) => ({ size: a.x * b.x, text: (n) => `${n(a.x)} × ${n(b.x)}`, from: [a, b] });
const alone = (a) => ({ size: a.x, text: (n) => n(a.x), from: [a] });
const froms = (terms) => terms.flatMap(({ from }) => from);
const root = (by) => (near(by * by, (by * by).toFixed(0)) ? `√${(by * by).toFixed(0)}` : null);

const small = (eps) => eps.toFixed(12).replace(/0+$/, "");

/** Terms added up, and maybe a bias as the last. */
function sumOf(terms, bias) {
  const all = ordered(terms);
  const build = (n) => added(all, n) + (bias ? ` + ${n(bias.x)}` : "");
  return { build, from: [...froms(all), ...(bias ? [bias] : [])] };
}
const rowTimesColumn = (
  { row, cell, j, size }, // a sink's weight meets no value
) => range(size(1).rows, (k) => times(row()[k], cell(1, k, j)));
const copy = (cell) => ({ from: [cell] });
const passed = ({ cell, i, j }) => copy(cell(0, i, j));
/** What is made of the number before it alone, by `text(it, n, more)`. */
function ofOne(text) {
  return ({ cell, i, j, op }) => {
    const [one, { x }] = [cell(0, i, j), cell(0, i, j)];
    return { build: (n, middle) => text(n(x), n, { x, middle, op }), from: [one] };
  };
}

const squared = (cells, number) =>
  added(ordered(cells.map(({ x }) => ({ size: x * x, text: (n) => `${n(x)}^2` }))), number);
/** Of numbers their mean, written out, how far each is from it, the mean of the squares of that, its root. */
function spreadOf(cells, n, middle, eps = 0) {
  const d = cells.length;
  const mean = total(cells, ({ x }) => x) / d;
  const square = ({ x }) => (x - mean) ** 2;
  const less = ({ x }) => `(${n(x)} − ${middle(mean)})`;
  const terms = ordered(cells.map((one) => ({ size: square(one), text: () => `${less(one)}^2` })));
  return {
    mean: `mean: (${added(ordered(cells.map(alone)), n)}) ÷ ${d} = ${middle(mean)}`,
    squares: `(${added(terms, n)}) ÷ ${d}`,
    size: middle(Math.sqrt(total(cells, square) / d + eps)),
    less,
  };
}

/** Shares of one whole: what softmax makes of the number in column j, among those that share. */
function wholeOf({ row, j, temperature }, cells) {
  const largest = Math.max(...cells.map(({ x }) => x));
  const [open, close] = temperature === 1 ? ["e^(", ")"] : ["e^((", `) ÷ ${temperature})`];
  const power = (x, n) => `${open}${n(x)} − ${n(largest)}${close}`;
  const share = (x) => Math.exp((x - largest) / temperature);
  const term = (one) => ({ size: share(one.x), text: (n) => power(one.x, n), from: [one] });
  const terms = ordered(cells.filter(({ x }) => x !== -Infinity).map(term));
  const [own, whole] = [row()[j], total(terms, ({ size }) => size)];
  const build = (n, middle) => {
    const [top, bottom] = [power(own.x, n), added(terms, n)];
    const [upper, lower] = [middle(share(own.x)), middle(whole)];
    const claims = [`${top} = ${upper}`, `${bottom} = ${lower}`];
    return [`${top} ÷ (${bottom}) = ${upper} ÷ ${lower}`, ...claims];
  };
  return { build: terms.length ? build : null, from: [own, ...froms(terms)] };
}

/** Of each kind, how a number is made: { build, from }. `cell(which, row, column)` is a number of the inputs
 *  and then the weights, `row()` all of its row in the first; `build(n, middle)` writes parts by n. */
const MADE = {
  given: passed,
  places: passed,
  mask: passed,
  sink: ({ cell, i, j, size }) => copy(j < size(0).columns ? cell(0, i, j) : cell(1, 0, 0)),
  same: ({ cell, j }) => copy(cell(0, 0, j)),
  last: ({ cell, j, size }) => copy(cell(0, size(0).rows - 1, j)),
  join({ cell, i, j, size }) {
    const width = size(0).columns;
    return copy(cell(Math.floor(j / width), i, j % width));
  },
  embed({ cell, i, j, id, op }) {
    const [word, listed] = [cell(1, id, j), op.inputs[0].kind === "ids"];
    const { factor } = op.options;
    const scaled = (n) => `${root(factor) ?? n(factor)} × ${n(word.x)}`;
    const among = (n) => `1 × ${n(word.x)}, all others 0 × …`;
    const build = factor ? scaled : listed ? null : among;
    return { build, from: [word, cell(0, i, listed ? 0 : id)] };
  },
  waves({ i, j, op }) {
    const [name, even, { d }] = [j % 2 ? "cos" : "sin", j - (j % 2), op.options];
    const angle = `${i} ÷ 10000^(${even} ÷ ${d})`;
    const build = (_, middle) => {
      const turn = middle(i / 10000 ** (even / d));
      return [`${name}(${angle}) = ${name}(${turn})`, `${angle} = ${turn}`];
    };
    return { build, from: [] };
  },
  add: ({ cell, i, j }) => sumOf([0, 1].map((which) => alone(cell(which, i, j)))),
  linear(all) {
    return sumOf(rowTimesColumn(all), all.op.weights.length > 1 && all.cell(2, 0, all.j));
  },
  mix: (context) => sumOf(rowTimesColumn(context)),
  scores: ({ row, cell, j }) => sumOf(row().map((x, k) => times(x, cell(1, j, k)))),
  scale: ofOne((x, n, { op }) => `${x} ÷ ${root(op.options.by) ?? n(op.options.by)}`),
  rotate({ cell, i, j, size, op }) {
    const [odd, d, { base, slower, louder = 1 }] = [j % 2, size(0).columns, op.options];
    const [own, other] = [cell(0, i, j), cell(0, i, j + (odd ? -1 : 1))];
    const build = (n, middle) => {
      const left = slower ? ` × ${middle(slower[j >> 1])}` : "";
      const angle = `${i} ÷ ${base}^(${j - odd} ÷ ${d})${left}`;
      const by = middle(i * speedOf(j, d, op.options));
      const [along, across] = [`${n(own.x)} × cos(${by})`, `${n(other.x)} × sin(${by})`];
      const sum = odd ? `${across} + ${along}` : `${along} − ${across}`;
      return `angle: ${angle} = ${by}; ${louder === 1 ? sum : `${middle(louder)} × (${sum})`}`;
    };
    return { build, from: odd ? [other, own] : [own, other] };
  },
  softmax: (context) => wholeOf(context, context.row()),
  shares({ row, j, temperature }) {
    const [cells, own] = [row(), row()[j]];
    const power = (x, n) => n(x) + (temperature === 1 ? "" : `^(1 ÷ ${temperature})`);
    const term = (one) => ({ size: one.x, text: (n) => power(one.x, n), from: [one] });
    const terms = ordered(cells.filter(({ x }) => x).map(term));
    const build = (n) => `${power(own.x, n)} ÷ (${added(terms, n)})`;
    return { build: terms.length ? build : null, from: [own, ...froms(terms)] };
  },
  entropy({ row }) {
    const cells = row().filter(({ x }) => x > 0);
    const one = ({ x }) => ({ size: -x * Math.log(x), text: (n) => `${n(x)} × ln(${n(x)})` });
    return { build: (n) => `−(${added(ordered(cells.map(one)), n)})`, from: cells };
  },
  slope: ofOne((p) => `${p} × (1 − ${p})`),
  deviation({ row }) {
    const build = (n, middle) => {
      const { mean, squares } = spreadOf(row(), n, middle);
      return `${mean}; √(${squares})`;
    };
    return { build, from: row() };
  },
  route(context) {
    const { row, j, op } = context;
    const numbers = row().map(({ x }) => x);
    const kept = largestAt(numbers, op.options.top_k);
    const asked = row().filter((_, k) => kept.has(k));
    return kept.has(j) ? wholeOf(context, asked) : { from: row() };
  },
  norm({ row, cell, j, op: { weights, options } }) {
    const [cells, learned] = [row(), weights.map((_, k) => cell(k + 1, 0, j))];
    const build = (n, middle) => {
      const { mean, squares, less, size } = spreadOf(cells, n, middle, options.eps);
      const [gain, shift] = learned.map(({ x }) => n(x));
      const spread = `√(${squares} + ${small(options.eps)}) = ${size}`;
      const more = gain ? ` × ${gain} + ${shift}` : "";
      return `${mean}; spread: ${spread}; ${less(cells[j])} ÷ ${size}${more}`;
    };
    return { build, from: [cells[j], ...learned, ...cells] };
  },
  rms({ row, cell, j, op: { weights, options } }) {
    const [all, d] = [row(), options.width ?? row().length];
    const cells = all.slice(j - (j % d), j - (j % d) + d);
    const [own, learned] = [all[j], weights.map((_, k) => cell(k + 1, 0, j % d))];
    const spread = Math.sqrt(total(cells, ({ x }) => x * x) / d + options.eps);
    const build = (n, middle) => {
      const gain = learned.map(({ x }) => ` × ${n(x)}`).join("");
      const size = `√((${squared(cells, n)}) ÷ ${d} + ${small(options.eps)}) = ${middle(spread)}`;
      return `size: ${size}; ${n(own.x)} ÷ ${middle(spread)}${gain}`;
    };
    return { build, from: [own, ...learned, ...cells] };
  },
  relu: ofOne((x) => `max(0, ${x})`),
  gelu: ofOne((text, _, { x, middle }) => {
    const part = middle(CALLED.Φ(x));
    return [`${text} × Φ(${text}) = ${text} × ${part}`, `Φ(${text}) = ${part}`];
  }),
  gelu_tanh: ofOne((x) => `0.5 × ${x} × (1 + tanh(√(2 ÷ π) × (${x} + 0.044715 × ${x}^3)))`),
  silu: ofOne((text, n, { x }) => `${text} ÷ (1 + e^${n(-x)})`),
  times: ({ cell, i, j }) => sumOf([times(cell(0, i, j), cell(1, i, j))]),
  blend({ row, cell, i, j }) {
    const asked = row().flatMap((share, e) => (share.x ? [times(share, cell(e + 1, i, j))] : []));
    return asked.length ? sumOf(asked) : { from: row() };
  },
  mean({ cell, row, j, size, op }) {
    const all = op.options.axis ? row() : range(size(0).rows, (k) => cell(0, k, j));
    const terms = ordered(all.map(alone));
    return { build: (n) => `(${added(terms, n)}) ÷ ${terms.length}`, from: froms(terms) };
  },
  unit({ row, j }) {
    const [cells, own] = [row(), row()[j]];
    return { build: (n) => `${n(own.x)} ÷ √(${squared(cells, n)})`, from: [own, ...cells] };
  },
};

// ---------------------------------------------------------------- in words

const quoted = (token) => `“${visible(String(token))}”`;
const vector = (letter, word) => ({
  [letter]: `${word} of`,
  [`${letter} normed`]: `normed ${word} of`,
  [`${letter} to turn`]: `part of the ${word} that turns, of`,
  [`${letter} turned`]: `${word}, turned by its place, of`,
});
/** What a number is, of a word: by the last part of its operation's name, or by its kind. */
const NOUNS = {
  ...vector("q", "query"),
  ...vector("k", "key"),
  ...vector("v", "value"),
  ...vector("c", "small vector"),
  ...vector("c of q", "small vector for the query"),
  ...forAll("embed given", "word vector of"),
  ...forAll("waves places", "position of"),
  ...forAll("norm rms", "normed number of"),
  ...forAll("gelu gelu_tanh silu", "hidden number, bent, of"),
  hidden: "hidden number of",
  relu: "hidden number, if positive, of",
  gate: "gate of",
  gated: "hidden number, gated, of",
  out: "what is added to",
  same: "segment of",
  add: "sum for",
  mix: "what is gathered by",
  join: "what all heads gathered for",
  last: "vector of",
  linear: "new number of",
};

/** Names for rows and columns, of the words that a learner typed; they are text, never HTML. */
function naming(engine, texts, tokens) {
  const { vocab = {} } = engine.program;
  const word = (rows, i) => {
    const token = tokens?.[rows]?.[i] ?? vocab[rows]?.[texts[rows]?.[i]];
    const nameless = `word ${i + 1}${rows === "memory" ? " of the memory" : ""}`;
    return token === undefined ? nameless : quoted(token);
  };
  const home = (op) => (op.rows || !op.inputs.length ? op.rows : home(op.inputs[0]));
  const alone = engine.program.step ? "" : "the newest word";
  const who = (op, i) => (op.rows ? word(op.rows, i) : alone);
  const column = (op, j) => {
    if (op.columns === "vocab") return quoted(vocab[home(op)]?.[j] ?? j + 1);
    if (op.columns !== "features") return word(op.columns, j);
    const named = featuresOf(engine, op.name, 1 + j)?.[j];
    return named === undefined ? `feature ${j + 1}` : visible(String(named));
  };
  return { who, column, home, step: engine.program.step };
}

/** What an operation's number is. */
function inWords(op, i, j, { who, column, step }, x, columns) {
  const isSink = j === columns - 1 && [op, ...op.inputs].some(({ kind }) => kind === "sink");
  const [a, b] = [who(op, i), isSink ? "the sink" : column(op, j)];
  const pair = a ? `score of ${b} for ${a}` : `score of ${b}`;
  const [next, own] = [op.columns === "vocab", op.name.split("/").at(-1)];
  const expert = `expert ${j + 1}`;
  const of = {
    "one-hot": () => `is ${a} the word ${b}? ${x ? "yes" : "no"}`,
    ids: () => `the number of ${a} in the list of words, counted from 0`,
    scores: () => (own === "by place" ? `${pair}, by their places` : pair),
    add: () => op.columns !== "features" && `${pair}, by what they mean and by their places`,
    sink: () => (isSink ? "score of the sink: learned, the same for every word" : pair),
    scale: () => `scaled ${pair}`,
    mask() {
      if (x !== -Infinity) return `${pair}, not hidden`;
      if (j > i) return `−∞: ${b} comes later than ${a}`;
      const first = op.options.keep_first ? ` or the ${op.options.keep_first} first` : "";
      return `−∞: ${b} is not among the ${op.options.window} newest${first} that ${a} sees`;
    },
    softmax() {
      const taken = "the largest score is taken off first, which changes no share";
      return next ? of.shares() : `weight of ${a ? `${b} for ${a}` : b} (${taken})`;
    },
    route() {
      const unasked = `${expert} is not among the ${op.options.top_k} that ${a} asks`;
      return x ? `share of ${expert} for ${a}` : unasked;
    },
    shares: () => `probability that ${b} comes after ${a}`,
    slope: () => `how far the weight of ${b} moves per nudge of its own scaled score`,
    entropy: () => "entropy: how undecided the weights are",
    deviation: () => `standard deviation of ${a}`,
    mean: () => (op.options.axis ? op.title + (a && ` of ${a}`) : `mean of all words, ${b}`),
    unit: () => `sentence vector, of length 1, ${b}`,
    split: () => `${NOUNS[own]} ${a}, ${b}: feature ${op.options.start + j + 1} of all heads`,
  };
  if (op.name.endsWith("/router")) return `score of ${expert} for ${a}`;
  if (next && op.kind === "linear") return `score of ${b} as the word after ${a}`;
  const noun = NOUNS[own] ?? NOUNS[op.kind];
  if (step && /^(given|linear|embed)$/.test(op.kind))
    return [op.title + (a && ` of ${a}`), b].join(", ");
  return of[op.kind]?.() || `${noun} ${a}, ${b}`;
}

function ofWeight(engine, name, i, j, { home }) {
  const op = engine.operations.find(({ weights }) => weights.includes(name));
  const word = op?.kind === "embed" ? engine.program.vocab?.[home(op)]?.[i] : undefined;
  const place = word === undefined ? `row ${i + 1}` : quoted(word);
  return `${name.split("/").at(-1)}, ${place}, column ${j + 1}`;
}

// ---------------------------------------------------------------- of any number

const setByHand = (values, name, i, j) =>
  values[RUN].changes.some(
    ({ at, row, column, values: all }) =>
      at === name && row === i && (all ? all.length === values[name].columns : column === j),
  );

function contextOf(values, op, i, j) {
  const size = (which) => values[op.parts[which]];
  const cell = (which, row, column) => {
    const { data, columns } = size(which);
    return { name: op.parts[which], row, column, x: data[row * columns + column] ?? NaN };
  };
  const row = () => range(size(0).columns, (k) => cell(0, i, k));
  const options = optionsOf(op, values[RUN]);
  const id = values[RUN].texts[op.rows]?.[i];
  const { temperature = 1 } = options;
  return { op: { ...op, options }, i, j, cell, row, size, id, temperature };
}

/** How an operation's number is made: { note, build, from }. */
function made(values, op, i, j) {
  if (setByHand(values, op.name, i, j)) return { note: "set by hand", from: [] };
  const context = contextOf(values, op, i, j);
  if (values[RUN].changes.some(({ at, off }) => off && at === op.name) && op.kind in LEFT) {
    if (LEFT[op.kind] === nothing) return { note: "switched off: nothing", from: [] };
    const which = /^(add|times)$/.test(op.kind) ? 1 : 0;
    const left = op.kind === "add" ? "what was found alone" : "as it came in";
    return { note: `switched off: ${left}`, ...copy(context.cell(which, i, j)) };
  }
  if (op.kind !== "split") return { from: [], ...MADE[op.kind]?.(context) };
  const [whole, place] = [op.inputs[0], op.options.start + j];
  const of = made(values, whole, i, place);
  return { ...of, from: [context.cell(0, i, place), ...of.from] };
}

/** Where a number comes from: { words, formula, shown, sources }; `tokens` are the texts' words. */
export function explain(engine, values, name, i, j, tokens) {
  values = { ...engine.all, ...values };
  const { data, columns } = values[name];
  const [op, value] = [engine.by[name], data[i * columns + j] ?? NaN];
  const shown = cellText(value, data.length === 1);
  const names = naming(engine, values[RUN].texts, tokens);
  const what = op ? inWords(op, i, j, names, value, columns) : ofWeight(engine, name, i, j, names);
  const found = setByHand(values, name, i, j) ? "set by hand" : "given, or learned in training";
  const { note, build, from } = op ? made(values, op, i, j) : { note: found, from: [] };
  const none = Number.isNaN(value);
  const strange =
    none && (from.length ? "no number, as one of its parts is none or too large" : "no number");
  const words = [what, note, strange].filter(Boolean).join(": ");
  const known = build && !none && !from.some(({ x }) => Number.isNaN(x));
  const sources = from.map((cell) => ({ name: cell.name, row: cell.row, column: cell.column }));
  return { words, formula: known ? settled(build, shown) : shown, shown, sources };
}
