"""Draw pictures of scenes with captions: coloured objects in places, and whole compositions held out.

    python benchmarks/scenes.py FOLDER [--train 12000] [--valid 500] [--test 1000] [--seed 1]

Writes PNG files of 64 x 64 pixels, train.tsv, valid.tsv and test.tsv (path, TAB, caption), and places.json, which tells
where each object of the test pictures lies. A scene has two objects, such as "a large red circle above a small blue
square"; the larger object comes first, otherwise the upper or the left one. Objects have seven shapes, seven colours,
two sizes, four styles and any place. Pairs of a shape with a colour are divided: a fifth of them occurs in the test
pictures only.
"""

import json
import random
from pathlib import Path
from typing import Any, NamedTuple

from measuring import run_script
from PIL import Image, ImageDraw

PIXELS = 64
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
}
SIZES = {"small": (5, 7), "large": (10, 13)}  # pixels from the middle to the edge
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
        shift = {"pale": 35, "dark": -35}.get(style, draw.randint(-12, 12))
        fill = tuple(max(0, min(255, value + shift)) for value in COLOURS[thing.colour])
        outline = (60, 60, 60) if style == "outlined" else fill
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


def main(
    folder: Path, /, *, train: int = 12_000, valid: int = 500, test: int = 1000, seed: int = 1
) -> None:
    """Draw the pictures, and write their captions."""
    draw = random.Random(seed)
    places = dict[str, list[Any]]()
    for name, count in (("train", train), ("valid", valid), ("test", test)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        lines = list[str]()
        for number in range(count):
            things, caption = scene(draw, unseen=name == "test")
            path = folder / name / f"{number:05}.png"
            picture(things, draw).save(path)
            lines.append(f"{path}\t{caption}\n")
            if name == "test":
                places[str(path)] = [thing._asdict() for thing in things]
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    (folder / "places.json").write_text(json.dumps(places, indent=1), encoding="utf-8")


if __name__ == "__main__":
    run_script(main, __doc__)
