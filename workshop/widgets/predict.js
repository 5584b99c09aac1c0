// A question before the reveal: choose or type, check, read why.
import { button, frame, h, put, readout, row, visible } from "./shared.js";
import { initialize } from "./keep.js";

const NUMBER = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)$/;
/** What is wrong with typed numbers, as Python's `fault` has it; nothing where each is right. */
function fault(text, answer) {
  const words = text.replaceAll("−", "-").split(/[\s;]+|,(?!\S)/);
  const typed = words.filter(Boolean).map((word) => word.replace(",", "."));
  const strange = typed.find((word) => !NUMBER.test(word));
  if (strange) return `“${visible(strange)}” is no number; write one as 0.42.`;
  const [n, asked] = [typed.length, answer.length];
  if (n !== asked)
    return `You typed ${n} number${n === 1 ? "" : "s"}; the question asks for ${asked}.`;
  const said = typed.map((word, i) => {
    const more = Number(word) - answer[i];
    const which = asked > 1 ? `Number ${i + 1}` : "It";
    return Math.abs(more) < 0.005 + 1e-9 ? "" : `${which} is too ${more > 0 ? "large" : "small"}.`;
  });
  return said.filter(Boolean).join(" ");
}

function render({ model, el }) {
  const { root, close } = frame(model, el, () => {});
  const [choices, right, reason] = ["choices", "right", "reason"].map((name) => model.get(name));
  const [answer, drawn] = [model.get("answer"), model.get("drawn")];
  const [verdict, name, pictures] = [readout(), `predict-${Math.random()}`, h("div")];
  const inputs = choices.map((value) => h("input", { type: "radio", name, value }));
  const marks = choices.map(() => h("strong"));
  const typed = h("input", { type: "text", autocomplete: "off", maxLength: 200 });
  typed.addEventListener("keydown", ({ key }) => key === "Enter" && check.click());
  let told = false; // the reason and the picture: with the right answer, or on request
  const why = button("Show the reason", () => check.focus(say("", "", (told = true))));
  const check = button("Check", () => {
    const chosen = inputs.find((input) => input.checked)?.value ?? "";
    put(model, "chosen", choices.length ? chosen : typed.value.trim());
    judge();
  });

  function say(word, more = "") {
    verdict.replaceChildren(h("strong", {}, word), ` ${more} `, told ? reason : "");
    why.hidden = told || !(reason || drawn.length) || !model.get("chosen");
    const image = ({ png, alt, width }) =>
      h("img", { src: `data:image/png;base64,${png}`, alt, width });
    pictures.replaceChildren(...(told ? drawn.map(image) : []));
  }
  /** The verdict on what was checked: now, in another view, or before the notebook was saved. */
  function judge() {
    const chosen = model.get("chosen");
    const i = choices.indexOf(chosen);
    if (choices.length ? i < 0 : !chosen)
      return say("", `${choices.length ? "Choose" : "Type"} an answer, then check it.`);
    const off = choices.length ? (i === right ? "" : "Try again.") : fault(chosen, answer);
    told ||= !off;
    const word = off ? "Not this one." : "Right.";
    if (choices.length) {
      inputs[i].checked = true;
      for (const input of inputs) input.disabled = !off && !input.checked; // the choice stays
      marks[i].textContent = word;
    } else [typed.value, typed.readOnly] = [chosen, !off];
    say(word, off);
  }

  const changed = () => say("");
  const set = h("fieldset", { oninput: changed }, h("legend", {}, model.get("question")));
  choices.forEach((text, i) => {
    set.append(h("label", {}, inputs[i], `${"ABCD"[i]})`, h("bdi", {}, text), marks[i]));
  });
  if (!choices.length) set.append(h("label", {}, model.get("asks"), typed));
  root.append(set, row(check, why), verdict, pictures);
  model.on("change:chosen", judge);
  judge();
  return close;
}
export default { initialize, render };
