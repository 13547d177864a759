"""No sentence is in both the training set and the validation set, whatever changes a corpus before it is learnt."""

import json
from pathlib import Path

import numpy as np

from corpora import reverse_texts
from transduce.config.schema import SYNTHETIC_TAG, CorpusConfig, DataConfig
from transduce.preparation.prepare import prepare
from transduce.preparation.prepared import Prepared
from transduce.text.holdout import normalised

DATA = DataConfig(source="xx", target="yy", holdout=20)


def write(path: Path, pairs: list[tuple[str, str]]) -> CorpusConfig:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    return CorpusConfig((str(path),), synthetic="synthetic" in path.name)


def prepared(folder: Path, *corpora: CorpusConfig) -> Prepared:
    data = DataConfig(**(vars(DATA) | {"corpora": corpora}))
    return prepare(data, folder / "data", vocab_size=lambda _: 300)


def shared(found: Prepared) -> set[str]:
    """The sentences of the validation set that are trained on."""
    pairs, tokenizer = np.arange(len(found.mixture)), found.tokenizer
    sources = tokenizer.source.decode([row.tolist() for row in found.mixture.sources(pairs)])
    targets = tokenizer.target.decode([row.tolist() for row in found.mixture.targets(pairs)])
    learnt = {normalised(text.removeprefix(SYNTHETIC_TAG)) for text in (*sources, *targets)}
    return learnt & {
        normalised(text) for pair in found.valid() for text in (pair.source, pair.target)
    }


def test_validation_pairs_with_a_blank_side_or_a_line_break_are_left_out(tmp_path):
    valid = tmp_path / "valid.jsonl"
    texts = ["one line", "", "two\nlines", "another"]
    valid.write_text("".join(json.dumps({"source": "a", "target": text}) + "\n" for text in texts))
    corpus = write(tmp_path / "real.tsv", list(zip(*reverse_texts(300, seed=1), strict=True)))
    data = DataConfig(source="xx", target="yy", valid=(str(valid),), corpora=(corpus,))
    found = prepare(data, tmp_path / "data", vocab_size=lambda _: 300)
    assert [pair.target for pair in found.valid()] == ["one line", "another"]
    assert found.facts.held_out == 2


def test_a_held_out_source_is_not_learnt_from_a_synthetic_corpus(tmp_path):
    real = list(zip(*reverse_texts(300, seed=1), strict=True))
    synthetic = [(source, f"{target} {target}") for source, target in real]
    corpora = write(tmp_path / "real.tsv", real), write(tmp_path / "synthetic.tsv", synthetic)
    found = prepared(tmp_path, *corpora)
    assert len(found.valid()) == 20 and not shared(found) and found.facts.dropped >= 20
