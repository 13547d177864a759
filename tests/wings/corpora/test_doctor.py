"""The doctor: faults of pairs, misaligned stretches, repaired corpora, the machine and folders."""

import json
import re
import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command_line import run
from corpora import clean, write_texts
from faulty_corpora import odd_texts, pairs_of
from models import make_model
from transduce.preparation import passes
from transduce.system.errors import UserError
from transduce.system.files import ASIDE, verify
from transduce.text.clean import Cleaning
from transduce.text.identify import identifier, share_of_wrong_texts
from transduce.text.pair_batch import PairBatch, TextColumn
from transduce.text.pairs import read_pairs
from transduce.text.rules import (
    BITS,
    BROKEN_OFF,
    CHARACTERS,
    COPIED,
    DUPLICATE,
    EMPTY,
    ENCODING,
    IN_TEST_SET,
    JOINED,
    MEANINGS,
    MISALIGNED,
    MOJIBAKE,
    NEAR_DUPLICATE,
    NUMBERS_DISAGREE,
    OTHERS,
    PLACEHOLDERS_DIFFER,
    SOURCE_LANGUAGE,
    SWAPPED,
    TARGET_LANGUAGE,
    UNRELATED,
    Checker,
    Rules,
)
from transduce.tokens.imported_vocabulary import ImportedVocabulary
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.corpora.doctor import audit as auditing
from transduce.wings.corpora.doctor import folder
from transduce.wings.corpora.doctor.audit import audit
from transduce.wings.export.exporting import export
from transduce.wings.rules.more_rules import LENGTH_RULES
from transduce.wings.rules.numbers import numbers_disagree

# Rules that need no other pair.
BY_THEMSELVES = (
    MOJIBAKE,
    CHARACTERS,
    COPIED,
    NUMBERS_DISAGREE,
    PLACEHOLDERS_DIFFER,
)


SKIP_MISALIGNED = (*LENGTH_RULES, UNRELATED, NUMBERS_DISAGREE, PLACEHOLDERS_DIFFER)


def broken(source: str, target: str, *rules: str, **given: tuple[str, ...]) -> set[str]:
    """The rules that one pair breaks."""
    flags = Checker(Rules(0, False, rules, **given)).check(PairBatch([source], [target]))
    return {rule for rule in MEANINGS if flags[0] & BITS[rule]}


@given(st.lists(st.tuples(odd_texts, odd_texts), max_size=8))
def test_rules_find_the_same_in_batches_and_alone(pairs):
    checker = Checker(Rules(0, False, BY_THEMSELVES))
    together = checker.check(PairBatch([a for a, _ in pairs], [b for _, b in pairs]))
    assert together.tolist() == [int(checker.check(PairBatch([a], [b]))[0]) for a, b in pairs]


@pytest.mark.parametrize(
    ("source", "target", "agree"),
    [
        ("On page 30", "Auf Seite 30", True),
        ("On page 30", "Auf Seite 31", False),
        ("1,000.5 m", "1.000,5 m", True),
        ("at 2:30 pm", "um 14:30", True),
        ("at half past 2", "um 2:30", True),  # the other side says it in words
        ("the class of '98", "der Jahrgang 1998", True),
        ("07 and 8", "7 und 08", True),
        ("1,00,000 or 12,34,56,789", "100.000 oder 123.456.789", True),
        ("١٬٠٠٠", "1000", True),
        ("5 12,345", "512 345", False),
        ("3 dogs, 4 cats", "4 Hunde, 3 Katzen", True),
        ("3 dogs, 4 cats", "3 Hunde, 5 Katzen", False),
        ("9" * 5000, "8" * 5000, False),  # longer than Python reads
    ],
)
def test_numbers_by_hand(source, target, agree):
    assert numbers_disagree(source, target) == numbers_disagree(target, source) == (not agree)


@given(st.lists(st.integers(0, 10**6)), st.randoms(use_true_random=False))
def test_numbers_agree_in_any_order(numbers, choice):
    other = choice.sample(numbers, len(numbers))
    assert not numbers_disagree(" ".join(map(str, numbers)), " ".join(map(str, other)))


@pytest.mark.parametrize(
    ("source", "target", "rule"),
    [
        ("Save {0} files", "Speichere Dateien", PLACEHOLDERS_DIFFER),
        ("A <b>dog</b>", "Ein <b>Hund", PLACEHOLDERS_DIFFER),
        ("A dog", "A dog!", COPIED),
        ("Über", "Ãœber", MOJIBAKE),
        ("it’s", "itâ€™s", MOJIBAKE),
        ("Mädchen", "M√§dchen", MOJIBAKE),
        ("a", "a\x85b", CHARACTERS),
        ("a\ufffd", "b", CHARACTERS),
        ("a", "b\U000f0001", CHARACTERS),
        ("a\U0010fffd", "b", CHARACTERS),
        ("a\U0001fffe", "b", CHARACTERS),
        ("a\U0003ffff", "b", CHARACTERS),
        ("Ù…Ø±Ø­Ø¨Ø§", "Hello", MOJIBAKE),
        ("Hello", "×©×œ×•×", MOJIBAKE),
        ("Ø§Ùˆ", "He", MOJIBAKE),
        ("3 Ã— 4", "3 by 4", MOJIBAKE),
        ("vaikÅ³", "children", MOJIBAKE),
    ],
)
def test_faults_have_names(source, target, rule):
    assert rule in broken(source, target, *BY_THEMSELVES)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("{0}", "{0}"),
        ("https://example.org", "https://example.org"),
        ("1999", "1999"),
        ("“fun”", "„Spaß“"),
        ("𠀀𪜀", "𝒜 rare sign 🤷"),
        ("100 %", "100%"),
    ],
)
def test_unusual_but_correct_pairs_have_no_fault(source, target):
    assert not broken(source, target, *BY_THEMSELVES)


def named_of(pairs: list[tuple[str, str]], rule: str, usual: list[tuple[str, str]]) -> int:
    """How many of the pairs break a rule about lengths, by what is usual in a corpus."""
    sources, targets = map(list, zip(*usual, strict=True))
    checker = Checker(Rules(0, False, LENGTH_RULES), (sources, targets))
    return np.count_nonzero(
        checker.check(PairBatch(*map(list, zip(*pairs, strict=True)))) & BITS[rule]
    )


@pytest.mark.parametrize("mirrored", [False, True])
def test_cut_and_joined_targets_are_found(sentences, mirrored):
    def sides(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
        return [pair[::-1] for pair in pairs] if mirrored else pairs

    cut = [(source, target[: len(target) // 3]) for source, target in sentences]
    joined = [(a, f"{b} {c}") for (a, b), (_, c) in pairwise(sentences) if len(c) > len(b)]
    for rule, spoilt in ((BROKEN_OFF, cut), (JOINED, joined)):
        assert named_of(sides(sentences), rule, sides(sentences)) < 0.005 * len(sentences)
        assert named_of(sides(spoilt), rule, sides([*sentences[100:], *spoilt[:100]])) > 0.95 * len(
            spoilt
        )


def test_a_text_that_ends_in_a_bracket_may_be_no_sentence(sentences):
    terms = [
        ("bytes", "*bytes* (séquence d'octets)"),
        ("Frames", "Objets décrivant les «\u00a0*frames*\u00a0»"),
    ]
    assert named_of(terms, BROKEN_OFF, sentences) == 0
    assert named_of([("(All is well.)", "Alles")], BROKEN_OFF, sentences) == 1


def test_missing_full_stops_are_no_fault_if_they_are_common(sentences):
    open_ended = [(source, target.rstrip(".!?")) for source, target in sentences]
    mixed = [pair for pairs in zip(sentences[::2], open_ended[1::2], strict=True) for pair in pairs]
    for usual in (mixed, open_ended):
        assert named_of(open_ended, BROKEN_OFF, usual) < 0.01 * len(sentences)


def test_wrong_and_swapped_languages_are_found():
    english, german, french = (
        "Where is the next station?",
        "Wo ist der nächste Bahnhof?",
        "Où se trouve la gare ?",
    )
    rules = {"rules": (SWAPPED, SOURCE_LANGUAGE, TARGET_LANGUAGE), "languages": ("en", "de-AT")}

    def wrong(source: str, target: str) -> set[str]:
        return broken(source, target, *rules["rules"], languages=rules["languages"])

    assert wrong(english, german) == set()
    assert wrong(german, english) == {SWAPPED}
    assert wrong(french, german) == {SOURCE_LANGUAGE}
    assert wrong(english, french) == {TARGET_LANGUAGE}
    for short in (
        ("Tom hugged Mary.", "Tom umarmte Mary."),
        ("I ate a banana.", "Ich habe eine Banane gegessen."),
    ):
        assert wrong(*short) == set()
    assert wrong(french, "Le train est en retard.") == {SOURCE_LANGUAGE, TARGET_LANGUAGE}
    assert wrong(french, french) == set()  # copied, as names are
    serial = "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12"
    numbered = f"{serial} is the checksum of the file.", f"{serial} ist die Prüfsumme der Datei."
    assert wrong(*numbered) == set() and wrong(*reversed(numbered)) == {SWAPPED}
    for name in (
        ("Bulgaria", "Bulgarien"),
        ("Afrikaans", "Afrikaans"),
        ("Burkina Faso", "Obervolta"),
    ):
        assert wrong(*name) == set()
    for code, label in (
        ("be_Latn", ""),
        ("sr-Latn", ""),
        ("be-Cyrl", "be"),
        ("sr", "sr"),
        ("zh_Hant", "zh"),
        ("pt_BR", "pt"),
    ):
        assert identifier().label(code) == label


def test_a_rule_reports_the_same_pairs_whatever_other_rules_are_asked_for(sentences, tmp_path):
    """Rules about two texts skip misaligned pairs, but only if the rule `misaligned` runs."""
    sources, targets = map(list, zip(*sentences, strict=True))
    targets[900:1200] = targets[903:1200] + targets[:3]
    french = "Où se trouve la gare ?"
    odd = [
        ("Müller", "Müller"),
        (targets[1], sources[1]),
        (french, targets[3]),
        (sources[4], french),
    ]
    odd += [
        (french, "Ã¤ Ã¶"),
        ("\ufffd", french),
        ("", french),
        ("Seite 3", french + " 4 {0}"),
        (french, french),
    ]
    odd += [
        (targets[1], "Ã¤"),
        ("A dog.", " ".join(targets[:3])),
        (sources[9], targets[9][:8]),
        (french, "a\nb"),
    ]
    for place, pair in enumerate(odd):
        sources[place * 20], targets[place * 20] = pair
    (tmp_path / "test.tsv").write_text(f"{sources[5]}\t{targets[7]}\n", encoding="utf-8")
    batch, more = (
        PairBatch(sources, targets),
        {"languages": ("en", "de"), "test": (str(tmp_path / "test.tsv"),)},
    )
    together = Checker(Rules(0, False, OTHERS, **more), (sources, targets)).check(batch)
    aligned = together & BITS[MISALIGNED] == 0
    for rule in {*OTHERS} - {NEAR_DUPLICATE}:
        alone = Checker(Rules(0, False, (rule,), **more), (sources, targets)).check(batch)
        compared = aligned if rule in SKIP_MISALIGNED else slice(None)
        assert rule == UNRELATED or (alone & BITS[rule])[compared].any(), f"no pair breaks {rule}"
        assert np.array_equal((alone & BITS[rule])[compared], (together & BITS[rule])[compared]), (
            rule
        )


def test_missing_inputs_of_rules_are_named():
    for rules, said in (
        (Rules(0, True, (SOURCE_LANGUAGE,), ("src", "de")), "can't identify the language 'src'"),
        (Rules(0, True, (IN_TEST_SET,)), "Name its files as data.test"),
        (Rules(0, True, ("mojibak",)), "Did you mean mojibake"),
        (Rules(0, True, (EMPTY,)), "no rule empty to choose"),
    ):
        with pytest.raises(UserError, match=said):
            Checker(rules)


@given(
    odd_texts,
    st.sampled_from([str.upper, str.lower, lambda text: f"„{text}“ …", lambda text: f"1. {text}"]),
)
def test_case_punctuation_and_digits_make_no_other_sentence(text, change):
    one, other = TextColumn([text.casefold()]), TextColumn([change(text.casefold())])
    assert one.letters == other.letters


@settings(max_examples=40)  # each has room for every character
@given(st.lists(st.tuples(odd_texts, odd_texts), max_size=12), st.integers(1, 5))
def test_cleaning_leaves_out_what_the_audit_names(pairs, chunk):
    rules, named = (
        Rules(0, True, (*BY_THEMSELVES, NEAR_DUPLICATE)),
        pairs_of([*pairs, ("a", "b"), ("a", "b")]),
    )
    with patch.object(passes, "CHUNK", chunk), patch.object(auditing, "CHUNK", chunk):
        found, report = audit(named, rules), Cleaning()
        kept = clean(named, rules, report)
    assert kept == [
        pair for pair, verdict in zip(named, found.verdicts, strict=True) if not verdict.rule
    ]
    assert report.counts == Counter(
        list(MEANINGS)[verdict.rule - 1] for verdict in found.verdicts if verdict.rule
    )
    assert (
        (report.counts.total(), report.read)
        == (found.faulty, found.pairs)
        == (len(named) - len(kept), len(named))
    )


def test_languages_of_a_corpus_are_detected(sentences):
    half = [
        (source, target if place < 20 else "")
        for place, (source, target) in enumerate(sentences[:50])
    ]
    assert audit(pairs_of(half), Rules(0, False, (SWAPPED,))).rules.languages == ("en", "de")
    assert audit(pairs_of([("1", "2")]), Rules(0, False, (SWAPPED,))).rules.languages == ("", "")
    assert audit(pairs_of(sentences[:50]), Rules(0, False, (SWAPPED,))).rules.languages == (
        "en",
        "de",
    )
    assert (
        audit(pairs_of([("1", "2")]), Rules(0, False, (SWAPPED,), ("fr", ""))).rules.languages[0]
        == "fr"
    )


def test_repairing_changes_only_faulty_pairs(corpus, capsys):
    mended, before = corpus.with_name("mended.tsv"), corpus.read_text(encoding="utf-8").split("\n")
    status, out, _ = run(
        capsys,
        "doctor",
        corpus,
        "--fix",
        mended,
        "--json",
        "--only",
        DUPLICATE,
        PLACEHOLDERS_DIFFER,
    )
    report = json.loads(out)
    at_fault = {line for rule in report["rules"].values() for _, line in rule["lines"]}
    assert status == 0 and at_fault == {21, 31, 41, 51} and report["faulty"] == 4
    assert {
        rule: [line for _, line in each["lines"]] for rule, each in report["rules"].items()
    } == {
        DUPLICATE: [21],
        EMPTY: [31, 51],
        PLACEHOLDERS_DIFFER: [41],
    }
    assert mended.read_text(encoding="utf-8").split("\n") == [
        row for line, row in enumerate(before, start=1) if line not in at_fault
    ]
    left = [
        json.loads(row)
        for row in Path(f"{mended}.left-out.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert [(each["rule"], each["line"]) for each in left] == [
        (DUPLICATE, 21),
        (EMPTY, 31),
        (PLACEHOLDERS_DIFFER, 41),
        (EMPTY, 51),
    ]
    assert left[2]["source"] == "A {0} dog"


def test_suspicious_pairs_are_kept_and_counted_separately(tmp_path, capsys):
    rows = [f"Sentence number {i} is here.\tSatz Nummer {i} ist hier." for i in range(40)]
    rows[3], rows[5] = "Read the word *now*.\tLies jetzt das Wort {0}.", "A blank side\t"
    # Only code: in no language, and not to be translated.
    rows[7] = "``PY_RELEASE_LEVEL``\t``PY_RELEASE_LEVEL``"
    corpus, mended = tmp_path / "corpus.tsv", tmp_path / "mended.tsv"
    corpus.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    chosen = "--from", "en", "--to", "de", "--without", NEAR_DUPLICATE, "--fix", mended
    said = run(capsys, "doctor", corpus, *chosen)[1]
    assert (
        "1 pair (2.50%) with a fault; 1 more (2.50%) only suspicious: a clean copy keeps them.\n"
        in said
    )
    assert (
        said.index("\nfaults")
        < said.index(EMPTY)
        < said.index("\nsuspicions")
        < said.index(PLACEHOLDERS_DIFFER)
    )
    assert mended.read_text(encoding="utf-8").splitlines() == rows[:5] + rows[6:]
    report = json.loads(run(capsys, "doctor", corpus, *chosen, "--json")[1])
    assert (report["faulty"], report["suspicious"]) == (1, 1)
    assert {rule: each["kind"] for rule, each in report["rules"].items()} == {
        EMPTY: "fault",
        PLACEHOLDERS_DIFFER: "suspicion",
    }
    # Named: to be dropped, too.
    run(capsys, "doctor", corpus, "--only", PLACEHOLDERS_DIFFER, "--fix", mended)
    assert mended.read_text(encoding="utf-8").splitlines() == rows[:3] + rows[4:5] + rows[6:]


def test_repaired_corpus_has_no_fault(corpus, capsys):
    once, twice = corpus.with_name("once.jsonl"), corpus.with_name("twice.jsonl")
    pairs = [
        [*row.split("\t"), ""][:2] for row in corpus.read_text(encoding="utf-8").split("\n")[:-1]
    ]
    as_json = corpus.with_suffix(".jsonl")
    as_json.write_text(
        "".join(json.dumps({"source": a, "target": b}) + "\n" for a, b in pairs), encoding="utf-8"
    )
    sides = [corpus.with_suffix(suffix) for suffix in (".en", ".de")]
    for side, texts in zip(sides, zip(*pairs, strict=True), strict=True):
        side.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    outputs = [corpus.with_suffix(suffix) for suffix in (".mended.en", ".mended.de")]
    assert run(capsys, "doctor", as_json, "--fix", once)[0] == 0
    assert run(capsys, "doctor", once, "--fix", twice)[0] == 0
    assert run(capsys, "doctor", *sides, "--fix", *outputs)[0] == 0
    assert once.read_bytes() == twice.read_bytes()
    kept = [json.loads(row) for row in once.read_text(encoding="utf-8").splitlines()]
    assert 200 < len(kept) < 300
    for name, output in zip(("source", "target"), outputs, strict=True):
        assert output.read_text(encoding="utf-8").split("\n")[:-1] == [each[name] for each in kept]


def test_a_folder_of_bilingual_files_is_a_corpus(corpus, capsys):
    (corpus.parent / "deeper" / "still").mkdir(parents=True)
    for name in ("one.tsv", "other.tsv"):
        shutil.copy(corpus, corpus.parent / "deeper" / "still" / name)
    corpus.unlink()
    status, out, _ = run(capsys, "doctor", corpus.parent, "--json", "--only", PLACEHOLDERS_DIFFER)
    assert (status, json.loads(out)["pairs"]) == (0, 2 * 300)


def test_lines_of_several_files_are_named_with_their_files(tmp_path, capsys):
    files = [tmp_path / name for name in ("a.tsv", "b.tsv")]
    for file in files:
        file.write_text("A dog.\t\n" * 3, encoding="utf-8")
    page = tmp_path / "page.html"
    said = run(capsys, "doctor", *files, "--only", NUMBERS_DISAGREE, "--out", page)[1]
    assert f"also in {files[0]}, line 3; {files[1]}, lines 1, 2, 3\n" in said
    assert f"{files[1]}, line 3<" in page.read_text(encoding="utf-8")
    assert "also in line 3\n" in run(capsys, "doctor", files[0], "--only", NUMBERS_DISAGREE)[1]


def test_half_a_character_of_json_does_not_end_the_reading(tmp_path, capsys):
    """What JSON says with an escape, and bytes that are not UTF-8, in the same file."""
    rows = [
        rb'"a b", "c d"',
        rb'"a \ud83d", "c \udcff"',
        b'"e \xff", "f"',
        b'"g \xff\\ud83d", "h"',
        rb'"i", "j"',
    ]
    lines = [b'{"source": %s, "target": %s}\n' % tuple(row.split(b", ")) for row in rows]
    (tmp_path / "half.jsonl").write_bytes(b"".join(lines))
    out = tmp_path / "kept.jsonl"
    status, said, _ = run(
        capsys, "doctor", tmp_path / "half.jsonl", "--json", "--fix", out, "--only", CHARACTERS
    )
    report = json.loads(said)
    assert status == 0 and not report["stopped"] and report["pairs"] == 5
    found = {rule: [line for _, line in each["lines"]] for rule, each in report["rules"].items()}
    assert found == {ENCODING: [2, 3, 4]}
    assert out.read_bytes() == lines[0] + lines[4]
    assert [row["line"] for row in map(json.loads, written(Path(f"{out}.left-out.jsonl")))] == [
        2,
        3,
        4,
    ]


def written(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").split("\n")[:-1]


def test_a_stretch_does_not_run_from_one_file_into_another(tmp_path, sentences, capsys):
    files = [tmp_path / f"{name}.tsv" for name in "ab"]
    moved = [
        (source, target) for (source, _), (_, target) in zip(sentences[2:], sentences, strict=False)
    ]
    for file, pairs in zip(files, (moved[:700], moved[700:]), strict=True):
        file.write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    found = json.loads(run(capsys, "doctor", *files, "--only", "misaligned", "--json")[1])[
        "stretches"
    ]
    assert [
        (Path(each["file"]).name, each["first"], each["last"], each["offset"]) for each in found
    ] == [
        ("a.tsv", 1, 700, 2),
        ("b.tsv", 1, len(moved) - 700, 2),
    ]


@pytest.mark.parametrize("missing", [1, 7])
def test_lines_that_one_side_lacks_are_located_and_the_others_realigned(
    tmp_path, sentences, capsys, missing
):
    sides = [tmp_path / "corpus.en", tmp_path / "corpus.de"]
    mended = [tmp_path / "mended.en", tmp_path / "mended.de"]
    for side, texts, lacks in zip(sides, zip(*sentences, strict=True), (0, missing), strict=True):
        side.write_text(
            "".join(f"{text}\n" for text in (*texts[:600], *texts[600 + lacks :])), encoding="utf-8"
        )
    status, out, _ = run(
        capsys, "doctor", *sides, "--only", "misaligned", "--json", "--fix", *mended
    )
    report = json.loads(out)
    (stretch,) = report["stretches"]
    assert status == 0 and report["stopped"] == ""
    assert stretch["offset"] == -missing and abs(stretch["first"] - 600) <= 10
    kept = list(zip(*map(written, mended), strict=True))
    assert set(kept) <= set(sentences) and len(kept) > 0.98 * len(sentences)
    assert kept == [pair for pair in sentences if pair in set(kept)]  # in order, none twice
    left, changed = (written(Path(f"{mended[0]}.{name}.jsonl")) for name in ("left-out", "mended"))
    assert len(kept) + len(left) == len(sentences) and len(changed) == report["mendable"]
    assert all(json.loads(row)["offset"] == -missing for row in changed)
    assert f"shift by {-missing}" in run(capsys, "doctor", *sides, "--only", "misaligned")[1]
    assert (
        json.loads(run(capsys, "doctor", *mended, "--json", "--only", "misaligned")[1])["faulty"]
        == 0
    )


def test_nothing_is_written_where_a_side_ends_much_earlier(tmp_path, sentences, capsys):
    sides = [tmp_path / "corpus.en", tmp_path / "corpus.de"]
    for side, texts, length in zip(sides, zip(*sentences, strict=True), (1500, 1479), strict=True):
        side.write_text("".join(f"{text}\n" for text in texts[:length]), encoding="utf-8")
    status, out, said = run(
        capsys, "doctor", *sides, "--json", "--fix", tmp_path / "a", tmp_path / "b"
    )
    assert "1,500 lines" in json.loads(out)["stopped"] and json.loads(out)["pairs"] == 1479
    assert status == 2 and "Nothing was repaired" in said and not (tmp_path / "a").exists()
    assert run(capsys, "doctor", *sides)[0] == 1, "it can't be read to its end"


def test_a_clean_copy_is_not_written_into_the_corpus(corpus, capsys):
    status, _, said = run(capsys, "doctor", corpus.parent, "--fix", corpus.with_name("clean.jsonl"))
    assert (
        status == 2
        and "would become part of the corpus" in said
        and len(list(corpus.parent.iterdir())) == 1
    )


@pytest.mark.parametrize("suffix", [".tsv", ".jsonl"])
def test_realigning_keeps_other_columns_and_keys(tmp_path, sentences, capsys, suffix):
    targets = [target for _, target in sentences]
    moved = [*targets[:700], *targets[697:1200], *targets[1203:]]
    rows = [
        f"{source}\t{target}\t{line}\t"
        if suffix == ".tsv"
        else json.dumps(
            {"id": line, "translation": {"de": target, "en": source}}, ensure_ascii=False
        )
        for line, ((source, _), target) in enumerate(zip(sentences, moved, strict=True))
    ]
    corpus, mended = (tmp_path / f"{name}{suffix}" for name in ("corpus", "mended"))
    corpus.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    languages = ["--from", "en", "--to", "de", "--only", "misaligned"]
    assert run(capsys, "doctor", corpus, *languages, "--fix", mended)[0] == 0
    kept = [
        row.split("\t")[:3]
        if suffix == ".tsv"
        else [row["translation"]["en"], row["translation"]["de"], row["id"]]
        for row in (row if suffix == ".tsv" else json.loads(row) for row in written(mended))
    ]
    assert all(sentences[int(line)] == (source, target) for source, target, line in kept)
    assert len(kept) > 0.97 * len(sentences)


@pytest.mark.parametrize("indent", [None, 2])
def test_a_clean_copy_of_an_array_has_an_object_in_each_line(indent, tmp_path, capsys):
    pairs = [("A dog runs.", "Ein Hund läuft."), ("A cat", None), ("A cow", "Eine Kuh")]
    rows = [{"en": en, "de": de, "id": number} for number, (en, de) in enumerate(pairs)]
    corpus, clean_copy = tmp_path / "array.jsonl", tmp_path / "clean.jsonl"
    corpus.write_text(json.dumps(rows, indent=indent), encoding="utf-8")
    languages = ["--from", "en", "--to", "de", "--only", "misaligned"]
    assert run(capsys, "doctor", corpus, *languages, "--fix", clean_copy)[0] == 0
    assert list(map(json.loads, written(clean_copy))) == [rows[0], rows[2]]


def test_a_fault_of_the_whole_corpus_is_named_first_and_repaired(tmp_path, sentences, capsys):
    corpus, mended = tmp_path / "corpus.tsv", tmp_path / "mended.tsv"
    texts = [(source, target.replace("'", " ")) for source, target in sentences[:300]]
    quoted = [f'12\t{source}\t13\t"{target}"\tmore\n' for source, target in texts]
    corpus.write_text("".join(quoted), encoding="utf-8")
    command = ["doctor", corpus, "--from", "en", "--to", "de", "--only", "misaligned"]
    status, out, said = run(capsys, *command, "--fix", mended, "--out", tmp_path / "a.html")
    assert status == 0 and "Repaired in all texts: quoted" in said
    sentence = "100.0% of the targets are in double quotes, as in a .csv file"
    assert sentence in out and sentence in (tmp_path / "a.html").read_text(encoding="utf-8")
    assert written(mended) == [f"12\t{source}\t13\t{target}\tmore" for source, target in texts]
    (fault,) = json.loads(run(capsys, *command, "--json")[1])["corpus"]
    assert (fault["fault"], fault["side"], fault["share"]) == ("quoted", "targets", 1)
    assert "whole corpus" not in run(capsys, "doctor", mended, *command[2:])[1]


FRENCH = "Le café est déjà fermé à Noël."


@pytest.mark.parametrize("form", ["two files", ".tsv", ".jsonl"])
def test_lines_that_are_not_utf8_are_named_and_those_in_windows_1252_kept(tmp_path, capsys, form):
    """What can't be that, by the characters of the other lines, leaves."""
    targets = [f"{FRENCH} {number}".encode() for number in range(100)]
    targets[10], targets[20] = f"{FRENCH} 10".encode("cp1252"), "Caf\xe9 été 20".encode("cp1252")
    targets[30], targets[40] = b"Le caf\xc3 30", "Pøíli¹ 40".encode("cp1252")
    targets[50] = f"{FRENCH} 50".encode() + b"\xe9"
    sources = [
        f"The café is already closed at Christmas. {number}".encode() for number in range(100)
    ]
    names = {".tsv": ["c.tsv"], ".jsonl": ["c.jsonl"]}.get(form, ["c.en", "c.fr"])
    files, mended = ([tmp_path / f"{place}{name}" for name in names] for place in ("", "mended-"))
    rows = {
        "two files": [sources, targets],
        ".tsv": [[b"%s\t%s" % pair for pair in zip(sources, targets, strict=True)]],
        ".jsonl": [
            [
                b'{"source": "%s", "target": "%s"}' % pair
                for pair in zip(sources, targets, strict=True)
            ]
        ],
    }[form]
    for file, lines in zip(files, rows, strict=True):
        file.write_bytes(b"".join(line + b"\n" for line in lines))
    options = ["--without", "swapped", "source-language", "target-language", "near-duplicate"]
    status, out, said = run(
        capsys, "doctor", *files, *options, "--json", "--fix", *mended, "--out", tmp_path / "p.html"
    )
    found = json.loads(out)["rules"]
    assert status == 0, said
    assert {
        rule: [line for _, line in each["lines"]]
        for rule, each in found.items()
        if rule == ENCODING
    } == {ENCODING: [11, 21, 31, 41, 51]}
    assert "Le caf\ufffd 30" in found[ENCODING]["examples"][2]["target"]
    left = [json.loads(row) for row in written(Path(f"{mended[0]}.left-out.jsonl"))]
    assert [(each["rule"], each["line"]) for each in left if each["rule"] == ENCODING] == [
        (ENCODING, line) for line in (31, 41, 51)
    ]
    kept = {pair.target for pair in read_pairs(list(map(str, mended)))}
    assert {f"{FRENCH} 9", f"{FRENCH} 10", "Café été 20"} <= kept and not any(
        "\ufffd" in text for text in kept
    )
    changed = [json.loads(row) for row in written(Path(f"{mended[0]}.mended.jsonl"))]
    assert [(each["rule"], each["line"]) for each in changed] == [(ENCODING, 11), (ENCODING, 21)]
    assert (
        "convert it first, for example with iconv -f WINDOWS-1252 -t UTF-8"
        in run(capsys, "doctor", *files, *options)[1]
    )
    # Which wants to be sure.
    assert run(capsys, "train", "--train", *files, "--out", tmp_path / "model")[0] == 2


@pytest.mark.parametrize(
    "form", ["%s\t%s\t\udcb3", '{"source": "%s", "target": "%s", "x": "\udcb3\\ud83d"}'], ids=ascii
)
def test_bytes_outside_the_texts_stay_unchanged(tmp_path, capsys, form):
    corpus, mended = (
        tmp_path / f"{name}.{'tsv' if form[0] == '%' else 'jsonl'}" for name in ("corpus", "mended")
    )
    pairs = [(f"The café is closed. {number}", f"{FRENCH} {number}") for number in range(100)]
    whole = [(form % pair).encode(errors="surrogateescape") for pair in pairs]
    rows = list(whole)
    for row, text in ((10, pairs[10][0]), (20, pairs[20][1])):
        rows[row] = rows[row].replace(text.encode(), text.encode("cp1252"))
    corpus.write_bytes(b"\n".join([*rows, b""]))
    assert (
        "(2 kept pairs)" in run(capsys, "doctor", corpus, "--only", "mojibake", "--fix", mended)[2]
    )
    assert mended.read_bytes() == b"\n".join([*whole, b""])


def test_invalid_utf8_in_messages_is_named_and_repaired(tmp_path, capsys):
    corpus = tmp_path / "c.po"
    with corpus.open("wb") as file:
        for number in range(100):
            text = f"{FRENCH} {number}".replace(" ", "_").encode(
                "cp1252" if number == 10 else "utf-8"
            )
            file.write(b'msgid "The caf\xc3\xa9 is closed. %d"\nmsgstr "%s"\n' % (number, text))
    mended = tmp_path / "mended.jsonl"
    status, out, said = run(
        capsys, "doctor", corpus, "--only", "mojibake", "--json", "--fix", mended
    )
    assert status == 0, said
    assert json.loads(out)["rules"][ENCODING]["lines"] == [[str(corpus), 21]]
    assert len(written(mended)) == 100 and "déjà_fermé_à_Noël._10" in written(mended)[10]


@pytest.mark.parametrize("named", ["c.mrg", "."])
def test_trees_are_no_corpus_of_translations(tmp_path, capsys, named):
    (tmp_path / "c.mrg").write_text("(S (NP x))\n" * 2)
    status, out, said = run(capsys, "doctor", tmp_path / named, "--fix", tmp_path / "mended.jsonl")
    assert (
        status == 2
        and "holds trees, and the doctor checks translations. `transduce prepare` with" in said
    )
    assert not out and [path.name for path in tmp_path.iterdir()] == ["c.mrg"]


def test_report_page_is_self_contained_and_escapes_text(corpus, capsys):
    with corpus.open("a", encoding="utf-8") as file:
        file.write("<script>alert(1)</script>\t<b>\x02\ufffd\n")
    page = corpus.with_name("page.html")
    assert run(capsys, "doctor", corpus, "--out", page)[0] == 0
    html = page.read_text(encoding="utf-8")
    assert (
        "<script" not in html
        and "src=" not in html
        and "http" not in html.replace("http-equiv", "")
    )
    assert "&lt;script&gt;" in html and "default-src 'none'" in html
    for rule in (EMPTY, DUPLICATE, PLACEHOLDERS_DIFFER, CHARACTERS):
        assert f"<h2>{rule}</h2>" in html
    fix, train = re.findall("<pre>transduce (.*?)</pre>", html)
    codes = "--from en --to de"
    assert fix == f"doctor {corpus} {codes} --fix clean-{corpus.name}"
    assert train == f"train --train clean-{corpus.name} {codes} --out MODEL"
    assert html.index("transduce trains") < html.index(fix) < html.index(f"<h2>{EMPTY}</h2>")


def test_sentences_of_the_test_set_are_found(corpus, tmp_path, sentences, capsys):
    test = tmp_path / "test.tsv"
    test.write_text(
        f"{sentences[5][0].upper()} !!\tetwas anderes\nnever seen\t{sentences[7][1]}\n",
        encoding="utf-8",
    )
    report = json.loads(
        run(capsys, "doctor", corpus, "--test", test, "--only", "test", "--json")[1]
    )
    assert [line for _, line in report["rules"][IN_TEST_SET]["lines"]] == [6, 8]


def test_a_corpus_is_prepared_with_all_rules(tmp_path, sentences, capsys):
    lines = [f"{source}\t{target}\n" for source, target in sentences]
    lines += [
        f"{sentences[0][0]}\t{sentences[0][0]}\n",
        f"Es\tgeht.\n{sentences[1][0].upper()}\t{sentences[1][1]}\n",
    ]
    (tmp_path / "corpus.tsv").write_text("".join(lines), encoding="utf-8")
    corpus = (
        "--train",
        tmp_path / "corpus.tsv",
        "--from",
        "en",
        "--to",
        "de",
        "data.vocab_size=400",
        "data.holdout=0",
    )
    named = f"data.rules={','.join(rule for rule in OTHERS if rule != IN_TEST_SET)}"
    for out, rules in ("all", "data.rules=all"), ("named", named):
        assert run(capsys, "prepare", *corpus, "--out", tmp_path / out, rules)[0] == 0
    both = [
        (tmp_path / out / "left-out.jsonl").read_text(encoding="utf-8") for out in ("all", "named")
    ]
    assert both[0] == both[1] and {"copied", "near-duplicate"} <= {
        json.loads(line)["rule"] for line in both[0].split("\n")[:-1]
    }
    (tmp_path / "test.tsv").write_text(lines[3], encoding="utf-8")
    options = "data.rules=all", f"data.test={tmp_path / 'test.tsv'}"
    assert run(capsys, "prepare", *corpus, "--out", tmp_path / "tested", *options)[0] == 0
    assert '"test"' in (tmp_path / "tested" / "left-out.jsonl").read_text(encoding="utf-8")


def test_a_vocabulary_says_which_characters_it_lacks(tmp_path, capsys):
    files = write_texts(tmp_path, "train", 300, 1)
    vocabulary = tmp_path / "vocabulary"
    options = [
        "data.vocab_size=400",
        "data.holdout=0",
        "data.rules=copied,test",
        f"data.test={files[0]},{files[1]}",
    ]
    status, _, said = run(capsys, "prepare", "--train", *files, "--out", vocabulary, *options)
    # Every sentence is in the test set.
    assert status == 2 and "No training pairs are" in said and "test set" in said
    assert (
        run(
            capsys,
            "prepare",
            "--train",
            *files,
            "--out",
            vocabulary,
            *options[:2],
            "data.rules=copied",
        )[0]
        == 0
    )
    (tmp_path / "other.tsv").write_text("ka lo Ж\tzu fe\nka Ж\tzu ж\n", encoding="utf-8")
    report = json.loads(
        run(capsys, "doctor", tmp_path / "other.tsv", "--vocabulary", vocabulary, "--json")[1]
    )
    assert report["uncovered"] == {"Ж": 2, "ж": 1}
    model = (vocabulary / "tokenizer.model").read_bytes()
    for file in vocabulary.glob("tokenizer.[mp]*"):
        file.unlink()
    pieces = ["<pad>", "<s>", "</s>", "<unk>", "\u2581ka", "\u2581", "\u2581k", "k"]
    Tokenizer(ImportedVocabulary(model, pieces)).save(vocabulary)
    report = json.loads(
        run(capsys, "doctor", tmp_path / "other.tsv", "--vocabulary", vocabulary, "--json")[1]
    )
    assert report["uncovered"].keys() >= {"Ж", "ж", "l"} and "k" not in report["uncovered"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "mojibake"], "--only needs a corpus"),
        (["--from", "en"], "--from needs a corpus"),
        (["corpus.tsv", "--only", "mojibak"], "Did you mean mojibake"),
        (
            ["corpus.tsv", "--only", "source-language", "--from", "qqq"],
            "can't identify the language 'qqq'",
        ),
        (["corpus.tsv", "--only", "test"], "Name its files with --test"),
        (
            ["corpus.tsv", "--only", "copied", "--without", "copied"],
            "every rule that is to be checked",
        ),
        (["corpus.tsv", "--threads", "-3"], "must be from 0 to 1,024, not -3"),
        (["a.en", "a.de", "--fix", "b.en", "-"], "--fix needs names of files, not /dev/stdin"),
        (["corpus.tsv", "--fix=-"], "--fix needs names of files, not -"),
        (["a.en", "a.de", "--fix", "/dev/fd/1", "b.de"], "--fix needs names of files"),
        (["a.jsonl.mended.jsonl", "--fix", "a.jsonl"], "a.jsonl.mended.jsonl is also the input"),
        (
            ["a.jsonl.left-out.jsonl", "--fix", "a.jsonl"],
            "a.jsonl.left-out.jsonl is also the input",
        ),
        (
            ["corpus.tsv", "--test", "a.jsonl.mended.jsonl", "--fix", "a.jsonl.mended.jsonl"],
            "is also the input",
        ),
        (["a.en", "a.de", "--fix", "b", "b.left-out.jsonl"], "are the same"),
        (["a.en", "a.de", "--fix", "b", "c", "--out", "./b.mended.jsonl"], "are the same"),
        (["corpus.tsv", "--fix", "a.jsonl.gz"], "would not be compressed"),
        (["corpus.tsv", "--fix", "a.txt"], "ends in .tsv"),
        (["corpus.tsv", "--fix", "corpus.tsv"], "is also the input"),
        (["corpus.tsv", "corpus.tsv", "--fix", "a", "./a"], "are the same"),
        (
            ["a.en", "a.de", "--fix", "b.de", "b.en"],
            "b.de and b.en are for en and de, but their names say",
        ),
        (["-", "--fix", "a.tsv"], "reads the corpus twice"),
        (["nothing.tsv"], "nothing.tsv does not exist"),
        (["empty"], "not a model folder"),
    ],
)
def test_wrong_arguments_are_refused(corpus, capsys, monkeypatch, arguments, said):
    monkeypatch.chdir(corpus.parent)
    Path("empty").mkdir()
    for name in ("a.en", "a.de", "a.jsonl.mended.jsonl", "a.jsonl.left-out.jsonl"):
        Path(name).write_text('{"source": "a", "target": "b"}\n')
    before = {path: path.read_bytes() for path in Path().glob("*.*")}
    status, out, complaint = run(capsys, "doctor", *arguments)
    assert (status, out) == (2, "") and said in complaint
    assert {path: path.read_bytes() for path in Path().glob("*.*")} == before


@pytest.mark.parametrize("form", ["onnx", "ctranslate2"])
def test_an_export_is_compared_with_its_manifest(form, tmp_path, capsys):
    out = tmp_path / "out"
    export(make_model(tmp_path / "model", {}), form, out)
    status, said, _ = run(capsys, "doctor", out)
    assert status == 0 and "none damaged" in said
    next(out.glob("*o*e*.*n*")).write_bytes(b"nothing")
    status, said, _ = run(capsys, "doctor", out)
    assert status == 1 and "export the model again" in said
    (out / "source.json").touch()
    assert "fetch the corpus again" in run(capsys, "doctor", out)[1]


def test_a_damaged_model_is_named_and_a_whole_one_is_not(tmp_path, capsys, monkeypatch):
    tiny = [
        "data.vocab_size=290",
        "model.d_model=8",
        "model.d_ff=8",
        "model.num_heads=1",
        "train.steps=2",
    ]
    layers = [
        "model.num_encoder_layers=1",
        "model.num_decoder_layers=1",
        "train.save_every=1",
        "data.max_tokens=200",
    ]
    model, valid = tmp_path / "a model", write_texts(tmp_path, "valid", 5, 2)
    files = write_texts(tmp_path, "train", 60, 1)
    status, ready, said = run(
        capsys, "train", "--train", *files, "--valid", *valid, "--out", model, *tiny, *layers
    )
    assert status == 0, said
    assert ready.endswith(f" transduce translate '{model}' --input FILE\n")
    (model / f".left{ASIDE}1").mkdir()
    assert f"rm -r '{model}/.left{ASIDE}1'" in run(capsys, "doctor", model)[1]
    (model / f".left{ASIDE}1").rmdir()
    (model / "checkpoints" / "step-00000001.bak").mkdir()  # somebody's copy
    (model / "README.md").write_text("edited")
    status, out, _ = run(capsys, "doctor", model)
    assert (
        status == 0 and out.count("none damaged") > 1 and "edited since" in out and "! " not in out
    )
    for name in ("model.safetensors", "checkpoints/step-00000001/state.json", "data/corpus-0"):
        copy = tmp_path / "copy"
        shutil.copytree(model, copy)
        path = (
            copy / name
            if (copy / name).is_file()
            else max((copy / name).iterdir(), key=lambda p: p.stat().st_size)
        )
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        status, out, _ = run(capsys, "doctor", copy, "--json")
        damaged = [fact for fact in json.loads(out) if fact["state"] == "damaged"]
        assert status == 1 and len(damaged) == 1
        assert (
            damaged[0]["what"].endswith(path.name)
            and "SHA-256" in damaged[0]["says"]
            and damaged[0]["mend"]
        )
        shutil.rmtree(copy)
    for name in ("config.toml", "manifest.json"):
        content = (model / name).read_bytes()
        (model / name).write_bytes(content[:-9])
        status, out, _ = run(capsys, "doctor", model)
        assert status == 1 and f"{name} is damaged" in " ".join(out.split())
        (model / name).write_bytes(content)

    def removing(path, **more):
        return shutil.rmtree(path) if path.name.startswith("step-") else verify(path, **more)

    monkeypatch.setattr(folder, "verify", removing)  # as a training does with old checkpoints
    assert run(capsys, "doctor", model)[0] == 0


def test_an_unknown_language_does_not_keep_the_others_from_being_checked():
    pytest.importorskip("py3langid")
    german = ["Der Hund läuft über das Gras zu dem Haus, in dem die Katze schläft."] * 30
    for codes in (["en", "de"], ["en", "de", "sr_Latn"], ["en_news", "de_news"]):
        assert share_of_wrong_texts(german, codes[0], codes) == 1.0
    assert share_of_wrong_texts(german, "sr_Latn", ["de", "sr_Latn"]) == 0.0
