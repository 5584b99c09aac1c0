// Numbers as they are printed, and a formula read as it is printed.
import { erf } from "./engine.js";

const MINUS = "−";
const hair = (x, share, most) => Math.min(share * Math.max(1, Math.abs(x)), most);
// What float32 leaves a hair below a half, 0.175 as 0.17499999, is rounded up as on paper.
export const rounded = (x, decimals) =>
  (x + Math.sign(x) * hair(x, 1e-7, 10 ** -decimals / 1000)).toFixed(decimals);
const signed = (text) =>
  Number(text) === 0 ? text.replace("-", "") : text.replaceAll("-", MINUS).replace("+", "");
export const near = (x, text) => Math.abs(x - Number(text)) <= hair(x, 5e-7, 5e-4);
const unwhole = (x) => (Number.isNaN(x) ? "×" : x < 0 ? "−∞" : "∞");
const brief = (x, digits) => signed(x.toExponential(digits));

/** How a number is written in a cell: two decimals (wide: four), one where that is all of it. */
export function cellText(x, wide = false) {
  if (!Number.isFinite(x)) return unwhole(x);
  if (Math.abs(x) >= 10_000) return brief(x, wide ? 3 : 1);
  const short = x.toFixed(1);
  return signed(near(x, short) ? short : rounded(x, wide ? 4 : 2));
}

const bracketed = (text) => (text.startsWith(MINUS) ? `(${text})` : text);
/** A number in a formula with at most so many decimals, in brackets if it is negative. */
export function inFormula(x, decimals) {
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "(−∞)";
  if (Math.abs(x) >= 1e7) return bracketed(brief(x, decimals));
  const long = decimals > 15 ? String(x) : x.toFixed(decimals);
  const short = long.replace(/(\.\d+?)0+$/, "$1");
  return bracketed(signed(near(x, short) ? short : long));
}

// ---------------------------------------------------------------- a formula, read as it is printed

export const CALLED = {
  sin: Math.sin,
  cos: Math.cos,
  tanh: Math.tanh,
  max: Math.max,
  ln: Math.log,
  Φ: (x) => (1 + erf(x / Math.SQRT2)) / 2,
};
const TOKEN = /\d+(?:\.\d+)?(?:e−?\d+)?|[a-zΦ]+|[−+×÷√^(),∞π]/g;

/** What "2.0 × 3.0 + √4" is. */
export function evaluated(text) {
  const tokens = text.replace(/\d+ more, together |, all others.*/g, "").match(TOKEN) ?? [];
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
export function holds(line) {
  const parts = line.replace(/^[^:]*: /, "").split(" = ");
  const end = parts.pop();
  const decimals = /\.(\d+)/.exec(end)?.[1].length ?? 0;
  const [most, number] = [Math.max(2, decimals), evaluated(end)];
  const same = /[∞×]/.test(end)
    ? (x) => cellText(x) === end
    : end.includes("e")
      ? (x) => brief(x, decimals) === end
      : (x) => signed(rounded(x, most)) === signed(number.toFixed(most));
  return parts.every((part) => same(evaluated(part)));
}
