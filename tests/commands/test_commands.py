"""The commands, as a person types them: what they write, where to, and what they say of mistakes."""

import ast
import functools
import gzip
import io
import json
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import transduce
from command_line import run
from corpora import write_texts
from forked import killed
from models import make_model
from transduce import cli, model_folder
from transduce.commands.recipes import gather, with_languages
from transduce.config.parse import configure
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.preparation.prepared import open_prepared, read_facts
from transduce.system import console
from transduce.system.errors import UserError
from transduce.system.files import verify
from transduce.text.pairs import read_pairs
from transduce.text.plain import write_lines
from transduce.wings.demo.command import next_steps
from transduce.wings.synthetic.distill import distill
from waiting import PATIENCE, wait_for

TINY = [
    "data.vocab_size=300",
    "data.max_tokens=256",
    "model.num_encoder_layers=1",
    "model.num_decoder_layers=1",
    "model.d_model=32",
    "model.d_ff=64",
    "model.num_heads=2",
    "train.warmup=60",
    "train.threads=1",
    "train.learning_rate=1.0",
    "train.precision=float32",
    "decode.max_extra_tokens=2",
    # What so few pairs get by default is for more updates.
    "train.label_smoothing=0.1",
    "train.word_dropout=0",
    "train.ema=0",
    "train.select_by=perplexity",
]
SHORT = [*TINY, "train.steps=4", "train.save_every=2", "train.validate_every=4"]


@pytest.fixture(scope="module")
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


def output(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The standard output of a command that succeeds."""
    status, found, said = run(capsys, *arguments)
    assert status == 0, said
    return found


def lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").split("\n")[:-1]


@pytest.fixture
def standard_input(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """What gives bytes to read on standard input."""
    return lambda content: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


# -- train and prepare ------------------------------------------------------------------------------------


def test_files_a_table_and_a_recipe_train_the_same_model(place, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(place)
    (tmp_path / "recipe.toml").write_text(
        '[data]\nvalid = ["valid.src", "valid.tgt"]\n[[data.corpora]]\nfiles = ["train.src", "train.tgt"]\n'
        "[train]\nsteps = 99\nsave_every = 2\n[model]\nd_model = 64\n"
    )
    valid = ["--valid", "valid.src", "valid.tgt"]
    commands = {
        "files": [SHORT[0], "--train", "train.src", "train.tgt", *SHORT[1:3], *valid, *SHORT[3:]],
        "table": ["--train", "train.tsv", *SHORT, *valid],
        "recipe": [*SHORT[:5], tmp_path / "recipe.toml", *SHORT[5:]],
    }
    for name, command in commands.items():
        status, result, said = run(capsys, "train", *command, "--out", tmp_path / name)
        assert status == 0
        assert (
            result
            == f"{tmp_path / name} is ready: transduce translate {tmp_path / name} --input FILE\n"
        )
        assert (
            "\nCorpus      300 pairs src-tgt, " in said
            and "\nLanguages   unknown, and can't be named later: " in said
        )
    first, *others = (load_file(tmp_path / name / "model.safetensors") for name in commands)
    for other in others:
        assert first.keys() == other.keys()
        assert all(torch.equal(weight, other[name]) for name, weight in first.items())


@pytest.mark.parametrize(
    ("train", "languages", "assignments", "expected"),
    [
        (["a/train.en", "train.de.gz"], ("", ""), [], ("en", "de")),
        (["train.de", "train.pt-BR"], ("", ""), [], ("de", "pt-BR")),
        (["is/Tatoeba.de-en.en.txt.gz", "is/Tatoeba.de-en.de.txt.gz"], ("", ""), [], ("en", "de")),
        (["train.en", "train.de"], ("fr", ""), [], ("fr", None)),
        (["train.en", "train.de"], ("en", ""), [], ("en", "de")),
        (["train.en", "train.de"], ("", "de"), [], ("en", "de")),
        (["train.en", "train.de"], ("", ""), ["data.target=fr"], (None, "fr")),
        (["train.src", "train.de"], ("", ""), [], (None, None)),
        (["one.en", "other.en"], ("", ""), [], (None, None)),
        (["train.en.tsv"], ("", ""), [], (None, None)),
    ],
)
def test_names_of_files_say_the_languages_where_nothing_else_does(
    train, languages, assignments, expected
):
    given = with_languages(
        gather(None, train=train, valid=[], test=[], languages=languages, assignments=assignments),
        train,
    )
    assert (given.get("data.source"), given.get("data.target")) == expected


def test_the_command_line_wins_over_the_recipe(tmp_path):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        '[data]\nsource = "en"\ntarget = "de"\ntest = ["a", "b"]\n[train]\nsteps = 5\nminutes = 1.0\n'
    )
    given = gather(
        str(recipe),
        train=["c.tsv"],
        valid=[],
        test=["d", "e"],
        languages=("", "fr"),
        assignments=["train.steps=6"],
    )
    assert given == {
        "data.corpora": [{"files": ["c.tsv"]}],
        "data.source": "en",
        "data.target": "fr",
        "data.test": ("d", "e"),
        "train.steps": 6,
        "train.minutes": 1.0,
    }


def test_prepare_says_what_it_did(place, tmp_path, capsys):
    (tmp_path / "bad.tsv").write_text((place / "train.tsv").read_text() + "ka\t\n \tzu\n")
    said = output(
        capsys, "prepare", "--train", tmp_path / "bad.tsv", "--out", tmp_path / "data", TINY[0]
    )
    first, second = said.splitlines()
    assert first.startswith("270 pairs to train on, 30 held out, ") and ", 300 pieces in " in first
    assert (
        second == f"pairs left out by the rule empty: 2 (listed in {tmp_path}/data/left-out.jsonl)"
    )
    left_out = [json.loads(line)["line"] for line in lines(tmp_path / "data/left-out.jsonl")]
    assert left_out == [301, 302]


def test_a_vocabulary_serves_another_corpus(place, tmp_path, capsys):
    corpus = "prepare", "--train", place / "train.tsv"
    first, second = tmp_path / "first", tmp_path / "second"
    output(capsys, *corpus, "--out", first, TINY[0], "data.tokenizer=unigram")
    output(capsys, *corpus, "--out", second, "--vocabulary", first, "data.holdout=10")
    assert (second / "tokenizer.model").read_bytes() == (first / "tokenizer.model").read_bytes()
    assert read_facts(second).options["data.tokenizer"] == "unigram"
    assert read_facts(second).held_out == 10
    third = "--out", tmp_path / "third", "--vocabulary", first
    for mistake in ("data.vocab_size=260", "data.joint=false"):
        status, _, said = run(capsys, *corpus, *third, mistake)
        assert status == 2 and f"already. Leave {mistake.partition('=')[0]} out" in said.replace(
            " learned", ""
        )
    output(capsys, *corpus, *third, "data.vocab_size=8000")  # a limit, as in recipes
    (first / "preparation.json").write_text("{")
    status, _, said = run(capsys, *corpus, "--out", tmp_path / "fourth", "--vocabulary", first)
    assert status == 2
    assert f"{first / 'preparation.json'} is damaged. Prepare the corpus again." in said


def test_prepare_reports_pairs_left_out_for_held_out_sentences(tmp_path, capsys):
    # Every source has two translations: whichever pair is held out, the other must go, too.
    words = [f"{first}{second}" for first in "abcdefghij" for second in "klmnopqrst"]
    pairs = [f"{word} {word}\t{word}{end}\n" for word in words for end in "xy"]
    (tmp_path / "train.tsv").write_text("".join(pairs))
    command = [
        "prepare",
        "--train",
        tmp_path / "train.tsv",
        "--out",
        tmp_path / "data",
        TINY[0],
        "data.holdout=10",
    ]
    trained, dropped = output(capsys, *command).splitlines()
    counts = [int(part.split()[0]) for part in trained.split(", ")[:2]]
    assert (
        dropped
        == f"pairs left out because they share a sentence with a held-out pair: {200 - sum(counts)}"
    )
    assert counts[0] < 200 - counts[1]


def test_the_language_codes_of_a_prepared_corpus_stay_with_the_model(place):
    assert model_folder.read_config(place / "one").data.source == "ka"
    assert model_folder.read_config(place / "one").data.target == "zu"


def test_recipes_are_found_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nothing = {"train": (), "valid": (), "test": (), "languages": ("", ""), "assignments": ()}
    found = [
        gather(name, **nothing) for name in ("recipes/multi30k-en-de.toml", "multi30k-en-de.toml")
    ]
    assert found[0] == found[1] == gather("multi30k-en-de", **nothing) != {}
    (tmp_path / "multi30k-en-de.toml").write_text("[train]\nsteps = 7\n")
    assert gather("multi30k-en-de.toml", **nothing) == {"train.steps": 7}
    assert gather("multi30k-en-de", **nothing) == found[0]


def profile_of(said: str) -> dict[str, float]:
    """The seconds of each phase."""
    rows = re.findall(r"^(\w[\w ]*\w) +([0-9.]+) s +[0-9.]+%$", said, flags=re.MULTILINE)
    return {name: float(seconds) for name, seconds in rows}


def test_a_training_says_where_its_time_went(place, tmp_path, capsys):
    command = [
        "train",
        "--train",
        place / "train.tsv",
        "--out",
        tmp_path / "run",
        "--profile",
        *SHORT,
        "train.steps=3",
    ]
    status, _, said = run(capsys, *command)
    assert status == 0
    *phases, whole = (seconds := profile_of(said)).values()
    assert {"start", "data", "forward", "backward", "optimiser", "checkpoints", "finish"} <= set(
        seconds
    )
    assert sum(phases) == pytest.approx(whole, abs=0.1)
    assert re.search(
        r"target tokens/s in updates, [0-9.]+ MFLOP per token: .* large float32 matrix products",
        said,
    )


# -- distill ----------------------------------------------------------------------------------------------


def texts_of(folder: Path) -> list[tuple[str, str]]:
    """The pairs of a prepared corpus: sources as they stand in its file, targets decoded."""
    prepared = open_prepared(folder)
    data, there = prepared.mixture, lines(Path(prepared.facts.files[0][0]))
    targets = prepared.tokenizer.decode(data.targets(np.arange(len(data))))
    return [
        (there[data.origin(i)[2] - 1].split("\t")[0], target) for i, target in enumerate(targets)
    ]


def test_a_distilled_corpus_has_the_translations_as_targets(place, tmp_path, capsys):
    corpus = "--train", place / "train.tsv", "--engine", "torch", "data.holdout=20"
    said = output(capsys, "distill", place / "one", *corpus, "--out", tmp_path / "data")
    assert re.match(r"\d+ pairs to train on, 20 held out", said)
    output(
        capsys,
        "prepare",
        *corpus[:2],
        corpus[-1],
        "--vocabulary",
        place / "one",
        "--out",
        tmp_path / "plain",
    )
    original = texts_of(tmp_path / "plain")
    sources = [source for source, _ in original]
    translations = dict(
        zip(sources, transduce.load(place / "one", engine="torch").translate(sources), strict=True)
    )
    left_out = json.loads((tmp_path / "data/preparation.json").read_text())["left_out"]
    assert (
        set(left_out) <= {"cut-off", "empty", "ratio"} and sum(left_out.values()) < len(sources) / 2
    )
    found = texts_of(tmp_path / "data")
    dropped = [open_prepared(tmp_path / name).facts.dropped for name in ("plain", "data")]
    assert len(found) == len(sources) - sum(left_out.values()) - (dropped[1] - dropped[0])
    assert all(target == translations[source].text for source, target in found)
    assert (tmp_path / "data/valid.jsonl").read_bytes() == (
        tmp_path / "plain/valid.jsonl"
    ).read_bytes()
    output(capsys, "distill", place / "one", *corpus, "--out", tmp_path / "both", "--keep-original")
    assert set(texts_of(tmp_path / "both")) == set(original) | set(found)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["both", "data", "plain"]
    output(
        capsys,
        "train",
        "--train",
        tmp_path / "data",
        "--out",
        tmp_path / "student",
        *SHORT[1:],
        "train.steps=2",
    )


def test_a_student_of_several_directions_is_refused(place, tmp_path, capsys):
    for code in ("de", "en", "fr"):
        (tmp_path / f"a.{code}").write_text("ka lo\n")
    files = [tmp_path / f"a.{code}" for code in ("de", "en", "fr")]
    status, _, said = run(
        capsys,
        "distill",
        place / "one",
        "--train",
        *files,
        "--to",
        "de",
        "--out",
        tmp_path / "data",
    )
    assert (
        status == 2
        and "these languages have several: " in said
        and not (tmp_path / "data").exists()
    )


def test_interrupted_distillation_resumes(place, tmp_path, monkeypatch):
    monkeypatch.setattr("transduce.wings.synthetic.translations.CHUNK_LINES", 50)
    data = configure({"data.corpora": [{"files": [str(place / "train.tsv")]}]}).data
    asked: list[str] = []

    class Engine(TorchEngine):
        def search(self, requests, config, n_best):
            if len(asked) > limit:
                raise KeyboardInterrupt
            asked.extend(text for request in requests for text in request.texts)
            yield from super().search(requests, config, n_best)

    loaded = model_folder.load(place / "one")
    once = replace(loaded.config.decode, retry_loops=False)
    translator = Translator(Engine([loaded.model]), loaded.tokenizer, once)
    limit = 120
    with pytest.raises(KeyboardInterrupt):
        distill(translator, [place / "one"], data, tmp_path / "data")
    assert [path.name for path in tmp_path.iterdir()] == [".data.translations.jsonl"]
    with (tmp_path / ".data.translations.jsonl").open("ab") as file:
        file.write(b'{"torn')
    others = Translator(translator.engine, loaded.tokenizer, replace(once, beam_size=2))
    with pytest.raises(UserError, match="another model, engine, text or options"):
        distill(others, [place / "one"], data, tmp_path / "data")
    limit = 10_000
    distill(translator, [place / "one"], data, tmp_path / "data")
    assert len(asked) == len(set(asked)) > 200
    assert not read_facts(tmp_path / "data").left_out.keys() & {"too-long"}
    distill(translator, [place / "one"], data, tmp_path / "again")
    assert texts_of(tmp_path / "data") == texts_of(tmp_path / "again")
    translator.engine.max_positions = 8  # one for EOS
    distill(translator, [place / "one"], data, tmp_path / "short")
    assert read_facts(tmp_path / "short").left_out["too-long"] > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again", "data", "short"]
    missing = configure({"data.corpora": [{"files": ["nope.tsv"]}]}).data
    with pytest.raises(UserError, match="nope"):
        distill(translator, [place / "one"], missing, tmp_path / "a/b/c")
    assert not (tmp_path / "a").exists()


def test_a_distillation_that_was_killed_when_it_was_complete_leaves_no_journal(
    place, tmp_path, capsys
):
    command = [
        "distill",
        place / "one",
        "--train",
        place / "train.tsv",
        "--engine",
        "torch",
        "data.holdout=20",
    ]
    command += ["--out", tmp_path / "data"]
    assert killed(2, list(map(str, command)), tmp_path, "data") == -signal.SIGKILL
    assert (tmp_path / ".data.translations.jsonl").exists()
    status, _, said = run(capsys, *command)
    assert status == 2 and f"{tmp_path / 'data'} exists already" in said
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    open_prepared(tmp_path / "data")


# -- translate --------------------------------------------------------------------------------------------


def test_a_translation_says_where_its_time_went(place, tmp_path, capsys):
    command = [
        "translate",
        place / "one",
        "--input",
        place / "test.src",
        "--output",
        tmp_path / "out",
        "--profile",
    ]
    for engine in ("torch", "ctranslate2"):
        status, _, said = run(capsys, *command, "--engine", engine)
        assert status == 0
        *phases, whole = (seconds := profile_of(said)).values()
        assert {"start", "text", "search"} <= set(seconds)
        assert {"encode", "decode"} <= set(seconds) or engine == "ctranslate2"
        assert sum(phases) == pytest.approx(whole, abs=0.1)
        assert ("sentences/s with the torch engine" in said) == (engine == "torch")


def test_a_file_becomes_a_file_with_as_many_lines_in_order(place, tmp_path, capsys):
    sources = lines(place / "test.src")
    singly = [translation.text for translation in transduce.load(place / "one").translate(sources)]
    assert len(set(singly)) > len(singly) / 2, "translations that are all the same show no order"
    target = tmp_path / "out.txt"
    target.write_text("old\n")
    assert (
        output(
            capsys, "translate", place / "one", "--input", place / "test.src", "--output", target
        )
        == ""
    )
    assert lines(target) == singly
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]
    backwards = tmp_path / "backwards.txt"
    backwards.write_text("".join(f"{source}\n" for source in reversed(sources)))
    assert (
        output(capsys, "translate", place / "one", "--input", backwards).split("\n")[-2::-1]
        == singly
    )


HARD = {
    "blank lines": b"\nka lo\n\n \t\nmi nu\n\n",
    "no line feed at the end": b"ka lo\nmi nu",
    "CRLF": b"ka lo\r\n\r\nmi nu\r\n",
    "a byte order mark": b"\xef\xbb\xbfka lo\nmi nu\n",
    "other line separators": "ka\u2028lo\n\u0085\nmi\x0cnu\x0b\nka\rlo\n\u2029ka\x1c\x1d\x1elo\n".encode(),
    "nothing": b"",
}


@pytest.mark.parametrize("kind", HARD)
def test_lines_in_are_lines_out(kind, place, tmp_path, capsys, standard_input):
    content = HARD[kind]
    count = content.count(b"\n") + (not content.endswith(b"\n") and content != b"")
    (tmp_path / "in.txt").write_bytes(content)
    (tmp_path / "in.txt.gz").write_bytes(gzip.compress(content))
    found = output(capsys, "translate", place / "one", "--input", tmp_path / "in.txt")
    assert found.count("\n") == count
    assert found == output(capsys, "translate", place / "one", "--input", tmp_path / "in.txt.gz")
    standard_input(content)
    assert found == output(capsys, "translate", place / "one")
    for source, translation in zip(content.decode().split("\n"), found.split("\n"), strict=False):
        assert bool(source.strip()) == bool(translation)
    if kind in ("CRLF", "a byte order mark"):
        plain = content.replace(b"\r", b"").removeprefix(b"\xef\xbb\xbf")
        standard_input(plain)
        assert found == output(capsys, "translate", place / "one")


def test_standard_input_may_stand_for_any_file(place, capsys):
    target = place / "test.tgt"
    command = [sys.executable, "-m", "transduce", "score", str(place / "one"), "-", str(target)]
    with (place / "test.src").open("rb") as source:
        piped = subprocess.run(command, stdin=source, capture_output=True, text=True, check=False)
    assert piped.returncode == 0, piped.stderr
    scores = output(capsys, "score", place / "one", place / "test.src", target).split()
    assert [float(line) for line in piped.stdout.split()] == [
        pytest.approx(float(score), abs=1e-3) for score in scores
    ]


def test_pipes_hold_utf8_whatever_the_system_prefers(place):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "transduce", "translate", str(place / "one"), "--json"]
    content = "ka lo\n\nмир\u2028\n".encode()
    result = subprocess.run(
        command, input=content, capture_output=True, env=environment, check=False
    )
    # That one was cut off may be said.
    assert result.returncode == 0 and b"Traceback" not in result.stderr
    found = [json.loads(line) for line in result.stdout.decode("utf-8").split("\n")[:-1]]
    expected = transduce.load(place / "one").translate(["ka lo", "", "мир\u2028"])
    assert [each["text"] for each in found] == [each.text for each in expected]
    assert "▁".encode() in result.stdout


def test_a_file_that_is_read_from_standard_input_is_not_overwritten(place, tmp_path):
    (tmp_path / "a.src").write_text("ka lo\n")
    command = [
        sys.executable,
        "-m",
        "transduce",
        "translate",
        str(place / "one"),
        "--output",
        str(tmp_path / "a.src"),
    ]
    with (tmp_path / "a.src").open() as file:
        run = subprocess.run(command, stdin=file, capture_output=True, text=True, check=False)
    assert run.returncode == 2 and "is also the input" in run.stderr
    assert (tmp_path / "a.src").read_text() == "ka lo\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may write every file")
def test_a_write_protected_output_is_not_replaced(place, tmp_path, capsys):
    (tmp_path / "kept").touch(0o400)
    call = "translate", place / "one", "--input", place / "test.src", "--output", tmp_path / "kept"
    status, _, said = run(capsys, *call)
    assert status == 2 and "kept is write-protected. Name another file (--output)." in said


def test_an_output_that_links_to_itself_is_refused(place, tmp_path, capsys):
    (tmp_path / "loop").symlink_to("loop")
    call = "translate", place / "one", "--input", place / "test.src", "--output", tmp_path / "loop"
    status, _, said = run(capsys, *call)
    assert status == 2 and "loop is a symbolic link to itself. Remove it (--output)." in said


def test_json_has_every_field_of_a_translation(place, capsys):
    input = ["--input", place / "test.src"]
    found = output(
        capsys,
        "translate",
        place / "one",
        *input,
        "--json",
        "--beam-size",
        3,
        "--length-penalty",
        1,
    )
    rows = [json.loads(line) for line in found.split("\n")[:-1]]
    options = {"decode.beam_size": 3, "decode.length_penalty": 1.0}
    expected = transduce.load(place / "one", options).translate(lines(place / "test.src"))
    for row, translation in zip(rows, expected, strict=True):
        assert row["text"] == translation.text and row["tokens"] == list(translation.tokens)
        assert row["score"] == pytest.approx(translation.score, rel=1e-5)
        assert row["alternatives"] == [] and row["flags"] == list(translation.flags)


def test_cut_translations_are_reported_and_flagged(place, capsys):
    command = [
        "translate",
        place / "one",
        "--input",
        place / "test.src",
        "decode.max_extra_tokens=0",
    ]
    status, found, said = run(capsys, *command, "--json")
    flags = [json.loads(line)["flags"] for line in found.split("\n")[:-1]]
    cut = sum("cut" in each for each in flags)
    assert status == 0 and cut > 0
    assert (
        f"\n{console.count(cut, 'translation')} cut off at the length limit (decode.max_extra_tokens)"
        in f"\n{said}"
    )
    assert run(capsys, *command)[1].count("\n") == 12


def test_n_best_is_ranked_and_begins_with_the_best(place, capsys):
    command = ["translate", place / "one", "--input", place / "test.src"]
    best = output(capsys, *command).split("\n")[:-1]
    rows = [json.loads(line) for line in output(capsys, *command, "--n-best", 3).split("\n")[:-1]]
    assert [row["text"] for row in rows] == best
    for row in rows:
        scores = [row["score"], *(each["score"] for each in row["alternatives"])]
        assert len(scores) == 3 and scores == sorted(scores, reverse=True)


def test_an_ensemble_is_that_of_its_models(place, capsys):
    command = [
        "translate",
        place / "one",
        "--input",
        place / "test.src",
        "--engine=torch",
        "--json",
        "--ensemble",
    ]
    alone = [json.loads(line) for line in output(capsys, *command[:-1]).split("\n")[:-1]]
    same = [
        json.loads(line)
        for line in output(capsys, *command, place / "one", place / "one").split("\n")[:-1]
    ]
    both = [json.loads(line) for line in output(capsys, *command, place / "two").split("\n")[:-1]]
    expected = transduce.load([place / "one", place / "two"]).translate(lines(place / "test.src"))
    assert [row["text"] for row in alone] == [row["text"] for row in same]
    assert [row["score"] for row in same] == pytest.approx(
        [row["score"] for row in alone], abs=1e-4
    )
    assert [row["text"] for row in both] == [each.text for each in expected]
    assert [row["score"] for row in both] != pytest.approx(
        [row["score"] for row in alone], abs=1e-2
    )


def test_files_whose_names_contradict_the_languages_are_refused(place, tmp_path, capsys):
    for code, other in (("en", "src"), ("de", "tgt")):
        (tmp_path / f"a.{code}").write_bytes((place / f"train.{other}").read_bytes())
    swapped = tmp_path / "a.de", tmp_path / "a.en"
    for more in (("--train", *swapped), ("--train", *swapped[::-1], "--valid", *swapped)):
        asked = ["train", "--from", "en", "--to", "de", "--out", tmp_path / "out", *more, *SHORT]
        status, _, said = run(capsys, *asked)
        assert status and "their names say" in said and "step" not in said, said


def test_names_of_bilingual_files_contradict_nothing(tmp_path):
    for name in ("a.de.tsv", "b.en.tsv"):
        (tmp_path / name).write_text("a\tb\n")
    pairs = read_pairs([str(tmp_path / "a.de.tsv"), str(tmp_path / "b.en.tsv")], ("en", "de"))
    assert [pair[:2] for pair in pairs] == [("a", "b")] * 2


def test_a_test_text_with_a_line_break_is_refused_before_the_training(place, tmp_path, capsys):
    (tmp_path / "a.jsonl").write_text(
        '{"source": "a", "target": "b"}\n{"source": "a\\nb", "target": "c"}\n'
    )
    asked = [
        "train",
        "--train",
        place / "train.src",
        place / "train.tgt",
        "--test",
        tmp_path / "a.jsonl",
        *SHORT,
    ]
    status, _, said = run(capsys, *asked, "--out", tmp_path / "out")
    assert (
        status and "a.jsonl:2: the text contains a line break" in said and "Training " not in said
    ), said


def test_a_test_text_that_the_model_can_not_read_does_not_cost_the_training(
    place, tmp_path, capsys
):
    (tmp_path / "a.jsonl").write_text(json.dumps({"source": "a " * 99, "target": "b"}) + "\n")
    more = ["model.positions=learned", "model.max_positions=60", "data.max_length=59"]
    asked = [
        "train",
        "--train",
        place / "train.src",
        place / "train.tgt",
        "--test",
        tmp_path / "a.jsonl",
        *SHORT,
    ]
    status, _, said = run(capsys, *asked, *more, "--out", tmp_path / "out")
    assert not status and "The test set is not scored. Source text 1 has" in said, said
    assert "test" not in model_folder.read_metrics(tmp_path / "out")


def test_progress_of_a_long_translation_goes_to_standard_error(place, capsys, monkeypatch):
    command = ["translate", place / "one", "--input", place / "test.src"]
    expected = output(capsys, *command)
    monkeypatch.setattr("transduce.system.console.SECONDS_BETWEEN_LINES", -1.0)
    status, found, said = run(capsys, *command)
    assert (status, found) == (0, expected)
    assert [line.split(" a second")[0].split(", ")[0] for line in said.splitlines()[1:12]] == [
        f"{number} lines translated" for number in range(1, 12)
    ]


# -- what becomes of output files -------------------------------------------------------------------------


def test_a_mistake_late_in_the_input_leaves_the_old_output(place, tmp_path, capsys):
    (tmp_path / "in.txt").write_bytes(b"\n" * 300_000 + b"\xff\n")
    (tmp_path / "out.txt").write_text("old\n")
    command = [
        "translate",
        place / "one",
        "--input",
        tmp_path / "in.txt",
        "--output",
        tmp_path / "out.txt",
    ]
    status, _, said = run(capsys, *command)
    assert (status, "in.txt:300001: byte 0xFF" in said) == (2, True)
    assert (tmp_path / "out.txt").read_text() == "old\n"
    assert {path.name for path in tmp_path.iterdir()} == {"in.txt", "out.txt"}


def test_ctrl_c_leaves_the_old_output(place, tmp_path):
    target = tmp_path / "out.txt"
    target.write_text("old\n")
    command = [
        sys.executable,
        "-m",
        "transduce",
        "translate",
        str(place / "one"),
        "--output",
        str(target),
    ]
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    # What runs in the background ignores it.
    heeded = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, **pipes, preexec_fn=heeded) as process:
        wait_for(
            lambda: any(tmp_path.glob(f".out.txt.aside-{'?' * 8}")),
            lambda: process.poll() is not None,
        )
        process.send_signal(signal.SIGINT)
        assert process.stdin is not None and process.stderr is not None
        process.stdin.close()  # a signal that arrives just before the read does not end it
        assert process.wait(PATIENCE) == 130
        assert b"Engine: " in process.stderr.read()
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]
    assert target.read_text() == "old\n"


def test_links_stay_links_and_devices_stay_devices(tmp_path, capsys):
    (tmp_path / "real.txt").write_text("old\n")
    (tmp_path / "link.txt").symlink_to("real.txt")
    write_lines(tmp_path / "link.txt", ["ä", "b\u2028"])
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_bytes() == "ä\nb\u2028\n".encode()
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_lines(tmp_path / "pipe", ["a"])
    assert os.read(reader, 10) == b"a\n" and (tmp_path / "pipe").is_fifo()
    os.close(reader)
    write_lines(Path("-"), ["a", "b"])
    assert capsys.readouterr().out == "a\nb\n"
    assert {path.name for path in tmp_path.iterdir()} == {"real.txt", "link.txt", "pipe"}


def test_two_writers_do_not_mix_their_output(tmp_path):
    def lines() -> Iterator[str]:
        yield "first"
        write_lines(tmp_path / "out.txt", ["second"] * 3)
        assert (tmp_path / "out.txt").read_text() == "second\n" * 3
        yield "first"

    write_lines(tmp_path / "out.txt", lines())
    assert (tmp_path / "out.txt").read_text() == "first\nfirst\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


# -- score and evaluate -----------------------------------------------------------------------------------


def evaluated(capsys, *arguments) -> dict:
    return json.loads(output(capsys, "evaluate", *arguments, "--json"))


def test_score_gives_the_perplexity_of_evaluate(place, capsys):
    files = place / "test.src", place / "test.tgt"
    numbers = [float(line) for line in output(capsys, "score", place / "one", *files).splitlines()]
    rows = [
        json.loads(line)
        for line in output(capsys, "score", place / "one", *files, "--json").splitlines()
    ]
    assert numbers == pytest.approx([row["log_prob"] for row in rows], abs=1e-4)
    tokens = sum(row["num_tokens"] for row in rows)
    found = evaluated(capsys, place / "one", *files)["perplexity"]
    assert found["num_tokens"] == tokens
    assert found["per_token"] == pytest.approx(
        math.exp(-sum(row["log_prob"] for row in rows) / tokens), rel=1e-6
    )


def test_score_of_a_translation_is_its_reported_score(place, tmp_path, capsys):
    sources, tokenizer = lines(place / "test.src"), model_folder.load(place / "one").tokenizer
    rows = transduce.load(place / "one", engine="torch").translate([*sources, ""])
    canonical = [
        (source, row)
        for source, row in zip([*sources, ""], rows, strict=True)
        if tuple(tokenizer.target.pieces(tokenizer.encode_target([row.text])[0])) == row.tokens
    ]
    assert len(canonical) > 6
    (tmp_path / "a").write_text("".join(f"{source}\n" for source, _ in canonical))
    (tmp_path / "b").write_text("".join(f"{row.text}\n" for _, row in canonical))
    found = output(
        capsys, "score", place / "one", tmp_path / "a", tmp_path / "b", "--json"
    ).splitlines()
    assert [json.loads(line)["score"] for line in found] == pytest.approx(
        [row.score for _, row in canonical], abs=1e-4
    )
    assert json.loads(found[-1]) == {
        "log_prob": 0.0,
        "num_tokens": 0,
        "score": 0.0,
        "confidence": None,
        "words": [],
        "detached": False,
    }


def test_evaluate_scores_what_translate_writes(place, tmp_path, capsys):
    written, translated, reference = (
        tmp_path / "written",
        tmp_path / "translated",
        place / "test.tgt",
    )
    found = evaluated(capsys, place / "one", place / "test.src", reference, "--output", written)
    command = ["translate", place / "one", "--input", place / "test.src", "--engine", "torch"]
    output(capsys, *command, "--output", translated)
    assert written.read_bytes() == translated.read_bytes()
    again = evaluated(capsys, "--hypothesis", translated, reference)
    assert again == {"sentences": 12, "scores": found["scores"]}
    (tmp_path / "both.tsv").write_text("one\teins\n" * 12)
    status, _, said = run(capsys, "evaluate", "--hypothesis", translated, tmp_path / "both.tsv")
    assert status == 2 and "both.tsv is no plain text" in said
    assert [each["name"] for each in found["scores"]] == ["BLEU", "chrF2", "TER"]
    metrics = json.loads(output(capsys, "info", place / "one", "--json"))["metrics"]
    valid = evaluated(capsys, place / "one", place / "valid.src", place / "valid.tgt")
    assert valid["perplexity"]["per_token"] == pytest.approx(
        metrics["validation"]["perplexity"], rel=1e-6
    )


def test_evaluate_reads_one_bilingual_file_as_it_reads_two(place, tmp_path, capsys):
    pairs = zip(lines(place / "test.src"), lines(place / "test.tgt"), strict=True)
    table = tmp_path / "test.jsonl"
    table.write_text(
        "".join(json.dumps({"ka": source, "zu": target}) + "\n" for source, target in pairs)
    )
    two = evaluated(capsys, place / "one", place / "test.src", place / "test.tgt")
    one = evaluated(capsys, place / "one", table)
    assert one["scores"] == two["scores"] and one["perplexity"] == two["perplexity"]


@pytest.mark.parametrize(("count", "is_warned"), [(29, True), (30, False)])
def test_intervals_of_few_sentences_come_with_a_warning(count, is_warned, tmp_path, capsys):
    for name in ("output.de", "reference.de"):
        (tmp_path / name).write_text("Ein Hund.\n" * count)
    status, printed, _ = run(
        capsys, "evaluate", "--hypothesis", tmp_path / "output.de", tmp_path / "reference.de"
    )
    assert status == 0 and ("intervals are too narrow" in printed) == is_warned


def test_evaluate_prints_signatures_that_can_be_copied(place, capsys):
    files = place / "one", place / "test.src", place / "test.tgt"
    scores, printed = (
        evaluated(capsys, *files)["scores"],
        output(capsys, "evaluate", *files).splitlines(),
    )
    assert printed[0].split() == ["metric", "score", "95", "%", "signature"]
    for score, line in zip(scores, printed[1:4], strict=True):
        assert line.startswith(score["name"]) and line.endswith(score["signature"])
        assert f"{score['value']:.2f}  " in line
    assert printed[5].startswith("perplexity ")
    assert printed[6].startswith("12 sentences translated in ") and printed[6].endswith(
        "with beam 4"
    )
    assert "with beam 1" in output(capsys, "evaluate", *files, "decode.beam_size=1")


def test_two_outputs_are_compared(place, tmp_path, capsys):
    worse, reference = tmp_path / "worse", place / "test.tgt"
    worse.write_text("".join(f"{line.split()[0]} x\n" for line in lines(reference)))
    command = ["--hypothesis", worse, "--against"]
    bleu, _, ter = evaluated(capsys, *command, reference, reference)["scores"]
    assert (bleu["name"], ter["name"]) == ("BLEU", "TER")
    assert bleu["first"]["value"] < bleu["second"]["value"] == pytest.approx(100)
    assert ter["first"]["value"] > ter["second"]["value"] == 0
    assert bleu["p_value"] is ter["p_value"] is None, "too few sentences"
    table = output(capsys, "evaluate", *command, worse, reference).splitlines()
    assert table[0].split() == ["metric", str(worse), str(worse), "difference", "p", "signature"]
    assert (
        all(line.split()[3:5] == ["+0.00", "–"] for line in table[1:-1])
        and "too few for a test" in table[-1]
    )
    (long := tmp_path / "long.tgt").write_text(reference.read_text() * 30)
    worse.write_text(worse.read_text() * 30)
    assert evaluated(capsys, *command, long, long)["scores"][0]["p_value"] < 0.05
    worse.write_text(long.read_text())
    table = output(capsys, "evaluate", *command, worse, long).splitlines()
    assert all(line.split()[3:5] == ["+0.00", "1.000"] for line in table[1:])


def test_two_models_are_compared_as_their_translations_are(place, tmp_path, capsys):
    files, names = (place / "test.src", place / "test.tgt"), (place / "one", place / "two")
    alone = [evaluated(capsys, name, *files, "--output", tmp_path / name.name) for name in names]
    outputs = "--hypothesis", tmp_path / "one", "--against", tmp_path / "two", files[1]
    models = evaluated(capsys, names[0], *files, "--against", names[1], "--slices")
    assert models["perplexity"] == {
        "first": alone[0]["perplexity"],
        "second": alone[1]["perplexity"],
    }
    assert models | evaluated(capsys, *outputs, "--slices") == models
    found = [[each[name]["value"] for name in ("first", "second")] for each in models["scores"]]
    assert found[1:] == [
        [one["value"], two["value"]]
        for one, two in zip(*(x["scores"][1:] for x in alone), strict=True)
    ]
    assert all(
        "|tok:13a|" in models["scores"][0][name]["signature"] for name in ("first", "second")
    )
    greedy = evaluated(capsys, names[0], *files, "decode.beam_size=1"), "decode.beam_size=1"
    both = evaluated(capsys, names[1], *files, "--against", names[0], greedy[1])["scores"]
    assert both[1]["second"]["value"] == greedy[0]["scores"][1]["value"]
    table = output(capsys, "evaluate", names[0], *files, "--against", names[1]).splitlines()
    assert table[0].split()[:3] == ["metric", *map(str, names)] and len(table) == 6
    perplexities = [f"{each['perplexity']['per_word']:.2f}" for each in alone]
    assert table[4].split()[3:5] == perplexities


def test_slices_on_the_screen_are_those_of_json(place, tmp_path, capsys):
    reference = tmp_path / "reference"
    reference.write_text(
        "".join(f"{line}\n" for line in ["NATO ya", *lines(place / "train.tgt")[:50], "im Jahr 12"])
    )
    (tmp_path / "worse").write_text("".join(f"{line.split()[0]} x\n" for line in lines(reference)))
    command = (
        "--hypothesis",
        tmp_path / "worse",
        "--against",
        reference,
        reference,
        "--training",
        place / "train.tgt",
    )
    found = evaluated(capsys, *command)["slices"]
    assert [
        (each["name"], each["sentences"], each["num_words"], each["found"]) for each in found[1:]
    ] == [
        ("without rare words", 50, 0, [0, 0]),
        ("with rare words", 2, 4, [2, 4]),
        ("without numbers", 51, 0, [0, 0]),
        ("with numbers", 1, 1, [0, 1]),
        ("no capital letters", 50, 0, [0, 0]),
        ("ordinary capital letters", 1, 0, [0, 0]),
        ("some words in capitals", 1, 1, [1, 1]),
    ]
    rows = [re.split(r"  +", line) for line in output(capsys, "evaluate", *command).splitlines()]
    shown = {row[0]: row[1:] for row in rows}
    for each in found:
        p = (
            "–"
            if each["p_value"] is None
            else f"{each['p_value']:.3f}" + " (significant)" * (each["p_value"] < 0.05)
        )
        values = [
            [score[name]["value"] for name in ("first", "second")] for score in each["scores"][:2]
        ]
        bleu, chrf = ([f"{one:.2f}", f"{two:.2f}", f"{two - one:+.2f}"] for one, two in values)
        words = [f"{number} of {each['num_words']}" for number in each["found"]] * bool(
            each["num_words"]
        )
        assert shown[each["name"]] == [str(each["sentences"]), *chrf, p, *bleu, *words]
    assert "corrected for 4 tests" in " ".join(shown["p"])
    assert shown["rare word"] == [f"occurs at most 5 times in {place / 'train.tgt'}"]
    assert evaluated(capsys, *command[:5], "--slices")["slices"][1]["sentences"] == 50


def test_models_of_other_languages_are_not_compared(place, tmp_path, capsys):
    make_model(tmp_path / "french", {"data.source": "ka", "data.target": "fr"})
    files = place / "test.src", place / "test.tgt"
    status, _, said = run(
        capsys, "evaluate", place / "one", *files, "--against", tmp_path / "french"
    )
    assert status == 2 and f"one translates ka-zu, but {tmp_path}/french translates ka-fr." in said


def test_a_model_without_languages_is_compared(place, tmp_path, capsys):
    make_model(tmp_path / "unnamed", {"data.source": "src", "data.target": "tgt"})
    files, names = (place / "test.src", place / "test.tgt"), (place / "one", tmp_path / "unnamed")
    for one, two in (names, names[::-1]):
        assert evaluated(capsys, one, *files, "--against", two)["scores"]


def test_tokenisation_is_that_of_the_model_or_what_is_asked_for(place, capsys):
    files = place / "test.src", place / "test.tgt"

    def signature(*arguments: object) -> str:
        return str(evaluated(capsys, *arguments)["scores"][0]["signature"])

    assert "|tok:13a|" in signature(place / "one", *files)
    assert "|tok:none|" in signature(place / "two", *files)
    assert "|tok:char|" in signature(place / "two", *files, "--tokenize", "char")
    assert "|tok:none|" in signature("--hypothesis", files[1], files[1], "--tokenize", "none")


def test_the_tokenisation_follows_the_target_language(place, tmp_path, capsys):
    make_model(tmp_path / "model", {"data.target": "zh"})
    reference, named = place / "test.tgt", shutil.copy(place / "test.tgt", tmp_path / "test.zh")
    for arguments, expected in {
        (tmp_path / "model", place / "test.src", reference): "zh",
        ("--hypothesis", reference, reference): "13a",
        ("--hypothesis", reference, reference, "--to", "zh"): "zh",
        ("--hypothesis", reference, named): "zh",
        ("--hypothesis", reference, named, "--to", "de"): "13a",
    }.items():
        assert f"|tok:{expected}|" in evaluated(capsys, *arguments)["scores"][0]["signature"]
    assert "|tok:zh|" in output(
        capsys, "evaluate", "--hypothesis", reference, "--against", reference, named
    )


def test_impossible_measurements_are_refused_before_translating(
    place, tmp_path, capsys, monkeypatch
):
    make_model(tmp_path / "short", {"model.positions": "learned", "model.max_positions": 20})
    (tmp_path / "long").write_text("a b c " * 9 + "\n")
    (tmp_path / "source").write_text("a b\n")
    (tmp_path / "page.html").write_text("<p>a b</p>\n")
    monkeypatch.delattr(Translator, "translate")
    files = place / "test.src", place / "test.tgt"
    for typed, sentence in {
        (place / "one", *files, "--tokenize", "words"): "There is no tokenisation 'words'",
        (tmp_path / "short", tmp_path / "source", tmp_path / "long"): "Target text 1 has ",
        (
            place / "one",
            tmp_path / "page.html",
            tmp_path / "long",
        ): "page.html is a document. Give its translation in",
    }.items():
        status, _, said = run(capsys, "evaluate", *typed)
        assert status == 2 and sentence in said


def test_json_without_measurements_is_valid(place, tmp_path, capsys):
    (tmp_path / "blank").write_text("\n\n")
    text = output(
        capsys, "evaluate", place / "one", tmp_path / "blank", tmp_path / "blank", "--json"
    )
    found = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert found["perplexity"] == {
        "per_token": None,
        "per_word": None,
        "num_tokens": 0,
        "num_words": 0,
    }


def test_a_byte_order_mark_counts_for_nothing_in_a_score(place, tmp_path, capsys):
    (tmp_path / "marked").write_bytes(b"\xef\xbb\xbf" + (place / "test.tgt").read_bytes())
    found = evaluated(capsys, "--hypothesis", tmp_path / "marked", place / "test.tgt")["scores"]
    assert [score["value"] for score in found] == pytest.approx([100, 100, 0])
    for name, text in {
        "gold.mrg": "(S (N cats) (V run))",
        "parses": "(S (N cats) (V run))",
        "a.prm": "# none",
    }.items():
        (tmp_path / name).write_text(f"\ufeff{text}\n", encoding="utf-8")
    files = tmp_path / "parses", tmp_path / "gold.mrg"
    assert (
        evaluated(capsys, "--hypothesis", *files, "--evalb", tmp_path / "a.prm")["all"]["F1"] == 100
    )


# -- average and info -------------------------------------------------------------------------------------


def test_average_takes_the_last_regular_checkpoints(place, tmp_path, capsys):
    run_folder = tmp_path / "run"
    shutil.copytree(place / "one", run_folder)
    steps = run_folder / "checkpoints"
    # As an interruption leaves one.
    shutil.copytree(steps / "step-00000100", steps / "step-00000230")
    shutil.copytree(steps / "step-00000100", steps / "step-00000310.mine")  # which is none of ours
    printed = output(capsys, "average", run_folder, "--last", 2, "--out", tmp_path / "two")
    assert printed == f"{tmp_path / 'two'}: the average of the checkpoints at steps 200, 300\n"
    first, last = (load_file(steps / f"step-{step:08d}/model.safetensors") for step in (200, 300))
    for name, weight in load_file(tmp_path / "two/model.safetensors").items():
        assert torch.equal(weight, ((first[name].double() + last[name].double()) / 2).float())
    assert "checkpoint  average of steps 200, 300\n" in output(capsys, "info", tmp_path / "two")
    output(capsys, "average", run_folder, "--last", 1, "--out", tmp_path / "one")
    status, _, said = run(capsys, "train", "--out", tmp_path / "one", "train.steps=900")
    assert (
        status == 2
        and f"{tmp_path / 'one'} is a model without checkpoints. To continue from it" in said
    )
    command = [
        "train",
        "--init",
        tmp_path / "one",
        "--keep-optimizer",
        "--train",
        place / "train.tsv",
    ]
    status, _, said = run(capsys, *command, "--out", tmp_path / "out")
    assert status == 2 and "one has no checkpoints, so its optimizer state is gone" in said
    assert all(
        torch.equal(weight, last[name])
        for name, weight in load_file(tmp_path / "one/model.safetensors").items()
    )
    (tmp_path / "in.txt").write_text("ka lo\n")
    assert (
        output(capsys, "translate", tmp_path / "two", "--input", tmp_path / "in.txt").count("\n")
        == 1
    )


def test_an_average_that_was_killed_is_made_again(place, tmp_path, capsys):
    command = ["average", place / "one", "--last", 2, "--out", tmp_path / "two"]
    assert killed(1, list(map(str, command)), tmp_path, "**/README.md") == -signal.SIGKILL
    output(capsys, *command)
    assert [path.name for path in tmp_path.iterdir()] == ["two"]
    assert not [*(tmp_path / "two").glob(".*")]
    verify(tmp_path / "two", hashes=True)


def test_info_of_a_finished_training(place, capsys):
    facts, _, sources = output(capsys, "info", place / "one").partition("\n\n")
    printed = dict(line.split("  ", 1) for line in facts.splitlines())
    assert re.search(r"data.corpora .*command line", sources)
    assert printed["languages"].strip() == "ka to zu"
    assert printed["model"].strip().startswith("transformer, 1+1 layers, d_model 32, ")
    assert printed["corpus"].strip() == f"{place}/train.tsv" and printed[
        "pairs"
    ].strip().startswith("300 (")
    assert printed["training"].strip().startswith("300 updates, ") and "state" not in printed
    found = json.loads(output(capsys, "info", place / "one", "--json"))
    assert configure(found["config"]) == model_folder.read_config(place / "one")
    assert found["finished"] is True
    assert found["metrics"] == json.loads((place / "one/metrics.json").read_text())


def test_info_of_a_running_training(place, tmp_path, capsys):
    shutil.copytree(place / "one", tmp_path / "run")
    (tmp_path / "run/manifest.json").unlink()
    printed = output(capsys, "info", tmp_path / "run")
    assert "not finished" in printed and "step-00000300/model.safetensors" in printed
    found = json.loads(output(capsys, "info", tmp_path / "run", "--json"))
    assert (found["finished"], found["metrics"]) == (False, {})


@pytest.mark.parametrize("name", ["model", "my model", 'it\'s "mine"'])
def test_the_commands_that_the_demo_leads_to_can_be_pasted(name):
    steps = dict(next_steps(Path("demo", name)))
    for purpose in ("Translate in the browser", "Show details of the model"):
        assert shlex.split(steps[purpose])[-1] == f"demo/{name}"
    program = ast.parse(shlex.split(steps["Use the model from Python"])[-1])
    assert f"demo/{name}" in [
        each.value for each in ast.walk(program) if isinstance(each, ast.Constant)
    ]


# -- mistakes ---------------------------------------------------------------------------------------------

MISTAKES = {  # what is typed in a folder with the files of `place`, and what the sentence says
    "translat one": 'Did you mean "translate"?',
    "demo --out x train.step=9": "Unknown option 'train.step'. Did you mean 'train.steps'?",
    "train": "train needs --out",
    "train --out": "--out needs a value",
    "train --out x": "There is nothing to train on. Name two text files",
    "train multi30k-en-d --out x": "There is no recipe multi30k-en-d. Did you mean multi30k-en-de?",
    "train zzz --out x": "There is no recipe zzz. Choose one of craft-parsing, ",
    "train train.tsv --out x": "train.tsv is not a recipe (NAME.toml). Name corpus files after --train.",
    "train train.src train.tgt --out x": "Unexpected argument train.tgt. Put --train before the corpus files.",
    "train --train train.src train.tgt my.toml --out x": "my.toml is a recipe, not a corpus file. Name",
    "train --train train.src test.tgt --out x": "train.src has 300 lines and test.tgt has 12",
    "train --train train.tsv --out x model.d_mode=8": "Unknown option 'model.d_mode'. Did you mean 'model.d_model'?",
    "train --train - - --out x": "Source and target can't both come from standard input. Name a file for one of them.",
    "train --train train.tsv --out x --keep-optimizer": "Name this model, too",
    "train --train train.tsv --out x --init none": "There is no model folder none",
    "train --train train.tsv --out x --init one data.joint=false": "one has data.joint = True, which can't",
    "train --train train.tsv --out x --init one data.tokenizer=unigram": "one has data.tokenizer = bpe, which",
    "train --train train.tsv --out x --init one data.vocab_size=270": "one has a vocabulary of 300 tokens already. ",
    "train --train train.tsv --out train.tsv": "train.tsv exists and is not a training run of transduce",
    "train --train data --out x data.max_length=9": "data was prepared with data.max_length = 256. Leave data.",
    "train --train data --out x data.joint=false": "data was prepared with data.joint = True. Leave data.joint out",
    "train --train train.tsv --out x --test x.mrg": "later; train without the test files (--test).",
    "train --train data --out x --from en": "data was prepared with data.source = ka. Leave data.source out",
    "train --train data --out x data.vocab_size=270": "data has a vocabulary of 300 tokens already. Leave",
    "train --train train.csv --out x": "train.csv does not exist. Did you mean train.tsv?",
    "train --train other --out x": "other is a folder. Name a file in it.",
    "prepare --train train.tsv --out data": "data exists already and is never overwritten",
    "prepare --train train.tsv": "prepare needs --out",
    "translate": "translate needs MODEL",
    "translate none": "There is no model folder none",
    "translate data": "data is not a model folder: data/config.toml is missing",
    "translate one test.src": "test.src is a file. To translate the file, put --input before it.",
    "translate test.src one": "one is a folder. Name the model first, and the file to translate with --input.",
    "translate one test.src --input test.src": "Give either texts or --input, not both.",
    "translate one --inptu test.src": "Unknown option: --inptu. Did you mean --input?",
    "translate one --input test.scr": "test.scr does not exist. Did you mean test.src?",
    "translate one --input test.src --output test.src": "test.src is also the input. Name another file (--output).",
    "translate one --input test.src --output ./test.src": "is also the input",
    "translate one --input test.src --glossary train.tsv --output train.tsv": "train.tsv is also the input",
    "translate one --input test.src --output no/x": "no/x can't be written: there is no folder no. Make it",
    "translate one --input test.src --output x.gz": "Leave .gz out of its name (--output).",
    "translate one --input test.src --output data": "data is a folder. Name a file in it (--output).",
    "translate one --input test.src --output old.txt --n-best 5": "n_best must be from 1 to decode.beam_size (4)",
    "translate one --input test.src --beam-size 0": "decode.beam_size must be at least 1, not 0",
    "translate one --input test.src --beam-size two": 'Invalid value for --beam-size: unable to convert "two" into int',
    "translate one --input test.src model.d_model=64": "model.d_model can't be set for a trained model",
    "translate one --input test.src --ensemble other": "other has another vocabulary than one.",
    "score one test.src": "score needs TARGET",
    "score one test.src train.tgt": "test.src has 12 lines and train.tgt has 300",
    "evaluate one test.src": "test.src: the suffix does not name a bilingual format.",
    "evaluate one": "Give MODEL SOURCE REFERENCE, or MODEL PAIRS, or --hypothesis FILE REFERENCE",
    "evaluate one test.src test.tgt --paper-bleu xx": "The paper reports BLEU for de and fr, not for 'xx'.",
    "parse one --input x.mrg": "`transduce evaluate one x.mrg` parses its words and scores the parses.",
    "evaluate one test.src test.tgt --against test.tgt": "test.tgt is a file. To compare files, use --hypothesis FILE",
    "evaluate one test.src test.tgt --against data": "data is not a model folder: data/config.toml is missing",
    "evaluate one test.src test.tgt --against other --output x": "compares two translations. Leave out --output.",
    "evaluate one test.src test.tgt --slices": "--slices and --training are for the comparison of two translations",
    "evaluate --hypothesis test.tgt test.tgt --training test.tgt": "of two translations. Add --against.",
    "evaluate --hypothesis test.tgt --against train.tgt test.tgt --slices": "300 hypotheses of the second",
    "evaluate --hypothesis test.tgt --against test.tgt test.tgt --training test.tg": "Did you mean test.tgt?",
    "evaluate one test.src test.tgt --against two --training test.tg": "test.tg does not exist. Did you mean test.tgt?",
    "evaluate --hypothesis test.tgt --against test.tgt": "With --hypothesis, give exactly one argument (REFERENCE)",
    "evaluate one test.src test.tgt --output test.tgt": "test.tgt is also the input",
    "evaluate one test.src test.tgt --output no/x": "there is no folder no",
    "evaluate one test.src test.tgt --tokenize words": "There is no tokenisation 'words'. Choose one of none, ",
    "evaluate one test.src test.tgt --ensemble other": "other has another vocabulary than one.",
    "evaluate one test.src test.tgt train.steps=3": "train.steps can't be set for a trained model",
    "evaluate --hypothesis test.tgt": "With --hypothesis, give exactly one argument (REFERENCE), not 0.",
    "evaluate --hypothesis test.tgt train.tgt": "There are 12 hypotheses but 300 references",
    "evaluate --hypothesis test.tgt test.tgt --output x": "Leave out --output",
    "evaluate --hypothesis test.tgt test.tgt --routes": "Leave out --routes",
    "prepare --train data --out x": "data is prepared already. Give it to `transduce train`, as the only corpus.",
    "average one --last 2": "average needs --out",
    "average one --out two --last 2": "two exists already and is never overwritten. Choose another name, or remove it.",
    "average one --out x --last 0": "--last must be at least 1, not 0.",
    "average one --out x --last 9": "one has 3 checkpoints to average, not 9. Lower --last, or",
    "average data --out x": "data is not a model folder",
    "info none": "There is no model folder none",
    "info one two": "Unexpected argument two",
}


@pytest.mark.parametrize("typed", MISTAKES)
def test_a_mistake_is_one_sentence_and_leaves_nothing(typed, place, capsys, monkeypatch):
    monkeypatch.chdir(place)
    before = {path: path.stat().st_mtime_ns for path in place.iterdir()}
    status, result, said = run(capsys, *typed.split())
    *before_it, sentence = said.replace("\nhint: ", " ").splitlines()
    assert status == 2 and result == ""
    assert sentence.startswith("transduce: ") and MISTAKES[typed] in sentence
    assert sentence.endswith((".", "?", "--help'."))
    progress = ("Building a fast engine", "Engine: ", "Resuming at ", "Reading the corpus")
    assert all(
        line.startswith(progress) or "get the same translation" in line for line in before_it
    ), before_it
    assert {path: path.stat().st_mtime_ns for path in place.iterdir()} == before


def test_missing_input_is_reported_before_loading_a_model(place, capsys):
    _, _, said = run(capsys, "translate", place / "one", "--input", place / "test.scr")
    assert said == f"transduce: {place}/test.scr does not exist. Did you mean {place}/test.src?\n"
    _, _, said = run(capsys, "translate", place / "one", "--input", place)
    assert said == f"transduce: {place} is a folder. Name a file in it.\n"


def test_texts_are_translated(place, capsys):
    monologue = "ka lo mi. nu re! " * 20  # longer than the name of a file can be
    _, said, _ = run(
        capsys, "translate", place / "one", "ka lo", monologue, "", "--engine", "torch"
    )
    assert len(said.splitlines()) == 3 and said.endswith("\n\n")
    _, alone, _ = run(capsys, "translate", place / "one", "ka lo", "--engine", "torch")
    assert said.startswith(alone)
    (place / "lines.txt").write_text(f"{monologue}\n")
    _, lines, _ = run(
        capsys,
        "translate",
        place / "one",
        "--sentences",
        "--input",
        place / "lines.txt",
        "--engine",
        "torch",
    )
    (place / "lines.txt").unlink()
    assert said.splitlines()[1].strip() == lines.strip()


@pytest.mark.parametrize("name", ["a.docx", "a.odt", "a.PDF"])
def test_office_files_are_not_read_as_text(name, place, tmp_path, capsys):
    (tmp_path / name).write_bytes(b"ka lo\n")
    for command in (
        ["translate", place / "one", "--input", tmp_path / name],
        ["train", "--out", tmp_path / "m", "--train", tmp_path / name, tmp_path / name],
        ["score", place / "one", tmp_path / name, tmp_path / name],
    ):
        status, _, said = run(capsys, *command)
        assert status == 2 and f"can't read {name[1:].lower()} files" in said


def test_without_a_command_the_commands_are_listed(capsys):
    assert output(capsys) == output(capsys, "--help")
