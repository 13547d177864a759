"""One symbol for each placeholder: the same on both sides of a pair, and put back where a model copies it."""

import asyncio
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import run
from corpora import reverse_texts
from models import make_model
from servers import store_of
from texts_with_tokens import A, B, C
from transduce.config.schema import PLACEHOLDER_TOKENS, CorpusConfig, DataConfig
from transduce.decoding.loading import load
from transduce.decoding.plan import LOST, Plan
from transduce.decoding.types import Translation, TranslationOptions
from transduce.inline.placeholder_tokens import (
    have_same_tokens,
    stray_tokens,
    with_shared_tokens,
    with_tokens,
)
from transduce.inline.placeholders import Patch, intact, mask, original
from transduce.inline.placing import copied, restore
from transduce.preparation.aggregate import masked_pairs
from transduce.preparation.prepared import open_prepared
from transduce.system.files import publish
from transduce.text.clean import Cleaning
from transduce.text.pairs import Origin, Pair
from transduce.text.rules import PLACEHOLDERS_DIFFER
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.serving.limits import Limits
from transduce.wings.serving.service import Order, Service
from transduce.wings.synthetic.rewriting import prepare_rewritten

WORDS = ["a", "dog,", "L'eau", "3.5", "“yes”", "(so", "end."]


NAMES = [
    "{0}",
    "{1}",
    "%(name)s",
    "%s",
    "``x``",
    ":func:`open`",
    "https://a.b/c",
    "{{ limit }}",
    "&nbsp;",
]


TAGS = ["**bold**", "<b>{0}</b>", "<i>two words</i>", "`a <https://b.c>`_", "<br/>"]


TEXTS = st.lists(st.sampled_from([*WORDS, *NAMES, *TAGS])).map(" ".join)


def names(text: str) -> list[str]:
    return [mark.opening for mark in mask(text).marks if mark.kind == "word"]


@given(TEXTS)
def test_tokens_are_one_character_and_restored(text: str) -> None:
    masked = with_tokens(mask(text))
    words = [mark for mark in masked.marks if mark.kind == "word"]
    assert original(masked) == text
    assert all(
        masked.text[mark.begin : mark.end] in PLACEHOLDER_TOKENS and mark.end == mark.begin + 1
        for mark in words
    )
    assert [character for character in masked.text if character in PLACEHOLDER_TOKENS] == [
        masked.text[mark.begin] for mark in words
    ]
    assert with_tokens(masked) == masked
    assert copied(masked, masked.text)
    assert intact(text, restore(masked, masked.text, ()).text)


@given(TEXTS)
def test_equal_placeholders_have_equal_tokens(text: str) -> None:
    masked = with_tokens(mask(text))
    given_to = {
        mark.opening: masked.text[mark.begin] for mark in masked.marks if mark.kind == "word"
    }
    assert [given_to[name] for name in names(text)] == [
        each for each in masked.text if each in PLACEHOLDER_TOKENS
    ]
    assert len(set(given_to.values())) == len(given_to)


@given(
    st.permutations(NAMES).flatmap(lambda order: st.tuples(st.just(order), st.permutations(order)))
)
def test_both_sides_of_a_pair_have_the_same_tokens(orders: tuple[list[str], list[str]]) -> None:
    source, target = " und ".join(orders[0]), " and ".join(orders[1])
    seen = with_shared_tokens(source, target)
    assert seen is not None
    back = dict(zip(PLACEHOLDER_TOKENS, orders[0], strict=False))
    for shown, text in zip(seen, (source, target), strict=True):
        assert "".join(back.get(character, character) for character in shown) == text


@pytest.mark.parametrize(
    ("source", "target", "seen"),
    [
        ("Open {0}.", "{0} öffnen.", ("Open ①.", "① öffnen.")),
        ("{0}, {1}, {0}", "{1}{0}{0}", ("①, ②, ①", "②①①")),
        (
            "a :term:`bit` or :func:`x`",
            "un :term:`octet <bit>` ou :func:`x`",
            ("a ① or ②", "un ① ou ②"),
        ),
        ("**All** of <b>it</b>", "<b>Das</b> alles", ("All of it", "Das alles")),
        ("no marks", "keine", ("no marks", "keine")),
        ("a :term:`x`, :term:`y`", "b :term:`p` :term:`q`", ("a ①, ②", "b ① ②")),
        ("see https://a.b/en", "siehe https://a.b/de", ("see ①", "siehe ①")),
        (
            "<li>One {0}</li><li>two</li>",
            "<li>Eins</li><li>zwei {0}</li>",
            ("One ① two", "Eins zwei ①"),
        ),
        ("see :term:`x`", "siehe :doc:`x`", None),
        ("{0}", f"{{0}} {PLACEHOLDER_TOKENS[3]}", None),
        ("Open {0}.", "Öffnen.", None),
        ("Open it.", "{0} öffnen.", None),
        ("{0} {0}", "{0}", None),
        ("{0} and %s", "{0} und {0}", None),
        (f"{PLACEHOLDER_TOKENS[3]} and {{0}}", "{0}", None),
    ],
)
def test_masked_pairs_by_hand(source: str, target: str, seen: tuple[str, str] | None) -> None:
    shown = str.maketrans("①②", PLACEHOLDER_TOKENS[:2])
    assert with_shared_tokens(source, target) == (
        seen and (seen[0].translate(shown), seen[1].translate(shown))
    )


def test_pairs_that_differ_are_left_out_and_counted() -> None:
    pairs = [Pair("a {0}", "b {0}", Origin("f", 1)), Pair("a {0}", "b", Origin("f", 2))]
    report = Cleaning()
    assert [
        pair.origin.line for pair in masked_pairs(pairs, DataConfig(placeholders="masked"), report)
    ] == [1]
    assert report.lines == {PLACEHOLDERS_DIFFER: [Origin("f", 2)]}


def assembled(text: str, *translations: str) -> Translation:
    plan = Plan([text], "en", placeholder_tokens=True)
    return plan.assemble([Translation(each, -1.0, ()) for each in translations])[0]


def test_invented_tokens_are_removed_and_flagged() -> None:
    assert assembled("Open {0}.", f"Öffne {A} {B}.", "Öffne.").text.replace("{0}", "") in (
        "Öffne .",
        " Öffne.",
        "Öffne.",
    )
    made = assembled("Open it.", f"Öffne {C} es{B}.")
    assert (made.text, made.flags) == ("Öffne es.", (LOST,))
    assert stray_tokens(f"{A} a", f"b {A} {B}{C}") == [Patch(3, 5, ""), Patch(5, 6, "")]


@pytest.mark.parametrize(
    ("source", "target", "same"),
    [
        ("a", "b", True),
        (f"{A} a {B}", f"{B}{A}", True),
        (f"{A} {A}", A, False),
        (A, B, False),
        ("a", f"b {A}", False),
    ],
)
def test_texts_may_have_the_same_tokens(source: str, target: str, same: bool) -> None:
    assert have_same_tokens(source, target) is same


def test_tokens_are_used_again_if_a_text_has_more_placeholders() -> None:
    masked = with_tokens(mask(" ".join(f"{{{number}}}" for number in range(40))))
    assert masked.text.split() == [*PLACEHOLDER_TOKENS, *PLACEHOLDER_TOKENS[:8]]


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_tokens_are_pieces_by_themselves(joint: bool, kind: str, tmp_path: Path) -> None:
    texts = [f"a dog {A} runs ({B}) {word}" for word in ("here", "there", "fast", "home") * 5]
    tokenizer = Tokenizer.train(
        texts, texts, vocab_size=360, joint=joint, kind=kind, placeholder_tokens=PLACEHOLDER_TOKENS
    )  # type: ignore[arg-type]
    tokenizer.save(tmp_path)
    loaded = Tokenizer.load(tmp_path)
    assert loaded.has_placeholder_tokens and loaded.target_symbols() == {}
    for text in (f"xx{A}yy {C}, ({B}) {PLACEHOLDER_TOKENS[31]}", A, f"a{A}{A}b"):
        [ids] = loaded.encode_target([text])
        assert loaded.decode([ids]) == [text]
        pieces = loaded.target.pieces(ids)
        assert [piece for piece in pieces if set(piece) & set(PLACEHOLDER_TOKENS)] == [
            c for c in text if c in PLACEHOLDER_TOKENS
        ]
    assert not Tokenizer.train(texts, texts, vocab_size=360, joint=joint).has_placeholder_tokens


PO = 'msgid ""\nmsgstr "Language: de\\n"\n\n' + "\n".join(
    f'msgid "word{n} and {{name}} see ``code{n}``"\nmsgstr "``code{n}`` und {{name}} sehen wort{n}"\n'
    for n in range(60)
)


def prepared(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str], *more: object
) -> tuple[int, str]:
    arguments = ("--from", "en", "--to", "de", "--out", folder / "data")
    options = (
        ["data.holdout=5"] if "--vocabulary" in more else ["data.holdout=5", "data.vocab_size=340"]
    )
    status, _, said = run(capsys, "prepare", "--train", folder / name, *arguments, *options, *more)
    return status, said


def test_documents_are_trained_on_masked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.po").write_text(PO + '\nmsgid "only {here}"\nmsgstr "nur"\n')
    assert prepared(tmp_path, "a.po", capsys) == (
        0,
        "Reading the corpus, learning the vocabulary …\n",
    )
    data = open_prepared(tmp_path / "data")
    assert data.facts.options["data.placeholders"] == "masked"
    assert data.facts.left_out == {PLACEHOLDERS_DIFFER: 1}
    assert data.tokenizer.has_placeholder_tokens
    for index in range(len(data.mixture)):
        assert data.tokenizer.decode(data.mixture.targets(np.array([index])))[0].startswith(
            f"{B} und {A} sehen wort"
        )
    assert all(f" and {A} see {B}" in pair.source for pair in data.valid())


def test_a_pair_is_no_repetition_of_one_that_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoilt = '\nmsgid "Delete {0} now."\nmsgstr "Lösche {9} {8} jetzt."\n'
    spoilt += '\nmsgid "Delete {1} now."\nmsgstr "Lösche {1} jetzt."\n'
    (tmp_path / "a.po").write_text(PO + spoilt, encoding="utf-8")
    assert prepared(tmp_path, "a.po", capsys, "data.rules=near-duplicate")[0] == 0
    left_out = open_prepared(tmp_path / "data").facts.left_out
    assert left_out == {PLACEHOLDERS_DIFFER: 1, "near-duplicate": 59}, (
        "those of PO differ only in digits"
    )


def test_text_is_trained_on_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.tsv").write_text("".join(f"word{n} {{0}}\twort{n} {{0}}\n" for n in range(60)))
    assert prepared(tmp_path, "a.tsv", capsys)[0] == 0
    kept = open_prepared(tmp_path / "data")
    assert (
        kept.facts.options["data.placeholders"] == "kept"
        and not kept.tokenizer.has_placeholder_tokens
    )
    before = (tmp_path / "data").rename(tmp_path / "before")
    status, said = prepared(tmp_path, "a.tsv", capsys, "data.placeholders=masked")
    assert status == 0 and open_prepared(tmp_path / "data").tokenizer.has_placeholder_tokens
    for vocabulary, asked in ((before, "masked"), (tmp_path / "data", "kept")):
        status, said = prepared(
            tmp_path, "a.tsv", capsys, "--vocabulary", vocabulary, f"data.placeholders={asked}"
        )
        assert (
            status == 2 and f"data.placeholders={'kept' if asked == 'masked' else 'masked'}" in said
        )


def test_prepared_corpora_of_earlier_versions_have_no_tokens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Folders that an earlier version wrote don't have the option."""
    (tmp_path / "a.tsv").write_text("".join(f"word{n}\twort{n}\n" for n in range(60)))
    assert prepared(tmp_path, "a.tsv", capsys)[0] == 0
    facts = json.loads((tmp_path / "data" / "preparation.json").read_text())
    assert facts["options"].pop("data.placeholders") == "kept"
    with publish(tmp_path / "before") as folder:
        shutil.copytree(tmp_path / "data", folder, dirs_exist_ok=True)
        (folder / "manifest.json").unlink()
        (folder / "preparation.json").write_text(json.dumps(facts))
    before = open_prepared(tmp_path / "before")
    assert (
        "data.placeholders" not in before.facts.options
        and not before.tokenizer.has_placeholder_tokens
    )
    (tmp_path / "data").rename(tmp_path / "now")
    assert prepared(tmp_path, "a.tsv", capsys, "--vocabulary", tmp_path / "before")[0] == 0
    assert open_prepared(tmp_path / "data").facts.options["data.placeholders"] == "kept"


def test_translations_of_a_teacher_are_not_damaged_by_their_tokens(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("".join(f"word{n} {{0}}\twort{n} {{0}}\n" for n in range(60)))
    corpora = (CorpusConfig((str(tmp_path / "a.tsv"),)),)
    data = DataConfig(
        corpora=corpora,
        placeholders="masked",
        rules=("characters",),
        holdout=0,
        source="en",
        target="de",
    )
    same = {"": lambda pairs, _: pairs}
    found = prepare_rewritten(data, tmp_path / "data", same, vocab_size=lambda _: 300)
    assert found.facts.pairs == 60


def test_score_masks_placeholders_like_training(tmp_path, capsys):
    """Whether it is written with the ones or with the others, and `score` says what `evaluate` says."""
    model, written = (
        make_model(
            tmp_path / "model",
            {"data.placeholders": "masked"},
            placeholder_tokens=PLACEHOLDER_TOKENS,
        ),
        [],
    )
    for name, text in {
        "raw.en": "a b {0}",
        "raw.de": "{0} b a",
        "seen.en": f"a b {A}",
        "seen.de": f"{A} b a",
    }.items():
        (tmp_path / name).write_text(text + "\n")
    for name in ("raw", "seen"):
        files = tmp_path / f"{name}.en", tmp_path / f"{name}.de"
        status, found, _ = run(capsys, "score", model, *files, "--json")
        measured = json.loads(run(capsys, "evaluate", model, *files, "--json")[1])["perplexity"]
        written.append(json.loads(found))
        assert status == 0 and measured["num_tokens"] == written[-1]["num_tokens"]
    assert written[0] == written[1]


def test_a_server_keeps_what_the_command_keeps(tmp_path: Path) -> None:
    """Which tries the beam's other hypotheses where the best one lacks something."""
    model = make_model(
        tmp_path / "model", {"data.placeholders": "masked"}, placeholder_tokens=PLACEHOLDER_TOKENS
    )
    translator = load(model, engine="torch")
    texts = [
        f"<b>{text}</b> {{{number}}}" for number, text in enumerate(reverse_texts(30, seed=9)[0])
    ]

    async def ask(order: Order) -> list[Translation]:
        service = Service(store_of(translator), Limits())
        service.batcher.start()
        try:
            async with service.store.open([service.catalogues.default.route("en", "de")]) as [
                opened
            ]:
                return await service.translate(texts, opened, order)
        finally:
            await service.batcher.stop()

    for alternatives in (0, 2):
        expected = translator.translate(texts, sentences=True, n_best=alternatives + 1)
        options = TranslationOptions(alternatives + 1, sentences=True)
        found = asyncio.run(ask(Order(options)))
        assert [each.text for each in found] == [each.text for each in expected]
        assert [[each.text for each in one.alternatives] for one in found] == [
            [each.text for each in one.alternatives] for one in expected
        ]
