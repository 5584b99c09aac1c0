// Writing: the words that are likely to come next, the ways to append one, and what is kept of all.
import { button, h, put, visible } from "../widgets/shared.js";
import { cellText } from "./formula.js";
import { cacheOf } from "./cache.js";
import { newest } from "./engine.js";

export const PAD = "<pad>"; // what fills up texts
const END = "<end>";
export const wordsOf = (text) => text.trim().split(/\s+/).filter(Boolean);
const barOf = (p, className) => h("i", { className, style: `--p: ${p || 0}` });

export class Writing {
  /** `last` is the operation that predicts, if any; where rows are `fixed`, nothing is appended. */
  constructor({ model, program, engine, view, last }) {
    Object.assign(this, { model, program, engine, view, last, playing: 0 });
    this.grows = program.sides.at(-1); // the text that is written on
    this.writer = button("write a word", () => this.write());
    this.draws = button("draw a word", () => this.write(this.drawn()));
    this.play = button("play", () => (this.playing ? this.stop() : this.start()));
    this.writes = last && !program.fixed;
    const some = program.remote ? [this.writer, this.play] : [this.writer, this.draws, this.play];
    this.buttons = this.writes ? some : [];
    this.guesses = Array.from({ length: 6 }, (_, k) => {
      const guess = button("", () => this.write(this.following()[k][0]));
      return Object.assign(guess, { className: "guess" });
    });
    const called = { className: "row guesses", role: "group", "aria-label": "next word" };
    this.next = h("div", called, ...(last ? ["", ...this.guesses] : []));
    this.cache = h("div", { className: "cache" });
    const ontoggle = () => this.kept.open && view.values && this.tellCache();
    this.kept = h("details", { ontoggle }, h("summary", {}, "what is kept while it writes"));
    this.kept.append(this.cache);
  }
  tellCache() {
    this.cache.replaceChildren(...cacheOf(this.engine, this.view, this.program.sides));
  }

  // ---------------------------------------------------------------- what follows
  /** The likeliest next words: [word, probability, what it was before]. */
  following() {
    const { program, view, last } = this;
    if (program.remote) return view.kept.next;
    const [old, fresh] = [newest(view.before[last.name]), newest(view.values[last.name])];
    const best = (p) => [...p.keys()].sort((a, b) => p[b] - p[a]);
    const some = new Set([...best(fresh).slice(0, 5), best(old)[0]]);
    const shown = best(fresh).filter((id) => some.has(id));
    const known = shown.filter((id, k) => !k || fresh[id] || old[id]);
    return known.map((id) => [program.vocab[this.grows][id], fresh[id], old[id]]);
  }
  /** Tell the next words again; only where it is alive can they be appended. Returns them. */
  update(alive) {
    const rows = this.following();
    const ended = rows[0]?.[0] === END;
    const done = ended || !(rows[0]?.[1] > 0);
    this.writer.textContent = ended ? "it has ended" : done ? "nothing follows" : "write a word";
    for (const way of [this.writer, this.draws, this.play]) way.disabled = done || !alive;
    if (done) this.stop();
    const newestWord = visible(this.view.tokens[this.grows].at(-1), 12);
    this.next.firstChild.textContent = `after “${newestWord}”:`;
    const wide = rows.some(([, now, was]) => now !== was); // a small change is seen in four decimals
    this.guesses.forEach((guess, k) => {
      guess.hidden = rows[k] === undefined;
      guess.disabled = done || !this.writes || !alive;
      if (!guess.hidden) this.tellGuess(guess, rows[k], wide);
    });
    if (this.kept.open) this.tellCache();
    return rows.map(([word]) => word);
  }
  tellGuess(guess, [word, now, was], wide) {
    guess.title = `append “${visible(word, 14)}”`;
    guess.replaceChildren(
      h("span", {}, visible(word, 14)),
      h("strong", {}, cellText(now, wide)),
      barOf(now, "bar"),
      ...(wide ? [barOf(was, "bar was")] : []),
      h("small", {}, wide ? `was ${cellText(was, true)}` : ""),
    );
  }

  // ---------------------------------------------------------------- what is appended
  write(word = this.following().find(([likely]) => likely !== PAD)[0]) {
    const { model, program, grows } = this;
    const text = model.get(grows);
    if (!program.step) this.kept.open = true;
    if (wordsOf(text).length >= program.room) return this.stop();
    put(model, "cell", []);
    const piece = program.remote && !program.vocab[grows]; // of a word, with its own space
    put(model, grows, piece ? text + word : `${text.trim()} ${word}`);
  }
  /** A word drawn by lot, as likely as its bar is long. */
  drawn() {
    let left = Math.random();
    const p = newest(this.view.values[this.last.name]);
    const id = p.findIndex((x) => (left -= x) < 0);
    return this.program.vocab[this.grows][Math.max(0, id)];
  }
  start() {
    const on = () => (this.next.isConnected ? this.write() : this.stop());
    this.playing = setInterval(on, 700);
    this.play.textContent = "pause";
  }
  stop() {
    clearInterval(this.playing);
    [this.playing, this.play.textContent] = [0, "play"];
  }
}
