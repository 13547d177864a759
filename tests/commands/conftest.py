"""Fixtures for the tests in this folder."""

from pathlib import Path

import pytest

from corpora import write_texts
from small_corpus import SHORT, TINY, lines
from transduce import cli


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Toy texts, plain and as TSV; a prepared corpus; the finished trainings `one` and `two` on it, and `other`."""
    folder = tmp_path_factory.mktemp("place")
    for seed, (name, count) in enumerate({"train": 300, "valid": 20, "test": 12}.items()):
        write_texts(folder, name, count, seed)
    pairs = zip(lines(folder / "train.src"), lines(folder / "train.tgt"), strict=True)
    (folder / "train.tsv").write_text("".join("\t".join(pair) + "\n" for pair in pairs))
    (folder / "old.txt").write_text("what was there before\n")
    corpus = [
        "--train",
        str(folder / "train.tsv"),
        "--valid",
        str(folder / "valid.src"),
        str(folder / "valid.tgt"),
    ]
    cli.main(
        ["prepare", *corpus, "--from", "ka", "--to", "zu", "--out", str(folder / "data"), TINY[0]]
    )
    train = ["train", "--train", str(folder / "data"), *TINY]
    every = ["train.save_every=50", "train.validate_every=100"]
    longer = [
        "train.steps=300",
        "train.warmup=100",
        "train.save_every=100",
        "train.validate_every=100",
    ]
    cli.main([*train, *longer, "--out", str(folder / "one")])
    cli.main(
        [
            *train,
            *every,
            "--out",
            str(folder / "two"),
            "train.steps=100",
            "train.seed=2",
            "data.bleu_tokenize=none",
        ]
    )
    cli.main(
        [
            "train",
            "--train",
            *corpus[1:],
            "--out",
            str(folder / "other"),
            *SHORT,
            "data.vocab_size=290",
        ]
    )
    return folder
