"""An export translates as the model does, or isn't written; what is imported translates as it did."""

import io
import re
import shutil

import pytest
import sentencepiece
import torch
from hypothesis import given
from hypothesis import strategies as st

import transduce
from command_line import run
from corpora import reverse_texts, write_texts
from exports import ALIKE, MODELS, refused
from models import make_model
from transduce import model_folder
from transduce.config.parse import configure
from transduce.config.schema import (
    ModelConfig,
    RunConfig,
    options,
    with_options,
)
from transduce.system.errors import Hint, UserError
from transduce.system.files import publish, read_manifest
from transduce.text.tree_symbols import ALL_MARKS
from transduce.tokens.imported_vocabulary import ImportedVocabulary, piece_spans
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.export.exporting import export
from transduce.wings.formats import FORMATS, VALUES_BY_OPTION, refuse_config
from transduce.wings.pretrained import importing

FAST = [("onnx", "gelu and a bias")]  # the only graph with an error function


@pytest.mark.parametrize(
    ("form", "name"),
    [
        pytest.param(
            form, name, marks=[pytest.mark.slow] * (name in ALIKE and (form, name) not in FAST)
        )
        for form in FORMATS
        if form != "web"  # stores weights in 8 bits
        for name in MODELS
    ],
)
def test_exports_translate_like_the_model(form, name, models, tmp_path):
    folder = models(name)
    if refused(form, folder):
        with pytest.raises(UserError, match="can't be exported to") as raised:
            export(folder, form, tmp_path / "out")
        assert not list(tmp_path.iterdir())
        others = ", ".join(each for each in FORMATS if not refused(each, folder))
        assert raised.value.hint == (Hint(f"Choose another format: {others}.") if others else None)
        return
    found = export(folder, form, tmp_path / "out")
    if found is None:
        text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
        assert form == "marian" and "Not compared, since Marian is not installed." in text
        return
    assert found.sentences == found.identical == 40
    model_folder.verify(tmp_path / "out", hashes=True)
    assert "40 of 40 sentences" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


def test_refused_formats_match_the_documented_table(models):
    found = {
        name: [form for form in FORMATS if not refused(form, models(name, updates=0))]
        for name in MODELS
    }
    everything = ["ctranslate2", "argos", "huggingface", "onnx", "web"]
    assert found == {
        "post": everything,
        "blocks": everything,
        "silu": everything,
        "gelu and a bias": everything,
        "separate": ["ctranslate2", "huggingface", "onnx", "web"],
        "marian": ["ctranslate2", "argos", "marian"],
        "separate marian": ["ctranslate2", "marian"],
        "placeholder tokens": everything,
        "separate placeholder tokens": ["ctranslate2", "huggingface", "onnx", "web"],
        "pre": ["ctranslate2", "argos", "onnx", "web"],
        "learned": ["ctranslate2", "argos", "onnx", "web"],
        "dot": ["onnx", "web"],
        "separate symbols": ["ctranslate2", "huggingface", "onnx"],
        **{
            name: ["ctranslate2", "argos", "onnx", "web"]
            for name in ("rotary", "swiglu", "shared keys", "rms", "no biases", "modern")
        },
    }
    other = {"kind": "recurrent", "experts": 4, "window": 2, "attention": "additive"}
    for option, value in other.items():
        config = RunConfig(model=with_options(ModelConfig(), **{option: value}))
        for form in FORMATS:
            refusal = refuse_config(form, config)
            assert refusal and option in refusal.reason
    for form in FORMATS:
        needed = MODELS["marian"] if form == "marian" else {}
        # As 0.
        sizes = {"model.d_k": 64, "model.d_v": 64, "model.num_kv_heads": 8}
        assert not refuse_config(form, configure({**needed, **sizes}))
    assert set(VALUES_BY_OPTION) <= {option.name for option in options()}


def test_parsers_are_not_exported(tmp_path, capsys):
    """Symbols that are no trees are translated to like anything else."""
    folder = make_model(tmp_path / "model", {}, joint=False, symbols=True)
    assert "ctranslate2, huggingface, onnx" in run(capsys, "info", folder)[1]
    tokenizer = Tokenizer.train(
        ["ka lo"], [f"(S {ALL_MARKS} NN )"], vocab_size=300, joint=False, symbols=True
    )
    with publish(folder) as aside:
        for name in read_manifest(folder):
            shutil.copy(folder / name, aside / name)
        assert all(name.startswith("tokenizer.") for name in tokenizer.save(aside))
    for form in FORMATS:
        with pytest.raises(UserError, match=f"{form}: it can't restrict .* to well-formed trees"):
            export(folder, form, tmp_path / "out")
    (folder / "tokenizer.target.model").write_bytes(b"damaged")
    status, said, _ = run(capsys, "doctor", folder)
    assert status == 1 and "tokenizer.target.model" in said


def test_onnx_is_translated_with_and_scored_as_the_model(models, tmp_path, capsys):
    export(models("dot"), "onnx", tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "encoder.onnx",
        "decoder.onnx",
        "config.toml",
        "tokenizer.model",
        "README.md",
        "manifest.json",
    }
    texts = [*reverse_texts(30, seed=7)[0], ""]
    own, exported = transduce.load(models("dot"), engine="torch"), transduce.load(tmp_path / "out")
    assert exported.engine.name == "ONNX Runtime"
    expected, found = own.translate(texts, n_best=3), exported.translate(texts, n_best=3)
    assert [each.text for each in found] == [each.text for each in expected]
    scores = [
        [best.score for each in some for best in (each, *each.alternatives)]
        for some in (expected, found)
    ]
    assert scores[1] == pytest.approx(scores[0], abs=1e-3)
    targets = [each.text for each in expected]
    reported = [
        [each.log_prob for each in translator.score(texts, targets)]
        for translator in (own, exported)
    ]
    assert reported[1] == pytest.approx(reported[0], abs=1e-2)
    (tmp_path / "texts").write_text("ka lo\n\nmi nu\n", encoding="utf-8")
    status, said, error = run(capsys, "translate", tmp_path / "out", "--input", tmp_path / "texts")
    assert status == 0 and len(said.split("\n")) == 4, error
    with pytest.raises(UserError, match="An export has its own engine"):
        transduce.load(tmp_path / "out", engine="torch")
    with pytest.raises(UserError, match="An export can't be part of an ensemble"):
        transduce.load([models("dot"), tmp_path / "out"])
    status, said, error = run(capsys, "score", tmp_path / "out", *2 * [tmp_path / "texts"])
    assert status == 0 and len(said.split("\n")) == 4, error
    for arguments in (
        ["info"],
        ["attention", "ka lo"],
        ["export", "--to", "onnx", "--out", tmp_path / "again"],
    ):
        status, _, error = run(capsys, arguments[0], tmp_path / "out", *arguments[1:])
        assert status == 2 and "out is an export" in error
    (tmp_path / "out" / "decoder.onnx").write_bytes(b"nothing")
    with pytest.raises(UserError, match="is damaged"):
        transduce.load(tmp_path / "out")


def test_imported_model_can_be_fine_tuned(marians, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(importing, "MAX_COMPARED_SENTENCES", 100)
    status, said, error = run(
        capsys, "import", marians("OPUS-MT"), "--out", tmp_path / "model", "--to", "fr"
    )
    assert status == 2 and "has no target language 'fr'. It has de" in error
    assert "Choose one of them (--to)." in error
    status, said, error = run(
        capsys, "import", marians("OPUS-MT"), "--out", tmp_path / "model", "--to", "de"
    )
    assert status == 0, error
    assert re.search(
        r"(99|100) of 100 sentences from the phrasebook produced identical tokens", said
    )
    files = write_texts(tmp_path, "train", 200, seed=2)
    options = [
        "train.steps=20",
        "train.warmup=5",
        "data.max_tokens=256",
        "train.threads=1",
        "data.holdout=10",
    ]
    arguments = [
        "--init",
        tmp_path / "model",
        "--train",
        *files,
        "--out",
        tmp_path / "tuned",
        *options,
    ]
    status, _, error = run(capsys, "train", *arguments)
    assert status == 0, error
    before, after = (model_folder.load(tmp_path / name) for name in ("model", "tuned"))
    assert after.config.data.directions == ("en-de",) and after.tokenizer.same_pieces(
        before.tokenizer
    )
    for name, weight in before.model.named_parameters():
        moved = not torch.equal(weight, after.model.get_parameter(name))
        assert moved or name == "output_bias"
    assert after.model.output_bias is not None and not torch.equal(
        after.model.output_bias, before.model.output_bias
    )
    export(tmp_path / "tuned", "huggingface", tmp_path / "out")
    texts = reverse_texts(30, seed=9)[0]
    translated = [each.text for each in transduce.load(tmp_path / "tuned").translate(texts)]
    assert len(translated) == len(texts)
    status, said, _ = run(capsys, "info", tmp_path / "model")
    assert status == 0 and "exports to  ctranslate2, huggingface, onnx" in said


letters = st.text("ab \u2603\u00c9\ufb01\u3000>", max_size=12)


@given(st.lists(letters, max_size=4))
def test_a_foreign_vocabulary_gives_the_pieces_that_its_model_cuts_or_what_is_unknown(texts):
    processor = sentencepiece.SentencePieceProcessor(model_proto=FOREIGN)
    own = [processor.id_to_piece(i) for i in range(processor.get_piece_size())][3::2]
    pieces = ["<pad>", "<s>", "</s>", "<unk>", *own, "another"]
    vocabulary = ImportedVocabulary(FOREIGN, pieces)
    for text, ids in zip(texts, vocabulary.encode(texts).lists(), strict=True):
        cut = processor.encode(text, out_type=str)
        assert vocabulary.pieces(ids) == [piece if piece in own else "<unk>" for piece in cut]
    rows = [[4, len(pieces) - 1, 2, 3], []]
    assert vocabulary.decode(rows) == [(own[0] + "another").replace("\u2581", " ").strip(), ""]


@given(letters)
def test_the_spans_of_a_foreign_vocabulary_are_those_of_what_was_written(text):
    """Whatever it does not know, or writes otherwise: each piece lies where its characters are, in order."""
    vocabulary = ImportedVocabulary(FOREIGN, ["<pad>", "<s>", "</s>", "<unk>", *"ab", "\u2581"])
    [ids] = vocabulary.encode([text]).lists()
    spans = vocabulary.spans_in(text, ids)
    assert len(spans) == len(ids) and all(0 <= begin <= end <= len(text) for begin, end in spans)
    assert [begin for begin, _ in spans] == sorted(begin for begin, _ in spans)
    for piece, (begin, end) in zip(vocabulary.pieces(ids), spans, strict=True):
        assert piece == "<unk>" or piece.strip("\u2581") == text[begin:end].strip(" \u3000")


def test_the_list_of_a_foreign_vocabulary_may_be_longer_than_its_model():
    pieces = ["<pad>", "<s>", "</s>", "<unk>", *"ab"]
    longer = ImportedVocabulary(FOREIGN, [*pieces, *map(str, range(10_000))])
    assert longer.kind == ImportedVocabulary(FOREIGN, pieces).kind


def test_a_character_in_bytes_of_a_foreign_vocabulary_stands_at_its_last_byte():
    e, kanji = "é".encode(), "漢".encode()
    assert piece_spans(["a", *e, " b", *kanji]) == [
        (0, 1),
        (1, 1),
        (1, 2),
        (2, 4),
        (4, 4),
        (4, 4),
        (4, 5),
    ]
    # Bytes of no character.
    assert piece_spans([0xE2, 0x96, "x", 0xFF]) == [
        (0, 1),
        (1, 2),
        (2, 3),
        (3, 4),
    ]


def make_foreign() -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["ab ba abab", "a \u00c9 b fi"] * 9),
        model_writer=model,
        vocab_size=16,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return model.getvalue()


FOREIGN = make_foreign()


def test_a_foreign_vocabulary_is_saved_and_damage_is_named(tmp_path):
    pieces = ["<pad>", "<s>", "</s>", "<unk>", "\u2581a", "b"]
    tokenizer = Tokenizer(ImportedVocabulary(FOREIGN, pieces))
    tokenizer.save(tmp_path)
    loaded = Tokenizer.load(tmp_path)
    assert (
        loaded.is_imported
        and loaded.joint
        and loaded.same_pieces(tokenizer)
        and not loaded.target_symbols()
    )
    assert loaded.encode_source(["a b"]) == tokenizer.encode_source(["a b"])
    for damage in ('["a"]', "[[]]", "{", '[["a", "a", "b", "c", "d"]]'):
        (tmp_path / "tokenizer.pieces.json").write_text(damage, encoding="utf-8")
        with pytest.raises(UserError, match="another copy"):
            Tokenizer.load(tmp_path)
