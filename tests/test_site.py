"""The documentation site: complete, without a broken link, and usable from files on a machine without a network."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import transduce
from transduce import cli
from transduce.config import schema as config
from transduce.config.commands import commands
from waiting import PATIENCE

ROOT = Path(__file__).parents[1]
BROWSER = {program: shutil.which(program) for program in ("chromium", "chromedriver")}
LOADED = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}  # what a browser fetches


class Html(HTMLParser):
    """The ids and links of a page, what a browser loads for it, and its text."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.texts: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if values.get(LOADED.get(tag, "")):
            self.loaded.append(values[LOADED[tag]])

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What docs/generate.py writes."""
    folder = tmp_path_factory.mktemp("docs")
    subprocess.run([sys.executable, ROOT / "docs" / "generate.py", folder], check=True)
    return folder


@pytest.fixture(scope="module")
def site(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it; a warning of mkdocs is an error."""
    pytest.importorskip("material", reason="the site is not built: pip install '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", folder]
    environment = os.environ | {"DOCS": str(sources), "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Html]:
    return {page: Html(page) for page in sorted(site.rglob("*.html"))}


def test_the_help_of_every_command_is_on_a_page(sources: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sections = re.split(r"^## ", (sources / "reference" / "commands.md").read_text(encoding="utf-8"), flags=re.M)[1:]
    assert [section.split()[0] for section in sections] == list(commands())
    for section in sections:
        cli.main([section.split()[0], "--help"])
        flags = re.findall(r"^│[* ]{1,4}(--[\w-]+)", capsys.readouterr().out, flags=re.M)
        assert flags == re.findall(r"^\* `(--[\w-]+)", section, flags=re.M)


def test_every_option_is_on_a_page(sources: Path) -> None:
    page = (sources / "reference" / "options.md").read_text(encoding="utf-8")
    for option in config.options():
        assert f"| {option.name} |" in page


def test_generated_text_replaces_every_mark(sources: Path) -> None:
    for page in sources.rglob("*.md"):
        assert not re.search(r"<!-- (generated|code)", page.read_text(encoding="utf-8")), page


def test_every_page_is_in_the_navigation(sources: Path) -> None:
    navigation = re.findall(r"([\w./-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), flags=re.M)
    assert sorted(navigation) == sorted(page.relative_to(sources).as_posix() for page in sources.rglob("*.md"))


@pytest.mark.slow
def test_links_lead_somewhere(pages: dict[Path, Html], site: Path) -> None:
    for page, html in pages.items():
        for link in html.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                assert parts.scheme in {"https", "http", "mailto"}, (page, link)
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if page.name == "404.html":  # knows no folder that it could be relative to
                target = site / unquote(parts.path).lstrip("/")
            assert target.exists(), (page, link)
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].ids, (page, link)


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(pages: dict[Path, Html], site: Path) -> None:
    for page, html in pages.items():
        for address in html.loaded:
            assert not urlsplit(address).scheme.startswith("http") and not address.startswith("//"), (page, address)
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//|@import", style.read_text(encoding="utf-8")), style
    assert not any("mermaid" in page.read_text(encoding="utf-8") for page in pages)  # comes from a network


@pytest.mark.slow
def test_the_api_has_every_public_name(pages: dict[Path, Html], site: Path) -> None:
    ids = set().union(*(html.ids for html in pages.values()))
    assert {f"transduce.{name}" for name in transduce.__all__} <= pages[site / "api" / "index.html"].ids
    assert {"transduce.model.attention.MultiHeadAttention", "transduce.decoding.beam.beam_search"} <= ids
    folders = {path.parent.relative_to(ROOT / "src/transduce") for path in (ROOT / "src/transduce").rglob("[a-z]*.py")}
    for folder in folders:
        assert any(part.startswith("transduce." + ".".join(folder.parts)) for part in ids), folder


@pytest.fixture
def browser() -> Iterator[object]:
    """A Chromium that reaches no network."""
    if not all(BROWSER.values()):
        pytest.skip("NOT TESTED IN A BROWSER: chromium and chromedriver are not installed")
    webdriver = pytest.importorskip("selenium.webdriver", reason="NOT TESTED IN A BROWSER: selenium is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER["chromium"]
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"):
        options.add_argument(argument)
    options.add_argument("--window-size=1280,900")  # the search is a button in narrow windows
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(BROWSER["chromedriver"]))
    yield driver
    driver.quit()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "page"),
    [("glossary", "guides/glossary.html"), ("beam_search", "api/decoding.html"), ("n-best", "reference/commands.html")],
)
def test_search_works_from_files(site: Path, browser, query: str, page: str) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get((site / "paper" / "tour.html").as_uri())
    browser.find_element(By.CSS_SELECTOR, "[data-md-component=search-query]").send_keys(query)

    def found(_: object) -> bool:
        links = browser.find_elements(By.CSS_SELECTOR, ".md-search-result__link")
        return any(page in (link.get_attribute("href") or "") for link in links)

    WebDriverWait(browser, PATIENCE).until(found)
    assert [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
