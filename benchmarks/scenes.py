"""Draw pictures of scenes with captions, whole compositions held out, and measure what a model says and where it looks.

    python benchmarks/scenes.py make FOLDER [--train 12000] [--valid 500] [--test 1000] [--seed 1]
    python benchmarks/scenes.py score MODEL FOLDER [--figure FILE]

`make` writes PNG files of 64 x 64 pixels, train.tsv, valid.tsv and test.tsv (path, TAB, caption), and places.json,
which tells where the objects lie. A scene has two objects, such as "a large red circle above a small blue square";
the larger object comes first, otherwise the upper or the left one. Objects have seven shapes, ten colours, two
sizes, four styles and any place. Pairs of a shape with a colour are divided: a fifth of them occurs in the test
pictures only.

`score` prints the share of captions that are right to the letter, with its 95 % interval (Wilson), and how often the
words for an object look at it: whether the patch with the most cross-attention, by the mean of the heads of a layer,
touches the object. The layer is chosen on the validation pictures. `--figure` draws where each word of a test picture's
caption looks.
"""

import json
import math
import random
from pathlib import Path
from typing import Any, NamedTuple

import cyclopts
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw

import transduce
from transduce import model_folder
from transduce.model.recording import recording
from transduce.model.seq2seq import make_batch
from transduce_lab.modalities.pictures import PATCH_PIXELS, WINDOW_PIXELS

PIXELS = WINDOW_PIXELS
PATCHES = WINDOW_PIXELS // PATCH_PIXELS  # in a row
SCALE = 4  # the pictures are drawn larger, and made smaller with soft edges
SHAPES = ("circle", "square", "triangle", "star", "cross", "ring", "bar")
COLOURS = {
    "red": (200, 30, 40),
    "blue": (40, 70, 200),
    "green": (30, 150, 60),
    "yellow": (235, 200, 40),
    "purple": (140, 50, 170),
    "orange": (240, 130, 30),
    "black": (25, 25, 25),
    "pink": (245, 150, 185),
    "brown": (125, 75, 40),
    "grey": (135, 140, 145),
}
SIZES = {"small": (6, 8), "large": (11, 14)}  # pixels from the middle to the edge
DESCRIBING = {*SHAPES, *COLOURS, *SIZES}
CLEAR = 1.3  # minimum ratio of the larger to the smaller of two distances, across and down
UNSEEN = 5


class Thing(NamedTuple):
    """An object of a scene; x and y are the pixel of its middle."""

    size: str
    colour: str
    shape: str
    x: int
    y: int
    radius: int

    @property
    def name(self) -> str:
        return f"a {self.size} {self.colour} {self.shape}"


def is_unseen(colour: str, shape: str) -> bool:
    """Whether this composition is held out for the test pictures."""
    return (list(COLOURS).index(colour) + SHAPES.index(shape)) % UNSEEN == 0


def scene(draw: random.Random, *, unseen: bool) -> tuple[list[Thing], str]:
    """Two objects that do not overlap, and their caption. `unseen`: the first one is a composition held out."""
    things = list[Thing]()
    while len(things) < 2:
        colour = draw.choice(list(COLOURS))
        shape = draw.choice(SHAPES)
        if is_unseen(colour, shape) != (unseen and not things):
            continue
        size = draw.choice(list(SIZES))
        radius = draw.randint(*SIZES[size])
        x, y = (draw.randint(radius + 1, PIXELS - radius - 2) for _ in range(2))
        new = Thing(size, colour, shape, x, y, radius)
        if all(_is_clear(new, other) for other in things):
            things.append(new)
    is_beside = abs(things[0].x - things[1].x) > abs(things[0].y - things[1].y)
    things.sort(key=lambda thing: (thing.size, thing.x if is_beside else thing.y))
    one, other = things
    names = ("left of", "right of") if is_beside else ("above", "below")
    is_second = one.x > other.x if is_beside else one.y > other.y
    return things, f"{one.name} {names[is_second]} {other.name}"


def _is_clear(one: Thing, other: Thing) -> bool:
    """Whether two objects do not overlap, and lie clearly above or beside each other."""
    near, far = sorted((abs(one.x - other.x), abs(one.y - other.y)))
    return far > one.radius + other.radius and far > CLEAR * near


def picture(things: list[Thing], draw: random.Random) -> Image.Image:
    """Draw a scene in a random style."""
    paper = tuple(draw.randint(215, 255) for _ in range(3))
    large = Image.new("RGB", (PIXELS * SCALE, PIXELS * SCALE), paper)
    canvas = ImageDraw.Draw(large)
    for thing in things:
        style = draw.choice(("plain", "outlined", "pale", "dark"))
        shift = {"pale": 20, "dark": -20}.get(style, 0)
        fill = tuple(
            max(0, min(255, value + shift + draw.randint(-12, 12)))
            for value in COLOURS[thing.colour]
        )
        edge = draw.randint(0, 255)
        outline = (edge, edge, edge) if style == "outlined" else fill
        _draw(canvas, thing, fill, outline)
    return large.resize((PIXELS, PIXELS), Image.Resampling.LANCZOS)


def _draw(canvas: ImageDraw.ImageDraw, thing: Thing, fill: Any, outline: Any) -> None:
    x, y, r = (value * SCALE for value in (thing.x, thing.y, thing.radius))
    box = (x - r, y - r, x + r, y + r)
    thin = r // 3
    if thing.shape == "circle":
        canvas.ellipse(box, fill, outline, width=SCALE)
    elif thing.shape == "ring":
        canvas.ellipse(box, None, fill, width=thin)
    elif thing.shape == "square":
        canvas.rectangle(box, fill, outline, width=SCALE)
    elif thing.shape == "bar":
        canvas.rectangle((x - r, y - thin, x + r, y + thin), fill, outline, width=SCALE)
    elif thing.shape == "triangle":
        canvas.polygon([(x, y - r), (x + r, y + r), (x - r, y + r)], fill, outline)
    elif thing.shape == "cross":
        canvas.rectangle((x - r, y - thin, x + r, y + thin), fill)
        canvas.rectangle((x - thin, y - r, x + thin, y + r), fill)
    else:
        canvas.regular_polygon((x, y, r), 3, 0, fill)
        canvas.regular_polygon((x, y, r), 3, 180, fill)


def make(
    folder: Path, *, train: int = 12_000, valid: int = 500, test: int = 1000, seed: int = 1
) -> None:
    """Draw the pictures, and write their captions."""
    draw = random.Random(seed)
    places = dict[str, list[Thing]]()
    for name, count in (("train", train), ("valid", valid), ("test", test)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        lines = list[str]()
        for number in range(count):
            things, caption = scene(draw, unseen=name == "test")
            path = folder / name / f"{number:05}.png"
            picture(things, draw).save(path)
            lines.append(f"{path}\t{caption}\n")
            if name != "train":
                places[str(path)] = things
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    (folder / "places.json").write_text(json.dumps(places), encoding="utf-8")


class Scene(NamedTuple):
    """A picture, its caption, and where the words of the caption look."""

    path: str
    words: list[str]
    weights: NDArray[np.float32]  # (layers, words, rows, columns), means of the heads
    things: list[Thing]

    def hits(self) -> NDArray[np.bool_]:
        """Whether each of six words (size, colour, shape of each object) looks at its object most: (layers, 6)."""
        describing = [i for i, word in enumerate(self.words) if word in DESCRIBING]
        peaks = self.weights[:, describing].reshape(-1, 2, 3, PATCHES**2).argmax(axis=3)
        middles = [(place + 0.5) * PATCH_PIXELS for place in np.divmod(peaks, PATCHES)]
        y, x, reach = (
            np.array([[value] for value in values])
            for values in zip(
                *((each.y, each.x, each.radius + PATCH_PIXELS / 2) for each in self.things),
                strict=True,
            )
        )
        return np.logical_and(abs(middles[0] - y) < reach, abs(middles[1] - x) < reach).reshape(
            -1, 6
        )


def read_scenes(model: Path, folder: Path, name: str) -> list[Scene]:
    """The pictures of a part, with the attention while the model reads their captions."""
    loaded = model_folder.load(model)
    places = json.loads((folder / "places.json").read_text(encoding="utf-8"))
    found = list[Scene]()
    for path, caption in captions(folder, name):
        source, target = (
            encode([text])[0]
            for encode, text in (
                (loaded.tokenizer.encode_source, path),
                (loaded.tokenizer.encode_target, caption),
            )
        )
        batch = make_batch([source], [target])
        with torch.inference_mode(), recording() as record:
            loaded.model(batch.src, batch.tgt_in)
        layers = [
            record.of(module)[0][0].mean(dim=0)
            for name, module in loaded.model.named_modules()
            if name.endswith("source_attention")
        ]
        pieces = loaded.tokenizer.target.pieces(target)
        begins = [i for i, piece in enumerate(pieces) if piece.startswith("▁")]
        maps = torch.stack(layers)[:, begins].unflatten(-1, (PATCHES, PATCHES))
        things = [Thing(*each) for each in places[path]]
        found.append(Scene(path, caption.split(), maps.float().numpy(), things))
    return found


def captions(folder: Path, name: str) -> list[tuple[str, str]]:
    """The paths and captions of a part."""
    lines = (folder / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    return [(path, caption) for path, _, caption in (line.partition("\t") for line in lines)]


def share(count: int, total: int) -> str:
    """A share with its 95 % interval after Wilson."""
    z = 1.96
    middle = (count + z * z / 2) / (total + z * z)
    half = z / (total + z * z) * math.sqrt(count * (total - count) / total + z * z / 4)
    return f"{count / total:.1%} ({middle - half:.1%} to {middle + half:.1%})"


def score(model: Path, folder: Path, *, figure: Path | None = None) -> None:
    """Print the shares."""
    translator = transduce.load(model)
    for name in ("valid", "test"):
        paths, texts = zip(*captions(folder, name), strict=True)
        found = [each.text for each in translator.translate(paths)]
        right = sum(map(str.__eq__, found, texts))
        print(f"{name}: {share(right, len(texts))} of {len(texts):,} captions are right")
    layers = np.mean([each.hits() for each in read_scenes(model, folder, "valid")], axis=(0, 2))
    best = int(layers.argmax())
    print(f"layers, validation: {', '.join(f'{each:.1%}' for each in layers)}")
    scenes = read_scenes(model, folder, "test")
    hits = np.array([each.hits()[best] for each in scenes])
    for place, kind in enumerate(("size", "colour", "shape")):
        its = hits[:, place::3]
        print(f"test, layer {best + 1}, words for the {kind}: {share(int(its.sum()), its.size)}")
    print(f"test, layer {best + 1}, all of these words: {share(int(hits.sum()), hits.size)}")
    if figure:
        draw_figure(scenes[0], best, figure)


def draw_figure(seen: Scene, layer: int, file: Path) -> None:
    """Draw the picture, and beside it where each word looks."""
    import matplotlib.pyplot as plt

    image = np.asarray(Image.open(seen.path).convert("RGB"))
    columns = math.ceil((len(seen.words) + 1) / 2)
    _, axes = plt.subplots(2, columns, figsize=(1.5 * columns, 3.6))
    for number, axis in enumerate(axes.flat):
        axis.axis("off")
        if number > len(seen.words):
            continue
        axis.imshow(image, extent=(0, PIXELS, PIXELS, 0))
        if number:
            axis.set_title(seen.words[number - 1])
            weights = seen.weights[layer, number - 1]
            axis.imshow(weights, "Greys_r", alpha=0.8, extent=(0, PIXELS, PIXELS, 0))
    plt.tight_layout()
    plt.savefig(file, dpi=100)


if __name__ == "__main__":
    app = cyclopts.App(help=__doc__, help_format="plaintext")
    app.command(make)
    app.command(score)
    app()
