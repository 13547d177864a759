"""docs/paper/: its examples run, and its figures are those of the results that it links to."""

import doctest
import re
from dataclasses import replace
from pathlib import Path

import pytest

from transduce.commands.recipes import read_text
from transduce.config.parse import configure, read_recipe
from transduce.config.schema import ModelConfig
from transduce.model.build import count_parameters
from transduce_lab.paper.table3 import VARIATIONS

PAPER = Path(__file__).parents[1] / "docs" / "paper"
RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "paper"
EXAMPLES = re.compile(r"^```pycon\n(.*?)^```", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"[+−]?\d(?:[\d,.]*\d)?(?:e\+\d+)?")
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
CLAIMS = (PAPER / "claims.md").read_text(encoding="utf-8")


def rows(text: str, columns: int) -> list[list[str]]:
    """The rows of all tables with so many columns, without their headings."""
    cells = [[cell.strip() for cell in line[1:-1].split("|")] for line in text.splitlines() if line.startswith("|")]
    return [row for row in cells if len(row) == columns and not row[0].startswith("---")]


@pytest.mark.parametrize("page", sorted(PAPER.glob("*.md")), ids=lambda page: page.name)
def test_the_examples_of_a_page_run(page):
    blocks = EXAMPLES.findall(page.read_text(encoding="utf-8"))
    assert blocks or page.name in ("reproduce.md", "tour.md")
    found = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.name, str(page), 0)
    assert doctest.DocTestRunner().run(found).failed == 0


def test_the_figures_of_the_claims_are_in_the_results():
    checked = 0
    for _, _, figures, _, source in rows(CLAIMS, 5):
        for link in LINK.findall(source):
            text = (PAPER / link).read_text(encoding="utf-8").replace("−", "-")
            for number in NUMBER.findall(figures):
                forms = {number.replace("−", "-"), number.replace("−", "-").replace(",", "")}
                assert any(re.search(rf"(?<![\d.]){re.escape(form)}(?![\d])", text) for form in forms), (number, link)
                checked += 1
    assert checked > 80


def test_the_count_of_the_base_model():
    counts = {name: int(count.replace(",", "")) for name, _, count in rows(CLAIMS, 3) if count[:1].isdigit()}
    attention, feed_forward, norm = (
        counts[part] for part in ("attention", "feed-forward layer", "layer normalisation")
    )
    assert counts["encoder layer"] == attention + feed_forward + 2 * norm
    assert counts["decoder layer"] == 2 * attention + feed_forward + 3 * norm
    assert counts["all layers"] == 6 * (counts["encoder layer"] + counts["decoder layer"])
    assert counts["model"] == counts["all layers"] + counts["embeddings"] == count_parameters(ModelConfig())


def test_the_vocabularies_that_fit_table_3():
    fitting = {}
    for row in VARIATIONS:
        if row.printed.parameters:
            width = row.model.d_model
            layers = count_parameters(replace(row.model, vocab_size=1)) - width
            least, most = ((row.printed.parameters + half) * 1e6 - layers for half in (-0.5, 0.5))
            fitting[row.name] = range(int(-(-least // width)), int(-(-most // width)))
    big, base = fitting.pop("big"), fitting["base"]
    low, high = max(each.start for each in fitting.values()), min(each.stop for each in fitting.values()) - 1
    assert (low, high) == (fitting["C-d_ff1024"].start, fitting["C-N4"].stop - 1) and len(fitting) == 10
    for number in (base.start, base.stop - 1, low, high, big.start, big.stop - 1):
        assert f"{number:,}" in CLAIMS


def test_the_differences_of_bleu():
    table = [row for row in rows((RESULTS / "bleu.md").read_text(encoding="utf-8"), 7) if row[1][:1].isdigit()]
    scores = [[float(cell.replace("−", "-").replace(",", "")) for cell in row[1:]] for row in table]
    assert len(scores) == 16
    for ours, paper, difference, moses, split, _ in scores:
        assert difference == pytest.approx(paper - ours, abs=0.011) == pytest.approx(moses + split, abs=0.011)
    page = " ".join((PAPER / "bleu.md").read_text(encoding="utf-8").split())
    low, high = min(row[2] for row in scores), max(row[2] for row in scores)
    mean = sum(row[2] for row in scores) / 16
    assert f"between {-low:.2f} less and {high:.2f} more than sacreBLEU, {mean:.2f} more on average" in page
    assert f"by {-max(row[3] for row in scores):.2f} to {-min(row[3] for row in scores):.2f}." in page
    assert f"by {min(row[4] for row in scores):.2f} to {max(row[4] for row in scores):.2f}:" in page


def test_the_peak_rates_of_the_parsers():
    (peaks,) = [row for row in rows(CLAIMS, 6) if row[0] == "peak rate"]
    for name, printed in zip(("wsj-parsing-only", "wsj-parsing-semi"), peaks[2:4], strict=True):
        config = configure(read_recipe(*read_text(name)))
        peak = config.train.learning_rate / (config.model.d_model * config.train.warmup) ** 0.5
        assert f"{peak:.5f}" == printed
