// A question before the reveal: choose, check, read why.
import { button, frame, h, put, readout, row } from "./shared.js";
import { initialize } from "./keep.js";

const NTH = ["first", "second", "third"];
/** What is wrong with numbers that were typed, each right to half a unit of its second decimal. */
function fault(typed, numbers) {
  const found = typed.replaceAll("−", "-").match(/-?\d*[.]?\d+/g) ?? [];
  if (found.length !== numbers.length)
    return `${numbers.length} asked for, ${found.length} came: like 0.42, with a space between two.`;
  const off = numbers.findIndex((x, i) => !(Math.abs(x - found[i]) < 0.005001));
  if (off < 0) return "";
  return numbers.length > 1
    ? `The ${NTH[off] ?? `${off + 1}th`} number is not right.`
    : "Try again.";
}

/** The choices, or a field for numbers: what was chosen, whether it is right, what to say if not. */
function fields(model) {
  const [choices, right, numbers] = ["choices", "right", "numbers"].map((name) => model.get(name));
  if (numbers.length) {
    const input = h("input", { type: "text", spellcheck: false, "aria-label": "your answer" });
    const set = (value, is) => Object.assign(input, { value, disabled: is });
    return {
      shown: [input],
      value: () => input.value.trim(),
      set,
      fault: (x) => fault(x, numbers),
    };
  }
  const name = `predict-${Math.random()}`;
  const inputs = choices.map((value) => h("input", { type: "radio", name, value }));
  const marks = choices.map(() => h("strong"));
  const label = (text, i) =>
    h("label", {}, inputs[i], `${"ABCD"[i]})`, h("bdi", {}, text), marks[i]);
  const set = (value, is) => {
    const i = choices.indexOf(value);
    if (i < 0) return;
    inputs[i].checked = true;
    marks[i].textContent = is ? "Right." : "Not this one.";
    for (const input of inputs) input.disabled = is && !input.checked; // the choice stays
  };
  const value = () => inputs.find((input) => input.checked)?.value ?? "";
  return {
    shown: choices.map(label),
    value,
    set,
    fault: (x) => (x === choices[right] ? "" : "Try again."),
  };
}

function render({ model, el }) {
  const { root, close } = frame(model, el, () => {});
  const [reason, drawn] = ["reason", "drawn"].map((name) => model.get(name));
  const [verdict, { shown, value, set, fault }] = [readout(), fields(model)];
  const pictures = h("div");
  let told = false; // the reason: with the right answer, or on request
  const why = button("Show the reason", () => check.focus(say("", "", (told = true))));
  const check = button("Check", () => {
    put(model, "chosen", value());
    judge();
  });

  function say(word, more = "") {
    verdict.replaceChildren(h("strong", {}, word), ` ${more} `, told ? reason : "");
    const image = (src, i) =>
      i % 3 ? [] : [h("img", { src, alt: drawn[i + 1], width: drawn[i + 2] })];
    pictures.replaceChildren(...(told ? drawn.flatMap(image) : []));
    why.hidden = told || !(reason || drawn.length) || !model.get("chosen");
  }
  /** The verdict on what was checked: now, in another view, or before the notebook was saved. */
  function judge() {
    const chosen = model.get("chosen");
    if (!chosen) return say("", "Choose an answer, then check it.");
    const wrong = fault(chosen);
    told ||= !wrong;
    set(chosen, !wrong);
    say(wrong ? "Not this one." : "Right.", wrong);
  }

  const oninput = () => say("");
  root.append(
    h("fieldset", { oninput }, h("legend", {}, model.get("question")), ...shown),
    row(check, why),
    verdict,
    pictures,
  );
  model.on("change:chosen", judge);
  judge();
  return close;
}
export default { initialize, render };
