"""Corpora and models for the tests of shards and Ray."""

import json
from pathlib import Path

import pytest
from hypothesis import strategies as st

from command_line import run
from corpora import reverse_texts
from transduce.config.schema import CorpusConfig, DataConfig
from transduce.system.errors import UserError

SIZES = {
    **{"model.d_model": 16, "model.d_ff": 32, "model.num_heads": 2, "model.num_encoder_layers": 1},
    **{
        "model.num_decoder_layers": 1,
        "model.dropout": 0.0,
        "decode.beam_size": 1,
        "decode.max_extra_tokens": 4,
    },
}


def translate(
    capsys: pytest.CaptureFixture[str], model: Path, text: Path, output: Path, *more: object
) -> str:
    status, _, said = run(
        capsys, "translate", model, "--engine", "torch", "--input", text, "--output", output, *more
    )
    assert status == 0, said
    return said


def contents(folder: Path) -> dict[str, bytes]:
    """All files, without what tells the time."""
    found = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    facts = json.loads(found.pop("preparation.json"))
    assert facts.pop("seconds") > 0
    manifest = json.loads(found.pop("manifest.json"))
    del manifest["files"]["preparation.json"]
    return found | {"facts": json.dumps(facts).encode(), "manifest": json.dumps(manifest).encode()}


def attempt(do: object, *arguments: object, **more: object) -> str:
    """The complaint, if there is one."""
    try:
        do(*arguments, **more)
    except UserError as error:
        return str(error)
    return ""


texts = st.sampled_from(
    [
        "",
        "ka",
        "lo",
        "ka lo",
        "lo mi",
        "ka ka",
        "KA",
        " ",
        "nu po re so ti va",
        "mi " * 12,
        "ja\u2028nu",
    ]
)


corpora = st.lists(st.lists(st.tuples(texts, texts), max_size=25), min_size=1, max_size=2)


def corpus_files(folder: Path) -> DataConfig:
    """Two corpora that repeat themselves and each other; one is compressed, and one has trouble in it."""
    sources, targets = reverse_texts(400, seed=5)
    sources[7], targets[9], sources[200] = "", " ", sources[3]
    (folder / "a.src").write_text("".join(f"{line}\n" for line in sources * 2), encoding="utf-8")
    (folder / "a.tgt").write_text("".join(f"{line}\n" for line in targets * 2), encoding="utf-8")
    pairs = zip(*reverse_texts(300, seed=6), strict=True)
    (folder / "b.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in pairs), encoding="utf-8")
    corpora = (
        CorpusConfig((str(folder / "a.src"), str(folder / "a.tgt")), 2.0),
        CorpusConfig((str(folder / "b.tsv"),)),
    )
    return DataConfig(corpora=corpora, holdout=30, max_length=9)
