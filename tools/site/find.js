// Searches all pages, without a server: search.js beside them holds minisearch and what they say.
const form = document.querySelector("[role=search]");
const field = form.querySelector("input");
const [told, list] = form.querySelector(".found").children;
form.hidden = false;

// Small and large letters are the same, with or without marks above them.
const plain = (word) => word.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

function index(pages) {
  const made = new MiniSearch({
    fields: ["title", "heading", "line"],
    storeFields: ["title", "heading", "section", "href", "isCode", "line"],
    processTerm: plain,
    searchOptions: {
      combineWith: "AND",
      prefix: true,
      fuzzy: (word) => word.length > 4 && 0.2,
      boost: { line: 2 },
      boostDocument: (id, term, { line }) => (/^(def|class) /.test(line) ? 2 : 1),
    },
  });
  for (const [file, title, sections] of pages)
    for (const [section, heading, cells] of sections)
      for (const [place, isCode, lines] of cells)
        for (const line of lines.split("\n")) {
          const at = { section: `${file}#${section}`, href: `${file}#${place}` };
          made.add({ id: made.documentCount, title, heading, isCode, line, ...at });
        }
  return made;
}

// Read when it is needed for the first time.
let reading;
const course = () =>
  (reading ??= new Promise((resolve, reject) => {
    const script = Object.assign(document.createElement("script"), { src: "search.js" });
    script.onload = () => resolve(index(window.course));
    script.onerror = () => reject(new Error("The search needs search.js beside this page."));
    document.head.append(script);
  }));

function element(tag, ...inside) {
  const made = document.createElement(tag);
  made.append(...inside);
  return made;
}

// A line that was found, its words marked.
function item({ title, heading, href, isCode, line, terms }) {
  const words = line
    .split(/([\p{L}\p{M}\p{N}]+)/u)
    .map((word) => (terms.includes(plain(word)) ? element("mark", word) : word));
  const place = title === heading ? title : `${title} › ${heading}`;
  const link = element("a", element("b", place), element(isCode ? "code" : "span", ...words));
  link.href = href;
  return element("li", link);
}

// The box is seen as long as it says something.
function show(text, items = []) {
  told.textContent = text;
  list.replaceChildren(...items);
}

// The best line of each section.
async function search() {
  const query = field.value.trim();
  if (query.length < 2) return show("");
  try {
    const sections = new Map();
    for (const found of (await course()).search(query))
      if (!sections.has(found.section)) sections.set(found.section, found);
    const best = [...sections.values()].slice(0, 40).map(item);
    show(best.length ? `Places found: ${sections.size}` : `Found nowhere: ${query}`, best);
  } catch (error) {
    show(error.message);
  }
}
form.addEventListener("input", search);
field.addEventListener("focus", search);
form.addEventListener("focusout", ({ relatedTarget }) => form.contains(relatedTarget) || show(""));
list.addEventListener("click", () => document.activeElement.blur());

// Keys: "/" comes here, Enter opens the first place, Tab walks through them, Escape leaves.
form.addEventListener("submit", (event) => {
  event.preventDefault();
  list.querySelector("a")?.click();
});
form.addEventListener("keydown", ({ key }) => key === "Escape" && document.activeElement.blur());
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.closest("input, textarea, select, [contenteditable]"))
    return;
  event.preventDefault();
  field.select();
});
