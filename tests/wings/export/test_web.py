"""Tests of transduce/wings/export/web.py and its page: the page's JavaScript computes what our Python does."""

import random
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import torch

import transduce
from corpora import reverse_texts
from exports import make_site
from node import in_node
from transduce import model_folder
from transduce.config.schema import PLACEHOLDER_TOKENS
from transduce.decoding.beam import beam_search
from transduce.decoding.capitals import readable
from transduce.decoding.repetition import is_loop
from transduce.inline.events import plain_events
from transduce.inline.segments import split
from transduce.system.errors import UserError
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.export import web
from transduce.wings.export.exporting import export
from transduce.wings.phrasebook.examples import examples

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

ODD = [
    *("", " ", "\u2581", "a \u2581 b", "x\u2581\u2581y z", "  two  spaces ", "\t tab\u00a0blank\u3000wide"),
    *("ﬁnd ﬀ", "ｗｉｄｅ ＡＢＣ！", "日本、ｗｉｄｅ！", "e\u0301 a\u0308\u0323", "\u1100\u1161\u11a8 한국어"),
    *("“curly” ‘quotes’ „unten“", "\u200bzero\u200dwidth\u200c", "👩\u200d👩\u200d👧", "☺\ufe0f a\ufe0f", "x² ½ ①"),
    *("🏴\U000e0067\U000e0062\U000e007f", "ไทย\u200bไทย", "می\u200cخواهم", "\x00\x1f\x85\u2028", "<s> </s> <unk>"),
    *("\ufdd0 token \ufdd1", "don't", "<0x41>", "Ω≈ç√∫˜µ", "\U0001f600\u0301"),
]  # fmt: skip
SENTENCES = [
    *("", "  ", "One.\n\nTwo.\tThree", "- a point. Another.\n1. First thing.", "日本。東京！はい"),
    *("Dr. Smith met Mr. Jones at 5 p.m. They left.", 'He said: "Why?" and left. Then (see p. 5) he came.'),
    *("Er kam am 3. Mai 2024 zurück. Z. B. heute.", "A.B.C. Inc. They won! No? Yes.", "See www.x.com. Now."),
]  # fmt: skip
PLANES = {  # ranges of characters, and how often they are drawn
    (0x21, 0x7E): 20,
    (0xA0, 0x24F): 4,
    (0x300, 0x36F): 2,
    (0x370, 0x1FFF): 3,
    (0x2000, 0x2BFF): 2,
    (0x3000, 0xD7FF): 2,
    (0xE000, 0xFFFF): 2,
    (0x10000, 0x1FFFF): 1,
    (0xE0000, 0xE01EF): 1,
}


def lines() -> list[str]:
    """Usual sentences, odd ones, and 2,500 of random characters, 3,000 together."""
    draw = random.Random(1)

    def character() -> str:
        if draw.random() < 0.15:
            return " "
        while True:
            drawn = chr(draw.randint(*draw.choices([*PLANES], [*PLANES.values()])[0]))
            # Python and Node.js may know different versions of Unicode.
            if unicodedata.ucd_3_2_0.name(drawn, ""):
                return drawn

    texts = ["".join(character() for _ in range(draw.randint(1, 30))) for _ in range(2500)]
    sentences = [text for each in examples("valid", 250) for text in (each.english, each.german)]
    return [*sentences, *ODD, *texts]


def utf16_spans(text: str, spans: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Spans of code points as JavaScript counts them."""
    ends = [0]
    for character in text:
        ends.append(ends[-1] + len(character.encode("utf-16-le")) // 2)
    return [[ends[begin], ends[end]] for begin, end in spans]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char"])
def test_the_page_has_the_ids_and_the_texts_of_our_tokenizers(kind: str) -> None:
    learnt = [text for each in examples("train", 1500) for text in (each.english, each.german)]
    tokenizer = Tokenizer.train(
        learnt[::2],
        learnt[1::2],
        vocab_size=900,
        kind=cast(Any, kind),
        placeholder_tokens=PLACEHOLDER_TOKENS if kind != "char" else "",
    )
    texts = lines()
    assert len(texts) >= 3000
    given = {
        "normalizer": web.rules(tokenizer.normalizer.keep, [])["normalizer"],
        "source": web.vocabulary(tokenizer.source),
        "texts": texts,
    }
    found = in_node(
        "tokenizer.mjs",
        "(() => { const n = new it.Normalizer(given.normalizer), v = new it.Vocabulary(given.source);"
        "const both = (ids) => ({ ids, ...v.decode(ids) });"
        "return given.texts.map((text) => both(v.encode(n.normalize(text)))); })()",
        given,
    )
    expected = tokenizer.encode_source(texts)
    for text, one, ids, decoded in zip(
        texts, found, expected, tokenizer.decode(expected), strict=True
    ):
        assert one["ids"] == ids, repr(text)
        assert one["text"] == decoded, repr(text)
        assert one["spans"] == utf16_spans(decoded, tokenizer.target.spans(ids)), repr(text)


class TableStepper:
    """Probabilities that depend on the last token and the number of tokens before it."""

    device = torch.device("cpu")

    def __init__(self, table: torch.Tensor) -> None:
        self.table = table
        self.step = 0

    def __call__(self, tokens: torch.Tensor) -> torch.Tensor:
        self.step += 1
        return self.table[(self.step + tokens) % len(self.table)].clone()

    def reorder(self, rows: torch.Tensor, sentences: torch.Tensor | None = None) -> None: ...


TABLE_STEPPER = """{
    number: 0,
    async step(tokens) {
        this.number++;
        const rows = tokens.map((token) => given.table[(this.number + token) % given.table.length]);
        return { logProbs: Float32Array.from(rows.flat()) };
    },
    reorder() {},
}"""


@pytest.mark.parametrize("seed", range(6))
def test_the_page_searches_as_our_beam_search_does(seed: int) -> None:
    """With its length penalty, limits, and forbidden n-grams."""
    torch.manual_seed(seed)
    table = (2 * torch.randn(7, 9)).log_softmax(-1)
    cases = [
        {"limit": limit, "beamSize": beam, "lengthPenalty": alpha, "noRepeat": size, "nBest": n}
        for limit in (1, 4, 12)
        for beam in (1, 2, 4)
        for alpha in (0.0, 0.6, 2.0)
        for size, n in ((0, 1), (2, 1), (0, beam))
    ]
    found = in_node(
        "search.mjs",
        f"Promise.all(given.cases.map((each) => it.search({TABLE_STEPPER}, each.limit, each)))",
        {"table": table.tolist(), "cases": cases},
    )
    for case, ours in zip(cases, found, strict=True):
        [expected] = beam_search(
            TableStepper(table),
            [int(case["limit"])],
            beam_size=int(case["beamSize"]),
            length_penalty=float(case["lengthPenalty"]),
            no_repeat_ngram=int(case["noRepeat"]),
            n_best=int(case["nBest"]),
        )
        assert [each["tokens"] for each in ours] == [each.tokens for each in expected], case
        assert [each["score"] for each in ours] == pytest.approx([each.score for each in expected])


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_page_splits_texts_into_sentences_as_we_do(language: str) -> None:
    """Without sentencex, but with our full stops."""
    draw = random.Random(3)
    known = [each[language == "de"] for each in examples("valid", 200)]
    texts = [" ".join(draw.sample(known, draw.randint(1, 4))) for _ in range(200)] + SENTENCES
    found = in_node(
        "text.mjs",
        "(() => { const sentences = new it.Sentences(given.rules, given.language);"
        "return given.texts.map((text) => sentences.spans(text)); })()",
        {"rules": web.rules("", [language])["fullStops"], "language": language, "texts": texts},
    )
    for text, spans in zip(texts, found, strict=True):
        assert spans == utf16_spans(text, split(text, language)), text


MARKED = [
    *("Hello <b>big</b> dog {name}.", "Usage: <file> %s and %d", "Go to https://x.com/a?b=c, or a@b.de!"),
    *("<p>One.</p><p>Two <i>three</i>.</p>", "&amp; don&#39;t", "**bold** and `code` x", "<b>{0}</b> files"),
    *("&lt;b&gt;x&lt;/b&gt;", "<br/>line<br>more", "see `link <http://a.b>`_ now", "100 %sure {{x}} ${y}"),
    *("<v Bob>hi", "<0>text</0> <c.red>a</c>", "a < b > c", "x <b> y </i> z", "<i><b>a</b> b</i> c", "%(n)s {a{b}c}"),
]  # fmt: skip


def test_the_page_finds_the_tags_and_placeholders_that_we_find() -> None:
    """Also those in texts of random signs; and what it takes out, it puts back."""
    draw = random.Random(4)
    signs = [
        "<b>",
        "</b>",
        "<i>",
        "</i>",
        "{x}",
        "%s",
        "**",
        "`",
        "&lt;",
        "&gt;",
        " ",
        "a",
        "1",
        ".",
        "/",
        '"',
        "<",
    ]
    texts = [*MARKED, *("".join(draw.choices(signs, k=draw.randint(1, 12))) for _ in range(1000))]
    found = in_node(
        "markup.mjs",
        """(() => {
            const placeholders = new RegExp(given.placeholders.source, given.placeholders.flags);
            return given.texts.map((text) => {
                const events = it.events(text, placeholders, null);
                const masked = it.mask(events), original = it.original(masked);
                return { events: events.map(({ kind, raw }) => [kind, raw]), text: masked.text, original };
            });
        })()""",
        {"texts": texts, "placeholders": web.rules("", [])["placeholders"]},
    )

    def joined(pieces: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Neighbouring texts as one text; an entity of a letter is text."""
        some: list[tuple[str, str]] = []
        for kind, raw in pieces:
            kind = "text" if kind == "character" else kind
            if kind == "text" and some and some[-1][0] == "text":
                some[-1] = (kind, some[-1][1] + raw)
            else:
                some.append((kind, raw))
        return some

    for text, ours in zip(texts, found, strict=True):
        expected = joined((each.kind, each.raw) for each in plain_events(text))
        assert joined(map(tuple, ours["events"])) == expected, text
        if "&#" not in text:  # an entity of a letter becomes the letter
            assert ours["original"] == text


IDENTITY = """{
    site: { maxSentenceTokens: 1000, placeholders: given.placeholders, placeholderTokens: "" },
    knows: (character) => !given.unknown.includes(character),
    length: () => 1,
    async translate(text) {
        const spans = Array.from(text, (_, i) => [i, i + 1]);
        const attention = spans.map((_, i) => Float32Array.from(spans, (_, k) => Number(i === k)));
        return [{ text, spans, sourceSpans: spans, attention }];
    },
}"""


def test_texts_keep_their_tags_and_gaps_if_a_translation_changes_nothing() -> None:
    draw = random.Random(5)
    rules = web.rules("", ["en"])
    signs = [
        "<b>",
        "</b>",
        "<i>",
        "</i>",
        "{x} ",
        "%s",
        "<br>",
        "Word ",
        "word ",
        "word. ",
        "\n",
        "😀",
        ", ",
    ]
    sentences = [each.english for each in examples("valid", 60)]
    texts = [*MARKED, *SENTENCES, *sentences]
    mixed = ["".join(draw.choices(signs, k=draw.randint(1, 12))) for _ in range(500)]
    found = in_node(
        "text.mjs",
        f"""(async () => {{
            const sentences = new it.Sentences(given.rules, "en"), translator = {IDENTITY};
            const found = [];
            for (const text of given.texts) {{
                let last = "";
                for await (const part of it.translations(translator, sentences, text, {{}}, {{}})) last = part.text;
                found.push(last);
            }}
            return found;
        }})()""",
        {
            "rules": rules["fullStops"],
            "texts": [*texts, *mixed],
            "unknown": "😀",
            "placeholders": rules["placeholders"],
        },
    )
    assert found[: len(texts)] == [text.replace("&#39;", "'") for text in texts]
    for text, ours in zip(mixed, found[len(texts) :], strict=True):
        # At worst, a tag stands elsewhere.
        assert sorted("".join(ours.split())) == sorted("".join(text.split())), text


def test_the_page_finds_the_loops_of_our_search() -> None:
    draw = random.Random(2)
    pairs = [
        [[draw.randint(1, 3) for _ in range(draw.randint(0, length))] for length in (8, 20)]
        for _ in range(500)
    ]
    found = in_node("translator.mjs", "given.map((pair) => it.isLoop(...pair))", pairs)
    assert found == [is_loop(*pair) for pair in pairs]
    assert 0.1 < sum(found) / len(found) < 0.9


def test_the_page_rewrites_capitals_as_our_search_does() -> None:
    learnt = [text for each in examples("train", 1500) for text in (each.english, each.german)]
    tokenizer = Tokenizer.train(learnt, learnt, vocab_size=900)
    texts = [form(text) for text in learnt[:100] for form in (str, str.upper, str.title)]
    texts += [
        "STRASSE ΟΔΟΣ",
        "DON'T (STOP) http://A.B",
        "A",
        "İSTANBUL I",
        "IT'S 5 O'CLOCK-TEA",
        "日本 ABC",
    ]
    site = {
        "normalizer": web.rules(tokenizer.normalizer.keep, [])["normalizer"],
        "source": web.vocabulary(tokenizer.source),
        "target": None,
        "capitals": True,
    }

    def lengths(some: Sequence[str]) -> list[int]:
        return list(map(len, tokenizer.encode_source(some)))

    for language in ("en", "tr"):
        found = in_node(
            "translator.mjs",
            "(() => { const translator = new it.Translator(given.site, {});"
            "return given.texts.map((text) => translator.readable(text, given.language)); })()",
            {"site": site, "texts": texts, "language": language},
        )
        assert found == readable(texts, lengths, language)


@pytest.mark.parametrize(
    "name",
    [
        "post",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("separate", "modern", "dot")),
    ],
)
def test_the_exported_page_translates_like_the_export_in_python(
    name: str, models: Callable[..., Path], tmp_path: Path
) -> None:
    make_site(models(name), tmp_path / "out")
    texts = reverse_texts(30, seed=9)[0]
    translator = transduce.load(tmp_path / "out")
    for beam_size in (1, 4):
        found = in_node(
            "translator.mjs",
            """(async () => {
                const ort = await import(given.folder + "/ort.wasm.min.mjs");
                const { readFileSync } = await import("node:fs");
                ort.env.wasm.numThreads = 1;
                const read = (name) => new Uint8Array(readFileSync(`${given.folder}/${name}`));
                const open = (name) => ort.InferenceSession.create(read(name));
                const [encoder, decoder] = [await open("encoder.onnx"), await open("decoder.onnx")];
                const site = JSON.parse(readFileSync(given.folder + "/site.json", "utf-8"));
                const translator = new it.Translator(site, { Tensor: ort.Tensor, encoder, decoder });
                const found = [];
                for (const text of given.texts) {
                    const options = { beamSize: given.beamSize, aligns: true };
                    found.push((await translator.translate(text, site.directions[0], options))[0].text);
                }
                return found;
            })()""",
            {"folder": str(tmp_path / "out"), "beamSize": beam_size, "texts": texts},
            folder=tmp_path / "out",
        )
        expected = [each.text for each in translator.translate(texts, beam_size=beam_size)]
        assert found == expected


def test_an_export_has_no_private_names_and_every_file_of_the_page(
    models: Callable[..., Path], small_runtime: Path, tmp_path: Path
) -> None:
    export(models("post"), "web", tmp_path / "out", runtime=small_runtime)  # named, or else
    export(models("post"), "web", tmp_path / "other")  # in node_modules
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"index.html", "service-worker.js", "site.json", ".nojekyll", "README.md"} <= names
    config = model_folder.read_config(tmp_path / "out")
    assert not config.data.corpora and not config.data.valid
    worker = (tmp_path / "out" / "service-worker.js").read_text(encoding="utf-8")
    page = {name for name in names if name.endswith((".js", ".mjs", ".css", ".html", ".onnx"))}
    missing = {name for name in page if f'"{name}": "sha256-' not in worker}
    assert missing == {"service-worker.js"}


def test_a_wrong_runtime_is_refused(models: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"does not hold onnxruntime-web@1\.30\.0, with which"):
        export(models("post"), "web", tmp_path / "out", runtime=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_damaged_export_is_not_written(
    models: Callable[..., Path],
    small_runtime: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Matrices in 3 bits lose BLEU."""
    from transduce.wings.export import graph

    monkeypatch.setattr(graph, "MAX_BYTE", 2)
    with pytest.raises(UserError, match="the export translates worse"):
        export(models("post", updates=300), "web", tmp_path / "out", runtime=small_runtime)
    assert not list(tmp_path.iterdir())
