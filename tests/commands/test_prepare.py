"""Tests of transduce/commands/prepare.py."""

import json
import re

import transduce
from small_corpus import SHORT, TINY, lines, output, texts_of
from transduce.preparation.prepared import open_prepared


def test_prepare_says_what_it_did(place, tmp_path, capsys):
    (tmp_path / "bad.tsv").write_text((place / "train.tsv").read_text() + "ka\t\n \tzu\n")
    said = output(
        capsys, "prepare", "--train", tmp_path / "bad.tsv", "--out", tmp_path / "data", TINY[0]
    )
    first, second = said.splitlines()
    assert first.startswith("270 pairs to train on, 30 held out, ") and ", 300 pieces in " in first
    assert (
        second == f"pairs left out by the rule empty: 2 (listed in {tmp_path}/data/left-out.jsonl)"
    )
    left_out = [json.loads(line)["line"] for line in lines(tmp_path / "data/left-out.jsonl")]
    assert left_out == [301, 302]


def test_a_distilled_corpus_has_the_translations_as_targets(place, tmp_path, capsys):
    corpus = "--train", place / "train.tsv", "--engine", "torch", "data.holdout=20"
    said = output(capsys, "distill", place / "one", *corpus, "--out", tmp_path / "data")
    assert re.match(r"\d+ pairs to train on, 20 held out", said)
    output(
        capsys,
        "prepare",
        *corpus[:2],
        corpus[-1],
        "--vocabulary",
        place / "one",
        "--out",
        tmp_path / "plain",
    )
    original = texts_of(tmp_path / "plain")
    sources = [source for source, _ in original]
    translations = dict(
        zip(sources, transduce.load(place / "one", engine="torch").translate(sources), strict=True)
    )
    left_out = json.loads((tmp_path / "data/preparation.json").read_text())["left_out"]
    assert (
        set(left_out) <= {"cut-off", "empty", "ratio"} and sum(left_out.values()) < len(sources) / 2
    )
    found = texts_of(tmp_path / "data")
    dropped = [open_prepared(tmp_path / name).facts.dropped for name in ("plain", "data")]
    assert len(found) == len(sources) - sum(left_out.values()) - (dropped[1] - dropped[0])
    assert all(target == translations[source].text for source, target in found)
    assert (tmp_path / "data/valid.jsonl").read_bytes() == (
        tmp_path / "plain/valid.jsonl"
    ).read_bytes()
    output(capsys, "distill", place / "one", *corpus, "--out", tmp_path / "both", "--keep-original")
    assert set(texts_of(tmp_path / "both")) == set(original) | set(found)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["both", "data", "plain"]
    output(
        capsys,
        "train",
        "--train",
        tmp_path / "data",
        "--out",
        tmp_path / "student",
        *SHORT[1:],
        "train.steps=2",
    )
