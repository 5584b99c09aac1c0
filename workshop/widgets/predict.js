// A question before the reveal: choose, check, read why.
import { button, frame, h, put, readout, row } from "./shared.js";
import { initialize } from "./keep.js";

function render({ model, el }) {
  const { root, close } = frame(model, el, () => {});
  const [choices, right, reason] = ["choices", "right", "reason"].map((name) => model.get(name));
  const [verdict, name] = [readout(), `predict-${Math.random()}`];
  const inputs = choices.map((value) => h("input", { type: "radio", name, value }));
  const marks = choices.map(() => h("strong"));
  let told = false; // the reason: with the right answer, or on request
  const why = button("Show the reason", () => check.focus(say("", "", (told = true))));
  const check = button("Check", () => {
    put(model, "chosen", inputs.find((input) => input.checked)?.value ?? "");
    judge();
  });

  function say(word, more = "") {
    verdict.replaceChildren(h("strong", {}, word), ` ${more} `, told ? reason : "");
    why.hidden = told || !reason || !model.get("chosen");
  }
  /** The verdict on what was checked: now, in another view, or before the notebook was saved. */
  function judge() {
    const i = choices.indexOf(model.get("chosen"));
    if (i < 0) return say("", "Choose an answer, then check it.");
    told ||= i === right;
    inputs[i].checked = true;
    for (const input of inputs) input.disabled = i === right && !input.checked; // the choice stays
    marks[i].textContent = i === right ? "Right." : "Not this one.";
    say(marks[i].textContent, i === right ? "" : "Try again.");
  }

  const set = h("fieldset", { onchange: () => say("") }, h("legend", {}, model.get("question")));
  set.append(
    ...choices.map((text, i) =>
      h("label", {}, inputs[i], `${"ABCD"[i]})`, h("bdi", {}, text), marks[i]),
    ),
  );
  root.append(set, row(check, why), verdict);
  model.on("change:chosen", judge);
  judge();
  return close;
}
export default { initialize, render };
