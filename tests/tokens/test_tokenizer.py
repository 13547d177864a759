"""Tests of transduce/tokens/tokenizer.py."""

import itertools
import re
from unittest.mock import patch

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.config.schema import BOS, EOS, PAD, PLACEHOLDER_TOKENS, UNK
from transduce.system.errors import UserError
from transduce.system.files import write_folder
from transduce.tokens.imported_vocabulary import ImportedVocabulary
from transduce.tokens.normalization import composed
from transduce.tokens.tokenizer import Tokenizer

ENGLISH = [
    "A dog runs over the grass.",
    "Two men  are sitting.",
    " The child's red ball, 3.5 m away!",
    "x\u2581y\tz",
] * 25


GERMAN = [
    "Ein Hund läuft über das Gras.",
    "Zwei Männer sitzen.",
    "Der rote Ball des Kindes, 3,5 m entfernt!",
] * 25


VOCABULARIES = {kind: (kind, True) for kind in ("bpe", "unigram", "char")} | {
    "separate": ("bpe", False)
}


# What looks like a control piece, what SentencePiece or a terminal gives a meaning, what is invisible or composed.
CURIOUS = [
    "",
    " ",
    "  ",
    "<s>",
    "</s>",
    "<unk>",
    "<pad>",
    "<0x41>",
    "<0x0A>",
    "dog",
    " dog",
    "a\u2581b ",
]
CURIOUS += [
    "\u2581",
    "\u2585",
    "\0",
    "\t",
    "\r",
    "\x85",
    "\u2028",
    "\ufffd",
    "\ufeff",
    "\u200d",
    "\U0010ffff",
]
CURIOUS += ["e\u0301", "👩\u200d🚀", "İ", "日本語"]


lines = st.lists(
    st.sampled_from(CURIOUS)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"))
).map("".join)


@pytest.fixture(scope="module", params=VOCABULARIES)
def tokenizer(request):
    kind, joint = VOCABULARIES[request.param]
    return Tokenizer.train(ENGLISH, GERMAN, vocab_size=400, kind=kind, joint=joint)


@given(texts=st.lists(lines, max_size=4))
def test_decoding_undoes_encoding(tokenizer, texts):
    rows = tokenizer.target.encode(texts).lists()
    assert tokenizer.decode(rows) == texts
    assert all(UNK < token < tokenizer.target.size for row in rows for token in row)
    assert all(
        UNK < token < tokenizer.source.size
        for row in tokenizer.encode_source(texts)
        for token in row
    )


@pytest.mark.parametrize(("place", "step"), [("{}", 1), ("a{}b", 5), (" {}{} ", 5)])
def test_every_character_survives_encoding_and_decoding(tokenizer, place, step):
    # Every character of the first plane, and some of the others.
    ranges = (
        range(0, 0xD800, step),
        range(0xE000, 0x10000, step),
        range(0x10000, 0x110000, 97 * step),
    )
    characters = [chr(c) for c in itertools.chain(*ranges) if c != 0x0A]
    texts = [place.replace("{}", character) for character in characters]
    assert tokenizer.decode(tokenizer.target.encode(texts).lists()) == texts


def test_texts_are_encoded_the_same_alone_together_and_in_parallel(tokenizer, tmp_path):
    texts = ENGLISH + GERMAN + CURIOUS
    tokenizer.save(tmp_path)
    rows = tokenizer.encode_source(texts)
    assert rows == [tokenizer.encode_source([text])[0] for text in texts]
    assert rows == Tokenizer.load(tmp_path, threads=3).encode_source(texts)


@given(data=st.data())
def test_any_ids_decode_to_a_line_of_characters(tokenizer, data):
    # Rather many bytes.
    tokens = st.integers(0, tokenizer.target.size - 1) | st.integers(0, UNK + 256)
    rows = data.draw(st.lists(st.lists(tokens), max_size=3))
    texts = tokenizer.decode(rows)
    assert len(texts) == len(rows)
    for text in texts:
        assert "\n" not in text
        text.encode("utf-8")


def test_bytes_by_hand(tokenizer):
    spelled = [UNK + 1 + byte for byte in range(256)]
    assert tokenizer.target.pieces(spelled) == [f"<0x{byte:02X}>" for byte in range(256)]
    assert tokenizer.decode([[spelled[0x41], spelled[0x0A], spelled[0x42]]]) == ["A B"]
    assert tokenizer.decode([[spelled[byte] for byte in "ß日\u2581".encode()]]) == ["ß日\u2581"]
    assert tokenizer.decode([[spelled[0x41], spelled[0xC3], spelled[0x42]]]) == ["A\ufffdB"]
    assert tokenizer.decode([[BOS, spelled[0x41], UNK, EOS, PAD, PAD], []]) == ["A", ""]


def test_half_of_a_surrogate_pair_is_replaced(tokenizer):
    (text,) = tokenizer.decode(tokenizer.encode_target(["a\ud800\u2581b"]))
    assert text.replace("\ufffd", "") == "a\u2581b"
    assert "\ufffd" in text


@pytest.mark.parametrize("text", ["foo", "(S foo )S", " (S", "", "a\ud800 b"])
def test_spans_of_words_that_are_no_symbols_cover_the_text(text):
    target = Tokenizer.train(
        ["ka lo"], ["(S NN )S"] * 9, vocab_size=300, joint=False, symbols=True
    ).target
    spans = target.spans_in(text, target.encode([text]).lists()[0])
    assert "".join(text[slice(*span)] for span in spans) == text


def test_pieces_spell_the_text(tokenizer):
    (row,) = tokenizer.encode_source(["A dog runs."])
    assert "".join(tokenizer.source.pieces(row)) == "\u2581A\u2581dog\u2581runs."


@given(st.lists(lines, max_size=6), st.integers(1, 9), st.integers(1, 3))
def test_word_by_word_is_what_sentencepiece_does(tokenizer, texts, most, at_once):
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.source.model)
    names = (
        "transduce.tokens.vocabulary.MAX_CACHED_CHARACTERS",
        "transduce.tokens.vocabulary.WORDS_AT_ONCE",
    )
    with patch(names[0], most), patch(names[1], at_once):
        rows = tokenizer.source.encode(texts).lists()
    for text, row in zip(texts, rows, strict=True):
        if "\u2581" not in text:  # which SentencePiece takes for a space
            assert row == processor.encode(text)


@pytest.mark.parametrize("name", VOCABULARIES)
def test_the_same_texts_give_the_same_files(name, tmp_path):
    kind, joint = VOCABULARIES[name]
    files = []
    for time in ("first", "second"):
        folder = tmp_path / time
        folder.mkdir()
        learnt = Tokenizer.train(ENGLISH, GERMAN, vocab_size=380, kind=kind, joint=joint)
        names = learnt.save(folder)
        loaded = Tokenizer.load(folder)
        assert (loaded.joint, loaded.source.size, loaded.target.size) == (
            joint,
            learnt.source.size,
            learnt.target.size,
        )
        assert loaded.encode_source(ENGLISH) == learnt.encode_source(ENGLISH)
        assert loaded.encode_target(GERMAN) == learnt.encode_target(GERMAN)
        files.append({name: (folder / name).read_bytes() for name in names})
    assert files[0] == files[1]
    assert set(files[0]) == (
        {"tokenizer.model"} if joint else {"tokenizer.source.model", "tokenizer.target.model"}
    )


def test_separate_vocabularies_of_equal_texts_stay_separate(tmp_path):
    assert len(Tokenizer.train(ENGLISH, ENGLISH, vocab_size=400, joint=False).save(tmp_path)) == 2
    assert not Tokenizer.load(tmp_path).joint


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char"])
@pytest.mark.parametrize(
    "texts",
    [
        ["a"],
        ["<s> </s> <unk> <pad> <0x41>"] * 20,
        ["\0", "\u2581\t\u2585", "ab"],
        ["日本語" * 4000],
        ["ab " * 5000],
    ],
)
def test_a_vocabulary_is_as_large_as_the_texts_allow(kind, texts):
    tokenizer = Tokenizer.train(texts, texts, vocab_size=1000, kind=kind)
    assert UNK + 256 < tokenizer.target.size <= 1000
    assert tokenizer.decode(tokenizer.encode_target(texts)) == texts


@settings(max_examples=30)
@given(texts=st.lists(lines, min_size=1, max_size=5), vocab_size=st.integers(262, 300))
def test_any_text_can_be_learnt_from(texts, vocab_size):
    tokenizer = Tokenizer.train(["some text", *texts], texts, vocab_size=vocab_size)
    assert tokenizer.source.size <= vocab_size
    assert tokenizer.decode(tokenizer.encode_target(texts)) == composed(texts)


def test_long_lines_and_lines_with_reserved_characters_are_learnt_from():
    tokenizer = Tokenizer.train(["\u2581\u2585\t\0\r" + "zebra " * 3000], [], vocab_size=300)
    assert tokenizer.source.pieces(tokenizer.encode_source(["zebra"])[0]) == ["\u2581zebra"]


def test_more_characters_than_a_vocabulary_has_room_for():
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 2000)))
    tokenizer = Tokenizer.train([text], [text], vocab_size=500)
    assert tokenizer.target.size <= 500
    assert tokenizer.decode(tokenizer.encode_target([text])) == [text]


@pytest.mark.parametrize("texts", [[], ["", " "], ["\u2581\t"]])
def test_no_text_is_an_error(texts):
    with pytest.raises(UserError, match="no text"):
        Tokenizer.train(texts, texts, vocab_size=500)


def test_a_vocabulary_needs_room_for_bytes():
    with pytest.raises(UserError, match=r"data\.vocab_size must be above 261, not 261"):
        Tokenizer.train(["a"], ["a"], vocab_size=261)
    assert Tokenizer.train(["a"], ["a"], vocab_size=262).target.size == 262


@pytest.mark.parametrize(
    "damage", [lambda _: b"", lambda model: model[: len(model) // 2], lambda _: b"x" * 99]
)
@pytest.mark.parametrize("joint", [True, False])
def test_a_damaged_model_is_named(damage, joint, tmp_path):
    name = Tokenizer.train(ENGLISH, GERMAN, vocab_size=300, joint=joint).save(tmp_path)[0]
    (tmp_path / name).write_bytes(damage((tmp_path / name).read_bytes()))
    with pytest.raises(UserError, match=name):
        Tokenizer.load(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(UserError, match=f"{'tokenizer.model' if joint else name} is missing"):
        Tokenizer.load(tmp_path)


def test_a_target_language_has_a_tag():
    tokenizer = Tokenizer.train(ENGLISH, GERMAN, vocab_size=400, languages=["de", "pt_BR"])
    german = tokenizer.into("de")
    assert german.tags == (tokenizer.source.tags[">>de<<"],) and tokenizer.tags == ()
    assert german.encode_source(["A dog", ""]) == [
        [*german.tags, *tokenizer.encode_source(["A dog"])[0]],
        [],
    ]
    assert german.encode_target(["A dog"]) == tokenizer.encode_target(["A dog"])
    assert (tokenizer.tag_of("pt_BR"), tokenizer.tag_of("fr")) == (">>pt_BR<<", "")
    assert tokenizer.tag_of("pt-BR") == ">>pt_BR<<"
    same = tokenizer.into("")
    assert same.tags == () and same.encode_source(["A"]) == tokenizer.encode_source(["A"])
    with pytest.raises(UserError, match="has no tag for the language 'fr'"):
        tokenizer.into("fr")
    hyphens = [*tokenizer.target.all_pieces()]
    hyphens[hyphens.index(">>pt_BR<<")] = ">>pt-BR<<"
    imported = Tokenizer(ImportedVocabulary(tokenizer.target.model, hyphens))
    assert imported.tag_of("pt_BR") == ">>pt-BR<<" and imported.into("pt_BR").tags
    assert imported.is_imported and not tokenizer.is_imported


def test_own_tags_are_those_of_target_and_source():
    tokenizer = Tokenizer.train(ENGLISH, GERMAN, vocab_size=400, languages=["de", "en"])
    pieces = [re.sub(">>(.*)<<", r"<<\1>>", piece) for piece in tokenizer.target.all_pieces()]
    imported = Tokenizer(ImportedVocabulary(tokenizer.target.model, pieces))
    assert imported.has_own_tags and not tokenizer.has_own_tags
    ids = [imported.source.tags[tag] for tag in ("<<de>>", "<<en>>")]
    [plain] = imported.encode_source(["A dog"])
    assert imported.into("de", "en").encode_source(["A dog", ""]) == [[*ids, *plain], []]
    assert imported.toward("en-de").tags == (*ids,) and imported.toward("").tags == ()
    assert imported.decode([[ids[0], *plain, ids[1]]]) == imported.decode([plain])
    with pytest.raises(UserError, match="has no tag for the language 'fr'"):
        imported.into("de", "fr")
    with pytest.raises(UserError, match="has no tag for the language ''"):
        imported.into("de")


def test_a_vocabulary_is_extended_only_if_both_sides_share_it():
    tokenizer = Tokenizer.train(ENGLISH, GERMAN, vocab_size=300, languages=["de"])
    extended = tokenizer.extended(["öß öß öß"] * 9, 3, ["de", "fr"])
    assert extended.target.size <= tokenizer.target.size + 4 and extended.joint
    assert [*extended.source.tags] == [">>de<<", ">>fr<<"]
    separate = Tokenizer.train(ENGLISH, GERMAN, vocab_size=300, joint=False)
    with pytest.raises(
        UserError, match="only to a model with one vocabulary for source and target"
    ):
        separate.extended(["a"], 3, ["fr"])


def test_unknown_characters_have_no_piece_and_no_form_with_one():
    tokenizer = Tokenizer.train(["abc 12 “x”"] * 9, ["abc"], vocab_size=300, quotes="")
    assert tokenizer.unknown(["ab\uff11", "ж “c”"]) == {"ж"}
    assert tokenizer.unknown(["\ud800", "\u200b"]) == set() == tokenizer.unknown([])
    assert tokenizer.has_letters
    assert not Tokenizer.train(["1 2", "3"] * 9, ["4"], vocab_size=280).has_letters


def test_equal_pieces_are_needed_on_both_sides():
    one, other = (
        Tokenizer.train(ENGLISH, GERMAN, vocab_size=size, joint=False) for size in (300, 310)
    )
    assert one.same_pieces(Tokenizer(one.target, one.source)) and not one.same_pieces(other)
    assert not one.same_pieces(Tokenizer(one.target, other.source))
    assert not one.same_pieces(Tokenizer(other.target, one.source))
    assert one.models == (one.source.model, one.target.model)


def test_symbols_of_trees_belong_to_the_target():
    trees = Tokenizer.train(["a b"] * 9, ["(S NN )S"], vocab_size=300, joint=False, symbols=True)
    assert [*trees.target_symbols().values()] == ["(S", ")S", "NN"]
    assert Tokenizer.train(ENGLISH, GERMAN, vocab_size=300).target_symbols() == {}
    assert trees.normalizer(["“a”  b"]) == ["“a”  b"], "its words have tags"


def test_an_imported_vocabulary_is_saved_with_its_pieces(tmp_path):
    learnt = Tokenizer.train(ENGLISH, GERMAN, vocab_size=300, joint=False)
    target, source = (
        ImportedVocabulary(side.model, side.all_pieces()) for side in (learnt.target, learnt.source)
    )
    for name, tokenizer, files in (
        ("one", Tokenizer(target), {"tokenizer.model", "tokenizer.pieces.json"}),
        (
            "two",
            Tokenizer(target, source),
            {"tokenizer.source.model", "tokenizer.target.model", "tokenizer.pieces.json"},
        ),
        (
            "shared",
            Tokenizer(target, ImportedVocabulary(source.model, target.listed)),
            {"tokenizer.source.model", "tokenizer.target.model", "tokenizer.pieces.json"},
        ),
        (
            "lists",
            Tokenizer(target, ImportedVocabulary(target.model, source.listed)),
            {"tokenizer.model", "tokenizer.pieces.json"},
        ),
    ):
        (tmp_path / name).mkdir()
        assert {*tokenizer.save(tmp_path / name)} == files
        loaded = Tokenizer.load(tmp_path / name, threads=2)
        assert loaded.is_imported and loaded.joint == (name in ("one", "shared")) == tokenizer.joint
        assert loaded.same_pieces(tokenizer) and loaded.target.threads == 2
    for damaged in ("{}", "[]", "[[]]", "[1]", '[["a"], ["b"], ["c"]]', "[", "[" * 99_999):
        (tmp_path / "one" / "tokenizer.pieces.json").write_text(damaged)
        with pytest.raises(UserError, match=r"tokenizer.pieces.json (is damaged|can't be read)"):
            Tokenizer.load(tmp_path / "one")
    Tokenizer.train(ENGLISH, [], vocab_size=300, quotes="“").save(tmp_path)
    assert Tokenizer.load(tmp_path).quotes == "“"
    for damaged in ("{}", '{"curly_quotes": 1}', "[]", "[", "[" * 99_999):
        (tmp_path / "tokenizer.normalization.json").write_text(damaged)
        with pytest.raises(UserError, match=r"tokenizer.normalization.json is damaged"):
            Tokenizer.load(tmp_path)


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("is_imported", [True, False])
def test_a_tokenizer_of_a_finished_folder_is_checked(tmp_path, joint, is_imported):
    learnt = Tokenizer.train(ENGLISH, GERMAN, vocab_size=300, joint=joint, quotes="")
    if is_imported:
        sides = (
            ImportedVocabulary(s.model, s.all_pieces()) for s in (learnt.target, learnt.source)
        )
        target, source = sides
        learnt = Tokenizer(target, None if joint else source, "")
    with write_folder(tmp_path / "model") as aside:
        names = learnt.save(str(aside))
    loaded = Tokenizer.load(str(tmp_path / "model"))
    assert loaded.models == learnt.models and (loaded.quotes, loaded.target.threads) == ("", 1)
    for name in names:
        content = (tmp_path / "model" / name).read_bytes()
        other = content + b" " if name.endswith(".json") else content[:-1] + b"x"
        (tmp_path / "model" / name).write_bytes(other)
        with pytest.raises(UserError, match=f"{name}.*(damaged|changed)"):
            Tokenizer.load(tmp_path / "model")
        (tmp_path / "model" / name).write_bytes(content)
    Tokenizer.load(tmp_path / "model")
    (tmp_path / "tokenizer.normalization.json").mkdir()
    (tmp_path / "tokenizer.model").write_bytes(learnt.target.model)
    with pytest.raises(UserError, match=r"tokenizer\.normalization\.json is damaged"):
        Tokenizer.load(tmp_path)


def test_the_second_of_two_vocabularies_may_be_missing(tmp_path):
    Tokenizer.train(ENGLISH, GERMAN, vocab_size=300, joint=False).save(tmp_path)
    (tmp_path / "tokenizer.target.model").unlink()
    with pytest.raises(UserError, match=r"tokenizer\.target\.model is missing"):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char"])
def test_separate_vocabularies_are_learnt_from_their_own_side_alike(kind):
    found = Tokenizer.train(
        ["a b", "b ab"] * 9,
        ["x y", "y xy"] * 9,
        vocab_size=400,
        kind=kind,
        joint=False,
        placeholder_tokens=PLACEHOLDER_TOKENS,
        quotes="“",
    )
    assert found.source.kind == found.target.kind == kind and found.has_placeholder_tokens
    assert found.source.known("abxy") == {"a", "b"} and found.target.known("abxy") == {"x", "y"}
    assert not found.joint and found.quotes == "“" and found.target_symbols() == {}
    for side in (found.source, found.target):
        assert Tokenizer(found.target, side).has_placeholder_tokens
    other = Tokenizer.train(ENGLISH, GERMAN, vocab_size=300).target
    assert not Tokenizer(found.target, other).has_placeholder_tokens
    assert not Tokenizer(other, found.source).has_placeholder_tokens
    with pytest.raises(IndexError):
        found.decode([[found.target.size]])
