"""axe-core finds faults of accessibility in a page; npm fetches it, pytest's cache keeps it."""

import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from browser.harness import Missing, frames

VERSION = "4.14.1"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
AXE = """async ([root, tags]) => {
  const { violations, passes } = await window.axe.run(root, { runOnly: tags });
  const faults = violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, any, all, none }) => {
      const why = [...any, ...all, ...none].map((check) => check.message).join("; ");
      return `${id}: ${help}\\n    ${html.slice(0, 200)}\\n    ${why}`;
    }));
  const unseen = passes.filter(({ id }) => id === "color-contrast").flatMap(({ nodes }) => nodes)
    .filter(({ any }) => any.some(({ data }) => data?.messageKey === "hidden"));
  return [...faults, ...unseen.map(({ html }) => `unseen: ${html.slice(0, 200)}`)];
}"""


def fetch(folder: Path) -> str:
    """The text of axe.min.js, from the folder or else from npm; raises Missing."""
    kept = folder / f"axe-{VERSION}.min.js"
    if not kept.exists():
        fresh = kept.with_suffix(f".{os.getpid()}")
        fresh.write_text(download(), encoding="utf-8")
        fresh.replace(kept)  # two workers may do so at once
    return kept.read_text(encoding="utf-8")


def download() -> str:
    npm = shutil.which("npm")
    if not npm:
        raise Missing("axe-core comes from npm, which is missing: `apt-get install npm`")
    with tempfile.TemporaryDirectory() as folder:
        pack = [npm, "pack", "--silent", f"axe-core@{VERSION}", "--pack-destination", folder]
        done = subprocess.run(pack, capture_output=True, text=True)
        if done.returncode:
            raise Missing(f"npm could not fetch axe-core {VERSION}: {done.stderr.strip()[-300:]}")
        archive = (Path(folder) / done.stdout.split()[-1]).read_bytes()
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return tar.extractfile("package/axe.min.js").read().decode("utf-8")


def violations(root, source: str) -> list[str]:
    """What axe finds wrong in one element: rule, place and reason of each."""
    page = root.page
    # axe passes what it takes for hidden: all in JupyterLab's body, which has no height of its
    # own, and all that is scrolled away.
    page.evaluate("() => { document.body.style.minHeight = '100vh'; }")
    root.evaluate("root => root.scrollIntoView()")
    frames(page)
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(source + "; null")
    element = root.element_handle()
    return page.evaluate(AXE, [element, TAGS])
