"""A language that is added to a model with an imported vocabulary, and to one with a vocabulary of our own.

Imports a random model of M2M-100's shape, whose SentencePiece model was learnt from the old languages only. Trains two
models of this shape from scratch, for the same time or as many updates: one with the imported vocabulary, one with its
own vocabulary. Then adds the new language to both, for some minutes or updates. The first repeats its own translations
of other English text (--remember) or, with --corpus, its corpus, and the tag of the new language begins as that of a
known one (--like; "" as the mean of all tags). The second repeats its corpus. Prints BLEU on the test text before and
after (beam 4).

    python benchmarks/new_language.py TEXTS --out FOLDER [--minutes 10 | --steps 1500]
        [--added-minutes 10 | --added-steps 1500] [--corpus] [--seeds 1 2 3] [--like de ""]
        [--pieces 8000] [--width 256] [--layers 3] [--options train.threads=2]

TEXTS is a folder with train.en, train.de, train.fr, train.cs, and test.en … test.cs, line by line translations. FOLDER
keeps all models; a repeated call makes only what is missing.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from measuring import run_script

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import transduce
from pretrained import make_pretrained
from transduce import model_folder
from transduce.commands.prepare import prepare
from transduce.config.parse import parse_assignments
from transduce.config.schema import flatten
from transduce.evaluation.scores import score
from transduce.wings.pretrained.importing import import_model

OLD, NEW = ("en", "de", "fr"), "cs"
DIRECTIONS = ("en-de", "de-en", "en-fr", "fr-en")
OTHER_LINES = 5000  # lines of English that only --remember reads
VOCABULARY = ("model.vocab_size", "model.source_vocab_size", "model.target_tag")

Options = Mapping[str, Any]


def write_texts(texts: Path, folder: Path) -> None:
    """Write the corpora to `folder`: old.*, new.* and other.en."""
    lines = {
        code: (texts / f"train.{code}").read_text(encoding="utf-8").splitlines(keepends=True)
        for code in (*OLD, NEW)
    }
    written = {f"old.{code}": lines[code][:-OTHER_LINES] for code in OLD}
    written |= {f"new.{code}": lines[code][:-OTHER_LINES] for code in ("en", NEW)}
    written["other.en"] = lines["en"][-OTHER_LINES:]
    for name, its in written.items():
        (folder / name).write_text("".join(its), encoding="utf-8")


def make_import(folder: Path, pieces: int, width: int, layers: int) -> Path:
    """The random import, whose vocabulary the old languages need."""
    original = folder / "original"
    imported = folder / "import"
    if not imported.exists():
        few = [
            line
            for code in OLD
            for line in (folder / f"old.{code}").read_text(encoding="utf-8").splitlines()
        ]
        if not original.exists():
            shape = {"pieces_count": pieces, "layers": layers, "width": width}
            make_pretrained(original, "M2M-100", few, **shape, is_lively=False)
        codes = ",".join(OLD)
        import_model(original, imported, codes, codes)
    return imported


def train_old(folder: Path, imported: Path, options: Options) -> dict[str, Path]:
    """The models of the old directions, by whose vocabulary they have."""
    shape = {
        name: value
        for name, value in flatten(model_folder.read_config(imported)).items()
        if name.startswith("model.") and name not in VOCABULARY
    }
    size = model_folder.read_config(imported).model.vocab_size
    corpora = [
        {"files": [str(folder / f"old.{code}") for code in pair], "source": "en", "target": pair[1]}
        for pair in (("en", "de"), ("en", "fr"))
    ]
    data = {"data.corpora": corpora, "data.directions": DIRECTIONS}
    data |= {"data.source": "en", "data.target": "de"}
    foreign = folder / "foreign-data"
    if not foreign.exists():
        recipe = folder / "corpus.toml"
        tables = "".join(
            f'[[data.corpora]]\nfiles = {its["files"]}\nsource = "en"\ntarget = "{its["target"]}"\n'
            for its in corpora
        )
        recipe.write_text(
            f'[data]\nsource = "en"\ntarget = "de"\ndirections = {[*DIRECTIONS]}\n{tables}',
            encoding="utf-8",
        )
        prepare(str(recipe), out=foreign, vocabulary=imported)
    seed = options["train.seed"]
    models = {name: folder / f"{name}-{seed}" for name in ("imported", "own")}
    tagged = {**shape, "model.target_tag": True, **options}
    transduce.train(models["imported"], train=foreign, options=tagged)
    given = {**shape, **data, "data.vocab_size": size, **options}
    transduce.train(models["own"], options=given)
    return models


def bleu(model: Path, texts: Path, directions: Sequence[str]) -> list[float]:
    """BLEU of each direction on the test text."""
    scores = []
    for direction in directions:
        source, target = direction.split("-")
        sources, references = (
            (texts / f"test.{code}").read_text(encoding="utf-8").splitlines()
            for code in (source, target)
        )
        translator = transduce.load(model, {"decode.beam_size": 4}, source=source, target=target)
        hypotheses = [each.text for each in translator.translate(sources)]
        scores.append(score(hypotheses, references, language=target)[0].value)
    return scores


def main(
    texts: Path,
    /,
    *,
    out: Path,
    minutes: float = 10,
    steps: int = 0,
    added_minutes: float = 10,
    added_steps: int = 0,
    corpus: bool = False,
    seeds: list[int] | None = None,
    like: list[str] | None = None,
    pieces: int = 8000,
    width: int = 256,
    layers: int = 3,
    options: list[str] | None = None,
) -> None:
    """Train the models, and print their scores."""
    out.mkdir(exist_ok=True)
    write_texts(texts, out)
    imported = make_import(out, pieces, width, layers)
    more = parse_assignments(options or [])
    new = f"en-{NEW}"
    old_budget = {"train.steps": steps} if steps else {"train.minutes": minutes}
    budget = {"train.steps": added_steps} if added_steps else {"train.minutes": added_minutes}
    repeated = {} if corpus else {"remember": out / "other.en"}
    rows = [("vocabulary", "seed", new, *DIRECTIONS)]
    for seed in seeds or [1]:
        given = {"train.seed": seed, **more}
        old = train_old(out, imported, {**old_budget, **given})
        variants = [
            (
                "imported",
                f"--like {code}" if code else "",
                {"like": code, **repeated},
            )
            for code in like or ["de"]
        ]
        for name, label, how in [*variants, ("own", "", {})]:
            added = out / f"{name}-{NEW}-{how.get('like', '')}-{seed}"
            transduce.train(
                added,
                train=[out / "new.en", out / f"new.{NEW}"],
                source="en",
                target=NEW,
                init=old[name],
                options={**budget, **given},
                **how,
            )
            before = bleu(old[name], texts, DIRECTIONS)
            after = bleu(added, texts, [new, *DIRECTIONS])
            course = [f"{one:.1f} → {two:.1f}" for one, two in zip(before, after[1:], strict=True)]
            rows.append((f"{name} {label}".strip(), str(seed), f"{after[0]:.1f}", *course))
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    run_script(main, __doc__)
