"""Fixtures: the browser, JupyterLab in it, pages without JupyterLab, and axe.

Without a browser these tests skip; with REQUIRE_BROWSER=1 in the environment they fail instead.
"""

import functools
import http.server
import os
import threading
from pathlib import Path
from typing import ClassVar

import pytest

from browser.axe import fetch, violations
from browser.harness import RECORD, Lab, Missing, Offline, Server, launch


def pytest_collection_modifyitems(items) -> None:
    """Every test in a browser is long."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker("long")


def without(reason: str):
    """Skip, or fail where a browser is required."""
    (pytest.fail if os.environ.get("REQUIRE_BROWSER") == "1" else pytest.skip)(reason)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """One JupyterLab server for all tests (of one worker)."""
    running = Server(tmp_path_factory.mktemp("jupyterlab"))
    yield running
    running.stop()


@pytest.fixture(scope="package")
def browser():
    """The installed Chromium; ends with this folder's last test, and its event loop with it."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        without("Playwright is missing: `pip install playwright`")
    with sync_playwright() as playwright:
        try:
            started = launch(playwright)
        except Missing as missing:
            without(str(missing))
        yield started
        started.close()


@pytest.fixture(scope="package")
def lab(browser, server):
    """JupyterLab in a page: `lab.run(*sources)`, `lab.theme("dark")`."""
    return Lab(browser, server)


@pytest.fixture(scope="module")
def notebook(lab, request):
    """The module's CELLS, run in JupyterLab; they stay there until another notebook is opened."""
    return lab.run(*request.module.CELLS)


@pytest.fixture(scope="module")
def saved(notebook):
    """The notebook as JupyterLab saved it before anything was touched."""
    return notebook.save()


@pytest.fixture(params=["live", "saved and not run again", "offline"])
def anywhere(request, lab, notebook, saved, page_of):
    """The widgets of a module's cells wherever they live; a module's last tests take this."""
    if request.param == "offline":
        return page_of(saved).locator(".step").all()
    opened = notebook if request.param == "live" else lab.open(saved)
    return opened.page.locator(".jp-Notebook .step").all()


@pytest.fixture(autouse=True)
def no_uncaught_error(request):
    """No test leaves an uncaught error in JupyterLab's page."""
    yield
    if "lab" in request.fixturenames:
        lab = request.getfixturevalue("lab")
        errors, lab.errors = lab.errors, []
        assert not errors, "\n".join(errors)


@pytest.fixture
def page_of(browser, tmp_path, ci):
    """`page_of(notebook)`, `page_of(*widgets)`: a page from file://, the network cut.

    The test fails if the page asks the network for anything or reports an error.
    """
    pages = Offline(browser, tmp_path, ci("site").page)
    yield pages
    pages.context.close()
    assert not pages.faults, "\n".join(pages.faults)


@pytest.fixture
def read_of(page_of):
    """As `page_of`; the page's canvas keeps what it is told to draw, for `harness.drawn`."""
    page_of.context.add_init_script(RECORD)
    return page_of


@pytest.fixture(scope="session")
def axe_source(pytestconfig) -> str:
    """The text of axe-core."""
    try:
        return fetch(pytestconfig.cache.mkdir("axe-core"))
    except Missing as missing:
        without(str(missing))


@pytest.fixture(scope="session")
def axe(axe_source):
    """`axe(root)`: what axe-core finds wrong in a widget, one readable string per violation."""
    return lambda root: violations(root, axe_source)


class Served(http.server.SimpleHTTPRequestHandler):
    """Python's own server, which notes what it sends."""

    sent: ClassVar[list[tuple[str, int]]] = []

    def copyfile(self, source, outputfile):
        data = source.read()
        self.sent.append((self.path, len(data)))
        outputfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="package")
def made(ci, tmp_path_factory):
    """The live site."""
    folder = tmp_path_factory.mktemp("live")
    ci("live").build(folder)
    ci("site").build(site=folder)
    if not (folder / "live").exists():
        without("Python for the browser could not be fetched")
    return folder


@pytest.fixture(scope="package")
def address(made):
    """Where it is served."""
    handler = functools.partial(Served, directory=str(made))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
