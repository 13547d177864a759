"""Tests of transduce/wings/pretrained/huggingface_reader.py and multilingual.py, by transformers."""

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import transduce
from command_line import run
from pretrained import FAMILIES, LANGUAGES, make_pretrained, pairs
from transduce import model_folder
from transduce.decoding.torch_engine import TorchEngine
from transduce.system.errors import UserError
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.export.exporting import export
from transduce.wings.pretrained import huggingface_reader
from transduce.wings.pretrained.huggingface_reader import read
from transduce.wings.pretrained.importing import import_model
from transduce.wings.pretrained.weights import read_weights


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A folder for each family, made when it is asked for."""
    place = tmp_path_factory.mktemp("originals")

    def get(family: str) -> Path:
        folder = place / family
        return folder if folder.exists() else make_pretrained(folder, family)

    return get


@pytest.mark.parametrize("family", FAMILIES)
def test_an_import_translates_as_transformers_does(family, originals, tmp_path):
    imported = import_model(originals(family), tmp_path / "model", "en,de,fr", "de,en,fr", pairs())
    assert imported.parity and imported.parity.identical == imported.parity.sentences == 40
    config = model_folder.read_config(tmp_path / "model")
    assert config.data.directions == ("en-de", "en-fr", "de-en", "de-fr", "fr-de", "fr-en")
    assert config.data.licence == ("cc-by-nc-4.0" if family == "NLLB-200" else "")


@pytest.mark.parametrize("family", FAMILIES)
def test_forced_log_probabilities_are_those_of_transformers(family, originals):
    """By hand: which ids a source and a target have, and where the tags stand."""
    from transformers import AutoModelForSeq2SeqLM

    folder = originals(family)
    imported = read(folder, "en", "fr")
    network = AutoModelForSeq2SeqLM.from_pretrained(str(folder)).eval()
    rows = imported.target_rows
    bundle = transduce.model.build.build(imported.config.model)
    bundle.load_state_dict(imported.weights)
    tokenizer = imported.tokenizer.toward("en-fr")
    source = tokenizer.encode_source(["ka lo mi ti"])[0]
    target = tokenizer.encode_target(["du zu ga"])[0]
    ours = TorchEngine([bundle.eval()]).log_probs([source], [target])[0]
    codes = _codes(family, folder)
    english, french = (
        codes[{"fr": LANGUAGES[family], "en": _english(family)}[each]] for each in ("en", "fr")
    )
    text = [rows[each] for each in imported.tokenizer.source.encode(["ka lo mi ti"]).lists()[0]]
    theirs = [rows[each] for each in target]
    if family == "SMaLL-100":
        inputs, start = [french, *text, 2], [2]
    else:
        inputs, start = [english, *text, 2], [2, french]
    with torch.inference_mode():
        logits = network(
            input_ids=torch.tensor([inputs]), decoder_input_ids=torch.tensor([[*start, *theirs]])
        ).logits[0, len(start) - 1 :]
    kept = torch.full((logits.size(1),), -torch.inf)
    kept[[row for token, row in enumerate(rows) if token != 1]] = 0  # </s> once
    expected = (logits + kept).log_softmax(-1)
    for position, token in enumerate([*theirs, 2]):
        assert ours[position] == pytest.approx(float(expected[position, token]), abs=1e-5)


def _english(family: str) -> str:
    return {"NLLB-200": "eng_Latn", "mBART-50": "en_XX"}.get(family, "en")


def _codes(family: str, folder: Path) -> dict[str, int]:
    """The row of each language, by its place behind the pieces."""
    if family in ("NLLB-200", "mBART-50"):
        added = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["added_tokens"]
        return {each["content"]: each["id"] for each in added}
    first = len(json.loads((folder / "vocab.json").read_text(encoding="utf-8")))
    from transduce.wings.pretrained.multilingual import usual_codes

    return {code: first + place for place, code in enumerate(usual_codes(family))}


def test_every_form_of_the_weights_is_read(originals, tmp_path):
    """One file or shards, of safetensors or of torch."""
    folder = originals("M2M-100")
    expected = load_file(folder / "model.safetensors")
    names = sorted(expected)
    halves = {"a": names[::2], "b": names[1::2]}
    for form, save in (("model.safetensors", save_file), ("pytorch_model.bin", torch.save)):
        stem, _, suffix = form.partition(".")
        for is_sharded in (False, True):
            place = tmp_path / f"{form}-{is_sharded}"
            place.mkdir()
            parts = {form: names}
            if is_sharded:
                parts = {f"{stem}-{half}.{suffix}": its for half, its in halves.items()}
                index = {name: file for file, its in parts.items() for name in its}
                text = json.dumps({"weight_map": index})
                (place / f"{form}.index.json").write_text(text, encoding="utf-8")
            for file, its in parts.items():
                save({name: expected[name].clone() for name in its}, place / file)
            found = read_weights(place)
            assert found.keys() == expected.keys()
            assert all(torch.equal(found[name], expected[name]) for name in names)
            if is_sharded:
                (place / f"{stem}-b.{suffix}").unlink()
                with pytest.raises(UserError, match=rf"{stem}-b\.{suffix} is missing"):
                    read_weights(place)


@pytest.mark.parametrize(
    ("sources", "targets", "said"),
    [
        ("", "", r"The model has 202 languages: ace_Arab, .*, …\. Choose .* as in de,fr\."),
        ("en", "", "The model has 202 languages"),
        ("en", "xx", r"The model lacks the language 'xx'\. Choose from ace_Arab, .*, …\."),
        ("en", "knh_Cyrl", r"lacks the language 'knh_Cyrl'\. Did you mean khk_Cyrl\?"),
        ("en", "eng_Latn", "is the source and the target"),
    ],
)
def test_languages_must_be_chosen(sources, targets, said, originals):
    with pytest.raises(UserError, match=said):
        read(originals("NLLB-200"), sources, targets)


def test_codes_become_ours(originals):
    directions = read(
        originals("NLLB-200"), "eng_Latn", "deu_Latn,zh_Hant,zho_Hans,kk"
    ).config.data.directions
    assert directions == ("en-de", "en-zh_Hant", "en-zh_Hans", "en-kk")


@pytest.mark.parametrize(
    ("changed", "described", "said"),
    [
        ({"model_type": "t5"}, {}, "type is t5, which can't be imported: its attention adds"),
        ({"model_type": "nllb-moe"}, {}, "type is nllb-moe, .*: it is a mixture of experts"),
        (
            {"model_type": "mbart"},
            {"tokenizer_class": "MBartTokenizer"},
            "mBART-25 reads the language",
        ),
        ({}, {"legacy_behaviour": True}, "made for the tokenizer of 2022"),
        ({"scale_embedding": False}, {}, "scale_embedding is False; only True"),
        ({"encoder_layers": 3}, {}, r"the weight model\.encoder\.layers\.2\.\S+ is missing"),
        ({"decoder_layers": 1}, {}, r"model\.decoder\.layers\.1\.\S+ has no counterpart"),
        ({"quantization_config": {"bits": 8}}, {}, "quantization_config is"),
        ({"decoder_start_token_id": None}, {}, "decoder_start_token_id is None"),
    ],
)
def test_models_that_ours_cannot_express_are_refused(changed, described, said, originals, tmp_path):
    folder = shutil.copytree(originals("M2M-100"), tmp_path / "original")
    for name, changes in (("config.json", changed), ("tokenizer_config.json", described)):
        file = folder / name
        value = json.loads(file.read_text(encoding="utf-8"))
        file.write_text(json.dumps(value | changes), encoding="utf-8")
    with pytest.raises(UserError, match=said):
        read(folder, "en", "de")


def test_what_a_folder_lacks_is_named(originals, tmp_path):
    folder = shutil.copytree(originals("M2M-100"), tmp_path / "original")
    (folder / "sentencepiece.bpe.model").unlink()
    with pytest.raises(UserError, match=r"sentencepiece\.bpe\.model is missing\..*original model"):
        read(folder, "en", "de")
    (folder / "model.safetensors").unlink()
    with pytest.raises(UserError, match="has no weights"):
        read(folder, "en", "de")


def test_the_vocabulary_of_another_model_is_refused(originals, tmp_path):
    folder = shutil.copytree(originals("NLLB-200"), tmp_path / "original")
    shutil.copy(originals("mBART-50") / "sentencepiece.bpe.model", folder)
    with pytest.raises(UserError, match=r"translations differ in \d+ of 20"):
        import_model(folder, tmp_path / "model", "en", "de", pairs(80)[::4])


def test_the_licence_of_a_card_is_kept_and_told(originals, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("transduce.wings.pretrained.importing.find_spec", lambda _: None)
    folder = shutil.copytree(originals("NLLB-200"), tmp_path / "original")
    card = "---\nlanguage:\n- en\nlicense: cc-by-4.0\n---\n\n# A model\n"
    (folder / "README.md").write_text(card, encoding="utf-8")
    assert read(folder, "en", "de").config.data.licence == "cc-by-4.0"
    (folder / "README.md").unlink()
    arguments = ["import", folder, "--from", "en", "--to", "de", "--out", tmp_path / "model"]
    status, said, _ = run(capsys, *arguments)
    assert status == 0 and "Licence: cc-by-nc-4.0: not for commercial use\n" in said
    text = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "Licence: cc-by-nc-4.0: not for commercial use." in text
    assert (
        "licence     cc-by-nc-4.0: not for commercial use"
        in run(capsys, "info", tmp_path / "model")[1]
    )


def test_a_trimmed_import_cuts_every_text_into_kept_pieces(originals, tmp_path):
    folder = originals("NLLB-200")
    full = read(folder, "en", "de").tokenizer
    texts = [pair.source for pair in pairs(4)]
    kept = 30
    imported = import_model(
        folder, tmp_path / "model", "en", "de", pairs(8)[4:5], trim=kept, texts=texts
    )
    assert imported.parity and imported.parity.identical == imported.parity.sentences
    small = Tokenizer.load(tmp_path / "model")
    assert small.target.size == 4 + 2 + kept < full.target.size
    others = [pair.source for pair in pairs(300)]
    long, short = full.encode_target(others), small.encode_target(others)
    assert small.decode(short) == full.decode(long) == others
    assert not any(3 in row for row in short)  # no piece is unknown
    assert sum(map(len, short)) > sum(map(len, long))


def test_a_trim_needs_room_for_the_characters_and_a_text(originals):
    with pytest.raises(
        UserError, match=r"The characters of these scripts alone are .*Keep at least \d+"
    ):
        read(originals("NLLB-200"), "en", "de", 3, ["ka lo mi"])
    with pytest.raises(UserError, match="no text by which to choose pieces"):
        read(originals("NLLB-200"), "en", "de", 30, ["123"])


def test_stored_positions_must_be_those_of_the_family(originals, tmp_path):
    folder = shutil.copytree(originals("M2M-100"), tmp_path / "original")
    weights = load_file(folder / "model.safetensors")
    table = torch.zeros(130, 32)
    table[2:] = huggingface_reader.marian.to_theirs(
        huggingface_reader.sinusoids(128, 32, "fairseq"), 1
    )
    name = "model.encoder.embed_positions.weights"
    save_file({**weights, name: table}, folder / "model.safetensors")
    read(folder, "en", "de")
    save_file({**weights, name: table.roll(1, 0)}, folder / "model.safetensors")
    with pytest.raises(UserError, match="is not the table of sinusoids of this family"):
        read(folder, "en", "de")


def test_tags_go_into_exports(originals, tmp_path, capsys):
    """Per sentence in one batch; a package of Argos Translate has one direction, and adds both tags itself."""
    import_model(originals("NLLB-200"), tmp_path / "model", "en,de", "de,fr", pairs(8)[4:5])
    given = [pair for pair in pairs(80) if pair.direction in ("en-de", "en-fr")]
    found = export(tmp_path / "model", "ctranslate2", tmp_path / "out", pairs=given)
    assert found and found.identical == found.sentences == len(given)
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert 'target_prefix=[["<<de>>"]]' in text and '["<<en>>"] + source.encode' in text
    with pytest.raises(UserError, match=r"a package has one direction\. .*such as en-de"):
        export(tmp_path / "model", "argos", tmp_path / "package")
    with pytest.raises(UserError, match=r"no direction fr-de\. Choose one of en-de, en-fr, de-fr"):
        export(tmp_path / "model", "argos", tmp_path / "package", direction="fr-de")
    found = export(
        tmp_path / "model", "argos", tmp_path / "package", pairs=given, direction="en-fr"
    )
    assert found and found.identical == found.sentences == len(given) // 2
    some = given[::2] if given[0].direction == "en-fr" else given[1::2]
    for side, texts in zip(
        ("en", "fr"), zip(*(pair[:2] for pair in some), strict=True), strict=True
    ):
        (tmp_path / f"text.{side}").write_text("".join(f"{text}\n" for text in texts))
    command = ["export", tmp_path / "model", "--to", "argos", "--direction", "en-fr"]
    files = [tmp_path / "text.en", tmp_path / "text.fr"]
    status, said, error = run(capsys, *command, "--out", tmp_path / "again", "--valid", *files)
    assert status == 0 and f"{len(some)} of {len(some)} sentences from text.en" in said, error
    with zipfile.ZipFile(tmp_path / "package" / "translate-en_fr-1_0.argosmodel") as archive:
        described = json.loads(archive.read("translate-en_fr-1_0/metadata.json"))
    assert (described["from_code"], described["to_code"]) == ("en", "fr")
    assert described["target_prefix"] == "<<fr>>"
    for form in ("huggingface", "onnx", "marian"):
        with pytest.raises(UserError, match=r"does not support|needs a model trained with"):
            export(tmp_path / "model", form, tmp_path / form)
