"""Damage to the files of a finished training: it is refused by name, or it does not matter."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from corpora import TINY, write_texts
from transduce import model_folder
from transduce.commands.info import info
from transduce.decoding.loading import load
from transduce.preparation.prepared import open_prepared
from transduce.system import cache, files
from transduce.system.errors import UserError
from transduce.system.files import digest, publish, read_manifest
from transduce.tokens.tokenizer import Tokenizer
from transduce.training.run import train
from variants import slow

TEXTS = ["ba ce di", "fo gu"]
NOT_NEEDED = (*model_folder.NOT_NEEDED, "journal.jsonl", "checkpoints/", "data/")  # to translate


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("damage")
    # Enough to estimate the confidence.
    for seed, (name, count) in enumerate({"train": 60, "valid": 100}.items()):
        write_texts(folder, name, count, seed)
    given = {"data.corpora": [{"files": [str(folder / "train.src"), str(folder / "train.tgt")]}]}
    given |= {
        "data.valid": (str(folder / "valid.src"), str(folder / "valid.tgt")),
        "train.steps": 4,
    }
    # Translations that differ, so that there is a confidence.
    given |= {"decode.max_extra_tokens": 50}
    train(TINY | given, folder / "model")
    return folder / "model"


def flipped(content: bytes) -> bytes:
    return (
        content[: len(content) // 2]
        + bytes([content[len(content) // 2] ^ 1])
        + content[len(content) // 2 + 1 :]
    )


def zeroed(content: bytes) -> bytes:
    return bytes(len(content))


def cut_short(content: bytes) -> bytes:
    return content[:-1]


def translations(folder: Path) -> list[str]:
    translator = load(folder, engine="torch")
    assert translator.confidence or not is_whole(folder / model_folder.CONFIDENCE)
    return [translation.text for translation in translator.translate(TEXTS)]


def is_whole(file: Path) -> bool:
    return digest(file) == read_manifest(file.parent)[file.name].sha256


def corpus(folder: Path) -> object:
    prepared = open_prepared(folder / model_folder.DATA)
    columns = [
        column for store in prepared.mixture.stores for column in (store.source, store.target)
    ]
    return (
        prepared.facts,
        prepared.valid(),
        [array.tolist() for column in columns for array in column],
    )


@pytest.mark.parametrize("damaged", [flipped, slow(zeroed), slow(cut_short)])
def test_damage_is_refused_or_harmless(
    finished, damaged: Callable[[bytes], bytes], tmp_path, capfd
):
    folder = tmp_path / "model"
    shutil.copytree(finished, folder)
    actions = (translations, corpus)
    expected = {action: action(folder) for action in actions}
    refused = 0
    for path in sorted(
        path for path in folder.rglob("*") if path.is_file() and path.stat().st_size
    ):
        content, name = path.read_bytes(), path.relative_to(folder).as_posix()
        path.write_bytes(damaged(content))
        for action in actions:
            try:
                assert action(folder) == expected[action], name
            except UserError as error:
                refused += 1
                assert str(folder) in str(error)
                assert action is corpus or not name.startswith(NOT_NEEDED), name
        if not name.startswith("data/"):
            info_of(folder)
        path.write_bytes(content)
    assert refused >= 15
    capfd.readouterr()


def info_of(folder: Path) -> None:
    """Show a model. Only files that describe it may stop this."""
    try:
        info(folder)
    except UserError as error:
        assert not any(name in str(error) for name in NOT_NEEDED)


def test_damaged_scores_do_not_stop_a_translation(finished, tmp_path, capfd):
    folder = tmp_path / "model"
    shutil.copytree(finished, folder)
    (folder / "metrics.json").write_bytes(flipped((folder / "metrics.json").read_bytes()))
    assert translations(folder) == translations(finished)
    info(folder)
    said = capfd.readouterr()
    assert (
        f"Warning: {folder / 'metrics.json'} is damaged" in said.err
        and "parameters" not in said.out
    )


def test_damage_to_what_info_shows_is_named(finished, tmp_path, capfd):
    folder = tmp_path / "model"
    shutil.copytree(finished, folder)
    # What another file holds, nothing.
    for damage in (
        lambda path: path.write_text('{"step": 4}'),
        Path.unlink,
    ):
        damage(folder / "sources.json")
        info(folder)
        assert f"Warning: {folder / 'sources.json'} is damaged" in capfd.readouterr().err


def test_the_weights_are_read_again_only_if_they_changed(finished, tmp_path, monkeypatch):
    folder = tmp_path / "model"
    shutil.copytree(finished, folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "MIN_REMEMBERED_BYTES", 0)
    weights = folder / "model.safetensors"
    monkeypatch.setattr(cache, "RECENT_NANOSECONDS", 10**18)
    translations(folder)
    assert not (tmp_path / "cache").exists()  # the file changed just now
    monkeypatch.setattr(cache, "RECENT_NANOSECONDS", -(10**18))
    translations(folder)
    memory = tmp_path / "cache" / "transduce" / cache.DIGESTS_FILE
    status, content = weights.stat(), memory.read_text()
    with monkeypatch.context() as patch:
        patch.setattr(
            files,
            "digest",
            lambda path: pytest.fail(f"{path} is read") if path == weights else digest(path),
        )
        translations(folder)
    memory.write_text(content.replace(digest(weights), 64 * "0"))
    translations(folder)  # the file is whole, whatever the memory says
    memory.write_text("damaged")
    translations(folder)
    assert memory.read_text() == content
    weights.write_bytes(flipped(weights.read_bytes()))
    os.utime(weights, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert weights.stat().st_mtime_ns == status.st_mtime_ns
    with pytest.raises(UserError, match=r"model\.safetensors is damaged"):
        translations(folder)


@pytest.mark.parametrize(
    ("name", "damaged"),
    [
        ("config.toml", lambda content: content.replace(b"dropout = 0.0", b"dropout = 0.1", 1)),
        ("config.toml", lambda content: content[: content.index(b"\nseed")]),
        ("data/corpus-0/source.lengths", zeroed),
        ("data/valid.jsonl", flipped),
    ],
)
def test_a_training_does_not_resume_with_damaged_files(name, damaged, finished, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(finished, folder)
    for published in ("manifest.json", "model.safetensors", "metrics.json"):
        (folder / published).unlink()
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(damaged(content))
    assert (folder / name).read_bytes() != content
    with pytest.raises(UserError, match=rf"{name} is damaged"):
        train({"train.steps": 5}, folder)
    assert not (folder / "manifest.json").exists()
    (folder / name).write_bytes(content)
    assert train({"train.steps": 5}, folder).metrics["training"]["steps"] == 5


@pytest.mark.parametrize("reason", ["has format 2", "can't be read"])
def test_newer_formats_and_disk_errors_do_not_delete_checkpoints(reason, finished, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(finished, folder)
    manifest = folder / "checkpoints/step-00000004/manifest.json"
    if reason == "has format 2":  # a newer version has written it
        manifest.write_text(manifest.read_text().replace('"format": 1', '"format": 2'))
    else:  # as if the disk failed
        manifest.unlink()
        manifest.mkdir()
    with pytest.raises(UserError, match=reason):
        train({"train.steps": 5}, folder)
    assert not [*(folder / "checkpoints").glob("damaged-*")]


def test_an_unfinished_model_does_not_translate_with_a_damaged_vocabulary(finished, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(finished, folder)
    (folder / "manifest.json").unlink()
    assert translations(folder)
    (folder / "tokenizer.model").write_bytes(flipped((folder / "tokenizer.model").read_bytes()))
    with pytest.raises(UserError, match=r"tokenizer\.model is missing or damaged"):
        translations(folder)


def test_token_ids_that_the_vocabulary_lacks_are_refused(finished, tmp_path):
    shutil.copytree(finished / "data", tmp_path / "data")
    few = Tokenizer.train(["ba ce", "di fo"], ["ba ce", "di fo"], vocab_size=262)
    files, ids = (
        read_manifest(tmp_path / "data"),
        open_prepared(tmp_path / "data").mixture.stores[0].target.ids,
    )
    assert ids.max() >= few.target.size
    with publish(tmp_path / "data") as aside:
        for name in files:
            (aside / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(tmp_path / "data" / name, aside / name)
        few.save(aside)
    with pytest.raises(UserError, match="has token ids that are not in its vocabulary"):
        open_prepared(tmp_path / "data")
