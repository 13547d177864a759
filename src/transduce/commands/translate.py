"""The command `transduce translate`. The code for documents, shards and Ray is in wings/."""

import dataclasses
import json as json_format
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce.commands.options import Assignments, search_options
from transduce.commands.profile import TRANSLATE_PHASES, print_speed, profiled
from transduce.commands.recipes import Files, FromCode, ToCode
from transduce.config.commands import option
from transduce.decoding.registry import EngineName
from transduce.decoding.types import Guide, Term, Translation, TranslationOptions
from transduce.system.console import ItemDisplay, count, log
from transduce.system.errors import NotInstalledError, UserError
from transduce.system.profiling import phase
from transduce.text.formats import format_of
from transduce.text.plain import (
    STANDARD_OUTPUT,
    check_output,
    read_lines,
    without_byte_order_mark,
    write_lines,
)

if TYPE_CHECKING:
    from transduce.decoding.translator import Translator

FLAG_MEANINGS = {  # flag -> the noun to count, and what is wrong with the counted texts
    "cut": ("translation", "cut off at the length limit (decode.max_extra_tokens)"),
    "loop": ("translation", "with repetitions, or searched again because of repetitions"),
    "detached": ("translation", "with hardly anything to do with the source"),
    "empty": (
        "translation",
        "empty: the model translates the text to nothing (documents keep the text)",
    ),
    "untranslated": ("translation", "equal to the source"),
    "term": (
        "translation",
        "without a term of the glossary",
    ),
    "placeholders": ("translation", "without a tag or placeholder, or with a repeated one"),
    "guessed": ("translation", "with tags or placeholders at guessed positions"),
    "numbers": ("translation", "with other numbers than the source"),
    "split": ("text", "with a sentence that was too long and was translated in parts"),
    "long": ("text", "with a passage that was too long to translate and was copied"),
}
# Fewer lines are translated in seconds, so identifying their language is not worth the time.
MANY_LINES = 100
MAX_FLAGGED_LINES = 10  # printed for each flag


@dataclass(frozen=True)
class LineFormat:
    """How a line of the input is read, and how its translation is written."""

    n_best: int = 1
    sentences: bool = False  # a line may hold several sentences
    alignment: bool = False
    json: bool = False  # write JSON even if n_best and alignment don't need it
    glossary_exact: bool = False  # see TranslationOptions

    @property
    def is_json(self) -> bool:
        """Whether translations are written as JSON objects."""
        return self.json or self.alignment or self.n_best > 1

    def options(self, glossary: Sequence[Term]) -> TranslationOptions:
        """The options for `Translator.translate_lines`."""
        return TranslationOptions(
            self.n_best,
            self.alignment,
            tuple(glossary),
            self.sentences,
            glossary_exact=self.glossary_exact,
        )


@dataclass(frozen=True)
class Call:
    """The arguments of `transduce translate`."""

    models: tuple[Path, ...]  # more than one: an ensemble
    input: str
    output: Path
    options: Mapping[str, Any]  # decode.*
    engine: EngineName
    format: LineFormat
    glossary: Path | None
    memory: str
    redo: bool
    profile: bool
    shard: str
    on: str
    workers: int | None
    direction: tuple[str, str]  # language codes, or ""
    texts: tuple[str, ...]  # instead of a file
    needs_review: bool
    plain: bool
    prefixes: Path | None
    suffixes: Path | None

    @property
    def has_guides(self) -> bool:
        """Whether the translations of the lines have prefixes or suffixes."""
        return bool(self.prefixes or self.suffixes)

    def check_output(self) -> None:
        """Raise UserError if the output can't be written or is also an input."""
        files = (self.glossary, self.prefixes, self.suffixes)
        more = [*(str(file) for file in files if file), self.memory]
        check_output(self.output, [self.input, *filter(None, more)])

    def translation_options(self, translator: "Translator") -> TranslationOptions:
        """The options of each text, with the terms of the glossary and the translation memory."""
        if not self.glossary and not self.memory:
            return self.format.options(())
        direction = translator.require_direction()
        terms: list[Term] = []
        if self.glossary:
            terms = option("translate --glossary")(str(self.glossary), direction)
        options = self.format.options(terms)
        if self.memory:
            memory = option("translate --memory")(self.memory, [direction])
            options = options._replace(translation_memory=memory)
        return options

    @contextmanager
    def translator(self) -> "Iterator[Translator]":
        """Load the translator for a `with` block; if `profile` is true, print a time profile at the end."""
        from transduce.decoding.loading import load  # imports numpy: too slow for --help

        with profiled(TRANSLATE_PHASES) if self.profile else nullcontext() as profile:
            with phase("start", whole=True):
                source, target = self.direction
                translator = load(
                    self.models, self.options, engine=self.engine, source=source, target=target
                )
            log(f"Engine: {translator.engine.name}")
            if translator.pivot:
                is_trained = translator.direction in translator.directions
                why = "is worse in the direction" if is_trained else "has no direction"
                log(
                    f"The model {why} {translator.direction}, so it translates through {translator.pivot}."
                )
            with phase("files"):
                try:
                    yield translator
                except KeyboardInterrupt:
                    if self.output != STANDARD_OUTPUT:
                        log(f"Interrupted: nothing was written to {self.output}.")
                    raise
        if profile:
            from transduce.model_folder import read_config

            models = [read_config(folder).model for folder in self.models]
            print_speed("translate", profile, models)


def translate(
    model: Path,
    /,
    *texts: str,
    input: str = "-",
    output: Path = STANDARD_OUTPUT,
    source: FromCode = "",
    target: ToCode = "",
    ensemble: Files = (),
    beam_size: int | None = None,
    length_penalty: float | None = None,
    n_best: int = 1,
    engine: EngineName = "auto",
    sentences: bool = False,
    redo: bool = False,
    needs_review: bool = False,
    plain: bool = False,
    json: bool = False,
    alignment: bool = False,
    glossary: Path | None = None,
    glossary_exact: bool = False,
    memory: str = "",
    prefixes: Path | None = None,
    suffixes: Path | None = None,
    profile: bool = False,
    shard: str = "",
    on: str = "",
    workers: int | None = None,
    assignments: Assignments = (),
) -> None:
    """Translate texts, a document, a text file or standard input.

    In a document, such as a .docx, .odt, .epub, .html, .po or .xlf file, only the texts are translated; the rest is
    copied. In other files, line n of the output translates line n of the input; blank lines stay blank.

    Args:
        model: A model folder.
        texts: Texts to translate, in quotation marks, instead of a file.
        input: The file to translate; - is standard input. A text file may be compressed.
        output: The file to write, which appears only when it is complete; - is standard output.
        ensemble: More model folders with the same vocabulary; the probabilities of all models are averaged.
        beam_size: Number of hypotheses kept per sentence; 1: greedy search.
        length_penalty: Alpha of the length penalty; a larger alpha favours longer translations.
        source: With a multilingual model, the language code of the input.
        target: With a multilingual model, the language code of the output.
        n_best: Number of translations per line, best first. A number above 1 turns on --json.
        engine: `torch`, built in, runs every model; `ctranslate2` is faster, for Transformers on a CPU; `blockwise` is
            greedy search with a model.block_size above 1; `auto` is ctranslate2 if it translates as well as torch, else
            torch.
        sentences: Translate each sentence of a line separately; tags and placeholders are preserved.
        redo: In a bilingual document, also translate texts whose present translation nobody has approved.
        needs_review: Mark new translations in .po and .xlf files as fuzzy, or as in need of a review.
        plain: Translate the lines of a file whatever its format is.
        json: Write a JSON object per line: text, score, tokens, alternatives, flags (reasons to check it), confidence
            (the probability that the translation is good) and terms (those of the glossary: kept, inflected or missed).
        alignment: Write JSON with word alignments; each links the character spans of a source word and a target word.
        glossary: A file of terms; each line has a source term, a TAB and the translation of the term. A model that was
            trained with data.terms inflects the translations; any other model writes them as they are in the file.
        glossary_exact: Write the translations of terms as they are in the glossary, with any model.
        memory: A translation memory: a bilingual file (such as memory.tmx or memory.tsv), a folder of such files, or a
            database that `transduce serve --memory` has made. A text that it holds is not translated again.
        prefixes: A text file; line n holds the characters that the translation of line n begins with, such as `Ein Hu`.
        suffixes: A text file; line n holds the characters that the translation of line n ends with.
        profile: Print a time profile at the end.
        shard: Translate one shard of the lines, such as 3/16 for the third of 16; OUTPUT is the folder of all shards.
        on: Translate on the Ray cluster ray://HOST:PORT. `ray` is the cluster at RAY_ADDRESS; if unset, this machine.
        workers: With --on, the number of parallel models; by default one per GPU; without a GPU, one per core.
    """
    options = search_options(assignments, beam_size, length_penalty)
    _check_texts(texts, input)
    for folder in ensemble:
        if not Path(folder).is_dir():
            raise UserError(
                f"--ensemble: {folder} is not a model folder.", "Put texts before --ensemble."
            )
    models = (model, *map(Path, ensemble))
    form = LineFormat(n_best, sentences or bool(texts), alignment, json, glossary_exact)
    where = (shard, on, workers)
    direction = (source, target)
    call = Call(
        models,
        input,
        output,
        options,
        engine,
        form,
        glossary,
        memory,
        redo,
        profile,
        *where,
        direction,
        texts,
        needs_review,
        plain,
        prefixes,
        suffixes,
    )
    _job(call)(call)


def _check_texts(texts: Sequence[str], input: str) -> None:
    """Raise UserError if there is also a file, or if a text is the name of a file."""
    if texts and input != "-":
        raise UserError(
            "Give either texts or --input, not both. A file name with spaces needs quotation marks."
        )
    for text in texts:
        if os.path.isdir(text):  # noqa: PTH112
            raise UserError(
                f"{text} is a folder.",
                "Name the model first, and the file to translate with --input.",
            )
        if os.path.exists(text):  # noqa: PTH110  # Path.exists fails for a text that is too long for a name
            raise UserError(
                f"{text} is a file.",
                "To translate the file, put --input before it. To translate this "
                "text, send it through standard input.",
            )


def _job(call: Call) -> Callable[[Call], None]:
    """The function that translates the input; raises UserError for options that don't apply to this input."""
    form = format_of(call.input)
    is_document = form.is_document and not call.plain
    if not is_document and not call.plain:
        if form.is_bilingual:
            raise UserError(
                f"{call.input} is a table.",
                "Save the texts to translate as a text file, with a text per line, or add --plain.",
            )
        # Without the wing, files of unknown formats count as text.
        with suppress(NotInstalledError):
            option("translate --input")(call.input)
    if (call.redo or call.needs_review) and not is_document:
        raise UserError(
            "--redo is for documents that hold sources and translations (.po, .xlf, .xliff, .tmx, .csv, .xcstrings), "
            "--needs-review for .po, .xlf, .xliff and .xcstrings."
        )
    if call.has_guides and (is_document or call.shard or call.on):
        raise UserError(
            "--prefixes and --suffixes are for lines of text, without --shard and --on."
        )
    if call.workers is not None and not call.on:
        raise UserError("--workers can only be used with --on.")
    if call.shard or call.on:
        if call.memory:
            raise UserError("--memory can't be used with --shard and --on.")
        if call.texts:
            raise UserError(
                "--shard and --on translate a file.",
                "Name the file with --input, or leave them out.",
            )
        if is_document:
            raise UserError(
                f"{call.input} is one document.",
                "Leave out --shard and --on, which are for text files.",
            )
    registered = (
        "translate --shard"
        if call.shard or call.on
        else "translate --input DOCUMENT"
        if is_document
        else ""
    )
    return option(registered) if registered else translate_lines


def translate_lines(call: Call) -> None:
    """Translate the lines of a file or of standard input."""
    call.check_output()
    if call.input != "-" and (Path(call.input).is_dir() or not Path(call.input).exists()):
        next(
            iter(read_lines(call.input, plain=call.plain)), None
        )  # raises UserError before the model is loaded
    with call.translator() as translator:
        options = call.translation_options(translator)
        read = read_lines(call.input, plain=call.plain)
        lines = iter(call.texts) if call.texts else without_byte_order_mark(read)
        total = len(call.texts)
        if call.input != "-":
            lines = _checked(lines, *translator.require_direction())
            if sys.stderr.isatty() and Path(call.input).is_file():
                total = sum(1 for _ in read_lines(call.input, plain=call.plain))
        progress = ItemDisplay("Lines translated", total)
        guides: Iterable[Guide] | None = None
        if call.has_guides:
            lines, guides = option("translate --prefixes")(lines, call.prefixes, call.suffixes)
        is_typed = call.input == "-" and not call.texts and not guides and sys.stdin.isatty()
        if is_typed:
            translations = answers(translator, lines, options)
        else:
            showing = dataclasses.replace(translator, progress=progress.look_ahead)
            translations = showing.translate_lines(lines, options, guides=guides)
        with progress if _is_file(call.output) else nullcontext():
            lines = _written_lines(translations, call.format, progress, at_once=is_typed)
            write_lines(call.output, lines, keep=True)
        if call.output != STANDARD_OUTPUT:
            seconds = time.monotonic() - progress.began
            log(f"{count(progress.done, 'line')} → {call.output}, {seconds:,.1f} s")


def _is_file(output: Path) -> bool:
    """Whether an output is a file. On a terminal, the progress line would stand among the translations."""
    if output != STANDARD_OUTPUT:
        return True
    with suppress(OSError):  # standard output without a file, as in a notebook
        return stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)
    return False


def answers(
    translator: "Translator", lines: Iterator[str], options: TranslationOptions
) -> Iterator[Translation]:
    """Translate each line as soon as it is typed, sentence by sentence."""
    log("Type lines to translate; end with Ctrl-D.")
    for number, line in enumerate(lines, 1):
        by_sentences = options._replace(sentences=True)
        yield from translator.translate_lines([line], by_sentences, numbers=[number])


def _checked(lines: Iterator[str], source: str, target: str) -> Iterator[str]:
    """The lines of a file; warns if the first lines of a long file look like another language."""
    first = list(islice(lines, MANY_LINES))
    if len(first) == MANY_LINES:
        from transduce.text.identify import warn_of_language  # imports numpy: too slow for --help

        warn_of_language("the first lines", first, source, [target])
    return chain(first, lines)


def _written_lines(
    translations: Iterable[Translation],
    line_format: LineFormat,
    progress: ItemDisplay,
    *,
    at_once: bool,
) -> Iterator[str]:
    """Yield the output lines and show the progress. Print which lines have flags, `at_once` or at the end."""
    flags = Flags()
    for number, translation in enumerate(translations, 1):
        flags.add(translation.flags, number)
        yield written(translation, line_format)
        progress.advance()
        if at_once:
            sys.stdout.flush()
            flags.log()
            flags = Flags()
    flags.log()


def written(translation: Translation, line_format: LineFormat) -> str:
    """A translation as a line of the output, without its line feed."""
    if not line_format.is_json:
        return translation.text
    fields = _json_fields(dataclasses.asdict(translation), line_format.alignment)
    return json_format.dumps(fields, ensure_ascii=False)


def _json_fields(translation: dict[str, Any], alignment: bool) -> dict[str, Any]:
    """The JSON fields of a translation and its alternatives, with the word alignment if `alignment` is true."""
    links = translation.pop("links")
    for name in ("matches", "terms"):
        if found := translation.pop(name):
            translation[name] = [each._asdict() for each in found]
    if hops := translation.pop("hops"):
        translation["hops"] = [
            {name: hop[name] for name in ("text", "score", "flags", "confidence")} for hop in hops
        ]
    if alignment:
        translation["alignment"] = [link._asdict() for link in links]
    translation["alternatives"] = [
        _json_fields(each, alignment) for each in translation["alternatives"]
    ]
    return translation


@dataclass
class Flags:
    """For each flag, the number of lines and the first MAX_FLAGGED_LINES line numbers."""

    counts: dict[str, int] = field(default_factory=dict)
    lines: dict[str, list[int]] = field(default_factory=dict)

    def add(self, flags: Iterable[str], line: int) -> None:
        """Count the flags of one line."""
        self.extend(Flags(dict.fromkeys(flags, 1), {flag: [line] for flag in flags}))

    def extend(self, later: "Flags") -> None:
        """Add the flags of later lines."""
        for flag, number in later.counts.items():
            self.counts[flag] = self.counts.get(flag, 0) + number
            self.lines[flag] = (self.lines.get(flag, []) + later.lines[flag])[:MAX_FLAGGED_LINES]

    def log(self) -> None:
        """Print the meaning, the count and the first line numbers of each flag."""
        for flag, number in self.counts.items():
            lines = self.lines[flag]
            noun, meaning = FLAG_MEANINGS[flag]
            numbers = ", ".join(map(str, lines)) + (", …" if number > len(lines) else "")
            log(f"{count(number, noun)} {meaning}: {'lines' if number > 1 else 'line'} {numbers}")
