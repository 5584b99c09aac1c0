// Searches all pages, without a server: search.js beside them holds what they say.
const form = document.querySelector("[role=search]");
const field = form.querySelector("input");
const [told, list] = form.querySelector(".found").children;
const MOST = 40;
form.hidden = false;

// Read when it is needed for the first time.
let reading;
const course = () => (reading ??= new Promise((resolve, reject) => {
  const script = document.createElement("script");
  script.onload = () => resolve(window.course);
  script.onerror = () => reject(new Error("The search needs search.js beside this page."));
  document.head.append(Object.assign(script, { src: "search.js" }));
}));

// A word as a pattern: small and large letters are the same, with or without marks above them.
const signs = (word) => [...word.normalize("NFD").replace(/\p{M}/gu, "")];
const escaped = (sign) => sign.replace(/[\\^$.*+?()[\]{}|/]/, "\\$&") + "\\p{M}*";
const pattern = (word) => signs(word).map(escaped).join("");

// What a line is worth: each word counts, more at a word's beginning, most where it is defined.
const worth = (words) => {
  const tests = words.flatMap((word) =>
    [word, `(?<![\\p{L}\\d])${word}`, `(?:def|class) ${word}(?![\\p{L}\\d_])`]);
  const all = [...tests, words.join("\\s+")].map((test) => new RegExp(test, "iu"));
  return (line) => all.filter((test) => test.test(line)).length;
};

// One place per room, the best first: all words stand in the room, its heading or the title.
function find(pages, words) {
  const points = worth(words), each = words.map((word) => new RegExp(word, "iu")), found = [];
  for (const [file, title, rooms] of pages)
    for (const [heading, cells] of rooms) {
      const text = [title, heading, ...cells.map(([, , lines]) => lines)].join("\n");
      if (!each.every((word) => word.test(text))) continue;
      const above = 2 * points(title) + 3 * points(heading);
      let best = { points: -1 };
      for (const [place, isCode, lines] of cells)
        for (const line of lines.split("\n"))
          if (points(line) > best.points)
            best = { points: points(line), href: `${file}#${place}`, line, isCode };
      if (best.href) found.push({ ...best, points: best.points + above, title, heading });
    }
  return found.sort((one, other) => other.points - one.points);
}

const element = (tag, ...inside) => {
  const made = document.createElement(tag);
  made.append(...inside);
  return made;
};
const marked = (line, words) => line.split(new RegExp(`(${words.join("|")})`, "iu"))
  .map((piece, i) => (i % 2 ? element("mark", piece) : piece));

function item({ href, title, heading, line, isCode }, words) {
  const place = title === heading ? title : `${title} › ${heading}`;
  const link = element("a", element("b", place), element(isCode ? "code" : "span", ...marked(line, words)));
  link.href = href;
  return element("li", link);
}

// The box is seen as long as it says something.
function show(text, items = []) {
  told.textContent = text;
  list.replaceChildren(...items);
}

async function search() {
  const query = field.value.trim();
  if (query.length < 2) return show("");
  const words = query.split(/\s+/).map(pattern);
  try {
    const found = find(await course(), words);
    if (query !== field.value.trim()) return; // typed on meanwhile
    const few = found.slice(0, MOST);
    const count = found.length > MOST ? `the best ${MOST} of ${found.length}` : found.length;
    show(found.length ? `Places found: ${count}` : `Found nowhere: ${query}`, few.map((one) => item(one, words)));
  } catch (error) {
    show(error.message);
  }
}

// Keys: "/" comes here, arrows walk through the places, Enter opens, Escape leaves.
const links = () => [...list.querySelectorAll("a")];
function walk(by) {
  const stops = [field, ...links()];
  stops.at((stops.indexOf(document.activeElement) + by) % stops.length).focus();
}
function leave() {
  if (document.activeElement === field) field.blur();
  field.value = "";
  show("");
}
const keys = {
  ArrowDown: () => walk(1),
  ArrowUp: () => walk(-1),
  Escape: () => (document.activeElement === field ? leave() : field.focus()),
};
form.addEventListener("keydown", (event) => {
  if (!keys[event.key] || !told.textContent) return;
  event.preventDefault();
  keys[event.key]();
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  links()[0]?.click();
});
form.addEventListener("input", search);
field.addEventListener("focus", search);
list.addEventListener("click", leave);
form.addEventListener("focusout", ({ relatedTarget }) => {
  if (!form.contains(relatedTarget)) show("");
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  event.preventDefault();
  field.focus();
});
