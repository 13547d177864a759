"""Python, the command line, the server and a document give the same translations for the same texts."""

import asyncio
import json
import re
from pathlib import Path

import polib
import pytest

from command_line import run
from corpora import reverse_texts
from models import make_model
from servers import store_of
from transduce.config.schema import PLACEHOLDER_TOKENS
from transduce.decoding.loading import load
from transduce.decoding.types import (
    Guide,
    Guides,
    MemoryMatch,
    Term,
    Translation,
    TranslationOptions,
)
from transduce.tokens.vocabulary import MATCH_MARK, TERM_MARKS
from transduce.wings.serving.limits import Limits
from transduce.wings.serving.service import Order, Service
from variants import slow

PLACEHOLDERS = ["{0}", "%(name)s", "<b>{1}</b>", "``code``", ""]
TEXTS = [
    f"{text} {PLACEHOLDERS[i % 5]}".strip() for i, text in enumerate(reverse_texts(20, seed=4)[0])
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that was trained on masked placeholders."""
    folder = tmp_path_factory.mktemp("doors") / "model"
    return make_model(
        folder,
        {"data.placeholders": "masked"},
        placeholder_tokens=PLACEHOLDER_TOKENS,
        marks=[MATCH_MARK, *TERM_MARKS],
    )


def served(
    model: Path, texts: list[str], guides: Guides = None, **options: object
) -> list[Translation]:
    """What a server answers."""
    translator = load(model, engine="torch")

    async def ask() -> list[Translation]:
        service = Service(store_of(translator), Limits())
        route = service.catalogues.default.route("en", "de")
        service.batcher.start()
        try:
            order = Order(TranslationOptions(sentences=True, **options))
            async with service.store.open([route]) as [opened]:
                return await service.translate(texts, opened, order, guides=guides)
        finally:
            await service.batcher.stop()

    return asyncio.run(ask())


@pytest.mark.parametrize(
    "sentences", [slow(False), True], ids=["one sentence", "several sentences"]
)
def test_command_library_server_and_documents_translate_alike(sentences, model, tmp_path, capsys):
    """Texts of several sentences are split by the command line and in Python if asked for, elsewhere always."""
    texts = [f"{text}. {text}?" for text in TEXTS] if sentences else TEXTS
    in_python = [
        each.text for each in load(model, engine="torch").translate(texts, sentences=sentences)
    ]
    assert len(set(in_python)) > len(texts) / 2
    for text, translation in zip(texts, in_python, strict=True):
        assert all(
            text.count(each) == translation.count(each)
            for each in ("{0}", "%(name)s", "``code``", "<b>")
        )

    (tmp_path / "lines.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    arguments = ["translate", model, "--engine", "torch", "--input"]
    status, output, _ = run(
        capsys, *arguments, tmp_path / "lines.txt", *(["--sentences"] if sentences else [])
    )
    assert status == 0 and output.split("\n")[:-1] == in_python

    assert [each.text for each in served(model, texts)] == in_python

    document = polib.POFile()
    document.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
    document.extend(polib.POEntry(msgid=text, msgstr="") for text in texts)
    document.save(str(tmp_path / "texts.po"))
    status, _, _ = run(capsys, *arguments, tmp_path / "texts.po", "--output", tmp_path / "out.po")
    assert (
        status == 0
        and [entry.msgstr for entry in polib.pofile(str(tmp_path / "out.po"))] == in_python
    )


class Similar:
    """A memory with two similar units for each text; the second one has another placeholder."""

    def matches(self, texts: list[str], direction: str) -> list[tuple[MemoryMatch, ...]]:
        assert direction == "en-de"
        return [
            (
                MemoryMatch(f"{text} ka", f"zu {text}", 0.7, "m:1"),
                MemoryMatch(f"{text} ka {{other}}", f"zu {{other}} {text}", 0.6, "m:2"),
            )
            for text in texts
        ]


@pytest.mark.parametrize("ending", ["", "\nka lo mi"], ids=["one sentence", "several sentences"])
def test_library_and_server_use_similar_texts_alike(ending, model):
    texts = [f"{text}{ending}" for text in TEXTS]
    assert len({*texts}) == len(texts)
    translator = load(model, engine="torch")
    plain = [each.text for each in translator.translate(texts, sentences=True)]
    found = translator.translate(texts, sentences=True, translation_memory=Similar())
    guided = [each.text for each in found]
    assert sum(map(str.__ne__, guided, plain)) > len(texts) / 2
    assert all(
        {*re.findall(r"[{%<`]\S+", text)} == {*re.findall(r"[{%<`]\S+", out)}
        for text, out in zip(texts, guided, strict=True)
    )
    assert [each.text for each in served(model, texts, translation_memory=Similar())] == guided


@pytest.mark.parametrize(
    "exact", [pytest.param(False, marks=pytest.mark.slow), True], ids=["inflected", "exact"]
)
def test_command_library_and_server_use_a_glossary_alike(exact, model, tmp_path, capsys):
    pytest.importorskip("simplemma", reason="pip install 'transduce[terms]'")
    some = TEXTS[:8]  # the constrained search is slow
    terms = (Term("ka", "zu"), Term("Lo", "fe"), Term("mi", "Gabel"))
    translator = load(model, engine="torch")
    options = {"glossary": terms, "glossary_exact": exact}
    found = translator.translate(some, sentences=True, **options)
    assert {term.state for each in found for term in each.terms} >= {"missed", "kept"}
    texts = [each.text for each in found]
    assert texts != [each.text for each in translator.translate(some, sentences=True)]
    assert texts != [
        each.text
        for each in translator.translate(
            some, sentences=True, glossary=terms, glossary_exact=not exact
        )
    ]
    answers = served(model, some, **options)
    assert [(each.text, each.terms) for each in answers] == [
        (each.text, each.terms) for each in found
    ]
    (tmp_path / "lines.txt").write_text("".join(f"{text}\n" for text in some), encoding="utf-8")
    (tmp_path / "terms.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in terms))
    more = ["--glossary-exact"] if exact else []
    status, output, _ = run(
        capsys,
        *["translate", model, "--engine", "torch", "--sentences", "--json", *more],
        *["--input", tmp_path / "lines.txt", "--glossary", tmp_path / "terms.tsv"],
    )
    lines = list(map(json.loads, output.splitlines()))
    assert status == 0 and [line["text"] for line in lines] == texts
    assert [line.get("terms", []) for line in lines] == [
        [term._asdict() for term in each.terms] for each in found
    ]


def test_doors_continue_prefixes_alike(model, tmp_path, capsys):
    texts = ["ka lo mi", "ka {0} lo", "nu so. ti va ka. re!", "%s", "lo"]
    prefixes = ["xü", "zu {0", "po ya. d", "z", ""]
    suffixes = ["", "", "", "", " ga"]
    guides = [Guide(prefix=a, suffix=b) for a, b in zip(prefixes, suffixes, strict=True)]
    in_python = [
        each.text
        for each in load(model, engine="torch").translate(
            texts, prefixes=prefixes, suffixes=suffixes, sentences=True
        )
    ]
    assert all(guide.fits(text) for guide, text in zip(guides, in_python, strict=True))
    assert [each.text for each in served(model, texts, guides)] == in_python
    for name, lines in (("in", texts), ("begins", prefixes), ("ends", suffixes)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    arguments = ["translate", model, "--engine", "torch", "--sentences", "--input", tmp_path / "in"]
    files = ["--prefixes", tmp_path / "begins", "--suffixes", tmp_path / "ends"]
    status, output, _ = run(capsys, *arguments, *files)
    assert status == 0 and output.split("\n")[:-1] == in_python
