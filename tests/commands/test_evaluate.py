"""Tests of transduce/commands/evaluate.py."""

import json
import re
import shutil

import pytest

from command_line import run
from models import make_model
from small_corpus import evaluated, lines, output
from transduce.decoding.translator import Translator
from transduce.evaluation.scores import describe_p


def test_evaluate_scores_what_translate_writes(place, tmp_path, capsys):
    written, translated, reference = (
        tmp_path / "written",
        tmp_path / "translated",
        place / "test.tgt",
    )
    found = evaluated(capsys, place / "one", place / "test.src", reference, "--output", written)
    command = ["translate", place / "one", "--input", place / "test.src", "--engine", "torch"]
    output(capsys, *command, "--output", translated)
    assert written.read_bytes() == translated.read_bytes()
    again = evaluated(capsys, "--hypothesis", translated, reference)
    assert again == {"sentences": 12, "scores": found["scores"]}
    (tmp_path / "both.tsv").write_text("one\teins\n" * 12)
    status, _, said = run(capsys, "evaluate", "--hypothesis", translated, tmp_path / "both.tsv")
    assert status == 2 and "both.tsv is not plain text" in said
    assert [each["name"] for each in found["scores"]] == ["BLEU", "chrF2", "TER"]
    metrics = json.loads(output(capsys, "info", place / "one", "--json"))["metrics"]
    valid = evaluated(capsys, place / "one", place / "valid.src", place / "valid.tgt")
    assert valid["perplexity"]["per_token"] == pytest.approx(
        metrics["validation"]["perplexity"], rel=1e-6
    )


@pytest.mark.parametrize(("count", "is_warned"), [(29, True), (30, False)])
def test_intervals_of_few_sentences_come_with_a_warning(count, is_warned, tmp_path, capsys):
    for name in ("output.de", "reference.de"):
        (tmp_path / name).write_text("Ein Hund.\n" * count)
    status, printed, _ = run(
        capsys, "evaluate", "--hypothesis", tmp_path / "output.de", tmp_path / "reference.de"
    )
    assert status == 0 and ("intervals are too narrow" in printed) == is_warned


def test_evaluate_prints_signatures_that_can_be_copied(place, capsys):
    files = place / "one", place / "test.src", place / "test.tgt"
    scores, printed = (
        evaluated(capsys, *files)["scores"],
        output(capsys, "evaluate", *files).splitlines(),
    )
    assert printed[0].split() == ["metric", "score", "95", "%", "signature"]
    for score, line in zip(scores, printed[1:4], strict=True):
        assert line.startswith(score["name"]) and line.endswith(score["signature"])
        assert f"{score['value']:.2f}  " in line
    assert printed[5].startswith("perplexity ")
    assert printed[6].startswith("12 sentences translated in ") and printed[6].endswith(
        "with beam 4"
    )
    assert "with beam 1" in output(capsys, "evaluate", *files, "decode.beam_size=1")


def test_two_outputs_are_compared(place, tmp_path, capsys):
    worse, reference = tmp_path / "worse", place / "test.tgt"
    worse.write_text("".join(f"{line.split()[0]} x\n" for line in lines(reference)))
    command = ["--hypothesis", worse, "--against"]
    bleu, _, ter = evaluated(capsys, *command, reference, reference)["scores"]
    assert (bleu["name"], ter["name"]) == ("BLEU", "TER")
    assert bleu["first"]["value"] < bleu["second"]["value"] == pytest.approx(100)
    assert ter["first"]["value"] > ter["second"]["value"] == 0
    assert bleu["p_value"] is ter["p_value"] is None, "too few sentences"
    table = output(capsys, "evaluate", *command, worse, reference).splitlines()
    assert table[0].split() == ["metric", str(worse), str(worse), "difference", "p", "signature"]
    assert (
        all(line.split()[3:5] == ["+0.00", "–"] for line in table[1:-1])
        and "too few for a test" in table[-1]
    )
    (long := tmp_path / "long.tgt").write_text(reference.read_text() * 30)
    worse.write_text(worse.read_text() * 30)
    assert evaluated(capsys, *command, long, long)["scores"][0]["p_value"] < 0.05
    worse.write_text(long.read_text())
    table = output(capsys, "evaluate", *command, worse, long).splitlines()
    assert all(line.split()[3:5] == ["+0.00", "1.000"] for line in table[1:])


def test_two_models_are_compared_as_their_translations_are(place, tmp_path, capsys):
    files, names = (place / "test.src", place / "test.tgt"), (place / "one", place / "two")
    alone = [evaluated(capsys, name, *files, "--output", tmp_path / name.name) for name in names]
    outputs = "--hypothesis", tmp_path / "one", "--against", tmp_path / "two", files[1]
    models = evaluated(capsys, names[0], *files, "--against", names[1], "--slices")
    assert models["perplexity"] == {
        "first": alone[0]["perplexity"],
        "second": alone[1]["perplexity"],
    }
    assert models | evaluated(capsys, *outputs, "--slices") == models
    found = [[each[name]["value"] for name in ("first", "second")] for each in models["scores"]]
    assert found[1:] == [
        [one["value"], two["value"]]
        for one, two in zip(*(x["scores"][1:] for x in alone), strict=True)
    ]
    assert all(
        "|tok:13a|" in models["scores"][0][name]["signature"] for name in ("first", "second")
    )
    greedy = evaluated(capsys, names[0], *files, "decode.beam_size=1"), "decode.beam_size=1"
    both = evaluated(capsys, names[1], *files, "--against", names[0], greedy[1])["scores"]
    assert both[1]["second"]["value"] == greedy[0]["scores"][1]["value"]
    table = output(capsys, "evaluate", names[0], *files, "--against", names[1]).splitlines()
    assert table[0].split()[:3] == ["metric", *map(str, names)] and len(table) == 6
    perplexities = [f"{each['perplexity']['per_word']:.2f}" for each in alone]
    assert table[4].split()[3:5] == perplexities


def test_slices_on_the_screen_are_those_of_json(place, tmp_path, capsys):
    reference = tmp_path / "reference"
    reference.write_text(
        "".join(f"{line}\n" for line in ["NATO ya", *lines(place / "train.tgt")[:50], "im Jahr 12"])
    )
    (tmp_path / "worse").write_text("".join(f"{line.split()[0]} x\n" for line in lines(reference)))
    command = (
        "--hypothesis",
        tmp_path / "worse",
        "--against",
        reference,
        reference,
        "--training",
        place / "train.tgt",
    )
    found = evaluated(capsys, *command)["slices"]
    assert [
        (each["name"], each["sentences"], each["num_words"], each["found"]) for each in found[1:]
    ] == [
        ("without rare words", 50, 0, [0, 0]),
        ("with rare words", 2, 4, [2, 4]),
        ("without numbers", 51, 0, [0, 0]),
        ("with numbers", 1, 1, [0, 1]),
        ("no capital letters", 50, 0, [0, 0]),
        ("ordinary capital letters", 1, 0, [0, 0]),
        ("some words in capitals", 1, 1, [1, 1]),
    ]
    rows = [re.split(r"  +", line) for line in output(capsys, "evaluate", *command).splitlines()]
    shown = {row[0]: row[1:] for row in rows}
    for each in found:
        p = "–" if each["p_value"] is None else describe_p(each["p_value"], each["error"])
        values = [
            [score[name]["value"] for name in ("first", "second")] for score in each["scores"][:2]
        ]
        bleu, chrf = ([f"{one:.2f}", f"{two:.2f}", f"{two - one:+.2f}"] for one, two in values)
        words = [f"{number} of {each['num_words']}" for number in each["found"]] * bool(
            each["num_words"]
        )
        assert shown[each["name"]] == [str(each["sentences"]), *chrf, p, *bleu, *words]
    assert "corrected for 4 tests" in " ".join(shown["p"])
    assert shown["rare word"] == [f"occurs at most 5 times in {place / 'train.tgt'}"]
    assert evaluated(capsys, *command[:5], "--slices")["slices"][1]["sentences"] == 50


def test_models_of_other_languages_are_not_compared(place, tmp_path, capsys):
    make_model(tmp_path / "french", {"data.source": "ka", "data.target": "fr"})
    files = place / "test.src", place / "test.tgt"
    status, _, said = run(
        capsys, "evaluate", place / "one", *files, "--against", tmp_path / "french"
    )
    assert status == 2 and f"one translates ka-zu, but {tmp_path}/french translates ka-fr." in said


def test_the_tokenisation_follows_the_target_language(place, tmp_path, capsys):
    make_model(tmp_path / "model", {"data.target": "zh"})
    reference, named = place / "test.tgt", shutil.copy(place / "test.tgt", tmp_path / "test.zh")
    for arguments, expected in {
        (tmp_path / "model", place / "test.src", reference): "zh",
        ("--hypothesis", reference, reference): "13a",
        ("--hypothesis", reference, reference, "--to", "zh"): "zh",
        ("--hypothesis", reference, named): "zh",
        ("--hypothesis", reference, named, "--to", "de"): "13a",
    }.items():
        assert f"|tok:{expected}|" in evaluated(capsys, *arguments)["scores"][0]["signature"]
    assert "|tok:zh|" in output(
        capsys, "evaluate", "--hypothesis", reference, "--against", reference, named
    )


def test_impossible_measurements_are_refused_before_translating(
    place, tmp_path, capsys, monkeypatch
):
    make_model(tmp_path / "short", {"model.positions": "learned", "model.max_positions": 20})
    (tmp_path / "long").write_text("a b c " * 9 + "\n")
    (tmp_path / "source").write_text("a b\n")
    (tmp_path / "page.html").write_text("<p>a b</p>\n")
    monkeypatch.delattr(Translator, "translate")
    files = place / "test.src", place / "test.tgt"
    for typed, sentence in {
        (place / "one", *files, "--tokenize", "words"): "There is no tokenisation 'words'",
        (tmp_path / "short", tmp_path / "source", tmp_path / "long"): "Target text 1 has ",
        (
            place / "one",
            tmp_path / "page.html",
            tmp_path / "long",
        ): "page.html is a document. Give its translation in",
    }.items():
        status, _, said = run(capsys, "evaluate", *typed)
        assert status == 2 and sentence in said


def test_json_without_measurements_is_valid(place, tmp_path, capsys):
    (tmp_path / "blank").write_text("\n\n")
    text = output(
        capsys, "evaluate", place / "one", tmp_path / "blank", tmp_path / "blank", "--json"
    )
    found = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert found["perplexity"] == {
        "per_token": None,
        "per_word": None,
        "num_tokens": 0,
        "num_words": 0,
    }
