"""Reads options from recipes and from the arguments of `train` and `prepare`."""

import dataclasses
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from transduce.config.commands import option
from transduce.config.parse import parse_assignments, read_recipe
from transduce.config.schema import CorpusConfig, DataConfig
from transduce.config.settings import CALLER, COMMAND_LINE, FILE_NAMES, RECIPE, Settings
from transduce.system.console import log
from transduce.system.errors import Hint, UserError
from transduce.text.languages import Direction, languages_of, nearest_code
from transduce.text.multilingual import bilingual_corpora, directions_in, is_multilingual

if TYPE_CHECKING:
    from transduce.text.pairs import Pair

Files = Annotated[tuple[str, ...], Parameter(consume_multiple=True)]
FromCode = Annotated[str, Parameter(name="--from")]
ToCode = Annotated[str, Parameter(name="--to")]


def gather(
    recipe: str | None,
    *,
    train: Sequence[str] = (),
    valid: Sequence[str] = (),
    test: Sequence[str] = (),
    languages: tuple[str, str] = ("", ""),
    assignments: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    like: str = "",
) -> Settings:
    """The recipe's options, overridden by those for the files, then by `assignments` or (from Python) `options`."""
    chosen_by = COMMAND_LINE if options is None else CALLER
    chosen = dict(options or parse_assignments(assignments))
    settings = Settings(RECIPE, read_recipe(*read_text(recipe)) if recipe else {})
    for file in (*train, *valid, *test):
        if file.endswith(".toml"):
            raise UserError(
                f"{file} is a recipe, not a corpus file.",
                "Name the recipe before all options.",
            )
    named: dict[str, Any] = {"data.valid": tuple(valid), "data.test": tuple(test)}
    sources, targets = (tuple(code for code in codes.split(",") if code) for codes in languages)
    if is_multilingual(train) or max(len(sources), len(targets)) > 1:
        named = _multilingual({"data.train": tuple(train), **named}, sources, targets)
    else:
        named |= {"data.source": languages[0], "data.target": languages[1]}
        named["data.corpora"] = [{"files": list(train)}] if train else []
    named["data.like"] = like
    named = {name: value for name, value in named.items() if value}
    return settings.updated(Settings(chosen_by, named | chosen))


def _multilingual(
    named: Mapping[str, Any], sources: Sequence[str], targets: Sequence[str]
) -> dict[str, Any]:
    """The options for a corpus with several languages; `named` holds the files as data.train, data.valid and data.test.

    For a single direction, the options are those of a bilingual model, if the files can be read in this direction.
    """
    if not named["data.train"]:
        raise UserError(
            "Several languages need corpus files.",
            "For a recipe, set data.directions.",
            "train",
        )
    corpora = bilingual_corpora(named["data.train"])
    directions = directions_in(corpora, sources, targets)
    first = directions[0]
    options: dict[str, Any] = {"data.source": first.source, "data.target": first.target}
    sets = {name: _in_direction(files, first) for name, files in named.items()}
    readable = sets.pop("data.train")
    others = list(sets.values())
    if (
        len(directions) == 1
        and readable
        and all(its is not None and len(its) < 2 for its in others)
    ):
        for name, its in sets.items():
            if named[name] and not its:
                text = f"no text from {first.source} to {first.target}"
                raise UserError(
                    f"{' '.join(named[name])}: there is {text}.",
                    "Name other files.",
                    name,
                )
        tables = [{"files": list(files)} for files in readable]
        return (
            options | {name: its[0] for name, its in sets.items() if its} | {"data.corpora": tables}
        )
    tables = [
        {"files": list(files), **languages._asdict()}
        for files, languages in corpora
        if {languages, languages.reverse} & set(directions)
    ]
    options |= {name: files for name, files in named.items() if name != "data.train"}
    return options | {"data.corpora": tables, "data.directions": tuple(map(str, directions))}


def _in_direction(files: Sequence[str], direction: Direction) -> list[tuple[str, ...]] | None:
    """The corpora with the languages of a direction, each as files from source to target.

    Returns None if a file can't be read in this direction, or if validation files are several corpora.
    """
    found = []
    for corpus in bilingual_corpora(files):
        if corpus.languages == direction:
            found.append(corpus.files)
        elif corpus.languages.reverse == direction:
            if len(corpus.files) == 1:
                return None
            found.append(corpus.files[::-1])
    return found


def with_languages(settings: Settings, train: Sequence[str]) -> Settings:
    """Add the languages in the corpora's names or tables to `settings`, unless it names another language."""
    tables = [] if (of_names := languages_of(train)) else _tables(settings)
    named = dict(zip(("data.source", "data.target"), of_names or (), strict=False))
    for side in Direction._fields:
        codes = [table[side] for table in tables if side in table]
        if codes and all(nearest_code(code, codes[:1]) for code in codes):
            named[f"data.{side}"] = codes[0]
    agrees = all(settings.get(side, code) == code for side, code in named.items())
    return settings.under(FILE_NAMES, named) if agrees else settings


def corpus_languages(settings: Settings, train: Sequence[str]) -> Direction:
    """The languages of a corpus by the options or the file names, or "" for an unknown language."""
    named = with_languages(settings, train)
    return Direction(*(named.get(f"data.{side}", "") for side in Direction._fields)).as_codes


def with_direction(settings: Settings, train: Sequence[str], known: Sequence[str]) -> Settings:
    """Add the direction of a bilingual corpus that fine-tunes a model with the directions `known`, if only one fits."""
    from transduce.preparation.prepared import is_prepared  # imports torch: too slow for --help

    if "data.directions" in settings or "data.corpora" not in settings or is_prepared(train):
        return settings
    direction = corpus_languages(settings, train)
    if not all(direction) and len(known) == 1:
        direction = Direction.parse(known[0])
    if not all(direction):
        if all(table.get("source") and table.get("target") for table in _tables(settings)):
            return settings
        cause = f"The model has the directions {', '.join(known)}, and the languages of the corpus are unknown."
        raise UserError(cause, "Name them.", "data.source", "data.target")
    options: dict[str, Any] = {f"data.{side}": code for side, code in direction._asdict().items()}
    options["data.directions"] = (str(direction),)
    return settings.over(FILE_NAMES, options | _named(settings, direction))


def _named(settings: Settings, languages: Direction) -> dict[str, Any]:
    """The options for the files; files without languages get `languages`, where "" is an unknown language."""
    tables = [{**languages._asdict(), **table} for table in _tables(settings)]
    texts = {name: settings.get(name, ()) for name in ("data.valid", "data.test")}
    labelled = {
        name: (f"{','.join(languages)}={files[0]}",)
        for name, files in texts.items()
        if all(languages) and len(files) == 1 and not is_multilingual(files)
    }
    return {"data.corpora": tables, **labelled}


def with_new_languages(
    settings: Settings,
    train: Sequence[str],
    out: Path,
    init: Path,
    trained: DataConfig,
    remember: Sequence[str],
) -> Settings:
    """If the corpora have a language that the model `init` lacks, add its directions to those of the model.

    The corpus of the model or the text `remember` is repeated, so that the model keeps its directions. `trained` holds
    the options of this model.
    """
    from transduce import model_folder  # its imports are too slow for --help
    from transduce.decoding.directions import directions_of
    from transduce.preparation.prepared import prepared_corpora
    from transduce.tokens.tokenizer import Tokenizer

    known = directions_of(trained)
    languages = {code for direction in known for code in direction}
    unnamed = {DataConfig().source, DataConfig().target} & languages
    first = corpus_languages(settings, train)
    named = settings.get("data.directions") or ([str(first)] if all(first) else [])
    new = {code for direction in named for code in Direction.parse(direction)} - languages
    # The codes come from file names: similar codes are not new languages.
    if not {"data.source", "data.target", "data.directions"} & settings.keys():
        new = {code for code in new if nearest_code(code, languages) is None}
    if unnamed or not new or "data.corpora" not in settings:
        return settings
    tokenizer = Tokenizer.load(init)
    like = settings.get("data.like")
    if like and not tokenizer.tag_of(like):
        raise UserError(
            f"{init} has no tag of the language '{like}'; it has {', '.join(tokenizer.source.tags) or 'none'}.",
            "Choose one of its languages, or leave this one out.",
            "like",
        )
    places = prepared_corpora(init / model_folder.DATA, trained)
    if remember:
        repeated = option("add a language with --remember")(settings, out, init, remember, named)
        places = [repeated.folder]
        known = repeated.facts.directions
    if not places:
        raise UserError(
            f"The prepared corpus of {init} is missing. It is repeated when a "
            f"language is added ({', '.join(sorted(new))}), so that the model keeps "
            "its directions.",
            "Choose a model that has its corpus, or name text in its languages.",
            "init",
            "remember",
        )
    log(
        f"Adding {', '.join(sorted(new))} to the languages of {init}: {', '.join(sorted(languages))}."
    )
    directions = tuple(dict.fromkeys([*map(str, known), *named]))
    own = Direction(trained.source, trained.target).as_codes
    begun = dataclasses.replace(
        trained, directions=directions, replay=str(places[0].resolve()), **own._asdict()
    )
    return as_begun(settings, train, begun)


def as_begun(settings: Settings, train: Sequence[str], begun: DataConfig) -> Settings:
    """The directions and languages of a training that adds a language; `begun` has the options of its start."""
    options = {
        f"data.{name}": getattr(begun, name)
        for name in ("directions", "replay", "source", "target")
    }
    if "data.corpora" in settings:
        options |= _named(settings, corpus_languages(settings, train))
    return settings.over(FILE_NAMES, options)


def _tables(settings: Settings) -> list[dict[str, Any]]:
    """The corpora of the command line or of a recipe, as tables without empty values."""
    corpora = settings.get("data.corpora", ())
    # `configure` reports an error for values of other types.
    corpora = corpora if isinstance(corpora, list | tuple) else ()
    tables = [
        dataclasses.asdict(each) if isinstance(each, CorpusConfig) else each for each in corpora
    ]
    tables = [table for table in tables if isinstance(table, Mapping)]
    return [{name: value for name, value in table.items() if value != ""} for table in tables]


def pairs_in(valid: Sequence[str], data: DataConfig) -> "list[Pair]":
    """Read the pairs of the validation files; raises UserError if there are files but no pairs."""
    from transduce.preparation.aggregate import read_directed  # its imports are too slow for --help

    pairs = list(read_directed(valid, data)) if valid else []
    if valid and not pairs:
        raise UserError(
            f"No sentences in --valid {' '.join(valid)}.",
            "Name other files, or leave out --valid.",
        )
    return pairs


def read_text(recipe: str) -> tuple[str, str]:
    """The text and the file name of a recipe; `recipe` names a file or a built-in recipe."""
    path = Path(recipe)
    if path.is_file():
        if path.suffix != ".toml":
            raise UserError(
                f"{recipe} is not a recipe (NAME.toml).", "Name corpus files after --train."
            )
        try:
            return path.read_text(encoding="utf-8"), recipe
        except UnicodeDecodeError as error:
            raise UserError(
                f"{recipe} is not UTF-8 at byte {error.start}.", "Save it as UTF-8."
            ) from None
        except OSError as error:
            raise UserError(f"{recipe} can't be read: {error.strerror}.") from None
    packaged = {
        entry.name.removesuffix(".toml"): entry
        for entry in (files("transduce") / "recipes").iterdir()
    }
    name = path.name.removesuffix(".toml")
    if name in packaged and recipe in (name, f"{name}.toml", f"recipes/{name}.toml"):
        return packaged[name].read_text(encoding="utf-8"), f"{name}.toml"
    if "=" in recipe:
        raise UserError(
            f"{recipe} follows `--`, so it is not read as an option.", "Leave out `--`."
        )
    raise UserError(f"There is no recipe {recipe}.", Hint.choose(name, sorted(packaged)))
