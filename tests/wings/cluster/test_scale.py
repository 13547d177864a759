"""Shards, by hand and on Ray: whatever is cut, killed and done again, the result is that of one process."""

import dataclasses
import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from command_line import run
from corpora import reverse_texts
from models import publish_model
from sharded import SIZES, attempt, contents, corpora, corpus_files, translate
from transduce import cli, model_folder
from transduce.config.parse import configure
from transduce.config.schema import CorpusConfig, DataConfig
from transduce.decoding.translator import CHUNK_LINES
from transduce.model.build import build
from transduce.preparation.prepare import prepare
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.cluster.on_ray import shards_for
from transduce.wings.cluster.preparing import (
    aggregate_shards,
    encode_shard,
    merge_prepared,
    plan_preparation,
    stage_shard,
)
from transduce.wings.cluster.shards import Shard
from waiting import PATIENCE, wait_for


@given(st.integers(0, 10**8), st.integers(1, 200))
def test_every_worker_has_a_shard_and_no_shard_is_large(lines, workers):
    shards = shards_for(lines, workers)
    sizes = [
        end - begin
        for begin, end in (Shard(n, shards).cut(lines, CHUNK_LINES) for n in (1, shards))
    ]
    assert max(sizes) <= 4 * CHUNK_LINES
    assert shards >= min(4 * workers, -(-lines // CHUNK_LINES)) and shards >= 1


@pytest.fixture(scope="module")
def whole(model: Path, text: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The translation by one process."""
    output = tmp_path_factory.mktemp("whole") / "out.txt"
    cli.main(
        [
            "translate",
            str(model),
            "--engine",
            "torch",
            "--input",
            str(text),
            "--output",
            str(output),
        ]
    )
    return output.read_bytes()


@pytest.mark.parametrize("count", [1, 2, 4])
def test_shards_joined_are_the_translation_of_the_whole(
    count, model, text, whole, tmp_path, capsys
):
    shards = tmp_path / "shards"
    for number in np.random.default_rng(count).permutation(count) + 1:
        said = translate(capsys, model, text, shards, "--shard", f"{number}/{count}")
    assert f"Shard {number}/{count} is complete" in said
    before = text.read_bytes()
    assert (
        "is also the input" in run(capsys, "join", shards, "--output", text)[2]
        and text.read_bytes() == before
    )
    assert run(capsys, "join", shards, "--output", tmp_path / "joined.txt")[0] == 0
    assert (tmp_path / "joined.txt").read_bytes() == whole
    assert b"".join(path.read_bytes() for path in sorted(shards.glob("*.txt"))) == whole
    (tmp_path / "link.txt").symlink_to("elsewhere.txt")
    assert run(capsys, "join", shards, "--output", tmp_path / "link.txt")[0] == 0
    assert (tmp_path / "elsewhere.txt").read_bytes() == whole and (
        tmp_path / "link.txt"
    ).is_symlink()


def test_complete_shards_are_kept_and_truncated_ones_repeated(model, text, whole, tmp_path, capsys):
    shards = tmp_path / "shards"
    translate(capsys, model, text, shards, "--shard", "1/2")
    translate(capsys, model, text, shards, "--shard", "2/2")
    first, second = sorted(shards.glob("*.txt"))
    before = first.stat().st_mtime_ns
    assert "Shard 1/2 is complete" in translate(capsys, model, text, shards, "--shard", "1/2")
    assert first.stat().st_mtime_ns == before
    second.write_bytes(second.read_bytes()[:-9])
    status, _, said = run(capsys, "join", shards, "--output", tmp_path / "joined.txt")
    assert status == 2 and "lacks 1 of 2 shards: 2/2. Run it" in said
    assert not (tmp_path / "joined.txt").exists()
    translate(capsys, model, text, shards, "--shard", "2/2")
    assert run(capsys, "join", shards, "--output", tmp_path / "joined.txt")[0] == 0
    assert (tmp_path / "joined.txt").read_bytes() == whole
    damaged = bytearray(first.read_bytes())
    damaged[5] ^= 1
    first.write_bytes(damaged)
    status, _, said = run(capsys, "join", shards, "--output", tmp_path / "joined.txt")
    assert status == 2 and f"{first} is damaged" in said
    plan = shards / "plan.json"
    plan.write_text(plan.read_text().replace('"shards": 2', '"shards": 48888888888888'))
    status, _, said = run(capsys, "join", shards, "--output", tmp_path / "joined.txt")
    # Before a list of all shards fills the memory.
    assert status == 2 and f"{plan} is damaged" in said
    assert (tmp_path / "joined.txt").read_bytes() == whole


def test_leftovers_of_a_killed_process_are_not_taken_for_a_shard(
    model, text, whole, tmp_path, capsys
):
    shards = tmp_path / "shards"
    translate(capsys, model, text, shards, "--shard", "1/2")
    record = next(shards.glob("*-of-*.json"))
    left = shards / ".00002-of-00002.txt.aside-0badcafe"
    left.write_bytes(b"half a li")
    # A record is written before the file it is about is renamed.
    (shards / "00002-of-00002.json").write_bytes(record.read_bytes())
    assert "lacks 1 of 2 shards" in run(capsys, "join", shards, "--output", tmp_path / "out.txt")[2]
    translate(capsys, model, text, shards, "--shard", "2/2")
    assert run(capsys, "join", shards, "--output", tmp_path / "out.txt")[0] == 0
    assert (tmp_path / "out.txt").read_bytes() == whole
    assert not left.exists()


def test_json_lines_of_shards_join_to_the_whole(model, tmp_path, capsys):
    text = tmp_path / "text.txt"
    text.write_text(
        "".join(f"{line}\n" for line in ["", *reverse_texts(9, seed=3)[0]]), encoding="utf-8"
    )
    options = "--n-best", "2", "--beam-size", "2"
    translate(capsys, model, text, tmp_path / "out", *options)
    for number in range(1, 4):
        translate(capsys, model, text, tmp_path / "shards", *options, "--shard", f"{number}/3")
    joined = b"".join(path.read_bytes() for path in sorted((tmp_path / "shards").glob("*.jsonl")))
    there, expected = (
        [json.loads(line)["text"] for line in each.splitlines()]
        for each in (joined, (tmp_path / "out").read_bytes())
    )
    assert there == expected


def test_shards_of_another_call_are_refused(model, text, tmp_path, capsys):
    shards = tmp_path / "shards"
    translate(capsys, model, text, shards, "--shard", "2/3")
    before = {path: path.stat().st_mtime_ns for path in shards.iterdir()}
    other = tmp_path / "other.txt"
    other.write_bytes(text.read_bytes().replace(b"ka", b"lo"))
    copy = tmp_path / "copy.txt"
    copy.write_bytes(text.read_bytes())

    def refused(file: Path, *more: object) -> str:
        command = (
            "translate",
            model,
            "--engine",
            "torch",
            "--input",
            file,
            "--output",
            shards,
            *more,
        )
        status, _, said = run(capsys, *command)
        assert status == 2
        return said

    assert "with decode.beam_size 1 instead of 2. Use" in refused(
        text, "--shard", "1/3", "--beam-size", "2"
    )
    assert "with number of shards 3 instead of 4. Use" in refused(text, "--shard", "1/4")
    assert "differs from that run's input" in refused(other, "--shard", "1/3")
    # The same text elsewhere.
    assert "is complete" in translate(capsys, model, copy, shards, "--shard", "2/3")
    assert {path: path.stat().st_mtime_ns for path in shards.iterdir()} == before


def in_shards(
    data: DataConfig, folder: Path, out: Path, count: int, order: int, unit: int = 1, **more: object
) -> None:
    """Both rounds, the shards in some order, some twice."""
    plan = plan_preparation(data, folder, count, unit=unit, **more)
    numbers = (
        np.random.default_rng(order).permutation([*range(1, count + 1), order % count + 1]).tolist()
    )
    for number in numbers:
        stage_shard(folder, plan, Shard(number, count))
    aggregate_shards(folder, plan)
    for number in numbers:
        encode_shard(folder, plan, Shard(number, count))
    (
        folder / ".aggregate.aside-1.lock"
    ).touch()  # of a process that was killed when the folder was complete
    merge_prepared(folder, plan, out)
    assert not [*folder.glob(".*")]


@given(
    corpora,
    st.integers(1, 5),
    st.tuples(st.integers(0, 9), st.integers(1, 4)),
    st.sampled_from([0, 1, 4]),
    st.booleans(),
    st.sampled_from([0.0, 2.0]),
    st.sampled_from([6, 256]),
    st.sampled_from([(), ("near-duplicate", "copied")]),
)
@example(
    [[("ka", "zu"), ("", "x"), ("ka", "zu"), ("lo", "fe"), ("lo", "fe"), ("mi", "")]] * 2,
    5,
    (1, 1),
    1,
    True,
    0.0,
    256,
    (),
)
@settings(max_examples=12)
def test_a_corpus_prepared_in_shards_is_the_same(
    vocabulary,
    tmp_path_factory,
    corpora,
    count,
    order,
    holdout,
    deduplicate,
    max_ratio,
    max_length,
    rules,
):
    folder = tmp_path_factory.mktemp("prepared")
    files = []
    for number, pairs in enumerate(corpora):
        sides = [folder / f"{number}.{side}" for side in ("src", "tgt")]
        for path, lines in zip(sides, zip(*pairs, strict=True) if pairs else ((), ()), strict=True):
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        files.append(CorpusConfig(tuple(map(str, sides)), weight=number + 0.5))
    data = DataConfig(
        corpora=tuple(files),
        holdout=holdout,
        deduplicate=deduplicate,
        max_ratio=max_ratio,
        max_length=max_length,
        rules=rules,
    )
    alone = attempt(
        prepare,
        data,
        folder / "one",
        vocab_size=lambda _: 290,
        tokenizer=Tokenizer.load(vocabulary),
    )
    joined = attempt(
        in_shards, data, folder / "shards", folder / "joined", count, *order, vocabulary=vocabulary
    )
    assert joined == alone
    assert alone or contents(folder / "joined") == contents(folder / "one")


def test_paired_html_pages_are_sharded_by_pairs(vocabulary, tmp_path):
    files = [str(tmp_path / f"{side}.xhtml") for side in ("a", "b")]
    for file, texts in zip(files, reverse_texts(9, seed=3), strict=True):
        Path(file).write_text(
            "<html><body>\n" + "".join(f"<p>\n{text}</p>\n" for text in texts) + "</body></html>"
        )
    data = DataConfig(corpora=(CorpusConfig(tuple(files)),), holdout=0, placeholders="kept")
    prepare(data, tmp_path / "one", vocab_size=lambda _: 290, tokenizer=Tokenizer.load(vocabulary))
    in_shards(data, tmp_path / "shards", tmp_path / "joined", 2, 1, vocabulary=vocabulary)
    assert contents(tmp_path / "joined") == contents(tmp_path / "one")


@pytest.mark.parametrize("joint", [True, False])
def test_the_vocabulary_is_learnt_from_all_shards(joint, tmp_path):
    data = configure({"data.joint": joint}).data.__class__(
        **corpus_files(tmp_path).__dict__ | {"joint": joint}
    )
    prepare(data, tmp_path / "one", vocab_size=lambda _: 290)
    in_shards(data, tmp_path / "shards", tmp_path / "joined", 3, 4, vocab_size=290)
    assert contents(tmp_path / "joined") == contents(tmp_path / "one")


@pytest.mark.slow
def test_rules_over_several_pairs_find_the_same_in_shards(tmp_path):
    """Stretches that have slipped, unusual lengths, near repetitions, and placeholders that don't match."""
    sources, targets = reverse_texts(3000, seed=7, longest=12)
    pairs = list(zip(sources, targets, strict=True))
    pairs = [
        *pairs[:1200],
        *zip(sources[1200:1400], targets[1203:1403], strict=True),
        *pairs[1400:],
    ]
    pairs[5] = pairs[40] = pairs[2900] = "ka {0} lo", "fe {0} zu"
    pairs[6] = pairs[2950] = "ka {0} mi", "ga zu"
    pairs[7], pairs[2990] = ("KA LO.", "FE ZU."), ("ka lo", "fe zu")
    pairs[9] = "ka", " ".join(targets[:40])
    many = [pair for pair in pairs for _ in range(4)]
    (tmp_path / "c.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in many), encoding="utf-8")
    rules = "misaligned", "length", "near-duplicate"
    corpora = (CorpusConfig((str(tmp_path / "c.tsv"),)),)
    data = DataConfig(
        corpora=corpora, holdout=20, deduplicate=False, rules=rules, placeholders="masked"
    )
    once = dataclasses.replace(data, deduplicate=True)
    for name, options in {
        "twice": data,
        "once": once,
        "plain": dataclasses.replace(once, rules=()),
    }.items():
        (tmp_path / name).mkdir()
        prepare(options, tmp_path / name / "one", vocab_size=lambda _: 300)
        in_shards(
            options,
            tmp_path / name / "shards",
            tmp_path / name / "joined",
            3,
            4,
            unit=10_000,
            vocab_size=300,
        )
        assert contents(tmp_path / name / "joined") == contents(tmp_path / name / "one")


def test_the_commands_say_what_comes_next(tmp_path, capsys):
    data = corpus_files(tmp_path)
    files = data.corpora[0].files
    command = (
        "prepare",
        "--train",
        *files,
        "data.vocab_size=290",
        "data.holdout=30",
        "--out",
        tmp_path / "shards",
    )
    status, _, said = run(capsys, *command, "--shard", "1/2")
    assert status == 0 and "The first round of shard 1/2 is complete" in said
    assert (
        "lacks 1 of 2 shards of the first round: 2/2" in run(capsys, "join", tmp_path / "shards")[2]
    )
    run(capsys, *command, "--shard", "2/2")
    assert "is already complete" in run(capsys, *command, "--shard", "2/2")[2]
    status, _, said = run(capsys, "join", tmp_path / "shards")
    assert status == 0 and "run transduce prepare again for every shard" in said
    status, _, said = run(capsys, "join", tmp_path / "shards")  # again
    assert status == 0 and "run transduce prepare again for every shard" in said
    assert "The second round of shard 2/2 is complete" in run(capsys, *command, "--shard", "2/2")[2]
    status, _, said = run(capsys, "join", tmp_path / "shards", "--output", tmp_path / "data")
    assert status == 2 and "lacks 1 of 2 shards of the second round: 1/2" in said
    assert "The second round of shard 1/2 is complete" in run(capsys, *command, "--shard", "1/2")[2]
    status, told, _ = run(capsys, "join", tmp_path / "shards", "--output", tmp_path / "data")
    assert status == 0 and "pairs to train on, 30 held out" in told
    assert run(capsys, *command[:-2], "--out", tmp_path / "one")[0] == 0
    assert contents(tmp_path / "data") == contents(tmp_path / "one")


MISTAKES = {
    "translate MODEL --input TEXT --shard 1/2": "to standard output. Name a folder with --output",
    "translate MODEL --input TEXT --on ray": "to standard output. Name a file with --output",
    "translate MODEL --input TEXT --output TEXT --on ray": "is also the input",
    "translate MODEL --input TEXT --output x --on slurm": "slurm is not a Ray cluster. Give ray or",
    "translate MODEL --input TEXT --output x --on ray --shard 1/2": "Leave out --shard",
    "translate MODEL --input TEXT --output x --shard 3/2": "Give its number, counted from 1",
    "translate MODEL --input TEXT --output TEXT --shard 1/2": "is not a folder of shards",
    "translate MODEL --input none.txt --output x --shard 1/2": "none.txt does not exist",
    "translate MODEL --input TEXT --output x --shard 1/2 --glossary none.tsv": "none.tsv does not exist",
    "translate MODEL --input TEXT --output x --shard 1/2 --glossary -": "reads the glossary again. Save it as a file",
    "translate MODEL --output x --shard 1/2": "Standard input can't be split into shards",
    "translate MODEL --input a.po --output x --shard 1/2": "is one document",
    "translate MODEL --input TEXT --output x --workers 2": "--workers can only be used with --on",
    "translate MODEL --input TEXT --output x --shard 1/2 --workers 2": "--workers can only be used with --on",
    "translate MODEL --input TEXT --output x --on ray --workers 0": "0 workers are too few",
    "translate MODEL --input TEXT --output x --profile --on ray": "--profile measures one process",
    "translate MODEL --input TEXT --output x --shard 1/2 --n-best 9": "n_best must be from 1 to decode.beam_size",
    "translate MODEL --input TEXT --output x --shard 1/2 --to xx": "The model",
    "prepare --train a.po --out x --shard 1/2 data.rules=copid": "no rule copid to choose. Did you mean copied?",
    "prepare --train - --out x --shard 1/2": "Standard input can't be split into shards",
    "prepare --train /dev/null /dev/null --out x --shard 1/2": "/dev/null can't be split into shards",
    "prepare --train TEXT TEXT --out x --shard 1/2 data.replay=y": "data.replay can't be used with shards",
    "prepare --train none.tsv --out x --shard 1/2": "none.tsv does not exist",
    "prepare --out x --shard 1/2": "There is nothing to train on",
    "join MODEL": "holds no shards",
    "join none": "none holds no shards",
}


@pytest.mark.parametrize("typed", MISTAKES)
def test_a_mistake_is_one_sentence_and_leaves_nothing(
    typed, model, text, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.po").write_text("")
    names = {"MODEL": model, "TEXT": text}
    before = text.read_bytes()
    status, told, said = run(capsys, *(names.get(word, word) for word in typed.split()))
    assert status == 2 and told == "" and said.count("\n") == 1
    assert MISTAKES[typed] in said
    assert [path.name for path in tmp_path.iterdir()] == ["a.po"] and text.read_bytes() == before


def test_without_ray_the_extra_is_named(model, text, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    status, _, said = run(
        capsys, "translate", model, "--input", text, "--output", tmp_path / "out", "--on", "ray"
    )
    assert status == 2 and said.strip().endswith(
        "Ray is not installed. Install it: pip install 'transduce[scale]'."
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_line_that_is_too_long_for_the_model_is_translated_as_without_ray(
    tmp_path, model, capsys
):
    """A line that is longer than the model's positions, in the middle of a file."""
    config = model_folder.read_config(model)
    learned = configure(
        {**SIZES, "model.vocab_size": config.model.vocab_size, "model.positions": "learned"},
        {"model.max_positions": 12},
    )
    network = build(learned.model)
    publish_model(tmp_path / "short", learned, Tokenizer.load(model), network.state_dict(), {}, "")
    (tmp_path / "text").write_text("ka\n" * (CHUNK_LINES + 5) + "ka lo mi nu " * 9 + "\nka\n")
    command = ["translate", tmp_path / "short", "--engine", "torch", "--input", tmp_path / "text"]
    alone = run(capsys, *command, "--output", tmp_path / "one")
    status, _, said = run(
        capsys, *command, "--output", tmp_path / "ray", "--on", "ray", "--workers", "1"
    )
    assert status == alone[0] == 0, said
    assert said.splitlines()[-1] == alone[2].splitlines()[-1] and f"line {CHUNK_LINES + 6}" in said
    assert (tmp_path / "ray").read_bytes() == (tmp_path / "one").read_bytes()


@pytest.mark.slow
def test_ray_stops_with_the_command(model, text, tmp_path):
    """Ctrl-C: nothing that was started runs on, and no folder of Ray's is left."""
    command = [
        sys.executable,
        "-m",
        "transduce",
        "translate",
        str(model),
        "--engine",
        "torch",
        "--on",
        "ray",
    ]
    command += ["--input", str(text), "--output", str(tmp_path / "out.txt"), "--beam-size", "4"]
    others = set(Path("/tmp").glob("ray-*"))
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    wait_for((tmp_path / "out.txt.shards" / "plan.json").exists, lambda: process.poll() is not None)
    started = family(process.pid)
    assert len(started) > 3
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 130
    assert b"Traceback" not in said
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in started))
    assert not (tmp_path / "out.txt").exists() and not set(Path("/tmp").glob("ray-*")) - others


def family(pid: int) -> list[int]:
    """A process and all that it started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in family(int(child)))]
