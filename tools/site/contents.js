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
