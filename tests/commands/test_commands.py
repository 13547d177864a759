"""The commands, as a person types them: what they write, where to, and what they say of mistakes."""

import ast
import functools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import transduce
from command_line import run
from forked import killed
from models import make_model
from small_corpus import SHORT, TINY, evaluated, lines, output, texts_of
from transduce import model_folder
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


def test_a_student_of_directions_that_the_teacher_lacks_is_refused(place, tmp_path, capsys):
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
        and "has no direction en-de: a teacher must translate directly" in said
        and not (tmp_path / "data").exists()
    )


def test_interrupted_distillation_resumes(place, tmp_path, monkeypatch):
    monkeypatch.setattr("transduce.wings.synthetic.translations.CHUNK_LINES", 50)
    data = configure({"data.corpora": [{"files": [str(place / "train.tsv")]}]}).data
    plain = {"keep_original": False, "threads": 1}
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
        distill({"": translator}, [place / "one"], data, tmp_path / "data", **plain)
    assert [path.name for path in tmp_path.iterdir()] == [".data.translations.jsonl"]
    with (tmp_path / ".data.translations.jsonl").open("ab") as file:
        file.write(b'{"torn')
    others = Translator(translator.engine, loaded.tokenizer, replace(once, beam_size=2))
    with pytest.raises(UserError, match="another model, engine, text or options"):
        distill({"": others}, [place / "one"], data, tmp_path / "data", **plain)
    limit = 10_000
    distill({"": translator}, [place / "one"], data, tmp_path / "data", **plain)
    assert len(asked) == len(set(asked)) > 200
    assert not read_facts(tmp_path / "data").left_out.keys() & {"too-long"}
    distill({"": translator}, [place / "one"], data, tmp_path / "again", **plain)
    assert texts_of(tmp_path / "data") == texts_of(tmp_path / "again")
    translator.engine.max_positions = 8  # one for EOS
    distill({"": translator}, [place / "one"], data, tmp_path / "short", **plain)
    assert read_facts(tmp_path / "short").left_out["too-long"] > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again", "data", "short"]
    missing = configure({"data.corpora": [{"files": ["nope.tsv"]}]}).data
    with pytest.raises(UserError, match="nope"):
        distill({"": translator}, [place / "one"], missing, tmp_path / "a/b/c", **plain)
    assert not (tmp_path / "a").exists()


@pytest.mark.slow
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
    shown = re.findall(r"^Lines translated: (\d+), [\d.,]+ a second$", said, re.MULTILINE)
    assert len(shown) >= 12 and shown[-1] == "12"
    assert [*map(int, shown)] == sorted(map(int, shown)), "what is done never becomes less"


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


def test_evaluate_reads_one_bilingual_file_as_it_reads_two(place, tmp_path, capsys):
    pairs = zip(lines(place / "test.src"), lines(place / "test.tgt"), strict=True)
    table = tmp_path / "test.jsonl"
    table.write_text(
        "".join(json.dumps({"ka": source, "zu": target}) + "\n" for source, target in pairs)
    )
    two = evaluated(capsys, place / "one", place / "test.src", place / "test.tgt")
    one = evaluated(capsys, place / "one", table)
    assert one["scores"] == two["scores"] and one["perplexity"] == two["perplexity"]


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


def test_an_average_that_was_killed_is_made_again(place, tmp_path, capsys):
    command = ["average", place / "one", "--last", 2, "--out", tmp_path / "two"]
    assert killed(1, list(map(str, command)), tmp_path, "**/README.md") == -signal.SIGKILL
    output(capsys, *command)
    assert [path.name for path in tmp_path.iterdir()] == ["two"]
    assert not [*(tmp_path / "two").glob(".*")]
    verify(tmp_path / "two", hashes=True)


@pytest.mark.parametrize("name", ["model", "my model", 'it\'s "mine"'])
def test_the_commands_that_the_demo_leads_to_can_be_pasted(name):
    steps = dict(next_steps(Path("demo", name)))
    for purpose in ("Translate in the browser", "Show details of the model"):
        assert shlex.split(steps[purpose])[-1] == f"demo/{name}"
    program = ast.parse(shlex.split(steps["Use the model from Python"])[-1])
    assert f"demo/{name}" in [
        each.value for each in ast.walk(program) if isinstance(each, ast.Constant)
    ]


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


@pytest.mark.parametrize("name", ["a.doc", "a.docx", "a.odt", "a.PDF"])
def test_office_files_are_not_read_as_text(name, place, tmp_path, capsys):
    (tmp_path / name).write_bytes(b"ka lo\n")
    for command in (
        ["translate", place / "one", "--input", tmp_path / name],
        ["train", "--out", tmp_path / "m", "--train", tmp_path / name, tmp_path / name],
        ["score", place / "one", tmp_path / name, tmp_path / name],
    ):
        status, _, said = run(capsys, *command)
        refused = "is a document" in said or "it is no ZIP archive" in said
        assert status == 2 and (refused or f"can't read {name[1:].lower()} files" in said)


def test_without_a_command_the_commands_are_listed(capsys):
    assert output(capsys) == output(capsys, "--help")
