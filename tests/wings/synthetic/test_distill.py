"""A teacher's translations become a corpus, whatever interrupts the preparation."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from corpora import reverse_texts
from models import make_model
from transduce import load
from transduce.config.schema import PLACEHOLDER_TOKENS, CorpusConfig, DataConfig
from transduce.decoding.translator import Translator
from transduce.decoding.types import CUT, LOOP
from transduce.inline.placeholder_tokens import have_same_tokens
from transduce.model_folder import describe
from transduce.preparation.prepared import Prepared
from transduce.system.errors import UserError
from transduce.system.files import digest
from transduce.text.clean import Cleaning
from transduce.text.pairs import Origin, Pair
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.synthetic import distill as distilling
from transduce.wings.synthetic.distill import distill

TEXTS = list(zip(*reverse_texts(40, seed=5), strict=True))


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("teacher") / "model", {"decode.max_extra_tokens": 2})


@pytest.fixture(scope="module")
def translator(teacher: Path) -> Translator:
    return load(teacher, engine="torch")


PLAIN = {"keep_original": False, "threads": 1}


def data_of(folder: Path, rows: list[tuple[str, str]], **options: object) -> DataConfig:
    (folder / "a.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in rows))
    given = {"corpora": (CorpusConfig((str(folder / "a.tsv"),)),), "holdout": 0, "max_ratio": 0}
    return DataConfig(**{"source": "en", "target": "de", **given, **options})


def learnt(found: Prepared) -> list[tuple[str, str]]:
    places = np.arange(len(found.mixture))
    sources = found.tokenizer.source.decode([row.tolist() for row in found.mixture.sources(places)])
    targets = found.tokenizer.target.decode([row.tolist() for row in found.mixture.targets(places)])
    return list(zip(sources, targets, strict=True))


@pytest.mark.parametrize("keep_original", [False, True])
def test_targets_are_good_translations_with_the_same_placeholders(
    keep_original, teacher, translator, tmp_path, monkeypatch
):
    monkeypatch.setattr(distilling, "CHUNK", 7)
    long = " ".join(["ka"] * 40)
    rows = [*TEXTS, (long, "zu"), ("ka \ufdd0", "zu")]
    data = data_of(tmp_path, rows, max_length=30, deduplicate=False)
    found = distill(
        {"": translator}, [teacher], data, tmp_path / "out", keep_original=keep_original, threads=2
    )
    sources = [source for source, _ in TEXTS]
    outputs = translator.translate_sentences(sources)
    bad = [bool({CUT, LOOP} & {*each.flags}) for each in outputs]
    expected = []
    for (source, target), output, is_bad in zip(TEXTS, outputs, bad, strict=True):
        expected += [(source, target)] if keep_original else []
        expected += [] if is_bad or not output.text.strip() else [(source, output.text)]
    made = [pair for pair in learnt(found) if "\ufdd0" not in pair[0]]
    assert made == expected and 0 < sum(bad) < len(TEXTS)
    originals = [("ka \ufdd0", "zu")] * keep_original
    assert [pair for pair in learnt(found) if not have_same_tokens(*pair)] == originals
    left_out = found.facts.left_out
    assert left_out["too-long"] == 1
    # Each pair is counted, and each translation.
    counted = (1 + keep_original) * (len(rows) - 1) + 1
    assert found.facts.pairs + sum(left_out.values()) == counted
    assert left_out["cut-off"] in (sum(bad), sum(bad) + 1)
    assert found.tokenizer.models == translator.tokenizer.models
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".lock") == [
        "a.tsv",
        "out",
    ]


def test_other_settings_than_those_of_an_interrupted_call_are_refused(
    teacher, translator, tmp_path, monkeypatch
):
    data = data_of(tmp_path, TEXTS)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("transduce.preparation.prepare.write_store", interrupted)
        with pytest.raises(KeyboardInterrupt):
            distill({"": translator}, [teacher], data, tmp_path / "out", **PLAIN)
    journal = tmp_path / ".out.translations.jsonl"
    lines = journal.read_text().splitlines()
    assert len(lines) == 1 + len(TEXTS)
    call = json.loads(lines[0])
    weights = digest(describe(teacher).weights)
    assert (call["teachers"], call["weights"]) == (str(teacher), weights)
    assert (call["engine"], call["direction"]) == ("torch", str(translator.direction or ""))
    assert call["beam_size"] == translator.config.beam_size
    other = replace(translator, config=replace(translator.config, beam_size=2))
    with pytest.raises(UserError, match="was made with another model, engine, text or options"):
        distill({"": other}, [teacher], data, tmp_path / "out", **PLAIN)
    with pytest.raises(UserError, match="was made with another model, engine, text or options"):
        distill({"": translator}, [teacher, teacher], data, tmp_path / "out", **PLAIN)

    def never(*_: object) -> list[object]:
        raise AssertionError("they are translated")

    with monkeypatch.context() as patch:
        patch.setattr(Translator, "translate_sentences", never)
        found = distill({"": translator}, [teacher], data, tmp_path / "out", **PLAIN)
    assert not journal.exists() and found.facts.pairs > 0
    journal.write_text(lines[0] + "\n")  # as if it had been killed when the corpus was complete
    with pytest.raises(UserError, match="exists already"):
        distill({"": translator}, [teacher], data, tmp_path / "out", **PLAIN)
    assert not journal.exists()


@pytest.mark.parametrize(
    ("max_length", "max_tokens", "kept"),
    [(3, 0, "abc"), (3, 2, "ab"), (2, 9, "ab"), (5, 5, "abcd")],
)
def test_sources_are_as_long_as_the_teacher_can_read(max_length, max_tokens, kept, monkeypatch):
    monkeypatch.setattr(distilling, "CHUNK", 3)
    pairs = [Pair(text, "", Origin("f", i)) for i, text in enumerate(("a", "abcd", "ab", "abc"))]
    lengths = SimpleNamespace(max_tokens=max_tokens, lengths=lambda texts: [*map(len, texts)])
    cleaning = Cleaning()
    found = [
        pair.source for pair in distilling._fitting(iter(pairs), lengths, max_length, cleaning)
    ]
    assert found == [pair.source for pair in pairs if len(pair.source) <= len(kept)]
    assert cleaning.counts.get("too-long", 0) == 4 - len(found)


BOTH = ("en-de", "de-en")


def taught(data: DataConfig, folder: Path, out: Path, **options: object) -> Prepared:
    """The corpus of a student of `data.directions`, with a vocabulary of its own."""
    teacher = load(folder, engine="torch")
    translators = {name: teacher.toward(*name.split("-")) for name in data.directions}
    given = {"own_vocabulary": True, "vocab_size": 300, **options}
    return distill(translators, [folder], data, out, **given)


def multilingual(folder: Path, rows: list[tuple[str, str]], **options: object) -> DataConfig:
    given = {"directions": BOTH, "temperature": 1.0, **options}
    data = data_of(folder, rows, **given)
    return replace(data, corpora=(replace(data.corpora[0], source="en", target="de"),))


def test_a_student_learns_what_the_teacher_says_in_each_direction(imported, tmp_path):
    data = multilingual(tmp_path, TEXTS, deduplicate=False)
    found = taught(data, imported, tmp_path / "out")
    teacher = load(imported, engine="torch")
    expected = []
    faults = Counter[str]()
    for name, side in (("en-de", 0), ("de-en", 1)):
        texts = [row[side] for row in TEXTS]
        outputs = teacher.toward(*name.split("-")).translate(texts)
        for text, each in zip(texts, outputs, strict=True):
            if {CUT, LOOP} & {*each.flags}:
                faults["cut-off"] += 1
            elif not each.text:
                faults["empty"] += 1
            else:
                expected.append((f">>{name[3:]}<<", text, each.text))
    rows = found.mixture.sources(np.arange(len(found.mixture)))
    tags = found.tokenizer.source.pieces([int(row[0]) for row in rows])
    assert [(tag, *pair) for tag, pair in zip(tags, learnt(found), strict=True)] == expected
    assert len(expected) > 20 and found.facts.left_out == faults
    assert not found.tokenizer.is_imported and not found.tokenizer.has_own_tags
    assert found.tokenizer.target.size <= 300
    texts = [text for pair in learnt(found) for text in pair]
    assert found.tokenizer.decode(found.tokenizer.encode_target(texts)) == texts
    more = tmp_path / "more.de"
    more.write_text("".join(f"{target}\n" for _, target in TEXTS[:9]))
    given = {"keep_original": True, "texts": {str(more): "de"}}
    again = taught(data, imported, tmp_path / "again", **given)
    of_more = [pair for pair in learnt(found) if pair[0] in more.read_text().split("\n")]
    both = [*learnt(found), *TEXTS, *((target, source) for source, target in TEXTS), *of_more]
    assert sorted(learnt(again)) == sorted(both)
    assert again.facts.pairs + sum(again.facts.left_out.values()) == 2 * 40 + 9 + 2 * 40


def test_an_interrupted_distillation_of_two_directions_makes_the_same_corpus(
    imported, tmp_path, monkeypatch
):
    data = multilingual(tmp_path, TEXTS)
    monkeypatch.setattr("transduce.wings.synthetic.translations.CHUNK_LINES", 16)
    whole = taught(data, imported, tmp_path / "whole")
    usual = Translator.translate_lines
    calls = []

    def interrupted(translator: Translator, texts: list[str], **options: object) -> object:
        calls.append((str(translator.direction), tuple(texts)))
        if len(calls) == 5:
            raise KeyboardInterrupt
        return usual(translator, texts, **options)

    monkeypatch.setattr(Translator, "translate_lines", interrupted)
    with pytest.raises(KeyboardInterrupt):
        taught(data, imported, tmp_path / "out")
    assert [name for name, _ in calls] == ["en-de"] * 3 + ["de-en"] * 2
    resumed = taught(data, imported, tmp_path / "out")
    assert [each for each in calls if calls.count(each) > 1] == [calls[4]] * 2, "nothing else"
    for file in (path for path in whole.folder.rglob("*") if path.is_file()):
        if file.name not in ("manifest.json", "preparation.json"):  # with the seconds
            assert (
                file.read_bytes() == (resumed.folder / file.relative_to(whole.folder)).read_bytes()
            )
    assert replace(resumed.facts, seconds=0) == replace(whole.facts, seconds=0)


def test_no_placeholder_is_lost(teacher, tmp_path):
    """The teacher does not know the signs of placeholders, and the student has tokens for them or not."""
    marks = ("{0}", "%s", "https://example.com/a")
    rows = [
        (source.replace(" ", f" {marks[i % 3]} ", 1), f"{marks[i % 3]} {target}")
        for i, (source, target) in enumerate(TEXTS)
    ]
    for placeholders in ("kept", "masked"):
        data = data_of(tmp_path, rows, placeholders=placeholders, deduplicate=False)
        found = distill(
            {"": load(teacher, engine="torch")},
            [teacher],
            data,
            tmp_path / placeholders,
            own_vocabulary=True,
            vocab_size=400,
        )
        ours = ["\ufdd0"] if placeholders == "masked" else marks
        counts = [[(s.count(each), t.count(each)) for each in ours] for s, t in learnt(found)]
        assert all(one == other for each in counts for one, other in each)
        assert sum(one for each in counts for one, _ in each) == len(counts) > 0
        assert found.facts.pairs + sum(found.facts.left_out.values()) == len(rows)
        assert found.facts.options["data.placeholders"] == placeholders
        assert found.tokenizer.has_placeholder_tokens == (placeholders == "masked")


def test_what_a_student_can_not_have_is_refused(imported, tmp_path):
    data = multilingual(tmp_path, TEXTS)
    with pytest.raises(UserError, match="tags for the languages of both texts") as error:
        taught(data, imported, tmp_path / "out", own_vocabulary=False)
    assert error.value.hint and error.value.hint.options == ("teacher_vocabulary",)
    for name, value in (("symbols", True), ("replay", "a")):
        with pytest.raises(UserError, match=f"data.{name} is not for distillation"):
            taught(replace(data, **{name: value}), imported, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_student_masks_placeholders_if_its_teacher_does():
    tokens = Tokenizer.train(["ka"], ["zu"], vocab_size=400, placeholder_tokens=PLACEHOLDER_TOKENS)
    plain = Tokenizer.train(["ka"], ["zu"], vocab_size=290)
    for teacher, asked, chosen in (
        (tokens, "auto", "masked"),
        (tokens, "kept", "kept"),
        (plain, "auto", "auto"),  # then documents decide
        (plain, "masked", "masked"),
    ):
        data = DataConfig(placeholders=asked)
        checked = distilling._checked(data, teacher, own_vocabulary=True)
        assert checked.placeholders == chosen
