// What is switched off beside a part; what is turned beside a single step: an option of one operation, or all numbers of a learned row.
import { put, slider } from "../widgets/shared.js";
import { below } from "./scenes.js";

/** The change of a knob, among others. */
const isOf = (knob) => (one) =>
  one.at === knob.at && (knob.option ? one.option === knob.option : Boolean(one.values));
const turnedTo = ({ root }, { value, values }) => (root ? value ** 2 : (value ?? values[0]));

/** What a change is called that a knob made: “d_k = 64”; nothing for another change. */
export function knobName({ knobs }, change, written) {
  const knob = knobs.find((one) => isOf(one)(change));
  return knob && `${knob.label} = ${written(turnedTo(knob, change))}`;
}
/** A slider that keeps its place in the changes. */
export function knobOf(engine, model, knob) {
  const now = () => {
    const change = model.get("changes").find(isOf(knob));
    return change ? turnedTo(knob, change) : knob.value;
  };
  const set = (x) => {
    const rest = model.get("changes").filter((one) => !isOf(knob)(one));
    const { at, option, root, value } = knob;
    const change = option
      ? { at, option, value: root ? Math.sqrt(x) : x }
      : { at, row: 0, values: Array(engine.all[at].columns).fill(x) };
    put(model, "changes", x === value ? rest : [...rest, change]);
  };
  const made = slider(knob.label, { ...knob, value: now() }, set);
  model.on("change:changes", () => made.set(now()));
  return made;
}

const NAMED = { scale: "÷ √d", mask: "mask", places: "positions", waves: "positions" };
/** What the switch of an operation is called in a group; nothing where it has none. */
function labelOf({ kind, parts }, at, many) {
  const [own, group] = [parts.at(-1), parts.at(-2) ?? at.split("/").pop()];
  const of = parts.at(-3)?.match(/^(self|cross)-/) ? `${parts.at(-3).slice(0, 5)} ` : "";
  if (kind === "mix") return of + group.replace(/^head$/, "attention");
  if (kind === "add" && /^add( |$)/.test(own)) return own.replace("add", "residual");
  if (kind === "norm" || kind === "rms") return own;
  if (own === "out" && group === "feed-forward") return group;
  if (own === "out" && /attention$/.test(group) && parts.length < 2) return "all heads";
  if (NAMED[kind] === "positions" && parts.length > 1) return `${group} positions`;
  if (parts.length < 2 || !many) return kind === "rotate" ? own : NAMED[kind]; // queries and keys turn
}
/** What can be switched off in an open group: [name on its switch, operation]. Where layers are, each has its own. */
export function switches(engine, at) {
  const found = new Map();
  const partsOf = ({ name }) => name.slice(at && at.length + 1).split("/");
  const all = below(engine, at).map((op) => ({ ...op, parts: partsOf(op) }));
  const many = engine.operations.length >= 16;
  const layered = many && all.some(({ parts }) => /^((en|de)coder\/)?layer /.test(parts.join("/")));
  for (const op of all) {
    const label = labelOf(op, at, many);
    const places = NAMED[op.kind] === "positions"; // of an encoder's text and of a decoder's
    if (label && (places || op.parts.length < (layered ? 2 : 4))) found.set(label, op.name);
  }
  return [...found];
}
