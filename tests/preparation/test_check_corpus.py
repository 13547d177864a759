"""Tests of transduce/preparation/check_corpus.py."""

from itertools import chain
from pathlib import Path

import pytest

from command_line import run
from transduce.config.schema import CorpusConfig, DataConfig
from transduce.preparation import check_corpus, staging
from transduce.preparation.check_corpus import _sample, check_corpora
from transduce.preparation.passes import read_part
from transduce.preparation.staging import StagedPairs
from transduce.system.errors import NotInstalledError, UserError
from transduce.text.holdout import Part
from transduce.text.pairs import Origin, Pair
from transduce.wings.phrasebook.examples import examples

PAIRS = [(example.english, example.german) for example in examples("train", 300)]


def prepared(
    capsys, folder: Path, pairs, names=("a.en", "a.de"), codes=("en", "de"), options=()
) -> str:
    """What `transduce prepare` prints about a corpus, on one line."""
    files = [folder / name for name in names]
    for file, texts in zip(files, zip(*pairs, strict=True), strict=True):
        file.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    command = ["prepare", "--out", folder / "out", "--from", codes[0], "--to", codes[1]]
    status, _, said = run(capsys, *command, "--train", *files, "data.vocab_size=400", *options)
    assert status == 0, said
    return " ".join(said.split())


def test_a_usual_corpus_gets_no_warning(tmp_path, capsys):
    assert "Warning" not in prepared(capsys, tmp_path, PAIRS)


def test_a_third_language_is_warned_of(tmp_path, capsys):
    pytest.importorskip("py3langid")
    said = prepared(capsys, tmp_path, PAIRS, ("a.en", "a.de"), ("en", "fr"))
    assert f"{tmp_path / 'a.de'} is read as fr, but its name says de." in said
    assert "100% of the texts in fr look like de." in said


def test_symbols_are_in_no_language(tmp_path, capsys):
    symbols = [(english, "NOUN VERB DET , ADJ .") for english, _ in PAIRS]
    options = ["data.symbols=true", "data.joint=false", "data.holdout=0"]
    assert "Warning" not in prepared(capsys, tmp_path, symbols, options=options)


def test_half_a_corpus_in_another_language_is_warned_of(tmp_path, capsys):
    pytest.importorskip("py3langid")
    mixed = [*PAIRS[:150], *((english, f"{english} Yes.") for english, _ in PAIRS[150:])]
    said = prepared(capsys, tmp_path, mixed)
    assert "of the texts in de look like en." in said and "texts in en" not in said


def test_faults_of_the_corpus_are_warned_of_before_the_vocabulary_is_learned(tmp_path, capsys):
    marked = [(english, f"<s> {german} </s>") for english, german in PAIRS]
    said = prepared(capsys, tmp_path, marked)
    assert "100.0% of the targets have marks of sentences (<s>, </s>), for example" in said
    assert said.count("Warning") == 1


@pytest.mark.parametrize("names", [("a.src", "a.tgt"), ("a.eng", "a.deu"), ("a.txt", "b.txt")])
def test_other_names_say_nothing_about_languages(names, tmp_path, capsys):
    assert "but its name says" not in prepared(capsys, tmp_path, PAIRS, names)


def staged(folder: Path, pairs, number: int = 0, file: str = "f") -> StagedPairs:
    data = DataConfig(deduplicate=False, max_ratio=0, holdout=0, placeholders="kept")
    rows = [Pair(*pair, Origin(file, line)) for line, pair in enumerate(pairs, 1)]
    return read_part(iter(rows), data, folder / str(number))


def warnings(capsys, data: DataConfig, *corpora: StagedPairs) -> list[str]:
    capsys.readouterr()
    check_corpora(data, [[part] for part in corpora])
    said = " ".join(capsys.readouterr().err.split())
    return said.split("Warning: ")[1:]


LONG = [pair for pair in PAIRS if min(map(len, pair)) > 20][:40]
ENGLISH, GERMAN = (list(side) for side in zip(*LONG, strict=True))
FRENCH = ["Le chien court dans le parc vert avec les enfants."] * len(LONG)


def test_sides_in_another_language_of_the_model(tmp_path, capsys):
    """Swapped sides are refused; one wrong side is refused only if the model has several directions."""
    pytest.importorskip("py3langid")
    right = staged(tmp_path, LONG, 0)
    swapped = staged(tmp_path, [pair[::-1] for pair in LONG], 1)
    german = staged(tmp_path, zip(GERMAN, reversed(GERMAN), strict=True), 2)
    english = staged(tmp_path, zip(ENGLISH, reversed(ENGLISH), strict=True), 3)
    one = DataConfig(source="en", target="de", corpora=(CorpusConfig(("a", "b")),))
    assert warnings(capsys, one, right) == []
    refused = r"^a \+ b: \d+% of the texts in en look like another language of the model\. Check"
    with pytest.raises(UserError, match=refused):
        check_corpora(one, [[swapped]])
    for wrong, code in ((german, "en"), (english, "de")):
        [said] = warnings(capsys, one, wrong)
        assert f"of the texts in {code} look like another language of the model. Check" in said
    corpora = (
        CorpusConfig(("a", "b"), source="en", target="de"),
        CorpusConfig(("c",), source="en", target="fr"),
    )
    several = DataConfig(corpora=corpora, directions=("en-de", "en-fr"))
    french = staged(tmp_path, zip(ENGLISH, FRENCH, strict=True), 4)
    assert warnings(capsys, several, right, french) == []
    with pytest.raises(UserError, match=refused):
        check_corpora(several, [[german], [french]])
    with pytest.raises(UserError, match=r"^c: \d+% of the texts in fr look like another"):
        check_corpora(several, [[right], [right]])
    symbols = DataConfig(**(vars(one) | {"symbols": True}))
    assert warnings(capsys, symbols, swapped) == []


def test_names_are_compared_with_the_languages_of_their_corpus(tmp_path, capsys):
    part = staged(tmp_path, PAIRS[:5])
    for names, languages, said in (
        (("a.en", "a.fr"), ("en", "de"), ["a.fr is read as de, but its name says fr."]),
        (
            ("a.fr", "a.it"),
            ("en-US", "de"),
            [
                "a.fr is read as en-US, but its name says fr.",
                "a.it is read as de, but its name says it.",
            ],
        ),
        (("a.de", "a.en"), ("de-AT", "en"), []),
        (("a.yue", "a.en"), ("zh", "en"), []),  # a code of three letters
        (("a.zh", "a.en"), ("yue", "en"), []),
        (("a.en.tsv",), ("de", "fr"), []),
    ):
        corpus = CorpusConfig(names, source=languages[0], target=languages[1])
        data = DataConfig(source="de", target="en", corpora=(corpus,))
        assert [each.strip() for each in warnings(capsys, data, part)] == said


def test_faults_are_checked_only_if_their_wing_is_installed(tmp_path, capsys, monkeypatch):
    marked = staged(tmp_path, [(f"<s> {source} </s>", target) for source, target in LONG])
    data = DataConfig(source="en", target="de", corpora=(CorpusConfig(("a", "b")),))
    [said] = warnings(capsys, data, marked)
    assert "of the sources have marks of sentences" in said
    assert said.endswith("`transduce doctor --fix` can repair many such faults.")
    assert "for example the source of f, line 1." in said

    def missing(_: str) -> None:
        raise NotInstalledError("not here")

    monkeypatch.setattr(check_corpus, "option", missing)
    assert warnings(capsys, data, marked) == []


@pytest.mark.parametrize(
    ("pairs", "lines"),
    [
        # 12 blocks of 10 pairs: every second one, and of each 5, since 4 would be at most wanted.
        ([12 * 10], [[20 * block + row for row in (1, 3, 5, 7, 9)] for block in range(6)]),
        (
            [3 * 10],
            [[10 * block + row for row in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)] for block in range(3)],
        ),
        (
            [4 * 10, 2],
            [[10 * block + row for row in (1, 3, 5, 7, 9)] for block in range(4)] + [[1, 2]],
        ),
        ([0], []),
    ],
)
def test_pairs_are_examined_at_equal_distances(tmp_path, monkeypatch, pairs, lines):
    monkeypatch.setattr(staging, "STAGED_BLOCK_PAIRS", 10)
    monkeypatch.setattr(check_corpus, "EXAMINED_PAIRS", 20)
    monkeypatch.setattr(check_corpus, "EXAMINED_BLOCKS", 5)
    parts = [
        staged(tmp_path, [(f"s{i}", f"t{i}") for i in range(1, count + 1)], number, f"f{number}")
        for number, count in enumerate(pairs)
    ]
    found = list(_sample(parts))
    assert [pair.origin.line for pair in found] == [*chain.from_iterable(lines)]
    assert all(pair[:2] == (f"s{pair.origin.line}", f"t{pair.origin.line}") for pair in found)
    assert [pair.origin.file for pair in found[-1:]] == [f"f{len(pairs) - 1}"] * bool(found)
    for part in parts:
        part.parts[:1] = Part.HELD_OUT
    again = [pair.origin.line for pair in _sample(parts)]
    assert 1 not in again and len(again) >= len(found) - len(parts)
