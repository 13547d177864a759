"""Tests of transduce/preparation/check_corpus.py."""

from pathlib import Path

import pytest

from command_line import run
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
