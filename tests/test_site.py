"""The documentation site: complete, and usable from files on a machine without a network."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import transduce
from transduce import cli
from transduce.config import schema as config
from transduce.config.commands import commands
from waiting import wait_for

ROOT = Path(__file__).parents[1]
AXE = importlib.util.find_spec("selenium_axe_python")
COMPANION = (
    "beside",
    *(f"beside/{page}" for page in ("background", "layers", "model", "results", "training")),
)
LOADED = re.compile(
    r"<(?:script|img|iframe|source)[^>]* src=\"?(?:https?:)?//|<link[^>]* href=\"?(?:https?:)?//"
)

FIND_ALL = """
    const data = JSON.parse(document.getElementById("search-data").textContent), found = {};
    for (const size of data.sizes) for (const alpha of data.alphas) {
        const [best] = companion.finish(data, companion.begin(size, alpha)).complete;
        const text = best.ids.slice(0, -1).map((id) => data.pieces[id]).join("").replaceAll("\u2581", " ").trim();
        found[`${size} ${alpha.toFixed(1)}`] = [text, best.score];
    }
    return found;
"""
SETTLED = """return [...document.querySelectorAll("pre > code, .equation, .md-typeset__scrollwrap")].every((it) =>
    it.scrollWidth <= it.clientWidth || it.tabIndex === 0)"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Markdown files that docs/generate.py writes."""
    folder = tmp_path_factory.mktemp("docs")
    subprocess.run([sys.executable, ROOT / "docs" / "generate.py", folder], check=True)
    return folder


@pytest.fixture(scope="module")
def site(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it; a warning, such as one of a broken link, is an error."""
    pytest.importorskip("material", reason="the site is not built: pip install '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", folder]
    environment = os.environ | {"DOCS": str(sources), "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    return folder


def test_reference_lists_every_flag_of_every_command(
    sources: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sections = re.split(
        r"^## ", (sources / "reference" / "commands.md").read_text(encoding="utf-8"), flags=re.M
    )[2:]  # the first is about the exit status
    assert [section.split()[0] for section in sections] == list(commands())
    for section in sections:
        cli.main([section.split()[0], "--help"])
        flags = re.findall(r"^│[* ]{1,4}(--[\w-]+)", capsys.readouterr().out, flags=re.M)
        assert flags == re.findall(r"^\* `(--[\w-]+)", section, flags=re.M)


def test_reference_lists_every_option(sources: Path) -> None:
    page = (sources / "reference" / "options.md").read_text(encoding="utf-8")
    for option in config.options():
        assert f"### {option.name} {{ #{option.name} }}\n\n{option.help}\n" in page


def test_generated_text_replaces_every_mark(sources: Path) -> None:
    for page in sources.rglob("*.md"):
        assert not re.search(
            r"<!-- (generated|code|source only|end)", page.read_text(encoding="utf-8")
        ), page


def test_navigation_has_every_page(sources: Path) -> None:
    navigation = re.findall(
        r"([\w./-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), flags=re.M
    )
    assert sorted(navigation) == sorted(
        page.relative_to(sources).as_posix() for page in sources.rglob("*.md")
    )


def test_results_are_pages_and_linked(sources: Path) -> None:
    claims = (sources / "paper" / "claims.md").read_text(encoding="utf-8")
    assert "](../results/paper/table3.md)" in claims
    assert "benchmarks/results/" not in claims


def test_equations_are_typeset(sources: Path) -> None:
    page = (sources / "paper" / "beside" / "model.md").read_text(encoding="utf-8")
    assert "```math" not in page
    assert page.count('<math xmlns="http://www.w3.org/1998/Math/MathML"') >= 10


def test_figures_are_what_the_script_draws(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "docs" / "figures.py", tmp_path], check=True)
    drawn = {file.name: file.read_text(encoding="utf-8") for file in tmp_path.glob("*.svg")}
    folder = ROOT / "docs" / "images" / "paper"
    assert drawn == {file.name: file.read_text(encoding="utf-8") for file in folder.glob("*.svg")}


@pytest.mark.slow
def test_links_of_figures_lead_to_sections_and_code(site: Path) -> None:
    page = site / "paper" / "beside.html"
    figure = re.search(
        r'<div class="figure">.*?</svg>', page.read_text(encoding="utf-8"), flags=re.S
    )[0]
    links = re.findall(r'<a href="([^"#]*)#([^"]*)"', figure)
    assert len(links) > 20
    for target, anchor in links:
        text = (page.parent / target).read_text(encoding="utf-8")
        assert f'id="{anchor}"' in text, anchor


@pytest.mark.slow
@pytest.mark.skipif(AXE is None, reason="axe-core is missing: pip install selenium-axe-python")
@pytest.mark.parametrize(
    ("width", "touch", "scheme"), [(1280, False, "light"), (390, True, "dark")]
)
def test_pages_beside_the_paper_are_accessible(
    site: Path, browser, width: int, touch: bool, scheme: str
) -> None:
    """axe-core finds no violation, also in the answers, and no page is wider than the screen."""
    from web_page import Page, set_screen

    axe = Path(str(AXE and AXE.origin)).parent / "axe-core" / "axe.min.js"
    faults = list[str]()
    set_screen(browser, width, 844, touch=touch, scheme=scheme)
    for name in COMPANION:
        page = Page(browser, (site / "paper" / f"{name}.html").as_uri())
        browser.get(page.address)
        page.run(
            "localStorage.clear(); document.querySelectorAll('details').forEach((it) => it.open = true)"
        )
        for button in page.all("#search button")[1:2]:  # to the end of the search
            button.click()
        # The script of the site names what scrolls and what the theme adds.
        wait_for(lambda page=page: page.run(SETTLED))
        page.run(axe.read_text(encoding="utf-8"))
        violations = browser.execute_async_script(
            "axe.run({preload: false, resultTypes: ['violations']}).then((it) => arguments[0](it.violations))"
        )
        faults += [
            f"{name}: {each['id']}: {node['html']}" for each in violations for node in each["nodes"]
        ]
        if page.run("return document.documentElement.scrollWidth") > width:
            faults.append(f"{name}: wider than the screen")
    set_screen(browser, 1280, 800)
    assert faults == []


@pytest.mark.slow
def test_page_of_a_sentence_searches_as_the_model_does(site: Path, browser) -> None:
    """For every beam size and length penalty; and by the keyboard, step by step."""
    from selenium.webdriver.common.keys import Keys

    from web_page import Page, complaints

    page = Page(browser, (site / "paper" / "beside" / "sentence.html").as_uri())
    browser.get(page.address)
    stored = json.loads((ROOT / "docs/paper/beside/sentence.json").read_text(encoding="utf-8"))[
        "search"
    ]
    found = page.run(FIND_ALL)
    assert found.keys() == stored["results"].keys()
    for name, (text, score) in stored["results"].items():
        assert found[name][0] == text
        assert found[name][1] == pytest.approx(score, abs=1e-3)
    step = page.one("#search button")
    for _ in range(20):
        if step.is_enabled():
            step.send_keys(Keys.ENTER)
    text, _ = stored["results"]["2 0.6"]
    assert text in page.text("#search [aria-live]")
    assert page.all("#drawing .ribbon path") and page.all("#drawing .nodes .won")
    assert complaints(browser) == []


@pytest.mark.slow
def test_pages_load_nothing_from_the_network(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        # Mermaid would load a script.
        assert not LOADED.search(text) and "mermaid" not in text, page
    for style in site.rglob("*.css"):
        assert not re.search(
            r"url\([\"']?(https?:)?//|@import", style.read_text(encoding="utf-8")
        ), style


@pytest.mark.slow
def test_api_pages_describe_every_public_name(site: Path) -> None:
    page = (site / "api" / "index.html").read_text(encoding="utf-8")
    for name in transduce.__all__:
        assert f'id="transduce.{name}"' in page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("glossary", "guides/glossary.html"),
        ("beam_search", "api/decoding.html"),
        ("n-best", "reference/commands.html"),
        ("is not UTF-8", "guides/troubleshooting.html"),
    ],
)
def test_search_works_without_a_server(site: Path, browser, query: str, page: str) -> None:
    from web_page import Page, complaints

    tour = Page(browser, (site / "paper" / "tour.html").as_uri())
    browser.get(tour.address)
    tour.one("[data-md-component=search-query]").send_keys(query)
    wait_for(lambda: tour.all(f".md-search-result__link[href*='{page}']"))
    assert complaints(browser) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "option"),
    [("beam_size", "decode.beam_size"), ("label smoothing", "train.label_smoothing")],
)
def test_search_finds_an_option_first(site: Path, browser, query: str, option: str) -> None:
    """The first link leads to the page of options, the second to the option."""
    from web_page import Page

    tour = Page(browser, (site / "paper" / "tour.html").as_uri())
    browser.get(tour.address)
    tour.one("[data-md-component=search-query]").send_keys(query)
    links = ".md-search-result__link"
    wait_for(lambda: tour.all(f"{links}[href$='#{option}']"))
    second = tour.all(links)[1].get_attribute("href")
    assert "reference/options.html" in second and second.endswith(f"#{option}")
