"""A live page in Firefox and in WebKit: load, run, a verdict, stop, on a first visit and a second.

Playwright brings browsers of its own for both; these are Debian's, spoken to by their own drivers.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from browser.test_live import RIGHT, WRONG

# What a reader does with the page, by its own functions; what they see.
VISIT = """
const until = (done) => new Promise((go) => {
  const look = setInterval(() => { if (done()) { clearInterval(look); go(); } }, 20);
});
const idle = () => !running && !queue.length;
const ran = async (id, source) => {
  const cell = cells.get(id);
  if (source) put(cell, source);
  start(cell);
  await until(idle);
  return cell.outputs.innerText;
};
await until(() => document.querySelector(".bench"));
put(cells.get("your-turn-row-written"), WRONG);
const wrong = await ran("your-turn-row-checked");
put(cells.get("your-turn-row-written"), RIGHT);
const right = await ran("your-turn-row-checked");
put(cells.get("steps-1-2"), "while True: pass");
start(cells.get("steps-1-2"));
await until(() => running?.id === "steps-1-2");
await new Promise((go) => setTimeout(go, 500));
const began = performance.now();
stop();
await until(idle);
const took = performance.now() - began;
put(cells.get("steps-1-2"), cells.get("steps-1-2").own);
const names = await ran("step-3-mixed", "print(words[3])");
return { wrong, right, took, names, isolated: crossOriginIsolated };
""".replace("WRONG", json.dumps(WRONG)).replace("RIGHT", json.dumps(RIGHT))  # fmt: skip


class Firefox:
    """Debian's Firefox, by WebDriver BiDi over its own port."""

    def __init__(self, folder):
        options = ["--headless", "--no-remote", "--remote-debugging-port=0", "--profile", folder]
        self.process = subprocess.Popen(
            ["firefox-esr", *map(str, options)], stderr=subprocess.PIPE, text=True
        )

    def begin(self):
        import websocket

        for line in self.process.stderr:
            if found := re.search(r"listening on (ws://\S+)", line):
                break
        address = f"{found[1]}/session"
        self.socket = websocket.create_connection(address, timeout=240, suppress_origin=True)
        self.tell("session.new", capabilities={})
        self.tab = self.tell("browsingContext.create", type="tab")["context"]

    def tell(self, method, **params):
        self.socket.send(json.dumps({"id": 1, "method": method, "params": params}))
        while "id" not in (answer := json.loads(self.socket.recv())):
            pass
        assert answer["type"] == "success", answer
        return answer["result"]

    def visit(self, url):
        self.tell("browsingContext.navigate", context=self.tab, url=url, wait="complete")
        code = f"(async () => JSON.stringify(await (async () => {{{VISIT}}})()))()"
        target = {"context": self.tab}
        told = self.tell("script.evaluate", expression=code, target=target, awaitPromise=True)
        assert told["type"] == "success", told
        return json.loads(told["result"]["value"])

    def close(self):
        self.process.terminate()
        self.process.wait(20)


class WebKit:
    """WebKitGTK's small browser, by its WebDriver, on a screen that nobody sees."""

    def __init__(self, folder):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = ["xvfb-run", "-a", "WebKitWebDriver", f"--port={port}"]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
        self.url = f"http://127.0.0.1:{port}/session"

    def begin(self):
        (browser,) = Path("/usr/lib").glob("*/webkit2gtk-4.1/MiniBrowser")
        options = {"binary": str(browser), "args": ["--automation"]}
        asked = {
            "alwaysMatch": {"webkitgtk:browserOptions": options, "timeouts": {"script": 240000}}
        }
        self.url += "/" + self.tell("", capabilities=asked)["sessionId"]

    def tell(self, path, **params):
        data, end = json.dumps(params).encode(), time.monotonic() + 30
        while True:
            try:
                with urllib.request.urlopen(self.url + path, data, timeout=300) as answer:
                    return json.load(answer)["value"]
            except urllib.error.HTTPError as error:
                raise AssertionError(error.read().decode()) from error
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)

    def visit(self, url):
        self.tell("/url", url=url)
        code = "const done = arguments[0]; (async () => {" + VISIT
        code += "})().then((told) => done(JSON.stringify(told)), (error) => done(String(error)))"
        return json.loads(self.tell("/execute/async", script=code, args=[]))

    def close(self):
        with contextlib.suppress(OSError):
            gone = urllib.request.Request(self.url, method="DELETE")
            urllib.request.urlopen(gone, timeout=20).close()
        os.killpg(self.process.pid, signal.SIGTERM)  # its screen too
        self.process.wait(20)


PROGRAMS = {Firefox: "firefox-esr", WebKit: "WebKitWebDriver"}


@pytest.mark.parametrize("kind", [Firefox, WebKit])
def test_load_run_verdict_and_stop(kind, address, made, tmp_path):
    if not shutil.which(PROGRAMS[kind]):
        pytest.skip("`apt-get install firefox-esr webkit2gtk-driver xvfb xauth`, as .ci/run does")
    browser = kind(tmp_path)
    try:
        browser.begin()
        for isolated in (False, True):
            told = browser.visit(address + next(made.glob("05*.html")).name)
            assert "not divided by their sum" in told["wrong"]
            assert "right" in told["right"] and "in this browser" in told["right"]
            assert told["isolated"] == isolated and told["took"] < 500
            assert told["names"].strip() == "apple"
    finally:
        browser.close()
