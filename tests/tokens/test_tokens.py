"""Text comes back as it went in, the store gives back what was written, and every sentence is in one batch."""

import itertools
from unittest.mock import patch

import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora import blocks
from transduce.config.schema import BOS, EOS, PAD, UNK
from transduce.system.errors import UserError
from transduce.tokens.batching import micro_batches, padding_share
from transduce.tokens.normalization import composed
from transduce.tokens.packed import map_file
from transduce.tokens.store import TokenStore, write_store
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import WordCache, pack

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


@pytest.mark.parametrize("numbers", [[], [1, 2]])
def test_a_file_keeps_its_type(numbers, tmp_path):
    (tmp_path / "numbers").write_bytes(np.array(numbers, dtype="<u2").tobytes())
    found = map_file(tmp_path / "numbers", "<u2")
    assert (found.dtype, found.tolist()) == (np.dtype("<u2"), numbers)


@given(
    st.lists(st.sampled_from(["a", "bb", "ccc", "dddd"]), min_size=1, max_size=9), st.integers(1, 9)
)
def test_a_word_is_encoded_again_only_if_the_cache_was_full(words, most):
    encoded = []
    cache = WordCache(
        lambda new: encoded.append(sorted(new)) or pack([[len(word)] for word in new])
    )
    with patch("transduce.tokens.vocabulary.MAX_CACHED_CHARACTERS", most):
        expected, kept = [], set()
        for word in words:
            assert cache.encode([word]).lists() == [[len(word)]]
            if kept and sum(map(len, {*kept, word})) > most:
                kept = set()
            expected += [] if word in kept else [[word]]
            kept.add(word)
    assert encoded == expected


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


# -- the store ---------------------------------------------------------------------------------------

ids = st.lists(st.integers(0, 300) | st.sampled_from([65535, 65536, 2**32 - 1]), max_size=6)
pairs = st.lists(st.tuples(ids, ids, st.integers(0, 2**31 - 1), st.integers(1, 2**62)), max_size=12)


@given(rows=pairs)
def test_store_returns_the_written_pairs(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("store") / "train"
    write_store(folder, blocks(rows))
    store = TokenStore(folder)
    assert len(store) == len(rows)
    every = np.arange(len(rows))
    texts = zip(store.source.rows(every), store.target.rows(every), strict=True)
    assert [(*map(list, text), *store.origin(i)) for i, text in enumerate(texts)] == rows
    assert store.source.lengths.tolist() == [len(row[0]) for row in rows]
    assert store.target.lengths.tolist() == [len(row[1]) for row in rows]


def test_ids_take_16_bits_until_one_does_not_fit(tmp_path):
    many = [([7] * 50, [65535], 0, line) for line in range(100)]
    write_store(tmp_path / "narrow", blocks(many))
    write_store(tmp_path / "wide", blocks([*many, ([65536], [1], 0, 101)]))
    sizes = {name: (tmp_path / name / "source.ids").stat().st_size for name in ("narrow", "wide")}
    assert sizes == {"narrow": 2 * 5000, "wide": 4 * 5001}
    wide = TokenStore(tmp_path / "wide")
    assert [row.tolist() for row in wide.source.rows(np.array([99, 100]))] == [[7] * 50, [65536]]
    assert wide.target.ids.itemsize == 2


def test_pairs_take_few_bytes_besides_their_ids(tmp_path):
    write_store(
        tmp_path / "store",
        blocks(([1] * (n % 7), [2] * (n % 5), n // 3000, n % 3000 * 2) for n in range(6000)),
    )
    sizes = {
        path.name: path.stat().st_size
        for path in (tmp_path / "store").iterdir()
        if path.name != "manifest.json"
    }
    ids = sizes.pop("source.ids") + sizes.pop("target.ids")
    assert ids == 2 * sum(n % 7 + n % 5 for n in range(6000))
    assert sum(sizes.values()) < 5.5 * 6000
    store = TokenStore(tmp_path / "store")
    assert [store.origin(n) for n in range(6000)] == [
        (n // 3000, n % 3000 * 2) for n in range(6000)
    ]
    places = np.random.default_rng(1).permutation(6000)
    assert [ids.tolist() for ids in store.source.rows(places)] == [[1] * (n % 7) for n in places]
    assert [ids.tolist() for ids in store.target.rows(places)] == [[2] * (n % 5) for n in places]


def test_a_sentence_may_be_very_long(tmp_path):
    write_store(
        tmp_path / "store",
        blocks([([1], [2], 0, 1), ([3] * 70_000, [4] * 65_535, 0, 2), ([5], [6], 0, 3)]),
    )
    store = TokenStore(tmp_path / "store")
    assert [len(row) for row in store.source.rows(np.arange(3))] == [1, 70_000, 1]
    assert (store.source.lengths.itemsize, store.target.lengths.itemsize) == (4, 2)
    last = np.array([2])
    assert (store.source.rows(last)[0].tolist(), store.target.rows(last)[0].tolist()) == ([5], [6])


@pytest.mark.parametrize("other", [1, 3])
def test_a_store_of_another_format_is_refused(tmp_path, other):
    write_store(tmp_path / "store", blocks([([1, 2], [3], 0, 1)]))
    header = tmp_path / "store/store.json"
    header.write_text(header.read_text().replace('"format": 2', f'"format": {other}'))
    with pytest.raises(UserError, match=f"format {other}, but this version reads format 2"):
        TokenStore(tmp_path / "store")


def test_failed_writing_leaves_no_store(tmp_path):
    def rows():
        yield [1], [2], 0, 1
        raise RuntimeError("the corpus ended badly")

    with pytest.raises(RuntimeError):
        write_store(tmp_path / "store", blocks(rows(), size=1))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name",
    [
        "source.ids",
        "target.lengths",
        "source.starts",
        "origin.steps",
        "store.json",
        "manifest.json",
    ],
)
def test_a_damaged_store_is_named(name, tmp_path):
    write_store(tmp_path / "store", blocks([([1, 2], [3], 0, 1)]))
    path = tmp_path / "store" / name
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(UserError, match=name):
        TokenStore(tmp_path / "store")
    path.unlink()
    with pytest.raises(UserError, match=f"{name} is missing"):
        TokenStore(tmp_path / "store")


# -- the plan of batches -----------------------------------------------------------------------------

lengths = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=200).map(
    lambda rows: np.array(rows, dtype=np.int64).reshape(-1, 2).T
)
budgets = st.integers(41, 500)
seeds = st.integers(0, 2**40)


@given(lengths=lengths, budget=budgets, seed=seeds, epoch=st.integers(0, 1000))
def test_every_sentence_in_one_batch_within_the_budget(lengths, budget, seed, epoch):
    batches = micro_batches(*lengths, budget=budget, seed=seed, epoch=epoch)
    assert sorted(i for batch in batches for i in batch) == list(range(lengths.shape[1]))
    for batch in batches:
        assert len(batch) * (lengths[:, batch].max() + 1) <= budget
    again = micro_batches(*lengths.tolist(), budget=budget, seed=seed, epoch=epoch)
    assert [batch.tolist() for batch in again] == [batch.tolist() for batch in batches]


@given(lengths=lengths, budget=budgets, seed=seeds)
def test_no_two_batches_would_fit_into_one(lengths, budget, seed):
    batches = micro_batches(*lengths, budget=budget, seed=seed, epoch=0)
    for one, other in itertools.combinations(batches, 2):  # so at most one is less than half full
        both = np.concatenate((one, other))
        assert len(both) * (lengths[:, both].max() + 1) > budget


def test_epochs_and_seeds_differ():
    random = np.random.default_rng(0)
    source = random.integers(1, 30, 2000)
    target = np.maximum(1, source + random.integers(-3, 4, 2000))

    def plan(seed: int, epoch: int) -> list[frozenset[int]]:
        return [
            frozenset(b.tolist())
            for b in micro_batches(source, target, budget=600, seed=seed, epoch=epoch)
        ]

    for other in (plan(1, 1), plan(2, 0)):
        assert len(set(plan(1, 0)) & set(other)) < len(other) / 4  # others share a batch
        # And come in another order.
        assert [len(batch) for batch in plan(1, 0)] != [len(batch) for batch in other]


def test_padding_share_by_hand():
    # One batch of (2 + 1, 4 + 1) and (1 + 1, 4 + 1) source and target cells: 16 cells, one of them padding.
    assert padding_share([([2, 1], [4, 4])]) == pytest.approx(1 / 16)
    assert padding_share([([2], [4]), ([1], [4])]) == 0
    assert padding_share([]) == 0


def test_sentences_of_similar_length_share_a_batch():
    random = np.random.default_rng(0)
    source = np.clip(random.gamma(8, 2, 30_000), 1, 100).astype(int)
    target = np.clip(source * random.normal(1, 0.2, 30_000), 1, 100).astype(int)
    shuffled = np.array_split(random.permutation(30_000), 200)

    def share(batches):
        return padding_share((source[batch], target[batch]) for batch in batches)

    for budget, allowed in ((1024, 0.02), (4096, 0.05)):
        batches = micro_batches(source, target, budget=budget, seed=1, epoch=0)
        assert share(batches) < allowed < share(shuffled)


def test_a_sentence_above_the_budget_is_refused():
    assert len(micro_batches([9], [3], budget=10, seed=0, epoch=0)) == 1
    with pytest.raises(ValueError, match="11 tokens"):
        micro_batches([3, 10], [3, 3], budget=10, seed=0, epoch=0)
