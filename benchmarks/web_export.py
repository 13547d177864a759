"""The page of `transduce export --to web` in headless Chromium: are its translations right, and is it fast?

    python benchmarks/web_export.py MODEL SOURCE REFERENCE --site FOLDER [--sentences 300] [--pictures FOLDER]

FOLDER is an export of MODEL. The page translates the first lines of SOURCE one after another, with greedy search and
with beam search; ONNX Runtime in Python does the same with the same files and one thread. The two take turns, in rounds
of 20 sentences, and the ratio is that of a round. BLEU is compared with that of MODEL in float32 (greedy, torch). The
script needs chromium, chromedriver and the packages of the extra `dev`.
"""

import functools
import http.server
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import torch
from measuring import ratio, run_script
from selenium import webdriver
from selenium_axe_python import Axe

import transduce
from transduce.evaluation.scores import compare
from transduce.text.plain import read_lines

ROUND = 20  # sentences
MAX_SECONDS = 600  # for one round in the browser
MODEL_FILES = ("encoder.onnx", "decoder.onnx", "site.json")
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
START = """
    const done = arguments[arguments.length - 1];
    window.worker = new Worker("worker.mjs", { type: "module" });
    window.worker.onmessage = ({ data }) => data.ready ? done(true) : data.error ? done(data.error) : null;
"""
TRANSLATE = """
    const [texts, beamSize, done] = arguments;
    const found = [];
    let text = "", number = Date.now();
    const next = () => {
        if (found.length === texts.length) return done(found);
        text = "";
        return window.worker.postMessage({ id: ++number, text: texts[found.length], direction: 0, beamSize });
    };
    window.worker.onmessage = ({ data }) => {
        if (data.error) return done(data.error);
        if (data.text !== undefined) text = data.text;
        if (data.done) { found.push(text); next(); }
    };
    next();
"""
SHOWN = "return document.getElementById('target-text').textContent"
IS_READY = "return document.documentElement.dataset.ready"
TIMES = "return performance.now()"


class Site:
    """A server of files, and a browser that has its page open."""

    def __init__(self, folder: Path) -> None:
        self.asked = asked = list[str]()

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                asked.append(self.path)

        handler = functools.partial(Handler, directory=str(folder))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}/"
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for argument in ARGUMENTS:
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service = webdriver.ChromeService(shutil.which("chromedriver"))
        self.browser = webdriver.Chrome(options=options, service=service)
        self.browser.set_script_timeout(MAX_SECONDS)

    def open(self) -> float:
        """Open the page; returns the seconds until its model is ready."""
        began = time.monotonic()
        self.browser.get(self.address)
        self.wait(lambda: self.browser.execute_script(IS_READY))
        return time.monotonic() - began

    def type(self, text: str) -> float:
        """Type a text into the page; returns the seconds until its translation is shown."""
        field = self.browser.find_element("id", "source-text")
        began = time.monotonic()
        field.send_keys(text)
        self.wait(lambda: self.browser.execute_script(SHOWN))
        return time.monotonic() - began

    def wait(self, condition: Any) -> None:
        while not condition():
            time.sleep(0.01)

    def translate(self, texts: list[str], beam_size: int) -> list[str]:
        """The translations by the page's worker."""
        found = self.browser.execute_async_script(TRANSLATE, texts, beam_size)
        assert isinstance(found, list), found
        return found


def main(
    model: Path,
    source: str,
    reference: str,
    *,
    site: Path,
    sentences: int = 300,
    beam_size: list[int] | None = None,
    pictures: Path | None = None,
) -> None:
    """Measure, and print a table."""
    torch.set_num_threads(1)
    texts = list(read_lines(source))[:sentences]
    references = list(read_lines(reference))[:sentences]
    size = sum((site / name).stat().st_size for name in MODEL_FILES)
    total = sum(path.stat().st_size for path in site.iterdir())
    print(f"model: {size / 1e6:.1f} MB, all files: {total / 1e6:.1f} MB")

    page = Site(site)
    print(f"first visit: ready after {page.open():.2f} s")
    print(
        f"the first translation is shown {page.type(texts[0]):.2f} s after its keys (0.3 s is a pause)"
    )
    page.wait(lambda: page.browser.execute_script("return !!navigator.serviceWorker.controller"))
    before = len(page.asked)
    page.server.shutdown()
    page.server.server_close()
    ready = page.open()
    shown = page.type(texts[0])
    print(
        f"without the server: ready after {ready:.2f} s, the first translation {shown:.2f} s later"
    )
    assert len(page.asked) == before
    for scheme in ("light", "dark"):
        page.browser.execute_script("document.documentElement.dataset.theme = arguments[0]", scheme)
        axe = Axe(page.browser)
        axe.inject()
        print(f"axe, {scheme}: {len(axe.run()['violations'])} violations")
        for width in (1280, 390) if pictures else ():
            size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
            page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            page.browser.save_screenshot(str(pictures / f"{width}-{scheme}.png"))
    entries = page.browser.execute_script(
        "return performance.getEntries().map((each) => each.name)"
    )
    elsewhere = [name for name in entries if ":" in name and not name.startswith(page.address)]
    errors = [entry for entry in page.browser.get_log("browser") if entry["level"] == "SEVERE"]
    print(f"requests to other hosts: {len(elsewhere)}; errors: {len(errors)} {errors or ''}")

    plain = transduce.load(model, engine="torch", device="cpu", threads=1)
    whole = transduce.load(site, threads=1)
    whole.translate(texts[:3])
    assert page.browser.execute_async_script(START) is True
    page.translate(texts[:3], 1)
    for beam in beam_size or [1, 4]:
        ours = list[str]()
        theirs = list[str]()
        seconds = list[float]()
        page_seconds = list[float]()
        for start in range(0, len(texts), ROUND):
            some = texts[start : start + ROUND]
            began = time.monotonic()
            for text in some:
                ours += [
                    each.text for each in whole.translate([text], beam_size=beam, sentences=True)
                ]
            seconds.append(time.monotonic() - began)
            began = time.monotonic()
            theirs += page.translate(some, beam)
            page_seconds.append(time.monotonic() - began)
        same = sum(one == other for one, other in zip(ours, theirs, strict=True))
        exact = [each.text for each in plain.translate(texts, beam_size=beam)]
        bleu = compare(exact, theirs, references)[0]
        print(f"beam {beam}: {same} of {len(texts)} translations as ONNX Runtime's in Python")
        print(
            f"  BLEU {bleu.second.value:.2f}, in float32 {bleu.first.value:.2f} ({bleu.first.signature})"
        )
        print(
            f"  {len(texts) / sum(page_seconds):.2f} sentences/s, Python {len(texts) / sum(seconds):.2f}"
        )
        print(f"  speed of the page to Python's: {ratio(seconds, page_seconds)}")
    page.browser.quit()


if __name__ == "__main__":
    run_script(main, __doc__)
