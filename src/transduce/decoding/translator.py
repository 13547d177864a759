"""Translate texts, and compute the probabilities of translations.

`translate` splits texts into sentences (`plan`), translates the sentences (`translate_sentences`), and joins the
translations into texts (`Plan.assemble`). A server calls these three steps separately.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import count, repeat
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypedDict, Unpack, overload

from transduce.config.commands import option
from transduce.decoding.alignment import align
from transduce.decoding.capitals import capitalised, is_in_capitals, readable
from transduce.decoding.confidence import Confidence, scored_translation
from transduce.decoding.directions import Scores, choose_direction, choose_pivot, with_known_codes
from transduce.decoding.pivot import relay
from transduce.decoding.ranking import rank
from transduce.decoding.recall import recall
from transduce.decoding.searcher import Searcher
from transduce.decoding.types import (
    BLANK_TRANSLATION,
    PLAIN,
    Guide,
    Guides,
    NBestLists,
    Scored,
    Sentences,
    Term,
    Translation,
    TranslationMemory,
    TranslationOptions,
    TypedTexts,
    as_guides,
    as_list,
    as_terms,
    as_texts,
)
from transduce.system.errors import UserError
from transduce.system.profiling import phase
from transduce.text.formats import PLAIN_TEXT, TextKind
from transduce.text.languages import Direction
from transduce.text.pairs import Pair, chunks
from transduce.tokens.normalization import composed

if TYPE_CHECKING:
    from transduce.decoding.plan import Plan

# A text without letters, or an address.
WORDLESS = re.compile(r"[\W\d_]+|\s*\S*(?:://|@|www\.)\S*\s*")
CHUNK_LINES = 4096  # lines of a stream that are sorted by length together, so that batches hold little padding


class GlossarySearch(Protocol):
    """The search of sentences with a glossary."""

    sentences: Sentences  # with the terms, if the model reads and inflects them

    def enforced(self, n_best_lists: NBestLists, n_best: int) -> NBestLists:
        """The results of a constrained search for sentences that lack a term, if the model does not inflect terms."""

    def checked(self, sentence: int, translation: Translation) -> Translation:
        """The translation of a sentence and its alternatives, with their terms, and with TERM if they lack one."""


class OpenGlossarySearch(Protocol):
    """Finds the terms of a glossary in sentences."""

    def __call__(
        self,
        translator: "Translator",
        options: TranslationOptions,
        sentences: Sentences,
        originals: Sequence[str],
    ) -> GlossarySearch:
        """`sentences` are the searched sentences, and `originals` the texts as the user wrote them."""


class Texts(NamedTuple):
    """Texts, with what belongs to each of them."""

    texts: Sequence[str]
    kinds: Sequence[TextKind] | None
    numbers: Sequence[int]  # in messages
    guides: Guides

    def select(self, indices: Sequence[int]) -> "Texts":
        """The texts at these indices."""
        return Texts(*(column and [column[i] for i in indices] for column in self))  # type: ignore[arg-type]


class TranslateArguments(TypedDict, total=False):
    """The keyword arguments of `Translator.translate`, for the types of its results."""

    source: str
    target: str
    n_best: int
    beam_size: int | None
    align: bool
    glossary: Mapping[str, str] | Sequence[Term]
    sentences: bool
    translation_memory: TranslationMemory | None
    prefixes: Sequence[str]
    suffixes: Sequence[str]
    glossary_exact: bool


class PrepareTyped(Protocol):
    """Prepares texts of which some have a prefix or a suffix."""

    def __call__(
        self,
        texts: Sequence[str],
        guides: Guides,
        numbers: Sequence[int],
        options: TranslationOptions,
        direction: Direction,
    ) -> TypedTexts:
        """The texts to translate. Raises UserError for a prefix or a suffix that can't be used."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Translator(Searcher):
    """Translates texts with the engine and the tokenizer of a model or an ensemble."""

    confidence: Confidence | None = None  # rates each translation
    # The model's directions; if there are several, `toward` or `translate` must choose one.
    directions: Sequence[Direction] = ()
    has_tags: bool = False  # each source begins with a tag for its target language
    scores: Scores = field(
        default_factory=Scores
    )  # validation scores of the directions, by which pivots are chosen
    chosen: Direction | None = None  # see `direction`
    hops: tuple["Translator", ...] = ()  # two translators, if this one translates through a pivot

    def __repr__(self) -> str:
        names = self.direction or ", ".join(map(str, self.directions)) or "texts"
        way = f" through {self.pivot}" if self.pivot else ""
        return f"<Translator: {names}{way}, {self.engine.name}, beam {self.config.beam_size}>"

    @property
    def direction(self) -> Direction | None:
        """The chosen direction. A model without language tags has only one."""
        if self.chosen or self.has_tags or not self.directions:
            return self.chosen
        return self.directions[0]

    @property
    def language(self) -> str:
        """The source language, for capitals and the ends of sentences; by default, that of the first direction."""
        if self.chosen:
            return self.chosen.source
        return self.directions[0].source if self.directions else "en"

    @property
    def pivot(self) -> str:
        """The language through which this translator translates, or ""."""
        return self.hops[-1].language if self.hops else ""

    def with_beam_size(self, beam_size: int) -> "Translator":
        """A copy of this translator with another beam size."""
        hops = tuple(hop.with_beam_size(beam_size) for hop in self.hops)
        return replace(self, config=replace(self.config, beam_size=beam_size), hops=hops)

    def toward(self, source: str = "", target: str = "") -> "Translator":
        """A copy of this translator for a direction.

        The copy translates through a pivot if a pivot was measured to be better, or if the model lacks the direction.
        Raises UserError as `choose_direction` does, if there is no pivot.
        """
        wanted = with_known_codes(self.directions, source, target)
        if pivot := choose_pivot(self.directions, wanted, *self.scores):
            return self.through(pivot, wanted)
        # A measured direction was better direct than through a pivot, even if it is untrained.
        is_measured = str(wanted) in self.scores.routes
        return self.direct(wanted if is_measured else choose_direction(self.directions, *wanted))

    def direct(self, direction: Direction) -> "Translator":
        """A copy of this translator for a direction, without a pivot."""
        tokenizer = self.tokenizer.toward(str(direction) if self.has_tags else "")
        return replace(self, tokenizer=tokenizer, chosen=direction, hops=())

    def through(self, pivot: str, direction: Direction) -> "Translator":
        """A copy of this translator for a direction, which translates through a third language, the pivot."""
        first = self.direct(Direction(direction.source, pivot))
        second = self.direct(Direction(pivot, direction.target))
        return replace(self.direct(direction), hops=(first, second))

    def require_direction(self) -> Direction:
        """The direction of this translator. Raises UserError if it has several and none is chosen."""
        return self.direction or choose_direction(self.directions, "", "")

    @overload
    def translate(
        self, texts: Sequence[str], **arguments: Unpack[TranslateArguments]
    ) -> list[Translation]: ...

    @overload
    def translate(
        self, texts: Iterator[str], **arguments: Unpack[TranslateArguments]
    ) -> Iterator[Translation]: ...

    def translate(
        self,
        texts: Iterable[str],
        *,
        source: str = "",
        target: str = "",
        n_best: int = 1,
        beam_size: int | None = None,
        align: bool = False,
        glossary: Mapping[str, str] | Sequence[Term] = (),
        sentences: bool = False,
        translation_memory: TranslationMemory | None = None,
        prefixes: Sequence[str] = (),
        suffixes: Sequence[str] = (),
        glossary_exact: bool = False,
    ) -> list[Translation] | Iterator[Translation]:
        """Return the translation of each text, with up to n_best - 1 alternative translations.

        From an iterator of texts, such as a generator, the translations are an iterator, too: it reads CHUNK_LINES
        texts, yields their translations in the same order, and reads on. An iterator takes no `prefixes` and
        `suffixes`. From any other iterable, such as a list, the translations are a list.

        If `align` is true, `Translation.links` holds the word alignment. If a text contains the source of a glossary
        term, the translation contains the target of this term, inflected if the model was trained with data.terms and
        `glossary_exact` is false, or else has the flag `term`; `Translation.terms` tells which.
        By default, each text is one sentence. If `sentences` is true or a text is too long, it is split into sentences,
        and its tags and placeholders are preserved. `source` and `target` are language codes, for models with several
        directions. `beam_size` replaces decode.beam_size. Texts that `translation_memory` holds are not translated, and
        similar ones help the search.
        `prefixes` and `suffixes` hold the characters that each translation begins and ends with; "": any characters.

        The translation of a blank text is empty. Raises UserError if n_best exceeds the beam size, if a text has a line
        break although `sentences` is false, if no engine supports `align` or `glossary`, or if the model can't write a
        prefix or a suffix.
        """
        translator = self.toward(source, target) if source or target else self
        if beam_size is not None:
            translator = translator.with_beam_size(beam_size)
        options = TranslationOptions(
            n_best, align, as_terms(glossary), sentences, translation_memory, glossary_exact
        )
        options.check(translator.config.beam_size)
        if isinstance(texts, Iterator):
            if prefixes or suffixes:
                raise UserError(
                    "The texts of an iterator can't have prefixes or suffixes.",
                    "Give a list of texts.",
                )
            return translator.translate_lines(as_texts(texts), options)
        texts = as_list(texts)
        guides = as_guides(len(texts), prefixes, suffixes)
        return translator._translate(Texts(texts, None, range(1, len(texts) + 1), guides), options)

    def translate_pairs(self, pairs: Sequence[Pair]) -> list[Translation]:
        """Translate the sources of pairs that may have different directions. Each source is one sentence."""
        translations: dict[int, Translation] = {}
        for name in dict.fromkeys(pair.direction for pair in pairs):
            places = [i for i, pair in enumerate(pairs) if pair.direction == name]
            translator = replace(self, tokenizer=self.tokenizer.toward(name))
            translated = translator.translate_sentences([pairs[i].source for i in places])
            translations.update(zip(places, translated, strict=True))
        return [translations[i] for i in range(len(pairs))]

    def translate_lines(
        self,
        lines: Iterable[str],
        options: TranslationOptions = PLAIN,
        *,
        kinds: Iterable[TextKind] | None = None,
        numbers: Iterable[int] | None = None,
        guides: Iterable[Guide] | None = None,
    ) -> Iterator[Translation]:
        """Translate a stream of texts. `kinds` holds their formats, and `numbers` their numbers in messages.

        Each chunk of CHUNK_LINES texts is translated independently of the other chunks.
        """
        stream = zip(
            lines,
            kinds or repeat(PLAIN_TEXT),
            numbers or count(1),
            guides or repeat(Guide()),
            strict=False,
        )
        for chunk in chunks(stream, CHUNK_LINES):
            texts, their_kinds, their_numbers, known = zip(*chunk, strict=True)
            its = (their_kinds if kinds else None, their_numbers, known if guides else None)
            yield from self._translate(Texts(texts, *its), options)

    def _translate(self, given: Texts, options: TranslationOptions) -> list[Translation]:
        if not options.translation_memory:
            return self._translate_others(given, options)
        direction = str(self.require_direction())
        memory = options.translation_memory
        found = recall(memory, given.texts, direction, given.kinds, given.guides)
        others = given.select(found.others)._replace(guides=found.guides())
        if self.hops:
            options = options._replace(translation_memory=None)
        return found.with_translations(self._translate_others(others, options))

    def _translate_others(self, given: Texts, options: TranslationOptions) -> list[Translation]:
        """Translate texts that the translation memory does not hold."""
        direction = self.direction or Direction(self.language, self.language)
        typed = typed_texts(given.texts, options, given.numbers, given.guides, direction)
        if not typed:
            return self._search_texts(given, options)
        searched = given._replace(texts=typed.texts, guides=typed.guides)
        return typed.finished(self._search_texts(searched, options))

    def _search_texts(self, given: Texts, options: TranslationOptions) -> list[Translation]:
        if self.hops:
            return relay(
                self.hops,
                given.texts,
                options,
                lambda hop, some, its, known: hop._search_texts(
                    given._replace(texts=some, guides=known), its
                ),
                given.guides,
            )
        if options.sentences or given.kinds or self.tokenizer.has_placeholder_tokens:
            return self._split(given, options)
        long = self._too_long(given.texts)
        with_symbols = self._with_copied_text(given.texts).difference(long)
        # Without sentencex, long texts are cut anywhere.
        as_sentences = options._replace(sentences=find_spec("sentencex") is not None)
        translations: dict[int, Translation] = {}
        for places, its in ((list(long), as_sentences), (sorted(with_symbols), options)):
            if places:
                split = self._split(given.select(places), its)
                translations.update(zip(places, split, strict=True))
        others = [i for i in range(len(given.texts)) if i not in translations]
        whole = given.select(others) if translations else given
        found = self.translate_sentences(whole.texts, options, whole.numbers, whole.guides)
        translations.update(zip(others, found, strict=True))
        return [translations[i] for i in range(len(given.texts))]

    def _with_copied_text(self, texts: Sequence[str]) -> set[int]:
        """The indices of the texts without words, and of texts with symbols that the model can't translate."""
        wordless = [i for i, text in enumerate(texts) if WORDLESS.fullmatch(text)]
        visible = self.tokenizer.normalizer([texts[i] for i in wordless])
        places = {i for i, text in zip(wordless, visible, strict=True) if text.strip()}
        if places and not self.tokenizer.has_letters:
            places = set()
        if unknown := self.tokenizer.unknown(texts):
            places |= {i for i, text in enumerate(texts) if not unknown.isdisjoint(text)}
        return places

    def _split(self, given: Texts, options: TranslationOptions) -> list[Translation]:
        plan = self.plan(given.texts, options, kinds=given.kinds, guides=given.guides)
        return plan.assemble(plan.translate(self.translate_sentences, given.numbers))

    def _too_long(self, texts: Sequence[str]) -> dict[int, None]:
        """The indices of the texts that have too many tokens for the engine, in order."""
        limit = float("inf") if self.max_tokens is None else self.max_tokens
        sizes = [len(text.encode("utf-8", "surrogatepass")) for text in texts]
        # A space and a tag are added.
        long = [i for i, size in enumerate(sizes) if size + 2 > limit]
        if not long:
            return {}
        lengths = self.lengths([texts[i] for i in long])
        return dict.fromkeys(i for i, length in zip(long, lengths, strict=True) if length > limit)

    def plan(
        self,
        texts: Sequence[str],
        options: TranslationOptions = PLAIN,
        *,
        kinds: Sequence[TextKind] | None = None,
        guides: Guides = None,
    ) -> "Plan":
        """Split texts into sentences, and plan how to join the sentences' translations into texts."""
        limits = [self.max_length if options.sentences else None, self.max_tokens]
        # Imported only here: compiling its regular expressions takes a fraction of a second.
        from transduce.decoding.plan import (
            Plan,
        )

        return Plan(
            texts,
            self.language if options.sentences else None,
            options=options,
            direction=str(self.direction or ""),
            kinds=kinds,
            guides=guides,
            lengths=lambda some: self.lengths(self._readable(some)),
            max_length=min((limit for limit in limits if limit), default=None),
            placeholder_tokens=self.tokenizer.has_placeholder_tokens,
            beam_size=self.config.beam_size,
            can_align="attention" in self.engine.supports,
            unknown=self.tokenizer.unknown(texts),
        )

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """The number of source tokens in each text, EOS not counted."""
        return list(map(len, self.encode(texts)))

    def _readable(self, texts: Sequence[str]) -> list[str]:
        return readable(texts, self.lengths, self.language) if self.config.capitals else [*texts]

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each source text. Raises UserError if no direction of a multilingual model is chosen."""
        if self.has_tags and not self.tokenizer.tags:
            choose_direction(self.directions, "", "")
        return self.tokenizer.encode_source(texts)

    def score(
        self, sources: Sequence[str], targets: Sequence[str], *, masked: bool = False
    ) -> list[Scored]:
        """Compute the probability of each target by forced decoding, with this engine (`transduce score`: torch).

        Each text is one sentence. The score of a target can differ from its score in `translate` if the search built
        the target from other pieces, translated a sentence in capitals as lower case, carried symbols over, or read
        terms or a similar text. A
        pair of blank texts has probability 1. If the model was trained on masked placeholders, `score` masks
        placeholders unless `masked` is true. Raises UserError as `translate` does, if there are more or fewer targets
        than sources, and if the model lacks the direction: the probability of a translation through a pivot is unknown.
        """
        if self.hops and self.direction not in self.directions:
            raise UserError(
                f"The model does not translate {self.direction} directly, so it can't score translations.",
                f"Choose one of its directions: {', '.join(map(str, self.directions))}.",
                "data.source",
                "data.target",
            )
        sources = as_list(sources, count(1))
        given = as_list(targets, count(1))
        if len(sources) != len(given):
            raise UserError(
                f"There are {len(sources):,} sources but {len(given):,} targets.",
                "Give one target per source.",
            )
        pairs = list(zip(self.tokenizer.normalizer(sources), composed(given), strict=True))
        if self.tokenizer.has_placeholder_tokens and not masked:
            from transduce.inline.placeholder_tokens import with_shared_tokens

            pairs = [with_shared_tokens(*pair) or pair for pair in pairs]
        places = [i for i, pair in enumerate(pairs) if any(map(str.strip, pair))]
        source_ids = self.encode([pairs[i][0] for i in places])
        target_ids = self.tokenizer.encode_target([pairs[i][1] for i in places])
        self.check_lengths("Source", source_ids, [i + 1 for i in places])
        self.check_lengths("Target", target_ids, [i + 1 for i in places])
        scored = [Scored(0.0, 0, 0.0)] * len(sources)
        log_probs = self.forced(self.engine, self.engine.log_probs, source_ids, target_ids)
        for place, source, target, each in zip(
            places, source_ids, target_ids, log_probs, strict=True
        ):
            text = pairs[place][1]
            alpha = self.config.length_penalty
            # Otherwise the text was masked or composed, and spans in it would be wrong.
            spans = self.tokenizer.target.spans_in(text, target) if text == given[place] else []
            scored[place] = scored_translation(self.confidence, source, each, alpha, text, spans)
        return scored

    @phase("text")
    def translate_sentences(
        self,
        sentences: Sequence[str],
        options: TranslationOptions = PLAIN,
        numbers: Sequence[int] | None = None,
        guides: Guides = None,
    ) -> list[Translation]:
        """Translate sentences without masking placeholders. Raises UserError as `translate` does."""
        if self.hops:
            return relay(
                self.hops,
                sentences,
                options,
                lambda hop, some, its, known: hop.translate_sentences(some, its, numbers, known),
                guides,
            )
        options.check(self.config.beam_size)
        numbers = numbers or range(1, len(sentences) + 1)
        sentences = as_list(sentences, numbers)
        normalised = self.tokenizer.normalizer(sentences)
        keys = list(zip(normalised, guides or repeat(Guide()), strict=False))
        numbered: dict[tuple[str, Guide], int] = {}  # repeated texts are searched once
        for number, key in zip(numbers, keys, strict=True):
            if key[0].strip():
                numbered.setdefault(key, number)
        texts = [text for text, _ in numbered]
        given = [guide for _, guide in numbered]
        # The given characters are those of the text as it is.
        read = [
            text if guide.is_typed else form
            for text, form, guide in zip(texts, self._readable(texts), given, strict=True)
        ]
        distinct = Sentences(
            read,
            self.encode(read),
            list(numbered.values()),
            given if any(map(any, given)) else None,
        )
        self.check_lengths("Source", distinct.sources, distinct.numbers)
        translations = self._translate_distinct(distinct, texts, options)
        target = self.direction.target if self.direction else ""
        translated = {
            key: capitalised(translation, target)
            if form != key[0] and is_in_capitals(key[0])
            else translation
            for key, form, translation in zip(numbered, read, translations, strict=True)
        }
        return [
            self._with_original_links(translated.get(key, BLANK_TRANSLATION), text, key[0])
            for text, key in zip(sentences, keys, strict=True)
        ]

    def _with_original_links(
        self, translation: Translation, text: str, normalised: str
    ) -> Translation:
        """The translation of `normalised`, with links to the words of `text`."""
        if text == normalised or not translation.links:
            return translation
        original = self.tokenizer.normalizer.tracked(text).original

        def relinked(each: Translation) -> Translation:
            links = tuple(link._replace(source=original(link.source)) for link in each.links)
            return replace(each, links=links, alternatives=tuple(map(relinked, each.alternatives)))

        return relinked(translation)

    def _translate_distinct(
        self, distinct: Sentences, originals: Sequence[str], options: TranslationOptions
    ) -> list[Translation]:
        """Translate encoded sentences. `originals` are the sentences before unusual capitals were rewritten."""
        n_best = options.n_best if self.config.mbr == "none" else self.config.beam_size
        has_suffixes = any(guide.suffix for guide in distinct.guides or ())
        if has_suffixes:
            n_best = self.config.beam_size
        aligner = self.engine_for("attention") if options.align else None
        glossary: GlossarySearch | None = None
        if options.glossary:
            glossary = option("glossary search")(self, options, distinct, originals)
            distinct = glossary.sentences
        n_best_lists = self.search(self.engine, distinct, n_best)
        loops = (
            self.search_loops_again(distinct, n_best_lists, n_best)
            if self.config.retry_loops
            else set()
        )
        if glossary:
            n_best_lists = glossary.enforced(n_best_lists, n_best)
            loops |= {*self.loops(distinct, n_best_lists)} if self.config.retry_loops else set()
        if has_suffixes:
            n_best_lists = option("suffix search")(self, distinct, n_best_lists)
        found = rank(
            distinct,
            n_best_lists,
            self.tokenizer,
            self.config,
            self.confidence,
            limits=list(map(self.limit, distinct.sources)),
            loops=loops,
            n_best=options.n_best,
        )
        ranked = list(found)
        if glossary:
            ranked = [
                (glossary.checked(i, translation), hypotheses)
                for i, (translation, hypotheses) in enumerate(ranked)
            ]
        if not aligner:
            return [translation for translation, _ in ranked]
        attention = functools.partial(self.forced, aligner, aligner.attention)
        return align(self.tokenizer, distinct.texts, distinct.sources, ranked, attention)


def typed_texts(
    texts: Sequence[str],
    options: TranslationOptions,
    numbers: Sequence[int],
    guides: Guides,
    direction: Direction,
) -> TypedTexts | None:
    """Prepare texts of which some have a prefix or a suffix; None if no text has one."""
    if not any(guide.is_typed for guide in guides or ()):
        return None
    prepare: PrepareTyped = option("completion")
    return prepare(texts, guides, numbers, options, direction)
