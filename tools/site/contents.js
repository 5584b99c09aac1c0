// Marks in the list of contents the room that one reads.
const contents = document.getElementById("contents");
const links = [...contents.querySelectorAll('a[href^="#"]')];
const rooms = links.map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1))));

function mark() {
  const { scrollHeight } = document.documentElement;
  const atEnd = scrollY > 0 && scrollY + innerHeight > scrollHeight - 2;
  const begun = (room) => atEnd || room.getBoundingClientRect().top < innerHeight / 3;
  const here = links[rooms.findLastIndex(begun)];
  for (const link of links) link.removeAttribute("aria-current");
  here?.setAttribute("aria-current", "location");
}
addEventListener("scroll", () => requestAnimationFrame(mark), { passive: true });
mark();

// On a narrow screen the list lies over the page: a choice closes it.
contents.addEventListener("click", ({ target }) => {
  if (target.closest("a") && contents.matches(":popover-open")) contents.hidePopover();
});
