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
/** What can be switched off in an open group: [name on its switch, operation]. Where layers are, each has its own. */
export function switches(engine, at) {
  const found = new Map();
  const all = below(engine, at).map((op) => ({
    ...op,
    parts: op.name.slice(at && at.length + 1).split("/"),
  }));
  const many = engine.operations.length >= 16;
  const layered = many && all.some(({ parts }) => /^((en|de)coder\/)?layer /.test(parts.join("/")));
  for (const { name, kind, parts } of all) {
    const [own, group] = [parts.at(-1), parts.at(-2) ?? at.split("/").pop()];
    const of =
      parts.length > 2 && parts.at(-3).match(/^(self|cross)-/)
        ? `${parts.at(-3).slice(0, 5)} `
        : "";
    const places = NAMED[kind] === "positions"; // of an encoder's text and of a decoder's
    const turn = kind === "rotate" ? own : undefined; // of queries and keys
    const label =
      kind === "mix"
        ? of + group.replace(/^head$/, "attention")
        : kind === "add" && /^add( |$)/.test(own)
          ? own.replace("add", "residual")
          : kind === "norm" || kind === "rms"
            ? own
            : own === "out" && group === "feed-forward"
              ? group
              : own === "out" && /attention$/.test(group) && parts.length < 2
                ? "all heads"
                : places && parts.length > 1
                  ? `${group} positions`
                  : parts.length < 2 || !many
                    ? (NAMED[kind] ?? turn)
                    : undefined;
    if (label && (places || parts.length < (layered ? 2 : 4))) found.set(label, name);
  }
  return [...found];
}
