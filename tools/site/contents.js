// Marks in the list of contents the section that one reads: the last one that has begun.
const contents = document.getElementById("contents");
const links = [...contents.querySelectorAll('a[href^="#"]')];

function mark() {
  const begun = links.filter((link) => {
    const section = document.getElementById(decodeURIComponent(link.hash.slice(1)));
    return section.getBoundingClientRect().top < innerHeight / 3;
  });
  for (const link of links) link.ariaCurrent = link === begun.at(-1) ? "location" : null;
}
addEventListener("scroll", () => requestAnimationFrame(mark), { passive: true });
mark();

// On a narrow screen the list lies over the page: a choice closes it.
contents.addEventListener("click", ({ target }) => {
  if (target.closest("a") && contents.matches(":popover-open")) contents.hidePopover();
});

// A link into a section that is closed opens it, as printing opens them all.
function reveal() {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const closed = place?.querySelector(":scope > .deeper") ?? place?.closest(".deeper");
  if (!closed || closed.open) return;
  closed.open = true;
  place.scrollIntoView();
}
addEventListener("hashchange", reveal);
addEventListener("beforeprint", () => {
  for (const closed of document.querySelectorAll(".deeper")) closed.open = true;
});
reveal();
