"""What is shown of attention: the numbers are the model's, the tree is the search's, and a browser shows them."""

import base64
import hashlib
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from command_line import run
from models import publish_model
from transduce.config.schema import DecodeConfig, ModelConfig, RunConfig, with_options
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import PLAIN_SEARCH, length_penalty
from transduce.model.build import build
from transduce.model.recording import recording
from transduce.model.seq2seq import Seq2Seq, make_batch
from transduce.system.errors import UserError
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.inspection.curves import learning_curve
from transduce.wings.inspection.maps import SHOWN_BOS, SHOWN_EOS, Attention, attention_of
from transduce.wings.inspection.page import picture_page
from transduce.wings.inspection.picture import ONE, Picture, picture_of, thousandths
from transduce.wings.inspection.report import Report, write_report

TEXTS = [
    "the quick brown fox jumps over the lazy dog",
    "some more words that are here",
    "der Hund schläft",
]
SENTENCE = "the brown dog jumps"
CONFIG = DecodeConfig(beam_size=3, max_extra_tokens=4)
FAMILIES = {
    "transformer": {},
    "window": {"window": 2},
    "learned": {"positions": "learned"},
    "rotary": {"positions": "rotary"},
    "recurrent": {"kind": "recurrent"},
    "convolutional": {"kind": "convolutional"},
}
every_family = pytest.mark.parametrize("family", FAMILIES)
EVIL = [
    "</script><img src=x onerror=alert(1)>",
    "<!--<script>",
    "a\u2028b\u2029c\x85d",
    "\"'&amp;`${x}",
    "\x00\x07\ufffe\ud800 end",
    "$x$ \\",
]

PIECES_OF_THE_SOURCE = ".ribbon g[role=listbox]:nth-of-type(2) .piece"
FIRST_PIECE_OF_THE_TARGET = ".ribbon g[role=listbox]:last-of-type .piece"
IS_PAINTED = """
    const canvas = document.querySelector('.grid canvas');
    return canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value);
"""
# The contrast of the number in a cell with its background, for every weight.
CONTRASTS = """
    const channels = (colour) => colour.match(/[0-9.]+/g).slice(0, 3)
      .map((value) => colour[0] === 'c' ? +value : value / 255);
    const light = (colour) => channels(colour).map((v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
      .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
    const [cell] = document.querySelectorAll('.map.numbers td[tabindex]');
    return [...Array(1001).keys()].map((weight) => {
      cell.style.setProperty('--weight', (weight / 1000).toFixed(3));
      const { color, backgroundColor } = getComputedStyle(cell);
      const [a, b] = [light(color), light(backgroundColor)].sort((x, y) => y - x);
      return (a + .05) / (b + .05);
    });
"""


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TEXTS * 3, TEXTS * 3, vocab_size=330)


def config_of(tokenizer: Tokenizer, **options: object) -> ModelConfig:
    sizes = {
        "d_model": 32,
        "d_ff": 32,
        "num_heads": 4,
        "num_encoder_layers": 2,
        "num_decoder_layers": 2,
    }
    return with_options(ModelConfig(), **{"vocab_size": tokenizer.target.size, **sizes, **options})


def model_of(tokenizer: Tokenizer, **options: object) -> Seq2Seq:
    """Weights large enough that no two hypotheses tie, and that maps are not all alike."""
    model = build(config_of(tokenizer, **options), seed=1)
    for weight in model.parameters():
        weight.data.mul_(1.6)
    return model.eval()


@pytest.fixture(scope="module")
def seen(tokenizer: Tokenizer) -> Callable[[str], tuple[Seq2Seq, Attention, Picture]]:
    """By family: a model, what it attended to in SENTENCE, and the picture of that."""
    found: dict[str, tuple[Seq2Seq, Attention, Picture]] = {}

    def get(family: str) -> tuple[Seq2Seq, Attention, Picture]:
        if family not in found:
            model = model_of(tokenizer, **FAMILIES[family])
            attention = attention_of(model, tokenizer, SENTENCE, CONFIG)
            found[family] = model, attention, picture_of(model, attention)
        return found[family]

    return get


simplex = arrays(
    np.float32, st.tuples(st.integers(1, 4), st.integers(1, 60)), elements=st.floats(0, 1, width=32)
)


@given(simplex)
def test_rounded_weights_add_up_to_one(raw):
    raw[:, 0] += 2.0**-20  # no row is all 0
    weights = raw.astype(np.float64) / raw.sum(axis=1, keepdims=True, dtype=np.float64)
    whole = thousandths(weights)
    assert (whole.sum(axis=1) == ONE).all()
    assert (abs(whole - weights * ONE) < 1 + 1e-6).all()
    assert (whole[weights == 0] == 0).all()


@every_family
def test_attention_of_every_piece_adds_up_over_visible_pieces(family, seen, tokenizer):
    _, attention, picture = seen(family)
    uses = {maps.use: maps for maps in picture.maps}
    with_self_attention = family in ("transformer", "window", "learned", "rotary")
    assert list(uses) == (["encoder", "decoder", "source"] if with_self_attention else ["source"])
    read = [*tokenizer.source.pieces(tokenizer.encode_source([SENTENCE])[0]), SHOWN_EOS]
    assert uses["source"].keys == read and uses["source"].queries == [
        *attention.translation.tokens,
        SHOWN_EOS,
    ]
    for maps in picture.maps:
        weights = np.array(maps.weights)
        assert weights.shape == (
            *attention.uses[maps.use].weights.shape[:2],
            len(maps.queries),
            len(maps.keys),
        )
        assert (weights.sum(axis=-1) == ONE).all()
        np.testing.assert_allclose(
            weights / ONE, attention.uses[maps.use].weights.numpy(), atol=1 / ONE
        )
    if with_self_attention:
        assert uses["encoder"].queries == uses["encoder"].keys == read
        assert uses["decoder"].queries == [SHOWN_BOS, *attention.translation.tokens]
        assert not np.triu(np.array(uses["decoder"].weights), 1).any(), (
            "nothing attends to later positions"
        )
    if family == "window":
        assert not np.triu(np.array(uses["encoder"].weights), 2).any()


@every_family
def test_shown_translation_and_score_equal_those_of_the_translator(family, seen, tokenizer):
    model, _, picture = seen(family)
    translator = Translator(TorchEngine([model]), tokenizer, replace(CONFIG, **PLAIN_SEARCH))
    (alone,) = translator.translate([SENTENCE])
    assert (picture.translation, picture.source) == (alone.text, SENTENCE)
    assert picture.score == pytest.approx(alone.score, abs=1e-5)
    (best,) = translator.translate([SENTENCE], n_best=CONFIG.beam_size)
    expected = [
        (each.text, pytest.approx(each.score, abs=1e-5)) for each in (best, *best.alternatives)
    ]
    assert [
        (each.text, each.score) for each in picture.search.complete[: CONFIG.beam_size]
    ] == expected


@every_family
def test_tree_scores_equal_forced_decoding(family, seen, tokenizer):
    model, _, picture = seen(family)
    search, engine = picture.search, TorchEngine([model])
    source = tokenizer.encode_source([SENTENCE])[0]
    for each in search.complete:
        log_prob = sum(*engine.log_probs([source], [search.path(each)]))
        assert each.log_prob == pytest.approx(log_prob, abs=1e-3)
        assert each.score == pytest.approx(
            log_prob / length_penalty(each.length, CONFIG.length_penalty), abs=1e-3
        )
        assert len(search.path(each)) == each.length - 1
    assert search.complete == sorted(search.complete, key=lambda each: -each.score)
    ends = sum(node.fate == "complete" for step in search.steps for node in step)
    assert ends == len(search.complete) >= CONFIG.beam_size


@every_family
def test_tree_nodes_continue_kept_hypotheses(family, seen):
    steps = seen(family)[2].search.steps
    for number, step in enumerate(steps):
        before = steps[number - 1] if number else []
        assert [node.log_prob for node in step] == sorted(
            (node.log_prob for node in step), reverse=True
        )
        assert sum(node.fate in ("kept", "left") for node in step) <= CONFIG.beam_size
        assert len(step) <= 2 * CONFIG.beam_size
        assert all((node.fate == "left") <= (step is steps[-1]) for node in step)
        for node in step:
            assert (node.parent == -1) == (number == 0)
            if number:
                assert before[node.parent].fate == "kept"
                assert node.log_prob <= before[node.parent].log_prob


def test_tree_of_greedy_search_is_a_line(tokenizer):
    model = model_of(tokenizer)
    found = attention_of(model, tokenizer, SENTENCE, replace(CONFIG, beam_size=1))
    assert found.search.path(found.search.complete[0]) == [
        step[0].token for step in found.search.steps[:-1]
    ]
    assert [each.text for each in found.search.complete] == [found.translation.text]


def test_shown_positions_equal_those_of_the_model(seen):
    for family, sides in {
        "transformer": 1,
        "learned": 2,
        "convolutional": 1,
        "recurrent": 0,
        "rotary": 0,
    }.items():
        model, attention, picture = seen(family)
        assert len(picture.positions) == sides
        for positions in picture.positions:
            module = model.source_positions if positions.source else model.target_positions
            values = np.array(positions.values) * positions.largest / ONE
            np.testing.assert_allclose(
                values, module(0, len(values)).detach(), atol=positions.largest / ONE
            )
        if family == "learned":
            source, target = picture.positions
            assert source.source == attention.uses["source"].keys and not source.target
            assert target.target == [SHOWN_BOS, *attention.translation.tokens] and not target.source


def test_a_sentence_in_capitals_is_shown_as_the_model_reads_it(seen, tokenizer):
    model = seen("transformer")[0]
    assert attention_of(model, tokenizer, SENTENCE.upper(), CONFIG).text == SENTENCE
    assert (
        attention_of(model, tokenizer, SENTENCE.upper(), replace(CONFIG, capitals=False)).text
        == SENTENCE.upper()
    )
    texts = ["ışık açık iki"] * 40
    turkish = Tokenizer.train(texts, texts, vocab_size=300)
    assert attention_of(model_of(turkish), turkish, "IŞIK AÇIK", CONFIG, "tr").text == "ışık açık"


def test_models_without_attention_and_bad_texts_are_refused(tokenizer):
    with pytest.raises(UserError, match="has no attention to show"):
        attention_of(model_of(tokenizer, kind="bytenet"), tokenizer, SENTENCE, CONFIG)
    model = model_of(tokenizer, positions="learned", max_positions=6)
    for text, sentence in {
        " \t": "blank",
        "\u200b": "blank",
        "a\nb": "line break",
        "a b c d e f g": "supports at most 5",
    }.items():
        with pytest.raises(UserError, match=sentence):
            attention_of(model, tokenizer, text, CONFIG)


def test_recording_ignores_other_threads(seen):
    model = seen("transformer")[0]
    batch = make_batch([[5, 6]], [[7]])
    with recording() as record:
        thread = threading.Thread(target=partial(model, batch.src, batch.tgt_in))
        thread.start()
        thread.join()
        assert not record.attention
        model(batch.src, batch.tgt_in)
    assert record.attention


def test_a_picture_is_json(seen):
    picture = seen("transformer")[2]
    text = picture.json()
    assert text.isascii()
    data = json.loads(text)
    assert data["maps"][2]["weights"] == picture.maps[2].weights
    assert data["search"]["complete"][0]["text"] == picture.translation
    assert data["search"]["steps"][0][0] == vars(picture.search.steps[0][0])


class Page(HTMLParser):
    """The elements of a page, and the texts of those that matter."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.inside: dict[str, list[str]] = {}
        self.current = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.inside.setdefault(tag, []).append("")
        self.current = tag

    def handle_endtag(self, _: str) -> None:
        self.current = ""

    def handle_data(self, data: str) -> None:
        if self.current:
            self.inside[self.current][-1] += data


@given(st.one_of(st.text(), st.sampled_from(EVIL)))
def test_hostile_text_never_becomes_markup(seen, text):
    picture = replace(seen("transformer")[2], source=text, translation=text)
    calm, page = Page(picture_page(seen("transformer")[2])), Page(picture_page(picture))
    assert page.tags == calm.tags
    data = json.loads(page.inside["script"][0])
    assert data["source"] == data["translation"] == text
    if text.isprintable():
        assert page.inside["h1"][0].split() == text.split()


def test_page_is_self_contained_and_allows_only_its_own_script(seen):
    page = Page(picture_page(seen("transformer")[2]))
    assert not {"link", "img", "iframe", "object", "base"} & set(page.tags)
    assert not [
        name
        for name, _ in page.attributes
        if name in ("src", "href", "style") or name.startswith("on")
    ]
    (policy,) = [
        value
        for name, value in page.attributes
        if name == "content" and "default-src" in (value or "")
    ]
    hashes = dict(re.findall(r"(script|style)-src 'sha256-([^']+)'", policy or ""))
    for kind, text in {
        "style": page.inside["style"][0],
        "script": page.inside["script"][1],
    }.items():
        assert hashes[kind] == base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert "@import" not in page.inside["style"][0] and "url(" not in page.inside["style"][0]
    assert "eval(" not in page.inside["script"][1] and "innerHTML" not in page.inside["script"][1]


def test_a_page_of_a_long_sentence_and_a_base_model_stays_small(tokenizer):
    model = model_of(
        tokenizer, num_encoder_layers=6, num_decoder_layers=6, num_heads=8, d_model=512
    )
    text = f"{TEXTS[0]} {TEXTS[1]} {SENTENCE}"
    found = attention_of(model, tokenizer, text, replace(CONFIG, beam_size=4, max_extra_tokens=0))
    source = found.uses["source"]
    assert source.weights.shape[:2] == (6, 8) and 38 <= len(source.keys) <= 45
    assert len(picture_page(picture_of(model, found))) < 1_500_000


# ---- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tokenizer: Tokenizer, seen, tmp_path_factory) -> Path:
    """A model folder."""
    place = tmp_path_factory.mktemp("attention") / "model"
    config = RunConfig(model=config_of(tokenizer), decode=CONFIG)
    publish_model(place, config, tokenizer, seen("transformer")[0].state_dict(), {}, "# a model\n")
    return place


def test_command_writes_a_page_and_prints_the_translation(folder, seen, tmp_path, capsys):
    status, _, said = run(capsys, "attention", folder, SENTENCE, "--out", tmp_path / "page.html")
    assert status == 0, said
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert json.loads(Page(text).inside["script"][0]) == json.loads(seen("transformer")[2].json())
    assert f"score {seen('transformer')[2].score:.3f}" in said and "page.html" in said
    status, page, _ = run(capsys, "attention", folder, SENTENCE, "--beam-size", 1, "--out", "-")
    assert status == 0 and '"beam_size":1' in page


def test_a_page_needs_no_library_for_pictures(folder, tmp_path):
    arguments = ["attention", str(folder), SENTENCE, "--out", str(tmp_path / "page.html")]
    code = f"import sys; from transduce.cli import main; main({arguments!r}); print('matplotlib' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
        == "False\n"
    )


@pytest.mark.parametrize(
    ("suffix", "begin"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")]
)
def test_the_command_draws_for_papers(folder, suffix, begin, tmp_path, capsys):
    every = (
        {"all": [], "one": ["--use", "decoder", "--layer", 2, "--head", 1]}
        if suffix == "svg"
        else {}
    )
    for name, options in (every | {"mean": ["--mean"]}).items():
        out = tmp_path / f"{name}.{suffix}"
        status, _, said = run(
            capsys, "attention", folder, f"{SENTENCE} $x$", "--out", out, *options
        )
        assert status == 0, said
        assert out.read_bytes().startswith(begin)
    again = tmp_path / f"again.{suffix}"
    run(capsys, "attention", folder, f"{SENTENCE} $x$", "--out", again, "--mean")
    assert again.read_bytes() == out.read_bytes()
    if suffix == "svg":
        text = out.read_text(encoding="utf-8")
        assert "mean of all layers, all heads" in text and "jumps" in text
        assert (tmp_path / "all.svg").read_text(encoding="utf-8").count(">layer ") == 8


def test_characters_that_cannot_be_drawn_are_named(folder, tmp_path, capsys, recwarn):
    for suffix, lacks in {"png": True, "svg": False}.items():
        out = tmp_path / f"x.{suffix}"
        status, _, said = run(capsys, "attention", folder, "\u2603 \u6f22", "--out", out, "--mean")
        assert status == 0 and (f"lacks \u6f22, so {out} shows boxes" in said) == lacks
    assert not [each for each in recwarn if "Glyph" in str(each.message)]


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_control_characters_are_drawn_as_symbols(folder, suffix, tmp_path, capsys):
    out = tmp_path / f"x.{suffix}"
    status, _, said = run(
        capsys, "attention", folder, "a \x01 dog \udcff \ud83d", "--out", out, "--mean"
    )
    assert status == 0, said
    if suffix == "svg":
        title = f"a {chr(0x2401)} dog \ufffd \ufffd"
        assert title in "".join(ElementTree.parse(out).getroot().itertext())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--out", "x.gif"], "Use a name that ends in .html, .svg, .pdf or .png"),
        (["--out", "nowhere/x.html"], "there is no folder nowhere"),
        (["--layer", 1], "are for pictures"),
        (["--out", "x.png", "--layer", 3], "The model has no layer 3. Choose 1 to 2"),
        (["--out", "x.png", "--head", -1], "The model has no head -1"),
        (["model.d_model=3"], "can't be set for a trained model"),
    ],
)
def test_wrong_arguments_are_refused(folder, arguments, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    status, _, said = run(capsys, "attention", folder, SENTENCE, *arguments)
    assert status == 2 and sentence in said
    assert not list(tmp_path.iterdir())


# ---- in a browser ----------------------------------------------------------------------------------------------------


@pytest.fixture
def browse(browser, tmp_path) -> Iterator[Callable[..., Any]]:
    """Open the page of a picture; at the end, no script has failed."""
    from web_page import Page, complaints, set_screen

    def browse(picture: Picture, width: int = 1280, *, dark: bool = False) -> Page:
        (tmp_path / "page.html").write_text(picture_page(picture), encoding="utf-8")
        page = Page(browser, (tmp_path / "page.html").as_uri())
        set_screen(browser, width, 900, touch=width < 600, scheme="dark" if dark else "light")
        browser.get(page.address)
        page.wait(lambda: page.all(".piece"))
        return page

    complaints(browser)  # forget those of other tests
    yield browse
    assert complaints(browser) == []


def readout(page, section: int) -> str:
    return page.one(f".transduce > section:nth-of-type({section}) .readout").text


def choose(page, control: int, option: str) -> None:
    """Choose an option of the layer (0), the head (1) or the pieces (2)."""
    page.all(".controls select")[control].send_keys(option)


def names(page, css: str) -> list[str]:
    return page.run(
        "return [...document.querySelectorAll(arguments[0])].map((each) => each.ariaLabel)", css
    )


def fits(page) -> bool:
    return page.run("return document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("width", [1280, 390])
def test_pointing_at_a_piece_shows_its_attention(width, seen, browse):
    picture = seen("transformer")[2]
    page = browse(picture, width)
    page.point(page.one(FIRST_PIECE_OF_THE_TARGET))
    weights = np.array(picture.maps[2].weights).mean(axis=(0, 1))[0]
    most = picture.maps[2].keys[int(weights.argmax())].replace("\u2581", "")
    assert f"{most} {round(weights.max() / 10)} %" in readout(page, 1)
    numbers = page.run(
        "return [...document.querySelectorAll('.number')].map((each) => each.textContent)"
    )
    assert [each for each in numbers if each] == [
        str(round(w / 10)) for w in weights if round(w / 10) >= 1
    ]


def test_a_layer_a_head_and_whole_words_can_be_chosen(seen, browse):
    picture = seen("transformer")[2]
    page = browse(picture)
    choose(page, 0, "2")
    choose(page, 1, "3")
    page.point(page.one(FIRST_PIECE_OF_THE_TARGET))
    assert f" {round(max(picture.maps[2].weights[1][2][0]) / 10)} %" in readout(page, 1)
    choose(page, 2, "words")
    assert names(page, PIECES_OF_THE_SOURCE) == [*SENTENCE.split(), SHOWN_EOS]


def test_words_join_the_bytes_of_their_characters(tokenizer, browse):
    model = model_of(tokenizer)
    page = browse(picture_of(model, attention_of(model, tokenizer, "fox \u6f22\U0001f600", CONFIG)))
    assert "<0xE6>" in names(page, ".piece")
    choose(page, 2, "words")
    assert names(page, PIECES_OF_THE_SOURCE) == ["fox", "\u6f22\U0001f600", SHOWN_EOS]


def test_a_click_enlarges_a_map_whose_cells_show_their_weights(seen, browse):
    picture = seen("transformer")[2]
    page = browse(picture)
    page.all(".panel:first-child button")[5].click()
    assert page.one(".large h3").text == "Encoder, layer 2, head 2"
    page.point(page.one(".map tbody tr:nth-child(2) td:nth-of-type(3)"))
    assert readout(page, 2).endswith(f": {picture.maps[0].weights[1][1][1][2] / ONE:.3f}")


def test_the_tree_shows_the_path_to_the_translation(seen, browse):
    picture = seen("transformer")[2]
    page = browse(picture)
    nodes = page.all(".node.won")
    assert len(nodes) == picture.search.complete[0].length and nodes[-1].text.startswith(SHOWN_EOS)
    assert len(page.all(".node")) == sum(map(len, picture.search.steps))
    page.point(nodes[-1])
    assert f"complete, score {picture.score:.3f}".replace("-", "−") in readout(page, 3)
    assert page.one(".ranking .won").text.startswith(picture.translation.strip()[:3])


def test_page_marks_a_cut_translation(tokenizer, seen, browse):
    found = attention_of(
        seen("transformer")[0], tokenizer, SENTENCE, replace(CONFIG, max_extra_tokens=0)
    )
    for flags in [], ["cut"]:
        page = browse(replace(picture_of(seen("transformer")[0], found), flags=flags))
        assert ("cut off" in page.one(".transduce").text) == bool(flags)


def test_the_keyboard_reaches_every_part(seen, browse):
    from selenium.webdriver.common.keys import Keys

    picture = seen("transformer")[2]
    page = browse(picture)
    focused = partial(page.run, "return document.activeElement.ariaLabel")
    alt = "new KeyboardEvent('keydown', {key: 'ArrowLeft', altKey: true, bubbles: true, cancelable: true})"
    is_left_to_the_browser = partial(
        page.run, f"return document.activeElement.dispatchEvent({alt})"
    )
    page.press(*[Keys.TAB] * 4)  # beyond layer, head and pieces
    page.press(Keys.ARROW_RIGHT)
    assert focused() == "br" and readout(page, 1).startswith("“br” is attended to by")
    assert is_left_to_the_browser() and focused() == "br"
    page.press(Keys.TAB, Keys.TAB)  # beyond the translation
    page.press(Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ENTER)
    assert focused() == page.one(".large h3").text == "Encoder, layer 2, head 2"
    page.press(Keys.TAB, Keys.TAB, Keys.TAB, Keys.ARROW_DOWN)
    assert readout(page, 2).endswith(f"{picture.maps[0].weights[1][1][1][0] / ONE:.3f}")
    page.press(Keys.TAB, Keys.ARROW_RIGHT)
    assert (focused() or "").startswith("step 2, ") and "log-probability" in readout(page, 3)
    page.press(Keys.TAB, Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    assert "Position 1 " in readout(page, 4) and "channel 2 of 32" in readout(page, 4)
    assert is_left_to_the_browser() and "channel 2 of 32" in readout(page, 4)


@every_family
def test_pages_of_every_family_fit_a_phone(family, seen, browse):
    assert fits(browse(seen(family)[2], 390))


def test_a_page_of_a_long_sentence_fits_a_phone(tokenizer, browse):
    model = model_of(tokenizer, num_heads=16)
    found = attention_of(model, tokenizer, " ".join(TEXTS) + "x" * 50, CONFIG)
    assert fits(browse(picture_of(model, found), 390))


def test_numbers_are_readable_in_light_and_dark_colours(seen, browse):
    for dark in (False, True):
        page = browse(seen("transformer")[2], dark=dark)
        page.wait(lambda page=page: page.all(".map"))
        assert min(page.run(CONTRASTS)) >= 4.5  # as WCAG 2 demands


def test_drawings_follow_a_change_of_colours(seen, browse):
    from web_page import set_screen

    page = browse(seen("transformer")[2])
    pixels = partial(page.run, "return document.querySelector('.grid canvas').toDataURL()")
    background = partial(page.run, "return getComputedStyle(document.body).backgroundColor")
    page.wait(lambda: page.run(IS_PAINTED))
    light, drawn = background(), pixels()
    set_screen(page.browser, 1280, 900, scheme="dark")
    page.wait(lambda: background() != light and pixels() != drawn)


def test_hostile_text_never_becomes_markup_in_a_browser(tokenizer, browse):
    model = model_of(tokenizer)
    picture = picture_of(
        model, attention_of(model, tokenizer, f"x {' '.join(EVIL)}".replace("\n", " "), CONFIG)
    )
    page = browse(picture)
    assert page.run("return [document.images.length, document.scripts.length]") == [0, 2]
    assert len(page.all(".piece")) == len(picture.maps[2].keys) + len(picture.maps[2].queries)


def test_a_report_has_the_same_drawing(seen, browser, browse, tmp_path):
    picture, curve = (
        seen("transformer")[2],
        learning_curve([{"event": "update", "time": 0.0, "step": 1, "nll": 2.0}]),
    )
    page = browse(picture, 390)
    write_report(
        tmp_path / "report.html", Report("A run", "It went well.", curve=curve, picture=picture)
    )
    browser.get((tmp_path / "report.html").as_uri())
    page.wait(lambda: page.all(".piece"))
    page.point(page.one(".piece"))
    assert "is attended to by" in readout(page, 1) and fits(page)
