"""Translate texts, and compute the probabilities of translations.

`translate` splits texts into sentences (`plan`), translates the sentences (`translate_sentences`), and joins the
translations into texts (`Plan.assemble`). A server calls these three steps separately.
"""

import copy
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import count, islice, repeat
from pkgutil import resolve_name
from types import MappingProxyType
from typing import cast

from transduce.config.schema import DecodeConfig
from transduce.decoding.alignment import align
from transduce.decoding.capitals import capitalised, is_in_capitals, readable
from transduce.decoding.confidence import Confidence, scored_translation
from transduce.decoding.directions import choose_direction, choose_pivot, with_known_codes
from transduce.decoding.ranking import rank
from transduce.decoding.registry import ENFORCE_GLOSSARY, PIVOT_TRANSLATOR, PLAN_TEXTS
from transduce.decoding.repetition import find_loops
from transduce.decoding.searcher import Searcher
from transduce.decoding.types import (
    BLANK_TRANSLATION,
    PLAIN,
    Engine,
    Plan,
    Scored,
    Sentences,
    Term,
    Translation,
    TranslationOptions,
    as_list,
    as_terms,
)
from transduce.system.errors import UserError
from transduce.system.profiling import phase
from transduce.text.formats import TextKind
from transduce.text.languages import Direction, target_of
from transduce.text.pairs import Pair, mask_pair
from transduce.tokens.tokenizer import Tokenizer

VISIBLE = re.compile(r"[^\s\u00ad\u200b-\u200f\u2060\ufeff]")  # vocabularies of other programs drop the others
CHUNK_LINES = 4096  # lines of a stream that are sorted by length together, so that batches hold little padding


class Translator(Searcher):
    """Translates texts with the engine and the tokenizer of a model or an ensemble."""

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        config: DecodeConfig | None = None,
        *,
        fallback: Callable[[], Engine] | None = None,
        max_length: int | None = None,
        confidence: Confidence | None = None,
        directions: Sequence[Direction] = (),
        has_tags: bool = False,
        quality: Mapping[str, float] = MappingProxyType({}),
        routes: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
    ):
        """`fallback` opens another engine for the same model, for features that `engine` does not support.

        `directions` are those of the model. If there are several, one must be chosen, by `toward` or in `translate`.
        `quality` holds scores of directions, such as "en-de", and `routes` those of their routes, to choose pivots by.

        Sentences of more than `max_length` source tokens are split. `confidence` rates each translation.
        """
        super().__init__(engine, tokenizer, config or DecodeConfig(), fallback)
        self.max_length, self.confidence = max_length, confidence
        self.language = directions[0].source if directions else "en"  # for capitals and the ends of sentences
        self.directions, self._has_tags, self.quality, self.routes = directions, has_tags, quality, routes
        self.direction = None if has_tags or not directions else directions[0]  # the chosen one

    def __repr__(self) -> str:
        names = self.direction or ", ".join(map(str, self.directions)) or "texts"
        return f"<{type(self).__name__}: {names}, {self.engine.name}, beam {self.config.beam_size}>"

    def with_beam_size(self, beam_size: int) -> "Translator":
        """A copy of this translator with another beam size."""
        other = copy.copy(self)
        other.config = replace(self.config, beam_size=beam_size)
        return other

    def into(self, target: str) -> "Translator":
        """A copy of this translator for a target language of a multilingual model; "" for other models."""
        other = copy.copy(self)
        other.tokenizer = self.tokenizer.into(target)
        return other

    def toward(self, source: str = "", target: str = "") -> "Translator":
        """A copy of this translator for a direction.

        It translates through a pivot if this was measured to be better, or if the model lacks the direction.
        Raises UserError as `choose_direction` does, if there is no pivot.
        """
        source, target = wanted = with_known_codes(self.directions, source, target)
        if pivot := choose_pivot(self.directions, wanted, self.quality, self.routes):
            hops = self.direct(Direction(source, pivot)), self.direct(Direction(pivot, target))
            return cast(Translator, resolve_name(PIVOT_TRANSLATOR)(*hops))
        is_measured = str(wanted) in self.routes  # then the model may translate well without having been trained
        return self.direct(wanted if is_measured else choose_direction(self.directions, source, target))

    def direct(self, direction: Direction) -> "Translator":
        """A copy of this translator for a direction, without a pivot."""
        other = self.into(direction.target if self._has_tags else "")
        other.direction, other.language = direction, direction.source
        return other

    @property
    def pivot(self) -> str:
        """The language through which this translator translates, or ""."""
        return ""

    def require_direction(self) -> Direction:
        """The direction of this translator. Raises UserError if it has several and none is chosen."""
        return self.direction or choose_direction(self.directions, "", "")

    def translate(
        self,
        texts: Sequence[str],
        *,
        source: str = "",
        target: str = "",
        n_best: int = 1,
        beam_size: int | None = None,
        align: bool = False,
        glossary: Mapping[str, str] | Sequence[Term] = (),
        sentences: bool = False,
    ) -> list[Translation]:
        """Return the translation of each text, with up to n_best - 1 alternative translations.

        If `align` is true, `Translation.links` holds the word alignment. If a text contains the source of a glossary
        term, the translation contains the target of this term, or has the flag `term` because the target does not fit.
        By default, each text is one sentence. If `sentences` is true or a text is too long, it is split into sentences,
        and its tags and placeholders are preserved. `source` and `target` are language codes, for models with several
        directions. `beam_size` replaces decode.beam_size.

        The translation of a blank text is empty. Raises UserError if n_best exceeds the beam size, if a text has a line
        break although `sentences` is false, or if no engine supports `align` or `glossary`.
        """
        texts, translator = as_list(texts), self.toward(source, target) if source or target else self
        translator = translator if beam_size is None else translator.with_beam_size(beam_size)
        options = TranslationOptions(n_best, align, as_terms(glossary), sentences)
        return translator._translate(texts, options, None, range(1, len(texts) + 1))

    def translate_pairs(self, pairs: Sequence[Pair]) -> list[Translation]:
        """Translate the sources of pairs that may have different directions. Each source is one sentence."""
        translations: dict[int, Translation] = {}
        for name in dict.fromkeys(pair.direction for pair in pairs):
            places = [i for i, pair in enumerate(pairs) if pair.direction == name]
            translated = self.into(target_of(name)).translate_sentences([pairs[i].source for i in places])
            translations.update(zip(places, translated, strict=True))
        return [translations[i] for i in range(len(pairs))]

    def translate_lines(
        self,
        lines: Iterable[str],
        options: TranslationOptions = PLAIN,
        *,
        kinds: Iterable[TextKind] | None = None,
        numbers: Iterable[int] | None = None,
    ) -> Iterator[Translation]:
        """Translate a stream of texts. `kinds` holds their formats, and `numbers` their numbers in messages.

        Each chunk of CHUNK_LINES texts is translated independently of the other chunks.
        """
        stream = zip(lines, kinds or repeat("plain"), numbers or count(1), strict=False)
        while chunk := list(islice(stream, CHUNK_LINES)):
            texts, their_kinds, their_numbers = zip(*chunk, strict=True)
            yield from self._translate(list(texts), options, their_kinds if kinds else None, their_numbers)

    def _translate(
        self, texts: list[str], options: TranslationOptions, kinds: Sequence[TextKind] | None, numbers: Sequence[int]
    ) -> list[Translation]:
        if not (options.sentences or kinds or self.tokenizer.has_placeholder_tokens):
            if not (long := self._too_long(texts)):
                return self.translate_sentences(texts, options, numbers)
            short = [i for i in range(len(texts)) if i not in long]
            others = iter(self.translate_sentences([texts[i] for i in short], options, [numbers[i] for i in short]))
            options = options._replace(sentences=find_spec("sentencex") is not None)  # else the texts are cut anywhere
            split = iter(self._split([texts[i] for i in long], options, None, [numbers[i] for i in long]))
            return [next(split if i in long else others) for i in range(len(texts))]
        return self._split(texts, options, kinds, numbers)

    def _split(
        self, texts: list[str], options: TranslationOptions, kinds: Sequence[TextKind] | None, numbers: Sequence[int]
    ) -> list[Translation]:
        plan = self.plan(texts, options, kinds=kinds)
        return plan.assemble(plan.translate(self.translate_sentences, numbers))

    def _too_long(self, texts: list[str]) -> dict[int, None]:
        """The indices of the texts that have too many tokens for the engine, in order."""
        limit = float("inf") if self.max_tokens is None else self.max_tokens
        sizes = [len(text.encode("utf-8", "surrogatepass")) for text in texts]
        long = [i for i, size in enumerate(sizes) if size + 2 > limit]  # a space and a tag are added
        if not long:
            return {}
        lengths = self.lengths([texts[i] for i in long])
        return dict.fromkeys(i for i, length in zip(long, lengths, strict=True) if length > limit)

    def plan(
        self, texts: Sequence[str], options: TranslationOptions = PLAIN, *, kinds: Sequence[TextKind] | None = None
    ) -> Plan:
        """Split texts into sentences, and plan how to join the sentences' translations into texts."""
        limits = [self.max_length if options.sentences else None, self.max_tokens]
        plan: Plan = resolve_name(PLAN_TEXTS)(
            texts,
            self.language if options.sentences else None,
            options=options,
            kinds=kinds,
            lengths=lambda some: self.lengths(self._readable(some)),
            max_length=min((limit for limit in limits if limit), default=None),
            placeholder_tokens=self.tokenizer.has_placeholder_tokens,
            beam_size=self.config.beam_size,
            can_align="attention" in self.engine.supports,
        )
        return plan

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """The number of source tokens in each text, EOS not counted."""
        return list(map(len, self.encode(texts)))

    def _readable(self, texts: Sequence[str]) -> list[str]:
        return readable(texts, self.lengths, self.language) if self.config.capitals else [*texts]

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each source text. Raises UserError if no direction of a multilingual model is chosen."""
        if self._has_tags and self.tokenizer.tag is None:
            choose_direction(self.directions, "", "")
        return self.tokenizer.encode_source(texts)

    def score(self, sources: Sequence[str], targets: Sequence[str], *, masked: bool = False) -> list[Scored]:
        """Compute the probability of each target by forced decoding, with this engine (`transduce score`: torch).

        Each text is one sentence. The score of a target can differ from its score in `translate` if the search built
        the target from other pieces, or translated a sentence in capitals by way of lower case. A pair of blank texts
        has probability 1. If the model was trained on masked placeholders, `score` masks placeholders unless `masked`
        is true. Raises UserError as `translate` does, and if there are more or fewer targets than sources.
        """
        sources, targets = as_list(sources, count(1)), (given := as_list(targets, count(1)))
        if len(sources) != len(targets):
            raise UserError(f"There are {len(sources)} sources but {len(targets)} targets. Give one target per source.")
        if self.tokenizer.has_placeholder_tokens and not masked:
            pairs = [mask_pair(*pair) or pair for pair in zip(sources, targets, strict=True)]
            sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
        places = [i for i in range(len(sources)) if VISIBLE.search(sources[i]) or VISIBLE.search(targets[i])]
        source_ids = self.encode([sources[i] for i in places])
        target_ids = self.tokenizer.encode_target([targets[i] for i in places])
        self.check_lengths("Source", source_ids, [i + 1 for i in places])
        self.check_lengths("Target", target_ids, [i + 1 for i in places])
        scored = [Scored(0.0, 0, 0.0)] * len(sources)
        log_probs = self.forced(self.engine, self.engine.log_probs, source_ids, target_ids)
        for place, source, target, each in zip(places, source_ids, target_ids, log_probs, strict=True):
            text, alpha = targets[place], self.config.length_penalty
            spans = self.tokenizer.target.spans_in(text, target) if text == given[place] else []  # else it was masked
            scored[place] = scored_translation(self.confidence, source, each, alpha, text, spans)
        return scored

    @phase("text")
    def translate_sentences(
        self, sentences: Sequence[str], options: TranslationOptions = PLAIN, numbers: Sequence[int] | None = None
    ) -> list[Translation]:
        """Translate sentences without masking placeholders. Raises UserError as `translate` does."""
        beam_size, numbers = self.config.beam_size, numbers or range(1, len(sentences) + 1)
        options.check(beam_size)
        n_best = options.n_best if self.config.mbr == "none" else beam_size
        sentences = as_list(sentences, numbers)
        numbered: dict[str, int] = {}  # non-blank texts; repeated texts are searched once
        for number, text in zip(numbers, sentences, strict=True):
            if VISIBLE.search(text):
                numbered.setdefault(text, number)
        texts = list(numbered)
        target, read = self.direction.target if self.direction else "", self._readable(texts)
        distinct = Sentences(read, self.encode(read), list(numbered.values()))
        self.check_lengths("Source", distinct.sources, distinct.numbers)
        aligner = self.engine_for("attention") if options.align else None
        n_best_lists = self.search(self.engine, distinct, n_best)
        loops = self.search_loops_again(distinct, n_best_lists, n_best) if self.config.retry_loops else set()
        missed: set[int] = set()
        if terms := options.glossary:
            n_best_lists, missed = resolve_name(ENFORCE_GLOSSARY)(self, terms, distinct, texts, n_best_lists, n_best)
            loops |= {*find_loops(distinct.sources, n_best_lists)} if self.config.retry_loops else set()
        limits, model = list(map(self.limit, distinct.sources)), (self.tokenizer, self.config, self.confidence)
        flagged = functools.partial(rank, loops=loops, missed=missed)
        ranked = list(flagged(distinct, n_best_lists, *model, limits=limits, n_best=options.n_best))
        translations = [translation for translation, _ in ranked]
        if aligner:
            attention = functools.partial(self.forced, aligner, aligner.attention)
            translations = align(self.tokenizer, read, distinct.sources, ranked, attention)
        translated = {
            text: capitalised(translation, target) if form != text and is_in_capitals(text) else translation
            for text, form, translation in zip(texts, read, translations, strict=True)
        }
        return [translated.get(text, BLANK_TRANSLATION) for text in sentences]
