"""Tests of transduce/commands/score.py."""

import json
import math
import subprocess
import sys

import pytest

import transduce
from small_corpus import evaluated, lines, output
from transduce import model_folder


def test_standard_input_may_stand_for_any_file(place, capsys):
    target = place / "test.tgt"
    command = [sys.executable, "-m", "transduce", "score", str(place / "one"), "-", str(target)]
    with (place / "test.src").open("rb") as source:
        piped = subprocess.run(command, stdin=source, capture_output=True, text=True, check=False)
    assert piped.returncode == 0, piped.stderr
    scores = output(capsys, "score", place / "one", place / "test.src", target).split()
    assert [float(line) for line in piped.stdout.split()] == [
        pytest.approx(float(score), abs=1e-3) for score in scores
    ]


def test_score_gives_the_perplexity_of_evaluate(place, capsys):
    files = place / "test.src", place / "test.tgt"
    numbers = [float(line) for line in output(capsys, "score", place / "one", *files).splitlines()]
    rows = [
        json.loads(line)
        for line in output(capsys, "score", place / "one", *files, "--json").splitlines()
    ]
    assert numbers == pytest.approx([row["log_prob"] for row in rows], abs=1e-4)
    tokens = sum(row["num_tokens"] for row in rows)
    found = evaluated(capsys, place / "one", *files)["perplexity"]
    assert found["num_tokens"] == tokens
    assert found["per_token"] == pytest.approx(
        math.exp(-sum(row["log_prob"] for row in rows) / tokens), rel=1e-6
    )


def test_score_of_a_translation_is_its_reported_score(place, tmp_path, capsys):
    sources, tokenizer = lines(place / "test.src"), model_folder.load(place / "one").tokenizer
    rows = transduce.load(place / "one", engine="torch").translate([*sources, ""])
    canonical = [
        (source, row)
        for source, row in zip([*sources, ""], rows, strict=True)
        if tuple(tokenizer.target.pieces(tokenizer.encode_target([row.text])[0])) == row.tokens
    ]
    assert len(canonical) > 6
    (tmp_path / "a").write_text("".join(f"{source}\n" for source, _ in canonical))
    (tmp_path / "b").write_text("".join(f"{row.text}\n" for _, row in canonical))
    found = output(
        capsys, "score", place / "one", tmp_path / "a", tmp_path / "b", "--json"
    ).splitlines()
    assert [json.loads(line)["score"] for line in found] == pytest.approx(
        [row.score for _, row in canonical], abs=1e-4
    )
    assert json.loads(found[-1]) == {
        "log_prob": 0.0,
        "num_tokens": 0,
        "score": 0.0,
        "confidence": None,
        "words": [],
        "detached": False,
    }
