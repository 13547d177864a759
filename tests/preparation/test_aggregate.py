"""What is left of staged pairs: repetitions, held-out pairs, and the texts of the vocabulary, by hand."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from transduce.config.schema import CorpusConfig, DataConfig
from transduce.preparation import aggregate as aggregating
from transduce.preparation import staging
from transduce.preparation.aggregate import (
    MAX_COPIES,
    _balanced,
    aggregate,
    extend_vocabulary,
    kept_files,
    learn_vocabulary,
    leave_out,
    masked_pairs,
    read_directed,
)
from transduce.preparation.staging import StagedPairs, StagingWriter
from transduce.system.errors import UserError
from transduce.text import holdout
from transduce.text.clean import Cleaning
from transduce.text.holdout import Part, hold_out, sentences
from transduce.text.pairs import Origin, Pair
from transduce.text.rules import DUPLICATE, EMPTY, NEAR_DUPLICATE, PLACEHOLDERS_DIFFER
from transduce.text.tree_symbols import are_of_trees
from transduce.tokens.vocabulary import LANGUAGE_TAG

TRAIN, HELD_OUT, DROPPED = Part.TRAIN, Part.HELD_OUT, Part.DROPPED
Stage = Callable[..., StagedPairs]


def pairs_of(*texts: str, file: str = "f") -> list[Pair]:
    return [Pair(*text.split("|"), Origin(file, line)) for line, text in enumerate(texts, start=1)]


def data_of(*files: str, **options: object) -> DataConfig:
    corpora = tuple(CorpusConfig((file,), synthetic="synthetic" in file) for file in files)
    return DataConfig(
        **{"source": "xx", "target": "yy", "holdout": 0, "corpora": corpora, **options}
    )


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Stages pairs, whose hashes are those of their texts; near ones ignore case."""
    numbers = iter(range(99))

    def stage(
        pairs: Sequence[Pair],
        *,
        differ: Sequence[int] = (),
        size: int = 99,
        empty: Sequence[int] = (),
    ) -> StagedPairs:
        parts = np.zeros(len(pairs), dtype=np.int8)
        parts[list(differ)] = Part.PLACEHOLDERS_DIFFER
        with StagingWriter(tmp_path / str(next(numbers)), with_sentences=True) as writer:
            for start in range(0, len(pairs), size):
                some = pairs[start : start + size]
                exact, near = (
                    np.array([hash(change(f"{pair[:2]}")) % 2**63 for pair in some], dtype="<u8")
                    for change in (str, str.lower)
                )
                hashes = {DUPLICATE: exact, NEAR_DUPLICATE: near}
                writer.append(some, parts[start : start + size], hashes)
            for position in empty:
                writer.leave_out(EMPTY, position, Origin("e", position))
        return writer.finish(len(pairs) + len(empty))

    return stage


def test_a_pair_that_repeats_one_of_an_earlier_part_is_left_out(stage):
    first = stage(pairs_of("a|b", "c|d", "A|B"))
    second = stage(pairs_of("e|f", "c|d", "C|d", "E|F", "a|b", file="g"), differ=[4], size=2)
    cleaning = Cleaning()
    leave_out([first, second], data_of(), cleaning)
    assert first.parts.tolist() == [TRAIN] * 3
    assert second.parts.tolist() == [TRAIN, Part.REPEATED, TRAIN, TRAIN, Part.REPEATED]
    assert cleaning.read == 8 and dict(cleaning.counts) == {DUPLICATE: 2}
    assert cleaning.lines == {DUPLICATE: [Origin("g", 2), Origin("g", 5)]}
    alone = stage(pairs_of("a|b", "a|b"))
    leave_out([alone], data_of(), Cleaning())
    assert alone.parts.tolist() == [TRAIN, TRAIN], "the part was cleaned when it was staged"


def test_near_duplicates_are_left_out_if_the_rule_is_on(stage):
    near = data_of(rules=(NEAR_DUPLICATE,), deduplicate=False)
    texts = "a|b", "A|B", "a|b", "c|d", "C|d"
    for data, parts in ((near, [0, 3, 3, 4, 0]), (data_of(deduplicate=False), [0, 0, 0, 4, 0])):
        first, second = stage(pairs_of(*texts), differ=[3]), stage(pairs_of("c|D"))
        cleaning = Cleaning()
        leave_out([first, second], data, cleaning)
        assert first.parts.tolist() == parts
        assert second.parts.tolist() == [3 if data is near else 0]
        assert cleaning.counts[PLACEHOLDERS_DIFFER] == 1
        assert cleaning.lines[PLACEHOLDERS_DIFFER] == [Origin("f", 4)]


def test_repetitions_are_found_slice_by_slice(stage, monkeypatch):
    monkeypatch.setattr(holdout, "SLICE_ITEMS", 2)
    first, second = (
        stage(pairs_of("a|b", "c|d")),
        stage(pairs_of("a|b", "e|f", "e|f", "c|d", "g|h")),
    )
    leave_out([first, second], data_of(), cleaning := Cleaning())
    assert second.parts.tolist() == [Part.REPEATED, TRAIN, Part.REPEATED, Part.REPEATED, TRAIN]
    assert [origin.line for origin in cleaning.lines[DUPLICATE]] == [1, 3, 4]


def test_rules_are_counted_in_the_order_of_the_pairs_that_break_them_first(stage):
    """What staging left out comes before the staged pair at its position."""
    for empty, order in (
        ([1, 4], [EMPTY, PLACEHOLDERS_DIFFER]),
        ([2, 4], [PLACEHOLDERS_DIFFER, EMPTY]),
    ):
        cleaning = Cleaning()
        leave_out(
            [stage(pairs_of("a|b", "c|d", "e|f"), differ=[1], empty=empty)], data_of(), cleaning
        )
        assert list(cleaning.counts.items()) == [(rule, 1 + (rule == EMPTY)) for rule in order]
        assert cleaning.lines[EMPTY] == [Origin("e", position) for position in empty]
        assert cleaning.read == 5
    cleaning = Cleaning()
    texts = "a|b", "c|d", "e|f"
    swapped = [*pairs_of(*texts[:2], file="z"), *pairs_of(*texts[2:], file="a")]
    leave_out([stage(swapped, differ=[1, 2])], data_of(), cleaning)
    assert cleaning.lines[PLACEHOLDERS_DIFFER] == [Origin("z", 2), Origin("a", 1)]


def test_pairs_left_out_at_one_place_keep_their_order(tmp_path):
    with StagingWriter(tmp_path / "0", with_sentences=True) as writer:
        for origin in (Origin("z", 1), Origin("a", 2)):
            writer.leave_out(EMPTY, 0, origin)
        writer.append(pairs_of("a|b"), np.zeros(1, dtype=np.int8), {})
    leave_out([writer.finish(3)], data_of(), cleaning := Cleaning())
    assert cleaning.lines[EMPTY] == [Origin("z", 1), Origin("a", 2)]


def numbered(count: int, file: str = "f", mark: str = "") -> list[Pair]:
    return pairs_of(*(f"s{mark} {i}|t{mark} {i}" for i in range(count)), file=file)


def test_what_is_held_out_is_not_trained_on_and_a_synthetic_pair_of_its_sentences_is_dropped(stage):
    real = [stage(numbered(200)[start : start + 100]) for start in (0, 100)]
    synthetic = stage(pairs_of(*(f"S {i}|other {i}" for i in range(200)), file="g"))
    found = aggregate(data_of("real", "synthetic", holdout=15), [real, [synthetic]])
    assert len(found.held_out) == 15 and found.dropped == 15 and found.pairs == 185 + 185
    held_out = {pair.source.split()[1] for pair in found.held_out}
    assert {p.source for part in real for p in part.pairs()} == {
        f"s {i}" for i in range(200) if str(i) not in held_out
    }
    assert [p.source for p in synthetic.pairs(DROPPED)] == [
        f"S {i}" for i in range(200) if str(i) in held_out
    ]
    again = aggregate(data_of("real", holdout=15), [[stage(numbered(200))]])
    assert again.held_out == found.held_out, "however the corpus is cut"
    chosen = hold_out(lambda: [sentences(numbered(200))], 15, seed=1) == HELD_OUT
    assert found.held_out == [p for p, its in zip(numbered(200), chosen, strict=True) if its]
    cut = [stage([]), stage(numbered(200)[:3]), stage([]), stage(numbered(200)[3:])]
    assert aggregate(data_of("real", holdout=15), [cut]).held_out == found.held_out
    assert aggregate(data_of("real"), [[stage(numbered(200))]]).held_out == []
    only = aggregate(data_of("synthetic", holdout=15), [[stage(numbered(200))]])
    assert (only.held_out, only.pairs) == ([], 200)


def test_pairs_that_share_a_sentence_with_a_replayed_one_are_dropped(stage, tmp_path):
    valid = tmp_path / "valid.tsv"
    valid.write_text("s 3\tanother\nx {a}\ty\nnew {a}\tneu {a}\n \tblank\n")
    parts = stage(numbered(8)), stage(numbered(8, "g", "x"))
    replayed = pairs_of("S  3|t 5", "sx 7|never")
    options = {"valid": (str(valid),), "placeholders": "masked", "holdout": 5}
    found = aggregate(data_of("real", "synthetic", **options), [parts[:1], parts[1:]], replayed)
    assert found.dropped == 3 and found.pairs == 13
    assert [pair.source for part in parts for pair in part.pairs(DROPPED)] == ["s 3", "s 5", "sx 7"]
    assert aggregate(data_of("real"), [[stage([]), stage(numbered(3))]], replayed).pairs == 3
    # The validation files are not compared with the corpus. A pair with other placeholders is left out.
    assert [pair.target for pair in found.held_out] == ["another", "neu \ufdd0"]
    assert found.cleaning.counts == {PLACEHOLDERS_DIFFER: 1}
    valid.write_text("x\t\n")
    with pytest.raises(
        UserError, match=r"No pair of .*valid.tsv has one line of text on each side"
    ):
        aggregate(data_of("real", **options), [[stage(numbered(8))]])


def test_a_corpus_without_training_pairs_is_refused(stage):
    with pytest.raises(UserError, match="there are no lines in real"):
        aggregate(data_of("real"), [[stage([])]])
    with pytest.raises(UserError, match="placeholders"):
        aggregate(data_of("real"), [[stage(numbered(2), differ=[0, 1])]])


def test_masked_pairs_share_their_tokens_and_others_are_counted():
    pairs, cleaning = pairs_of("a {x}|b {x}", "a {x}|b", "c|d"), Cleaning()
    masked = list(masked_pairs(pairs, data_of(placeholders="masked"), cleaning))
    assert [pair[:2] for pair in masked] == [("a \ufdd0", "b \ufdd0"), ("c", "d")]
    assert cleaning.lines == {PLACEHOLDERS_DIFFER: [Origin("f", 2)]}
    assert [pair.origin.line for pair in masked] == [1, 3]
    assert list(masked_pairs(pairs, data_of(placeholders="kept"), cleaning)) == pairs


def test_only_files_that_still_have_pairs_are_kept_in_their_order(stage):
    first = stage([*numbered(2, "b"), *numbered(3, "a", "x"), *numbered(1, "d", "y")])
    second = stage([*numbered(2, "c", "z"), *numbered(1, "a", "w"), *numbered(1, "e", "v")])
    first.parts[:] = [DROPPED, Part.REPEATED, HELD_OUT, TRAIN, TRAIN, Part.PLACEHOLDERS_DIFFER]
    second.parts[:] = [Part.REPEATED, TRAIN, TRAIN, Part.REPEATED]
    assert kept_files([first, second]) == ["b", "a", "c"]


def multilingual(temperature: float, *languages: tuple[str, str]) -> DataConfig:
    corpora = tuple(CorpusConfig((f"{a}{b}",), source=a, target=b) for a, b in languages)
    directions = tuple(f"{a}-{b}" for a, b in languages)
    return DataConfig(corpora=corpora, directions=directions, temperature=temperature)


@pytest.mark.parametrize(("temperature", "copies"), [(1, 1), (2, 3), (100, 9)])
def test_small_languages_are_repeated_by_the_temperature(stage, temperature, copies):
    """English has 45 texts, French 40 and German 5: (45 / 5) ** (1 - 1 / temperature)."""
    german, french = stage(numbered(5)), [stage(numbered(20, "g")), stage(numbered(25, "g"))]
    french[0].parts[15:] = HELD_OUT
    data = multilingual(temperature, ("en", "de"), ("en", "fr"))
    found = _balanced(data, [[german], french])
    assert found == [([german], 0), (french, 0), *[([german], 1)] * copies, (french, 1)]


def test_a_tiny_language_is_not_repeated_ten_thousand_times(stage):
    data = multilingual(1e9, ("en", "de"), ("fr", "en"))
    large, tiny = stage(numbered(2000)), stage(numbered(3, "g"))
    found = _balanced(data, [[large], [tiny]])
    assert MAX_COPIES == 100 and found.count(([tiny], 0)) == 100
    assert found[:3] == [([large], 0), ([tiny], 1), ([large], 1)] and len(found) == 103


def test_the_vocabulary_is_learnt_from_the_training_pairs(stage):
    pairs = numbered(300)
    part = stage(pairs)
    part.parts[:] = [HELD_OUT if "7" in pair.source else TRAIN for pair in pairs]
    joint = learn_vocabulary(data_of("real"), [[part]], 280)
    assert joint.target is joint.source and not joint.has_placeholder_tokens
    assert joint.target.size <= 280
    pieces = {*"".join(joint.target.all_pieces()[-20:])}
    assert {*"st1234"} <= pieces and "7" not in pieces
    masked = data_of("real", joint=False, placeholders="masked")
    separate = learn_vocabulary(masked, [[part]], 330)
    assert separate.target is not separate.source and separate.has_placeholder_tokens
    assert "t" not in separate.source.all_pieces() and "s" not in separate.target.all_pieces()


def test_a_vocabulary_of_trees_has_all_marks(stage, tmp_path):
    """Trees to translate may be longer than those of the corpus."""
    (tmp_path / "t.mrg").write_text("(S (NN a))\n")
    part = stage(pairs_of("ka lo|(S 0) NN )"))
    for file, has in (("real", False), (str(tmp_path / "t.mrg"), True)):
        data = data_of(file, symbols=True, joint=False, placeholders="kept")
        learnt = learn_vocabulary(data, [[part]], 300)
        symbols = [piece.lstrip("\u2581") for piece in learnt.target.all_pieces()]
        assert are_of_trees(symbols) is has, file


def test_files_are_read_in_the_directions_of_a_model(tmp_path):
    (tmp_path / "german.tsv").write_text("a\tb\nc\td\n")
    (tmp_path / "french.tsv").write_text("e\tf\n")
    files = [f"en,de={tmp_path}/german.tsv", f"fr,en={tmp_path}/french.tsv"]
    data = multilingual(1, ("en", "de"), ("de", "en"), ("en", "fr"))

    def read(data: DataConfig, **options: bool) -> list[tuple[str, str, str]]:
        return [(p.source, p.target, p.direction) for p in read_directed(files, data, **options)]

    german = [("a", "b", "en-de"), ("b", "a", "de-en"), ("c", "d", "en-de"), ("d", "c", "de-en")]
    assert read(data) == [*german, ("f", "e", "en-fr")]
    french = [("e", "f", "fr-en"), ("f", "e", "en-fr")]
    assert read(data, untrained=True) == [*german, *french]
    plain = [str(tmp_path / "german.tsv")]
    assert [pair.direction for pair in read_directed(plain, data_of())] == ["", ""]


def test_a_vocabulary_is_extended_by_as_many_pieces_as_a_language_has(stage):
    data = multilingual(1.0, ("en", "de"))
    words = [f"{a}{b}" for a in "abcdefgh" for b in "klmnop"]
    known = stage(pairs_of(*(f"{word} {word}|{word}s" for word in words)))
    old = learn_vocabulary(data, [[known]], 300)
    both = multilingual(1.0, ("en", "de"), ("en", "fr"))
    new = stage(pairs_of(*(f"{word}|öü{word[::-1]} ñ" for word in words), file="g"))
    corpora = [[known], [new]]
    extended = extend_vocabulary(both, corpora, old, 0, {"en", "de"})
    assert extended.source.size <= old.source.size + 1 + old.source.size // 2
    assert extended.source.all_pieces()[: old.source.size] == old.source.all_pieces()
    assert [*extended.source.tags] == [*old.source.tags, LANGUAGE_TAG.format("fr")]
    small = extend_vocabulary(both, corpora, old, old.source.size + 4, {"en", "de"})
    assert small.source.size == old.source.size + 4
    with pytest.raises(UserError, match=f"at least {old.source.size + 1}:"):
        extend_vocabulary(both, corpora, old, old.source.size, {"en", "de"})


def test_each_corpus_of_a_multilingual_model_has_held_out_pairs_in_its_directions(stage, capsys):
    def found(*directions: str) -> tuple[list[str], str]:
        data = multilingual(1, ("en", "de"), ("en", "fr"))
        data = replace(data, directions=directions, holdout=20, source="en", target="de")
        corpora = [[stage(numbered(300))], [stage(numbered(110, "g", "x"))]]
        held_out = aggregate(data, corpora).held_out
        assert all(
            pair.source[0] == ("s" if pair.direction[:2] == "en" else "t") for pair in held_out
        )
        return [pair.direction for pair in held_out], " ".join(capsys.readouterr().err.split())

    directions, said = found("en-de", "fr-en")
    assert directions == ["en-de"] * 10 + ["fr-en"] * 10 and said == ""
    directions, said = found("en-de", "de-en", "en-fr")
    assert directions == ["en-de", "de-en"] * 10 + ["en-fr"] * 10


@pytest.mark.parametrize(("pairs", "is_few"), [(99, True), (100, False), (1, True)])
def test_a_corpus_of_less_than_a_hundred_pairs_is_warned_of_in_a_multilingual_model(
    stage, pairs, is_few, capsys
):
    corpora = [[stage(numbered(200))], [stage(numbered(pairs, "g", "x"))]]
    data = replace(multilingual(1, ("en", "de"), ("en", "fr")), holdout=0)
    aggregate(data, corpora)
    said = " ".join(capsys.readouterr().err.split())
    number = "1 pair" if pairs == 1 else f"{pairs} pairs"
    assert said == (f"Warning: enfr has only {number} from en to fr." if is_few else "")
    aggregate(data_of("real", "other"), corpora)
    assert capsys.readouterr().err == ""


def test_the_vocabulary_is_learnt_with_the_options_of_the_corpus(stage):
    part = stage(pairs_of(*(f"“s {i}”|“t {i}”" for i in range(40))))
    for kind in ("bpe", "unigram", "char"):
        learnt = learn_vocabulary(data_of("real", tokenizer=kind), [[part]], 290)
        assert (learnt.target.kind, learnt.quotes) == (kind, "“”")
    trees = data_of("real", symbols=True, joint=False)
    assert learn_vocabulary(trees, [[part]], 290).quotes is None
    data = multilingual(1, ("en", "de"), ("fr", "de"), ("de", "en"))
    learnt = learn_vocabulary(data, [[part], [part], [part]], 290)
    assert learnt.quotes is None and [*learnt.target.tags] == [">>de<<", ">>en<<"]
    assert learnt.target.known("“st”") == {*"“st”"}


def test_a_vocabulary_of_a_large_corpus_is_learnt_from_a_sample_but_has_all_symbols(
    stage, monkeypatch
):
    """23 pairs are kept: twice eight times as many as are learnt from, so that every second block of four is read."""
    monkeypatch.setattr(aggregating, "MAX_LEARNING_SENTENCES", 1)
    monkeypatch.setattr(staging, "SAMPLE_BLOCK", 4)
    letters = "abcdefghijklmnopqrstuvwx"
    part = stage(pairs_of(*(f"{letter * 9}|{letter.upper() * 9}" for letter in letters)))
    part.parts[letters.index("a")] = HELD_OUT  # counts, but is not learnt from
    part.parts[letters.index("i")] = Part.REPEATED
    for symbols in (False, True):
        data = data_of("real", joint=False, tokenizer="char", symbols=symbols)
        learnt = learn_vocabulary(data, [[part]], 400)
        assert learnt.source.known(letters) == {*"bcd", *"jklm", *"rstu"}
    assert {*learnt.target_symbols().values()} == {each.upper() * 9 for each in letters} - {
        "A" * 9,
        "I" * 9,
    }
    learnt = learn_vocabulary(replace(data, symbols=False), [[part]], 400)
    assert learnt.target.known(letters.upper()) == {*"BCDJKLMRSTU"}


@pytest.mark.parametrize(("texts", "copies"), [(2, 20), (1, 40), (0, 39)])
def test_the_smallest_language_may_have_one_text_or_none(stage, texts, copies):
    """English has 39 texts more: the texts of its two corpora."""
    data = multilingual(1e9, ("en", "de"), ("fr", "en"))
    large, tiny = stage(numbered(39)), stage(numbered(texts, "g"))
    found = _balanced(data, [[large], [tiny]])
    assert found.count(([tiny], 0)) == copies and found.count(([large], 1)) == 1
