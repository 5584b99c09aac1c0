// A formula in letters, over the sum that is written out in numbers.
import { h } from "../widgets/shared.js";

/** The formula of each kind in letters; what stands between ‹ and › has the colour that follows it. */
const LETTERS = {
  embed: "‹x x› = the row of its word in the table",
  add: "‹x x› + what was found",
  both: "‹scores score› + ‹scores score by place›",
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
/** A formula in the colours of its parts, for an operation; nothing where a number is only passed on. */
export function inLetters(op) {
  const own = op.name.split("/").at(-1);
  const { kind, inputs, weights } = op.kind === "split" ? op.inputs[0] : op;
  const x = inputs[0]?.name.endsWith("c normed") ? "‹k c›" : "‹x x›";
  const result = /^[qkvc]\b/.test(own) ? `‹${op.colour} ${own}› = ` : "";
  const linear = `${result}${x} ${weights[0]?.split("/").at(-1)}${weights[1] ? " + b" : ""}`;
  const all = kind === "linear" ? linear : (LETTERS[own === "both" ? own : kind] ?? "");
  return [...all.matchAll(/‹(\w+) ([^›]+)›|[^‹]+/g)].map(([text, colour, name]) =>
    colour ? h("strong", { style: `color: var(--${colour})` }, name) : text,
  );
}
