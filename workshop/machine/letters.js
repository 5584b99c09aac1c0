// A formula in letters, over the sum that is written out in numbers.
import { h } from "../widgets/shared.js";

/** The formula of each kind in letters; what stands between ‹ and › has the colour that follows it. */
const LETTERS = {
  embed: "‹x x› = the row of its word in the table",
  add: "‹x x› + what was found",
  scores: "‹scores score› = ‹q q› · ‹k k›",
  scale: "‹scores score› ÷ √d",
  softmax: "‹weights weight› = e^‹scores score› ÷ Σ e^‹scores score›",
  mix: "‹context context› = Σ ‹weights weight› × ‹v v›",
  norm: "(‹x x› − mean) ÷ spread × gain + shift",
  rms: "‹x x› ÷ √(mean of ‹x x›²) × gain",
  relu: "max(0, hidden)",
  gelu: "hidden × Φ(hidden)",
  silu: "hidden ÷ (1 + e^(−hidden))",
  times: "gate × hidden",
  blend: "Σ ‹weights share› × expert",
  waves: "sin or cos(place ÷ 10000^(feature ÷ d))",
  mean: "Σ ‹x x› ÷ T",
};
const MADE_OF = { q: "W_q", k: "W_k", v: "W_v" };
/** A formula in the colours of its parts, for an operation; nothing where a number is only passed on. */
export function inLetters(op) {
  const [own, letter] = [op.name.split("/").at(-1), op.name.at(-1)];
  const isLinear = op.kind === "linear" || op.kind === "split";
  const W = MADE_OF[own] ?? op.weights[0]?.split("/").at(-1);
  const linear =
    own in MADE_OF ? `‹${letter} ${own}› = ‹x x› ${W}` : `‹x x› ${W}${op.weights[1] ? " + b" : ""}`;
  const all = isLinear ? linear : (LETTERS[op.kind] ?? "");
  return [...all.matchAll(/‹(\w+) ([^›]+)›|[^‹]+/g)].map(([text, colour, name]) =>
    colour ? h("strong", { style: `color: var(--${colour})` }, name) : text,
  );
}
