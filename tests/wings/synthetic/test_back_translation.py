"""Text in the target language becomes pairs to train on, whatever interrupts it, and nothing of it is held out."""

import json
import shutil
import signal
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from command_line import run
from corpora import TINY, reverse_texts, spelt, write_texts
from forked import killed
from transduce import cli, model_folder
from transduce.config.schema import SYNTHETIC_TAG, CorpusConfig, DataConfig
from transduce.config.settings import Settings
from transduce.preparation.passes import read_corpus, read_part
from transduce.preparation.prepared import open_prepared
from transduce.system.errors import UserError
from transduce.text.holdout import normalised
from transduce.text.pairs import read_pairs
from transduce.training.run import Result
from transduce.wings.phrasebook.examples import examples
from transduce.wings.synthetic import back_translation, translations

OPTIONS = {
    **TINY,
    "data.max_tokens": 512,
    "train.steps": 200,
    "train.warmup": 60,
    "train.learning_rate": 1,
}
OPTIONS |= {
    "model.d_model": 32,
    "model.d_ff": 64,
    "model.num_heads": 4,
    "model.dropout": 0,
    "data.holdout": 20,
}
OPTIONS |= {
    "train.save_every": 50,
    "train.validate_every": 200,
    "train.patience": 0,
    "data.synthetic_ratio": 0.5,
}
FEW = ("train.steps=4", "train.save_every=2")
MARKS = ("", "", " {name}")  # behind the texts
FOLDER = model_folder.BACK_TRANSLATION


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    write_texts(folder, "train", 200, seed=1)
    pairs = [(x + mark, y + mark) for x, y, mark in zip(*reverse_texts(200, seed=1), cycle(MARKS))]
    (folder / "train.po").write_text("".join(f'msgid "{x}"\nmsgstr "{y}"\n\n' for x, y in pairs))
    (folder / "known.yy").write_text("".join(f"{y}\n" for _, y in pairs))
    lines = [line + mark for line, mark in zip(reverse_texts(300, seed=2)[1], cycle(MARKS))]
    (folder / "more.yy").write_text(
        "".join(f"{line}\n" for line in [*lines, lines[0].upper(), "", lines[1] + "  "])
    )
    return folder


def arguments(
    place: Path,
    out: Path,
    *more: str,
    text: Path | None = None,
    source: str = "xx",
    target: str = "yy",
) -> list[str]:
    corpus = ["--train", str(place / "train.po"), "--from", source, "--to", target]
    text = text or place / "more.yy"
    return ["train", *corpus, "--monolingual", str(text), "--out", str(out), *spelt(OPTIONS), *more]


@pytest.fixture(scope="module")
def straight(place, tmp_path_factory) -> Path:
    """A model with a good reverse model; the model itself is trained for a few updates."""
    out = tmp_path_factory.mktemp("models") / "straight"
    command = arguments(place, out)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(back_translation, "_with_pairs", lambda *_: 1 / 0)
        cli.main(command)
    cli.main([*command, *FEW])
    return out


def start(command: list[str], *, change: int = 0, pattern: str = ".") -> int | None:
    """The exit status of a command; it is killed as `killed` says."""
    return killed(change, command, Path(command[command.index("--out") + 1]), pattern)


def texts(out: Path) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in read_pairs([str(out / FOLDER / "pairs.jsonl")])]


def test_new_lines_are_translated_once_tagged_and_mixed(place, straight):
    known = {normalised(pair.target) for pair in read_pairs([str(place / "train.po")])}
    new = {normalised(line) for line in (place / "more.yy").read_text().split("\n")} - known - {""}
    made = texts(straight)
    assert {normalised(target) for _, target in made} <= new and len(made) > 0.8 * len(new)
    assert len({normalised(target) for _, target in made}) == len(made) and all(
        source for source, _ in made
    )
    assert model_folder.read_config(straight / FOLDER / "reverse").data.placeholders == "masked"
    assert all(source.count("{name}") == target.count("{name}") for source, target in made)
    config = model_folder.read_config(straight)
    real, synthetic = config.data.corpora
    assert (real.synthetic, synthetic.synthetic, synthetic.weight) == (False, True, 1)
    assert real.weight == pytest.approx(max(1, len(made) / (0.5 * 200)))
    prepared = open_prepared(straight / "data")
    store = prepared.mixture.stores[1]
    sources = prepared.tokenizer.source.decode(store.source.rows(np.arange(store.pairs)))
    assert sources and all(source.startswith(SYNTHETIC_TAG) for source in sources)


def test_the_tag_is_no_placeholder(place, tmp_path, capsys):
    recipe = "[data]\n" + "".join(
        f'[[data.corpora]]\nfiles = ["{place}/train.src", "{place}/train.tgt"]\nsynthetic = {value}\n'
        for value in ("false", "true")
    )
    (tmp_path / "recipe.toml").write_text(recipe)
    command = [
        "prepare",
        tmp_path / "recipe.toml",
        "--from=xx",
        "--to=yy",
        "--out",
        tmp_path / "data",
    ]
    own = ["data.placeholders=masked", "data.holdout=0", "data.deduplicate=false", *spelt(TINY)]
    _, _, said = run(capsys, *command, *(each for each in own if each.startswith("data.")))
    prepared = open_prepared(tmp_path / "data")
    store = prepared.mixture.stores[1]
    sources = prepared.tokenizer.source.decode(store.source.rows(np.arange(store.pairs)))
    assert len(sources) > 100 and all(source.startswith(SYNTHETIC_TAG) for source in sources), said


def test_the_tag_breaks_no_rule(tmp_path):
    data = DataConfig(
        rules=("placeholders", "test"), test=(str(tmp_path / "test.tsv"),), source="xx", target="yy"
    )
    (tmp_path / "test.tsv").write_text("ti du\tdu ti\n")
    synthetic = CorpusConfig((str(tmp_path / "pairs.tsv"),), synthetic=True)
    (tmp_path / "pairs.tsv").write_text("ka lo\tlo ka\nka {0}\tka\nti du\tdu ti\n \tka\n")
    staged = read_part(read_corpus(synthetic, data), data, tmp_path / "staged", tag=synthetic.tag)
    assert [list(block.sources) for block in staged.blocks()] == [[SYNTHETIC_TAG + "ka lo"]]


def test_the_ratio_counts_no_pair_twice(tmp_path):
    (tmp_path / "pairs.tsv").write_text(
        "ka\tlo\n" * 5 + "ka\t\n \tlo\n" + "ti\tlo\nka \tlo\nti\tlo \n"
    )
    corpus = CorpusConfig((str(tmp_path / "pairs.tsv"),))
    assert back_translation._num_distinct(corpus, DataConfig()) == 2


def test_no_back_translated_pair_is_held_out_or_shares_a_sentence_with_those_that_are(straight):
    prepared = open_prepared(straight / "data")
    held_out = prepared.valid()
    assert len(held_out) == 20 and not any(
        pair.source.startswith(SYNTHETIC_TAG) for pair in held_out
    )
    targets = {normalised(pair.target) for pair in held_out}
    mixture = prepared.mixture
    trained = prepared.tokenizer.decode(mixture.targets(np.arange(len(mixture))))
    assert not targets & set(map(normalised, trained))


@pytest.mark.slow
def test_killed_at_any_step_back_translation_resumes_with_the_same_bits(place, straight, tmp_path):
    out = tmp_path / "killed"
    moments = [
        (f"{FOLDER}/reversed-0.jsonl", 1),
        (f"{FOLDER}/reverse/checkpoints/step-00000050", 1),
        (f"{FOLDER}/.translations.jsonl", 1),
        (f"{FOLDER}/pairs.jsonl", 1),
        ("checkpoints/step-00000002", 2),
    ]
    for number, (pattern, change) in enumerate(moments):
        more = FEW if pattern.startswith("checkpoints") else ()
        status = start(arguments(place, out, *more), change=change, pattern=pattern)
        assert status == -signal.SIGKILL, f"start {number} ended before it was killed"
    assert start(arguments(place, out, *FEW)) == 0
    assert texts(out) == texts(straight)
    assert (out / model_folder.WEIGHTS).read_bytes() == (
        straight / model_folder.WEIGHTS
    ).read_bytes()


def test_damaged_translations_are_not_trained_on(place, straight, tmp_path, capsys):
    out = tmp_path / "out"
    content = (straight / FOLDER / "pairs.jsonl").read_text()
    shutil.copytree(straight / FOLDER, out / FOLDER)
    (out / FOLDER / "pairs.jsonl").write_text(content[: len(content) // 2])  # is written again
    journal = out / FOLDER / ".translations.jsonl"
    text = journal.read_text()
    journal.write_text(text.replace('"text": "', '"text": "z', 1))
    status, _, said = run(capsys, *arguments(place, out))
    assert status == 2 and "damaged" in said and not (out / model_folder.CONFIG).exists()
    lines = text.splitlines(keepends=True)
    journal.write_text("".join(lines[: len(lines) // 2]))
    assert run(capsys, *arguments(place, out, "train.steps=1"))[0] == 0
    assert (out / FOLDER / "pairs.jsonl").read_text() == content


def test_reverse_model_with_equal_translations_is_refused(
    place, straight, tmp_path, capsys, monkeypatch
):
    out = tmp_path / "out"
    shutil.copytree(straight / FOLDER, out / FOLDER)
    monkeypatch.setattr(back_translation, "MIN_DISTINCT", 1)  # even if all differ
    status, _, said = run(capsys, *arguments(place, out))
    assert (
        status == 2
        and "hardly learned anything" in said
        and not (out / model_folder.CONFIG).exists()
    )


def test_a_corpus_may_change_until_the_reverse_training_begins(place, tmp_path, capsys):
    write_texts(tmp_path, "few", 15, seed=1)
    command = [
        "train",
        "--train",
        str(tmp_path / "few.src"),
        str(tmp_path / "few.tgt"),
        "--from",
        "xx",
        "--to",
        "yy",
    ]
    command += [
        "--monolingual",
        str(place / "more.yy"),
        "--out",
        str(tmp_path / "out"),
        *spelt(OPTIONS),
    ]
    command = [each for each in command if not each.startswith("train.steps")]
    for count in (15, 16):
        write_texts(tmp_path, "few", count, seed=1)
        status, _, said = run(capsys, *command)
        assert status and "too few" in said and "Choose another" not in said


def test_the_languages_are_those_of_the_model_that_is_trained_further(
    place, straight, tmp_path, capsys
):
    reverse = straight / FOLDER / "reverse"
    corpus = tmp_path / "train.jsonl"
    corpus.write_text(
        "".join(
            json.dumps({"xx": x, "yy": y}) + "\n"
            for x, y in zip(*reverse_texts(60, 3), strict=True)
        )
    )
    more = (
        "--monolingual",
        place / "more.yy",
        "--init",
        straight,
        "--reverse",
        reverse,
        "--out",
        tmp_path / "out",
    )
    status, _, said = run(
        capsys, "train", "--train", corpus, *more, "train.steps=2", "data.holdout=20"
    )
    assert status == 0, said


def test_another_corpus_is_refused_where_a_reverse_model_was_trained(
    place, straight, tmp_path, capsys
):
    out, folder = tmp_path / "out", tmp_path / "texts"
    shutil.copytree(straight / FOLDER, out / FOLDER)
    shutil.copytree(place, folder)
    with (folder / "train.po").open("a") as file:
        file.write('\nmsgid "ka lo"\nmsgstr "ol ak"\n')
    status, _, said = run(capsys, *arguments(folder, out))
    assert (
        status
        and "reversed-0.jsonl was made from other pairs than" in said
        and not (out / "data").exists()
    )


def test_missing_files_of_an_interrupted_start_are_named(place, straight, tmp_path, capsys):
    out = tmp_path / "out"
    shutil.copytree(straight / FOLDER, out / FOLDER)
    whole = arguments(place, out)
    for command, why in {
        (
            "train",
            "--out",
            str(out),
        ): "out has no checkpoint yet. Repeat the whole command that started this training",
        (
            *whole[:7],
            *whole[9:],
        ): "Name this text again, or choose another output folder (--monolingual)",
    }.items():
        status, _, said = run(capsys, *command)
        assert status == 2 and why in said
    shutil.rmtree(out / FOLDER / "reverse")
    status, _, said = run(capsys, *whole)
    assert (
        status == 2
        and "was made with a model in another folder. Name this model (--reverse)" in said
    )
    assert not (out / FOLDER / "reverse").exists()


def test_a_training_with_back_translations_may_be_moved(place, straight, tmp_path, capsys):
    moved = tmp_path / "moved"
    shutil.copytree(straight, moved)
    status, _, said = run(capsys, *arguments(place, moved, *FEW))
    assert status == 0 and "finished" in said, said


def test_a_given_reverse_model_is_used(place, straight, tmp_path, capsys):
    reverse, out = straight / FOLDER / "reverse", tmp_path / "out"
    status, _, said = run(capsys, *arguments(place, out, "--reverse", str(reverse), *FEW))
    assert status == 0 and "Step 1" not in said and "Step 3 of 3" in said
    assert texts(out) == texts(straight)
    assert not (out / FOLDER / "reverse").exists()
    same = tmp_path / "same.yy"
    same.write_text((place / "more.yy").read_text())
    again = str(reverse.parent / ".." / FOLDER / "reverse")
    status, _, said = run(capsys, *arguments(place, out, "--reverse", again, *FEW, text=same))
    assert status == 0 and "Step 2" not in said, "other paths, same content"
    other = tmp_path / "other.yy"
    other.write_text("zu fe zu fe zu fe\n")
    status, _, said = run(capsys, *arguments(place, out, "--reverse", str(reverse), text=other))
    assert status and "was made with another model, engine, text or options" in said
    (tmp_path / "file").touch()
    status, _, said = run(capsys, *arguments(place, tmp_path / "file", "--reverse", str(reverse)))
    assert status and "file exists and is not a training run of transduce" in said


@pytest.mark.parametrize(
    ("text", "languages", "why"),
    [
        ("known.yy", ("xx", "yy"), "no line is new"),
        ("empty", ("xx", "yy"), "no line is new"),
        ("nowhere", ("xx", "yy"), "nowhere"),
        ("english", ("en", "de"), "look like 'en', but the target language is 'de'"),
        ("table.tsv", ("xx", "yy"), "table.tsv is not plain text"),
    ],
)
def test_text_that_can_not_be_used_is_refused_at_once(
    text, languages, why, place, tmp_path, capsys
):
    english = [f"This is sentence number {number} of an English text." for number in range(40)]
    (place / "english").write_text("\n".join(english))
    (place / "empty").write_text("\n\n")
    (place / "table.tsv").write_text("ka\tlo\n")
    status, _, said = run(
        capsys,
        *arguments(
            place,
            tmp_path / "out",
            text=place / text,
            source=languages[0],
            target=languages[1],
        ),
    )
    assert status and why in said and not (tmp_path / "out").exists()


def test_half_a_monolingual_text_in_another_language_is_warned_of(capsys):
    pytest.importorskip("py3langid")
    lines = [text for each in examples("train", 60) for text in (each.english, each.german)]
    data = DataConfig(source="fr", target="de")
    back_translation._check_language(lines, data, ["more.de"])
    said = " ".join(capsys.readouterr().err.split())
    assert "% of the lines of more.de look like en, not de." in said


@pytest.mark.parametrize(
    ("file", "more", "why"),
    [
        ("notes.txt", [], "out exists and is not a training run of transduce"),
        ("config.toml", [], "out is a training run without monolingual text"),
        ("", ["--init", "nowhere"], "nowhere"),
        ("", ["--init", "straight", "model.norm=pre"], "which can't change to pre"),
        ("", ["--keep-optimizer"], "An optimizer state needs a model to continue from"),
        (
            "",
            [f"train.risk_steps={OPTIONS['train.steps']}"],
            "Minimum-risk training needs a trained model to start from",
        ),
        ("", ["--valid", "missing.src", "missing.tgt"], "missing.src does not exist"),
        ("", ["--test", "gold.mrg"], "A parser can't be scored while it trains"),
        ("", ["--test", "-"], "Standard input can't be read several times"),
    ],
)
def test_errors_of_the_main_training_are_reported_before_back_translation(
    file, more, why, place, straight, tmp_path, capsys
):
    more = [str(straight) if each == "straight" else each for each in more]
    (tmp_path / "out").mkdir()
    if file:
        (tmp_path / "out" / file).touch()
    status, _, said = run(capsys, *arguments(place, tmp_path / "out", *more))
    assert status and why in said and not (tmp_path / "out" / FOLDER).exists()


def test_a_folder_that_can_not_be_made_is_named_at_once(place, straight, capsys):
    reverse = str(straight / FOLDER / "reverse")
    status, _, said = run(capsys, *arguments(place, Path("/proc/none"), "--reverse", reverse))
    said = " ".join(said.split())
    assert status == 2 and f"/proc/none/{FOLDER} can't be written: " in said and "Step" not in said


def test_a_reverse_model_without_text_is_refused(place, straight, tmp_path, capsys):
    given = [*arguments(place, tmp_path / "out", "--reverse", str(straight))]
    at = given.index("--monolingual")
    status, _, said = run(capsys, *given[:at], *given[at + 2 :])
    assert status and "The reverse model translates monolingual text. Give this text" in said


def test_one_process_translates_back(place, tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(
        UserError, match=r"Start a training run with monolingual text without torch"
    ):
        back_translation.with_back_translations(
            Settings.of({}), tmp_path, [str(place / "more.yy")], None, None, False
        )


def test_standard_input_is_not_read_several_times(place, tmp_path):
    files = [str(place / f"train.{side}") for side in ("src", "tgt")]
    own = {"data.corpora": [{"files": files}], "data.source": "xx", "data.target": "yy"}
    with pytest.raises(UserError, match="Standard input can't be read several times"):
        back_translation.with_back_translations(
            Settings.of(own), tmp_path / "out", ["-"], None, None, False
        )


@pytest.mark.parametrize(
    ("tables", "why"),
    [
        ({"data.symbols": True, "data.joint": False}, "The targets of a parser are trees"),
        ({"data.directions": ("xx-yy", "yy-xx")}, r"multilingual models, which .* \("),
    ],
)
def test_parsers_and_multilingual_models_learn_from_no_text(tables, why, place, tmp_path):
    files = [str(place / f"train.{side}") for side in ("src", "tgt")]
    languages = {"source": "xx", "target": "yy"} if "data.directions" in tables else {}
    corpus = {"data.corpora": [{"files": files, **languages}], "data.holdout": 0}
    settings = Settings.of(tables | corpus)
    with pytest.raises(UserError, match=why):
        back_translation.with_back_translations(
            settings, tmp_path / "out", [str(place / "more.yy")], None, None, False
        )


def test_a_model_of_the_wrong_direction_is_refused_at_once(place, straight, tmp_path, capsys):
    status, _, said = run(capsys, *arguments(place, tmp_path / "out", "--reverse", str(straight)))
    assert status and not (tmp_path / "out").exists()
    assert "translates xx-yy, but the reverse model must translate yy-xx" in said
    # Similar codes.
    back_translation._check_reverse(straight, DataConfig(source="yy-ZZ", target="xx_AA"))


@pytest.mark.parametrize(("steps", "rules"), [(4, ()), (5, ("test",))])
def test_reverse_model_is_trained_from_scratch_on_human_translations(
    steps, rules, place, straight, tmp_path
):
    files = [str(place / f"train.{side}") for side in ("src", "tgt")]
    tables = [{"files": files, "weight": 2.0}, {"files": files, "synthetic": True, "weight": 3.0}]
    own = {"train.steps": steps, "train.risk_steps": 4, "data.rules": rules}
    for name in ("valid", "test"):
        (tmp_path / f"{name}.tsv").write_text(f"ka {name}\tlo {name}\n")
        own[f"data.{name}"] = (str(tmp_path / f"{name}.tsv"),)
    settings = Settings.of(
        {"data.corpora": tables, "data.source": "xx", "data.target": "yy", **own}
    )
    out = tmp_path / "out"
    begun: list[Settings] = []

    def train(given: Settings, _: Path) -> Result:
        begun.append(given)
        return Result(tmp_path, "interrupted", {})

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(back_translation, "train", train)
        back_translation.with_back_translations(
            settings, out, [str(place / "more.yy")], None, straight, False
        )
    [found] = begun
    assert "train.risk_steps" not in found
    # Of steps that minimise the risk only, none are left.
    assert found.get("train.steps") == (None if steps == 4 else 5)
    assert (found["data.source"], found["data.target"]) == ("yy", "xx")
    assert found["data.placeholders"] == "kept" and found["data.rules"] == rules
    swapped = {
        name: str(out / FOLDER / f"reversed-{name}.jsonl") for name in ("0", "valid", "test")
    }
    assert found["data.corpora"] == [{"files": [swapped["0"]], "weight": 2.0}]
    assert found["data.valid"] == (swapped["valid"],)
    assert found.get("data.test") == ((swapped["test"],) if rules else None)
    for name in ("valid", "test")[: 1 + bool(rules)]:
        assert json.loads(Path(swapped[name]).read_text()) == {
            "source": f"lo {name}",
            "target": f"ka {name}",
        }


def test_targets_that_are_tested_on_are_left_out_and_named(place, straight, tmp_path, capsys):
    test = tmp_path / "test.jsonl"
    target = (place / "more.yy").read_text().split("\n")[5]
    test.write_text(json.dumps({"source": "ka lo", "target": target}) + "\n")
    reverse = str(straight / FOLDER / "reverse")
    more = ["--reverse", reverse, "--test", str(test), "train.steps=2"]
    status, _, said = run(capsys, *arguments(place, tmp_path / "out"), *more)
    assert status == 0 and "1 monolingual lines are targets of the validation or test set" in said
    assert normalised(target) not in {normalised(target) for _, target in texts(tmp_path / "out")}


def test_real_corpora_are_repeated_if_there_are_too_many_translations(tmp_path):
    """The ratio is that of back-translated pairs to others; earlier synthetic corpora are not counted."""
    (tmp_path / "a.tsv").write_text("ka\tlo\nti\tdu\nka\tlo\n")
    (tmp_path / "b.tsv").write_text("".join(f"ka {i}\tlo\n" for i in range(4)))
    corpora = (
        CorpusConfig((str(tmp_path / "a.tsv"),), weight=2.0),
        CorpusConfig((str(tmp_path / "b.tsv"),), weight=0.5),
        CorpusConfig(("old.jsonl",), weight=3.0, synthetic=True),
    )
    data = DataConfig(source="xx", target="yy", corpora=corpora, synthetic_ratio=0.5)
    for pairs, repeats in ((3, 1.0), (2, 1.0), (30, 10.0)):
        found = back_translation._with_pairs(data, tmp_path / "p.jsonl", pairs)
        # Two distinct pairs twice and four half the time are six; a ratio of 0.5 allows three others.
        assert [each["weight"] for each in found[:3]] == [2.0 * repeats, 0.5 * repeats, 3.0]
        assert found[3] == {"files": [str(tmp_path / "p.jsonl")], "synthetic": True}
    only = DataConfig(source="xx", target="yy", synthetic_ratio=0.5)
    assert back_translation._with_pairs(only, tmp_path / "p.jsonl", 30)[-1]["synthetic"]


def test_lines_are_new_and_distinct(tmp_path, capsys):
    (tmp_path / "a.tsv").write_text("ka\tKnown  line\n")
    (tmp_path / "valid.tsv").write_text("ka\tvalid\n")
    (tmp_path / "test.tsv").write_text("ka\ttest\n")
    (tmp_path / "one.txt").write_text("\ufeffNew\nknown line\nVALID\n\nnew\n")
    (tmp_path / "two.txt").write_text("NEW \ntest\nOther  one\n test\n")
    files = {name: (str(tmp_path / f"{name}.tsv"),) for name in ("valid", "test")}
    corpora = (CorpusConfig((str(tmp_path / "a.tsv"),)),)
    data = DataConfig(source="xx", target="yy", corpora=corpora, **files)
    texts = [str(tmp_path / "one.txt"), str(tmp_path / "two.txt")]
    assert back_translation._distinct(texts, data) == ["New", "Other  one"]
    said = " ".join(capsys.readouterr().err.split())
    assert "Monolingual text: 2 of 9 lines are new and distinct." in said
    assert "Warning: 3 monolingual lines are targets of the validation or test set" in said
    (tmp_path / "two.txt").write_text("known LINE\n")
    with pytest.raises(UserError, match=r"two\.txt: no line is new"):
        back_translation._distinct(texts[1:], data)


def test_cut_repetitive_and_empty_translations_are_left_out(tmp_path, monkeypatch):
    found = {
        "a": ("A", []),
        "b": ("B", ["cut"]),
        "c": (" ", []),
        "d": ("D", ["loop"]),
        "e": ("E", ["oov"]),
    }

    def translate(lines):
        return [SimpleNamespace(text=found[line][0], flags=found[line][1]) for line in lines]

    translator = SimpleNamespace(translate=translate, engine=SimpleNamespace(name="e"))
    model = SimpleNamespace(weights=tmp_path / "weights")
    model.weights.touch()
    monkeypatch.setattr(translations.model_folder, "describe", lambda _: model)

    def load(*given, **languages):
        assert given == (tmp_path,) and languages == {"source": "yy", "target": "xx"}
        return translator

    monkeypatch.setattr(translations, "load", load)
    data = DataConfig(source="xx", target="yy")
    assert back_translation._translate([*found], data, tmp_path, tmp_path) == 2
    written = (tmp_path / "pairs.jsonl").read_text().splitlines()
    assert [*map(json.loads, written)] == [
        {"source": "A", "target": "a"},
        {"source": "E", "target": "e"},
    ]
    assert back_translation._translate([*found], data, tmp_path, tmp_path) == 2, "made already"
    model.weights.write_text("others")
    for lines in ([*found], [*found][1:]):
        with pytest.raises(UserError, match="made with another model, engine, text or options"):
            back_translation._translate(lines, data, tmp_path, tmp_path)
        model.weights.write_text("")


@pytest.mark.parametrize("lines", [19, 20])
def test_a_twentieth_of_the_translations_must_differ(lines, tmp_path, monkeypatch):
    def translate(texts):
        return [SimpleNamespace(text="A" if text != "-" else " ", flags=()) for text in texts]

    translator = SimpleNamespace(translate=translate, engine=SimpleNamespace(name="e"))
    model = SimpleNamespace(weights=tmp_path / "weights")
    model.weights.touch()
    monkeypatch.setattr(translations.model_folder, "describe", lambda _: model)
    monkeypatch.setattr(translations, "load", lambda *_, **__: translator)
    given = [*map(str, range(lines)), "-"], DataConfig(source="xx", target="yy"), tmp_path, tmp_path
    if lines == 19:
        assert back_translation._translate(*given) == 19
    else:
        with pytest.raises(UserError, match="hardly learned anything"):
            back_translation._translate(*given)
    assert (tmp_path / ".translations.jsonl").exists() is (lines == 19)
    assert (tmp_path / "pairs.jsonl").exists() is (lines == 19)


def test_a_corpus_is_written_with_its_sides_swapped(tmp_path):
    (tmp_path / "a.tsv").write_text("kä\tlo\nti\t\n")
    corpus = CorpusConfig((str(tmp_path / "a.tsv"),))
    data = DataConfig(source="xx", target="yy")
    path = tmp_path / "reversed.jsonl"
    assert back_translation._swapped(corpus, data, path) == str(path)
    expected = '{"source": "lo", "target": "kä"}\n{"source": "", "target": "ti"}\n'
    assert path.read_text() == expected
    (tmp_path / "a.tsv").write_text("kä\tlo\n")
    back_translation._swapped(corpus, data, path)
    assert path.read_text() == expected.split("\n")[0] + "\n"
    (tmp_path / "reverse").mkdir()
    (tmp_path / "reverse" / model_folder.CONFIG).touch()
    assert back_translation._swapped(corpus, data, path) == str(path)
    (tmp_path / "a.tsv").write_text("other\tlo\n")
    with pytest.raises(
        UserError, match=r"reversed.jsonl was made from other pairs than .*a.tsv hold now"
    ):
        back_translation._swapped(corpus, data, path)
