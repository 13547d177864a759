"""Pictures as sources, from the file to a model."""

from pathlib import Path

import numpy as np
import pytest

import transduce
from command_line import run
from corpora import TINY
from transduce.decoding.types import Hypothesis, Sentences
from transduce.system.errors import UserError
from transduce_lab.modalities.pictures import PATCH_PIXELS, WINDOW_PIXELS, read_picture

Image = pytest.importorskip("PIL.Image", reason="pip install 'transduce[lab]'")
COLOURS = {"red": (220, 30, 30), "green": (30, 180, 60), "blue": (30, 60, 220)}


def draw(path: Path, colour: str, size: int = 16, place: int = 0) -> str:
    picture = Image.new("RGB", (WINDOW_PIXELS, WINDOW_PIXELS), (240, 240, 240))
    picture.paste(COLOURS[colour], (place, place, place + size, place + size))
    picture.save(path)
    return str(path)


def test_patches_are_squares_of_pixels_row_by_row(tmp_path: Path) -> None:
    picture = Image.new("RGB", (WINDOW_PIXELS, WINDOW_PIXELS), (9, 8, 7))
    picture.putpixel((PATCH_PIXELS + 2, 1), (1, 2, 3))  # second patch, second row, third pixel
    picture.save(tmp_path / "a.png")
    patches = read_picture(str(tmp_path / "a.png"))
    assert patches.shape == (64, 192) and patches.dtype == np.uint8
    place = 3 * (PATCH_PIXELS + 2)
    assert patches[1, place : place + 3].tolist() == [1, 2, 3]
    assert (patches.reshape(-1, 3) == [9, 8, 7]).all(axis=1).sum() == WINDOW_PIXELS**2 - 1


def test_small_pictures_lie_on_white(tmp_path: Path) -> None:
    Image.new("RGBA", (8, 8), (0, 0, 0, 0)).save(tmp_path / "clear.png")
    assert (read_picture(str(tmp_path / "clear.png")) == 255).all()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.png", "There is no picture"),
        ("text.png", "is no picture that can be read"),
        ("large.png", "has 65 x 64 pixels, more than 64 x 64"),
        ("cut.png", "can't be read"),
        ("", "There is no picture|can't be read"),
    ],
)
def test_unusable_pictures_are_refused(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "text.png").write_text("a red square")
    Image.new("RGB", (65, 64)).save(tmp_path / "large.png")
    whole = Path(draw(tmp_path / "whole.png", "red")).read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[:-60])
    with pytest.raises(UserError, match=message):
        read_picture(str(tmp_path / name) if name else str(tmp_path))


@pytest.fixture(scope="module")
def captions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    lines = []
    for number in range(36):
        colour = list(COLOURS)[number % 3]
        path = draw(folder / f"{number}.png", colour, 16 + number // 3, number % 5)
        lines.append(f"{path}\ta {colour} square\n")
    (folder / "captions.tsv").write_text("".join(lines[:30]))
    (folder / "valid.tsv").write_text("".join(lines[30:]))
    return folder


@pytest.fixture(scope="module")
def model(captions: Path) -> Path:
    options = TINY | {
        "data.source_kind": "image",
        "data.max_tokens": 640,
        "data.source": "png",
        "data.target": "en",
        "model.d_model": 32,
        "model.dropout": 0.0,
        "train.steps": 120,
        "train.warmup": 20,
        "train.learning_rate": 0.5,
        "decode.max_extra_tokens": 10,
    }
    out = captions / "model"
    data = str(captions / "captions.tsv")
    transduce.train(out, train=[data], valid=[str(captions / "valid.tsv")], options=options)
    return out


def test_a_model_learns_captions(model: Path, captions: Path) -> None:
    paths = [draw(captions / f"new-{colour}.png", colour, 21, 3) for colour in COLOURS]
    translator = transduce.load(model)
    found = [each.text for each in translator.translate(paths)]
    assert found == [f"a {colour} square" for colour in COLOURS]
    one = translator.translate(paths[:1])[0]
    [scored] = translator.score(paths[:1], [one.text])
    assert one.text == found[0] and scored.log_prob < 0


def test_equal_pixels_explain_no_loop(model: Path, captions: Path) -> None:
    translator = transduce.load(model)
    path = draw(captions / "plain.png", "red", 1)
    sentences = Sentences([path], translator.encode([path]), [1])
    assert translator.loops(sentences, [[Hypothesis(-1.0, [7] * 9)]]) == [0]


def test_commands_for_models_of_pictures(model: Path, captions: Path, capsys) -> None:
    pair = (captions / "valid.tsv").read_text().splitlines()[0]
    (captions / "one.txt").write_text(pair.split("\t")[0] + "\n\n")
    status, out, _ = run(capsys, "translate", model, "--input", captions / "one.txt")
    assert status == 0 and out.splitlines() == [pair.split("\t")[1], ""]
    status, out, _ = run(capsys, "evaluate", model, captions / "valid.tsv")
    assert status == 0 and "BLEU" in out
    status, _, said = run(capsys, "export", model, "--to", "ctranslate2", "--out", captions / "x")
    assert status == 2 and "model.vector" in said
    for command in ("serve", "mcp"):  # clients must not name files of the machine
        status, _, said = run(capsys, command, model)
        assert status == 2 and "files of this machine" in said
    status, _, said = run(
        capsys, "attention", model, pair.split("\t")[0], "--out", captions / "x.png"
    )
    assert status == 2 and "`attention` shows sentences" in said
    (captions / "gone.txt").write_text("gone.png\n")
    status, _, said = run(capsys, "translate", model, "--input", captions / "gone.txt")
    assert status == 2 and "There is no picture gone.png." in said


@pytest.mark.parametrize(
    ("line", "options", "message"),
    [
        ("gone.png\ta red square", [], "bad.tsv:31: There is no picture gone.png."),
        ("a text\tein Text", [], "bad.tsv:31: There is no picture a text."),
        ("", ["data.augment=default"], "does not support data.augment"),
        ("", ["data.source_kind=video"], "no kind of sources 'video'"),
        ("", ["model.positions=learned"], "need positions without a limit"),
    ],
)
def test_faults_are_found_before_the_training(
    captions: Path, tmp_path: Path, capsys, line: str, options: list[str], message: str
) -> None:
    corpus = (captions / "captions.tsv").read_text()
    (tmp_path / "bad.tsv").write_text(corpus + (f"{line}\n" if line else ""))
    command = ["train", "--train", tmp_path / "bad.tsv", "--from", "png", "--to", "en"]
    values = {"data.source_kind": "image", "data.holdout": "3"} | dict(
        option.split("=") for option in options
    )
    settings = [f"{name}={value}" for name, value in values.items()]
    status, _, said = run(capsys, *command, "--out", tmp_path / "model", "--set", *settings)
    assert status == 2 and message in said
