"""`transduce translate`."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce.commands.options import Assignments
from transduce.commands.output import STANDARD_OUTPUT, check_output, read_bytes, write_bytes, write_lines
from transduce.commands.profile import TRANSLATE, profiled, say_search
from transduce.commands.recipes import Files
from transduce.config.parse import parse_assignments
from transduce.config.schema import DataConfig
from transduce.decoding.engines.engine import Choice
from transduce.system.errors import UserError
from transduce.system.journal import say, telling
from transduce.system.profiling import phase

if TYPE_CHECKING:
    from transduce.decoding.glossary import Term
    from transduce.decoding.lines import Flags, Form
    from transduce.decoding.translator import Translation, Translator

DOCUMENTS = (".po", ".pot", ".xlf", ".xliff", ".tmx", ".html", ".htm", ".xhtml", ".srt", ".vtt")  # others are lines
MEANINGS = {
    "cut": "translations were cut off at the length limit (decode.max_extra_tokens)",
    "placeholders": "translations don't have all tags and placeholders exactly once",
    "guessed": "translations have tags or placeholders whose place is a guess",
    "numbers": "translations have other numbers than the source",
    "split": "texts have a sentence that was too long and was translated in parts",
    "long": "texts have something that is too long to be translated, and is as it was",
}


def translate(
    model: Path,
    /,
    *,
    input: str = "-",
    output: Path = STANDARD_OUTPUT,
    ensemble: Files = (),
    beam_size: int | None = None,
    length_penalty: float | None = None,
    n_best: int = 1,
    engine: Choice = "auto",
    sentences: bool = False,
    redo: bool = False,
    json: bool = False,
    alignment: bool = False,
    glossary: Path | None = None,
    profile: bool = False,
    shard: str = "",
    on: str = "",
    workers: int | None = None,
    assignments: Assignments = (),
) -> None:
    """Translate a document, or a file of lines, or the standard input.

    A document (.po, .xlf, .xliff, .tmx, .html, .htm, .srt, .vtt) is written as it was, with its texts translated. In
    any other file, lines in are lines out, in order; a blank line stays blank.

    Args:
        model: A model folder.
        input: The file to translate, possibly compressed unless it is a document; - is the standard input.
        output: The file to write, which is there when all of it is; - is the standard output.
        ensemble: More model folders with the same vocabulary, whose probabilities are averaged.
        beam_size: Hypotheses kept per sentence; 1 is greedy.
        length_penalty: Alpha of the length penalty; more prefers longer translations.
        n_best: Translations per line, best first; more than one is written as JSON lines.
        engine: What searches: torch is ours, for every model; int8 is ours with products in 8 bits, for every model on
            a CPU; ctranslate2 is faster, for Transformers on a CPU; auto is that where it is installed, knows the model
            and translates it as well, otherwise torch.
        sentences: A line is a text of several sentences, perhaps with tags and placeholders, which are kept.
        redo: Translate also what is translated already, in a document that holds both languages.
        json: Write a JSON object per line, with scores, pieces and flags.
        alignment: Say in the JSON which words of the line each word of its translation comes from, as spans of
            characters.
        glossary: Terms, a source and its translation per line with a TAB between them: where the source of one occurs,
            its translation does, too.
        profile: Tell in the end where the time went.
        shard: Translate a part of the lines, such as 3/16, the third of sixteen; the output is a folder for them all,
            which `transduce join` makes one file of.
        on: Translate on Ray: "ray" uses the cores of this machine, or the cluster that RAY_ADDRESS names;
            ray://HOST:PORT a cluster.
        workers: On Ray, models that translate at the same time; by default one for each core, or each GPU.
    """
    given = parse_assignments(assignments)
    given |= {} if beam_size is None else {"decode.beam_size": beam_size}
    given |= {} if length_penalty is None else {"decode.length_penalty": length_penalty}
    from transduce import model_folder
    from transduce.decoding.glossary import read_glossary
    from transduce.decoding.lines import Form
    from transduce.decoding.loading import load  # too slow for --help
    from transduce.text.plain import read_lines, suffixes

    if not shard:
        check_output(output, [input, *([str(glossary)] if glossary else [])])
    form = Form(n_best, sentences, alignment, json)
    suffix, compression = suffixes(input)
    is_document = suffix in DOCUMENTS
    if is_document and compression:
        raise UserError(f"{input} is a compressed document; unpack it first.")
    if is_document and (json or alignment or n_best > 1 or sentences):
        raise UserError(
            f"{input} is a document, which has one translation: "
            "leave out --json, --alignment, --n-best and --sentences."
        )
    if redo and not is_document:
        raise UserError("--redo is for documents that hold both languages: .po, .xlf, .xliff or .tmx.")
    if workers is not None and not on:
        raise UserError("--workers is for --on ray.")
    if shard or on:
        if is_document:
            raise UserError(f"{input} is one document; leave out --shard and --on, which are for files of lines.")
        if output == STANDARD_OUTPUT:
            raise UserError("Say with --output where the translations go: with --shard a folder, with --on a file.")
        if shard and on:
            raise UserError("--on ray makes shards by itself: leave out --shard.")
        if profile:
            raise UserError("--profile measures one process: leave out --shard and --on.")
        _scaled((model, *ensemble), given, engine, form, glossary, input, output, shard, on, workers)
        return
    if not is_document and input != "-" and (Path(input).is_dir() or not Path(input).exists()):
        next(iter(read_lines(input)), None)  # which says so, before a model is loaded or an engine is made
    terms = read_glossary(str(glossary)) if glossary else []
    folders = [model, *map(Path, ensemble)]
    with profiled(profile, TRANSLATE) as found:
        with phase("start", whole=True):
            content = read_bytes(input) if is_document else b""
            translator = load(folders, given, engine=engine)
            data = model_folder.read_config(model).data
        say(f"Engine: {translator.engine.name}")
        with phase("files"):
            if is_document:
                _document(translator, content, input, output, data, terms, redo=redo)
            else:
                write_lines(output, _texts(_lines(translator, input, form, data, terms), form))
    if found:
        say_search(found, [model_folder.read_config(folder).model for folder in folders])


def _scaled(
    models: Sequence[Path | str],
    options: Mapping[str, Any],
    engine: Choice,
    form: "Form",
    glossary: Path | None,
    input: str,
    output: Path,
    shard: str,
    on: str,
    workers: int | None,
) -> None:
    """One shard, or all of them on Ray."""
    from transduce.wings.cluster import translating
    from transduce.wings.cluster.ray_cluster import read_address
    from transduce.wings.cluster.ray_translating import translate_on_ray
    from transduce.wings.cluster.shards import read_shard

    job = translating.Job(tuple(map(str, models)), options, engine, form, str(glossary or ""))
    if on:
        joined = translate_on_ray(job, input, output, address=read_address(on), workers=workers)
        say(f"{joined.lines:,} lines translated, by {' and '.join(joined.engines)}: {output}")
        say_flags(joined.flags)
        return
    part = read_shard(shard)
    plan = translating.plan_translation(job, input, output, part.count)
    if translating.find(output, plan, part):
        say(f"Shard {part} is whole: {translating.shard_path(output, plan, part)}")
        return
    translator = translating.ShardTranslator(job, output, plan)
    [(begin, end)] = plan.cuts(part)
    say(f"Shard {part}: {end - begin:,} of {plan.lengths[0]:,} lines, from line {begin + 1:,}")
    say(f"Engine: {translator.engine}")
    lines = telling(translating.shard_lines(input, begin, end), "lines read")
    record = translator.translate(part, lines)
    say(f"Shard {part} is whole: {translating.shard_path(output, plan, part)}")
    say_flags(record.flags)


def _document(
    translator: "Translator",
    content: bytes,
    name: str,
    output: Path,
    data: DataConfig,
    terms: "Sequence[Term]",
    *,
    redo: bool,
) -> None:
    from transduce.decoding.documents import translate_document
    from transduce.decoding.lines import Flags

    translated = translate_document(
        translator, content, name, data.source, data.target, redo=redo, glossary=terms, longest=data.max_length
    )
    write_bytes(output, translated.content)
    say(f"{translated.texts:,} texts translated")
    if not translated.texts and not redo:
        say("Nothing in it lacks a translation; --redo translates what has one already.")
    flags = Flags()
    for line, found in translated.flagged:
        flags.note(found, line)
    say_flags(flags)


def _lines(
    translator: "Translator", input: str, form: "Form", data: DataConfig, terms: "Sequence[Term]"
) -> "Iterator[Translation]":
    """The translations of lines; data: what the model was trained on."""
    from transduce.decoding.lines import translate_all
    from transduce.text.plain import read_lines, without_byte_order_mark

    if input == "-" and sys.stdin.isatty():
        say("Type the lines to translate; Ctrl-D behind the last one.")
    return translate_all(translator, without_byte_order_mark(read_lines(input)), form, data, terms)


def _texts(translations: "Iterable[Translation]", form: "Form") -> Iterator[str]:
    """The lines to write, while telling how far it is and at the end which need a look."""
    from transduce.decoding.lines import Flags, written

    flags = Flags()
    for number, translation in enumerate(telling(translations, "lines translated"), 1):
        flags.note(translation.flags, number)
        yield written(translation, form)
    say_flags(flags)


def say_flags(flags: "Flags") -> None:
    """How many texts need a look, why, and in which lines the first of them are."""
    for flag, count in flags.counts.items():
        lines = flags.lines[flag]
        some = ", ".join(map(str, lines)) + (", …" if count > len(lines) else "")
        say(f"{count:,} {MEANINGS[flag]}: line{'s' * (count > 1)} {some}")
