// "Why this one?": the panel that asks a word of the prediction. Its numbers are those of why.js, or a kernel's.
import { button, h, put, row, visible } from "../widgets/shared.js";
import { rowOf, total } from "./engine.js";
import { cellText } from "./formula.js";
import { inside } from "./scenes.js";
import { EVERY, Why, heights, inFrames, lens, lostOf } from "./why.js";

const NONE =
  "No step was found: hide any one word from those that read it, and less than a tenth is lost.";
const LEAD = "Lead: its score minus the other's; a minus means that the other's is the larger.";
const STAYS = "Heads and feed-forwards are taken away, and words hidden; all else stays.";
const LINES = 12; // parts that are listed singly
const SEEN = 0.05; // what a reading, or a part of an encoder, must be missed to be listed
const inQuotes = (word) => `“${visible(word, 24)}”`;
const spaced = (path) => path.replaceAll("/", " ");
const fixed = (x, decimals) => x.toFixed(decimals).replace("-", "−");
const withSign = (x, decimals) => (x < 0 ? "" : "+") + fixed(x, decimals);
const amount = ([, adds]) => adds;
const cellsIn = (texts, tag = "td") => texts.map((text) => h(tag, {}, text));
const shaded = (text, percent) =>
  Object.assign(h("td", { className: "tinted" }, text), { style: `--p: ${percent}%` });
const sectionOf = (label, ...children) =>
  h("section", { className: "why", hidden: true, "aria-label": label }, ...children);

/** As many decimals as make the numbers that are shown add up to the sum that is shown; else two. */
function decimalsOf(numbers, sum) {
  const whole = (x, d) => Math.round(x * 10 ** d);
  const fits = (d) => total(numbers, (x) => whole(x, d)) === whole(sum, d);
  return [2, 3, 4].find(fits) ?? 2;
}

export class WhyPanel {
  constructor({ model, program, engine, view, open, redraw }) {
    Object.assign(this, { model, program, engine, view, open, redraw, answer: null });
    this.side = program.sides.at(-1);
    this.buttons = Array.from({ length: 6 }, () => button("", null));
    this.asks = row("why this one?", ...this.buttons);
    this.asks.classList.add("asks");
    this.list = h("ol");
    this.table = h("table");
    this.head = h("strong", {});
    this.gone = button("what if each part were gone?", () => {
      this.isToCome = true; // its column, in a table that may stand below what is seen
      this.set([...this.asked().slice(0, 2), "gone"]);
    });
    this.close = button("close", () => this.set([]));
    this.tip = h("span", { className: "quiet" });
    this.words = this.folded("what it would say if it ended here", (at) => this.tellWords(at));
    this.beside = this.folded("beside another sentence", () => this.writeBeside());
    const told = h("div", { "aria-live": "polite" }, this.list);
    const asked = row(this.head, this.gone, this.close);
    this.element = sectionOf("why this word", asked, this.tip, told);
    const more = program.remote ? [] : [this.words.element, this.beside.element];
    this.more = sectionOf("its parts", this.table, ...more);
  }
  folded(summary, tell) {
    const body = h("div");
    const ontoggle = () => element.open && this.answer && tell(body);
    const element = h("details", { ontoggle }, h("summary", {}, summary), body);
    return { element, body, tell: ontoggle };
  }

  // ---------------------------------------------------------------- what is asked
  /** The word, a rival or "", and "gone" once the sweep was wanted. */
  asked() {
    const [word, rival = "", gone = ""] = this.model.get("asked");
    return [word, rival, gone];
  }
  set = (asked) => put(this.model, "asked", asked);
  /** A click on a word asks for it, on a second one for both; on one of them again, no more. */
  ask(word) {
    const [now, rival, gone] = this.asked();
    if (now === undefined) this.set([word]);
    else if (now === word) this.set(rival ? [rival, "", gone] : []);
    else this.set([now, rival === word ? "" : word, gone]);
  }
  /** The words that can be asked for, in buttons that stay: the focus does not move. */
  offer(words) {
    this.buttons.forEach((one, k) => {
      one.hidden = words[k] === undefined;
      if (one.hidden) return;
      one.textContent = visible(words[k], 14);
      one.title = `why ${inQuotes(words[k])}?`;
      one.onclick = () => this.ask(words[k]);
      one.ariaPressed = String(this.asked().slice(0, 2).includes(words[k]));
    });
  }
  id = (word) => this.program.vocab[this.side].indexOf(word);
  wordOf = (said) => (typeof said === "string" ? said : this.program.vocab[this.side][said]);

  /** Whether another text was typed since a word was asked for: then that question is over. */
  isOld() {
    const [text, before] = [JSON.stringify(this.view.texts), this.text];
    this.text = text;
    return !this.program.remote && before && before !== text && this.asked()[0] !== undefined;
  }
  /** After each change of what is computed or asked: answer anew. */
  update() {
    if (this.isOld()) return this.set([]);
    const [word, rival] = this.asked();
    const known = this.program.remote ? this.view.kept?.why : word && this.id(word) >= 0;
    this.element.hidden = this.more.hidden = word === undefined;
    this.answer = this.view.why = this.running = null;
    if (!known) return this.tip.replaceChildren(word === undefined ? "" : "Python is asked …");
    if (this.program.remote) return this.take(known, rival);
    const ids = [this.id(word), rival ? this.id(rival) : null];
    const why = new Why(this.engine, this.view.texts, ...ids, this.model.get("changes"));
    this.answer = { why, now: why.now, parts: why.parts, rival };
    this.find(why, this.answer);
  }
  /** Steps at once, a few milliseconds a frame, and the sweep if it is wanted. */
  async find(why, answer) {
    this.running = answer;
    const alive = () => this.running === answer && this.element.isConnected;
    this.show();
    answer.steps = await inFrames(why.stepping(), alive);
    if (alive()) this.show();
    if (!alive() || !this.asked()[2]) return;
    await inFrames(why.sweeping(), alive, () => (this.tip.textContent = "one after the other …"));
    answer.notes = alive() && (await inFrames(why.noting(), alive));
    if (!alive()) return;
    answer.sweep = why.sweep;
    this.show();
  }
  take({ sweep, notes, ...found }, rival) {
    this.answer = { ...found, sweep: sweep && new Map(sweep), notes: new Map(notes), rival };
    this.show();
  }

  // ---------------------------------------------------------------- what is shown
  show() {
    const { now, rival } = this.answer;
    const [word] = this.asked();
    this.head.textContent = `Why ${inQuotes(word)} (${fixed(now.probability, 2)})${rival ? `, and not ${inQuotes(rival)}` : ""}?`;
    this.gone.disabled = Boolean(this.asked()[2]);
    const ask = rival ? LEAD : "Click another: why not that one?";
    this.tip.textContent = `${ask} Bars on the map: what a part adds, not yet a cause.`;
    this.tellSteps();
    this.tellParts();
    this.view.why = (path) => this.onMap(path);
    this.words.tell();
    this.tellBeside();
    this.redraw();
    if (!this.isToCome || !this.answer.sweep) return;
    [...this.table.rows].slice(0, 6).at(-1).scrollIntoView({ block: "nearest" });
    this.isToCome = false;
  }
  lost = (after) => lostOf(this.answer.now, after, Boolean(this.answer.rival));
  /** What a tile of the map is given: what its parts add, and the most that one of them is missed. */
  onMap(path) {
    const { parts, sweep } = this.answer;
    const own = parts.filter(([at]) => inside(at, path) && at !== EVERY);
    const most = Math.max(...parts.map(([, adds]) => Math.abs(adds)));
    const adds = own.length ? total(own, amount) : null;
    const cuts = [...(sweep ?? [])].filter(([at]) => inside(at, path));
    const lost = Math.max(0, ...cuts.map(([, after]) => this.lost(after)));
    return { adds, share: Math.min(1, Math.abs(adds) / most), lost: Math.min(1, lost) };
  }

  // ---------------------------------------------------------------- the way back
  tellSteps() {
    const { steps } = this.answer;
    const none = steps ? NONE : "looking for the way back …";
    const told = (step) => button(this.sentence(step), () => this.goTo(step));
    const all = steps?.length ? steps.map(told) : [none];
    this.list.replaceChildren(...all.map((one) => h("li", {}, one)));
  }
  token = ([side, i]) => inQuotes(this.view.tokens[side][i]);
  figures(after) {
    const { now, rival } = this.answer;
    const [word] = this.asked();
    const told = rival
      ? `the lead over ${inQuotes(rival)} ${fixed(now.lead, 1)} → ${fixed(after.lead, 1)}`
      : `${inQuotes(word)} ${fixed(now.probability, 2)} → ${fixed(after.probability, 2)}`;
    const still = after.likeliest === now.likeliest ? "still " : "";
    return `${told}, and it ${still}says ${inQuotes(this.wordOf(after.likeliest))}`;
  }
  sentence(step) {
    const [asker, word] = [step.asker, step.word].map(this.token);
    const figures = this.figures(step.after);
    const [, path, head] = step.at.match(/^(.*)\/head(.*)$/) ?? [null, step.at, null];
    const every = step.heads === 2 ? "both" : `all ${step.heads}`;
    const some = head === null ? `${every} heads` : head ? `head${head}` : "the only head";
    const who = `${some} of ${spaced(path)}`;
    return {
      read: `At ${asker}, ${who} read ${word}; with that word hidden, ${figures}.`,
      "had read": `${asker} had read ${word} by ${who}; without that link ${figures}.`,
      "as key": `So ${asker} is found: if its key alone forgets ${word}, ${figures}.`,
      together: `No head of ${spaced(path)} is needed alone: without head${head} ${figures}.`,
    }[step.kind];
  }
  /** Open the place of a step: a head with its asker, or the attention. */
  goTo({ at, asker: [, place] }) {
    put(this.model, "asker", place);
    this.open(at);
  }

  // ---------------------------------------------------------------- parts and what they cost
  tellParts() {
    const { parts, now, rival, sweep } = this.answer;
    const [shown, many] = [parts.slice(0, LINES), parts.slice(LINES)];
    if (many.length) shown.push([`${many.length} smaller, together`, total(many, amount)]);
    const sum = total(parts, amount);
    const decimals = decimalsOf(shown.map(amount), sum);
    const most = Math.max(...shown.map((part) => Math.abs(amount(part))));
    const asked = inQuotes(rival || this.asked()[0]);
    const ends = `the ${rival ? "lead over" : "score of"} ${asked}`;
    const last = [ends, fixed(sum, decimals), "", sweep ? `${this.saidOf(now)} now` : ""];
    const head = ["part", "adds", "", sweep ? "if it is gone" : ""];
    const caption = sweep ? [h("caption", {}, STAYS)] : [];
    this.table.replaceChildren(
      ...caption,
      h("tr", {}, ...head.flatMap((text) => cellsIn([text], text ? "th" : "td"))),
      ...shown.flatMap(([at, x]) => this.line(at, x, x / most, decimals)),
      h("tr", { className: "sum" }, ...cellsIn(last)),
      ...this.others(new Set(parts.map(([at]) => at))),
    );
  }
  saidOf = ({ probability, lead }) =>
    fixed(probability, 2) + (this.answer.rival ? `, lead ${fixed(lead, 1)}` : "");
  /** A part, what it adds, what is said without it; below, what that means. */
  line(at, adds, share, decimals) {
    const { sweep } = this.answer;
    const bar = adds === null ? "" : h("i", { className: adds < 0 ? "less" : "more" });
    if (bar) bar.style = `--p: ${Math.abs(share)}`;
    const [name, note, opens] = [this.called(at), this.note(at), this.isPath(at)];
    const cost = sweep?.has(at) ? this.saidOf(sweep.get(at)) : sweep && opens ? "stays" : "";
    const part = opens ? button(name, () => this.open(this.place(at))) : name;
    const added = adds === null ? "" : withSign(adds, decimals);
    const below = h("tr", {}, h("td", { colSpan: 4, className: "quiet" }, note));
    return [h("tr", {}, ...cellsIn([part, added, bar, cost])), ...(note ? [below] : [])];
  }
  isPath = (at) => this.engine.operations.some(({ name }) => inside(name, this.place(at)));
  place = (at) => at.replace(/\/(word \d+|b|shift)$/, "");
  /** A reading's path with its word; of other parts the path. */
  called(at) {
    const [, where, n] = at.match(/^(.*)\/word (\d+)$/) ?? [];
    if (!where) return spaced(at);
    const isWeights = ({ name, kind }) => kind === "softmax" && inside(name, where);
    const { columns } = this.engine.operations.find(isWeights);
    return `${inQuotes(this.view.tokens[columns][n - 1])} read by all of ${spaced(where)}`;
  }
  note(at) {
    const [kind, partners = []] = this.answer.notes?.get(at) ?? [];
    const proven = partners.map(spaced).join(", ");
    if (kind === "stand-in")
      return `adds much, is not missed${proven && `: ${proven} stands in for it`}`;
    if (kind === "carrier") return `adds little, is missed${proven && `: passed on by ${proven}`}`;
    return at === EVERY ? "the same for every word" : "";
  }
  /** Parts of an encoder, which act through the cross-attention, and words that are missed when not read. */
  others(listed) {
    const cuts = [...(this.answer.sweep ?? [])]
      .filter(([at, after]) => !listed.has(at) && this.lost(after) >= SEEN)
      .sort(([, a], [, b]) => this.lost(b) - this.lost(a));
    const isReading = ([at]) => /\/word \d+$/.test(at);
    const [readings, encoder] = [cuts.filter(isReading), cuts.filter((one) => !isReading(one))];
    const group = (title, some) => [
      h("tr", {}, h("th", { colSpan: 4 }, title)),
      ...some.flatMap(([at]) => this.line(at, null)),
    ];
    const both = this.program.sides.length > 1; // what an encoder adds is never 0
    const missed = "words that are missed when nobody else reads them";
    return [
      ...(both ? group("the encoder, through the cross-attention", encoder) : []),
      ...(readings.length ? group(missed, readings) : []),
    ];
  }

  // ---------------------------------------------------------------- words on the map
  tellWords(body) {
    const { why } = this.answer;
    const vocab = this.program.vocab[this.side];
    const words = this.view.tokens[this.side];
    const cell = ([id, p]) => shaded(`${visible(vocab[id], 12)} ${cellText(p)}`, 70 * p);
    const lines = lens(why).map(([name, said]) =>
      h("tr", {}, h("th", {}, spaced(name)), ...said.map(cell)),
    );
    const some = words.slice(1 - lines[0].children.length); // maybe the newest alone
    const head = some.map((word) => h("th", {}, visible(word, 12)));
    body.replaceChildren(h("table", {}, h("tr", {}, h("td"), ...head), ...lines));
  }

  // ---------------------------------------------------------------- two sentences
  writeBeside() {
    if (this.other) return;
    const typed = { type: "text", spellcheck: false, oninput: () => this.tellBeside() };
    this.other = h("input", { ...typed, "aria-label": "the other sentence" });
    this.height = h("select", { "aria-label": "where" });
    this.swaps = row();
    this.compared = h("table");
    const field = h("label", { className: "sentence" }, "the other sentence", this.other);
    this.beside.body.replaceChildren(row(field), this.swaps, this.compared);
  }
  tellBeside() {
    const side = this.program.sides[0];
    const words = this.other?.value.trim().split(/\s+/).filter(Boolean) ?? [];
    const ids = words.map((word) => this.program.vocab[side].indexOf(word));
    const known = this.answer?.why && words.length && ids.every((id) => id >= 0);
    if (!known) return this.compared?.replaceChildren();
    const { why } = this.answer;
    const other = new Why(this.engine, { ...this.view.texts, [side]: ids }, why.word, why.rival);
    this.tellDifferences(other);
    this.tellSwaps(other, words, side);
  }
  tellDifferences(other) {
    const [ours, theirs] = [new Map(this.answer.parts), new Map(other.parts)];
    const names = [...new Set([...ours.keys(), ...theirs.keys()])];
    const all = names.map((at) => [at, ours.get(at) ?? 0, theirs.get(at) ?? 0]);
    const apart = ([, a, b]) => Math.abs(a - b);
    const most = Math.max(...all.map(apart), 1e-12);
    const said = [this.answer.now, other.now].map(this.saidOf);
    const head = ["part", `this: ${said[0]}`, `the other: ${said[1]}`];
    const line = ([at, ...two]) => {
      const cells = two.map((x) => shaded(withSign(x, 2), (70 * apart([at, ...two])) / most));
      return h("tr", {}, h("th", {}, spaced(at)), ...cells);
    };
    all.sort((a, b) => apart(b) - apart(a));
    const rows = all.slice(0, LINES).map(line);
    this.compared.replaceChildren(h("tr", {}, ...cellsIn(head, "th")), ...rows);
  }
  /** A button for each word that differs: its vector from the other sentence, at one height. */
  tellSwaps(other, words, side) {
    const names = heights(this.engine, side);
    const before = this.height.value;
    this.height.replaceChildren(...names.map((name) => h("option", {}, name)));
    this.height.value = names.includes(before) ? before : names[0];
    const own = this.view.tokens[side];
    const differ = words.flatMap((word, j) =>
      j < own.length && word !== own[j]
        ? [button(`put ${inQuotes(word)} in for ${inQuotes(own[j])}`, () => this.swap(other, j))]
        : [],
    );
    this.swaps.replaceChildren(...(differ.length ? [...differ, "at", this.height] : []));
  }
  swap(other, row) {
    const at = this.height.value;
    const values = [...rowOf(other.values[at], row)];
    const rest = this.model.get("changes").filter((c) => c.at !== at || c.row !== row);
    put(this.model, "changes", [...rest, { at, row, values }]);
  }
}
