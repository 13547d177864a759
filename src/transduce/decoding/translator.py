"""The door to decoding: texts in, translations out, and the probability of given translations.

`translate` has three steps, which a server takes one by one: `plan` takes texts apart into sentences,
`translate_sentences` has the engine search them, and `Plan.assemble` puts the texts together. Where each text is one
sentence without placeholders to mask, the second step is all of it. Text n becomes translation n; how sentences are
sorted and batched on the way changes nothing.
"""

import copy
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count, islice, repeat
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from transduce.config.schema import DecodeConfig
from transduce.decoding.alignment import align
from transduce.decoding.registry import ENFORCE_GLOSSARY
from transduce.decoding.types import (
    BLANK,
    CUT,
    PLAIN,
    Constraints,
    Engine,
    Feature,
    Hypothesis,
    NBestLists,
    Request,
    Scored,
    Sentences,
    Term,
    Translation,
    TranslationOptions,
    batches,
    length_penalty,
)
from transduce.system.errors import UserError
from transduce.system.profiling import phase
from transduce.text.inline import TextKind
from transduce.tokens.tokenizer import Tokenizer

if TYPE_CHECKING:
    from transduce.decoding.plan import Plan

CHUNK_LINES = 4096  # of a stream, which are sorted together: enough that little of a batch is padding
PURPOSES: dict[Feature, str] = {"attention": "align words", "constraints": "obey a glossary"}


class Translator:
    """An engine, which searches a model or an ensemble, with its tokenizer."""

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        config: DecodeConfig | None = None,
        *,
        fallback: Callable[[], Engine] | None = None,
        language: str = "en",
        max_length: int | None = None,
    ):
        """fallback: opens an engine for the same model that supports what `engine` does not.

        language: the code of the source's language, by which texts are split into sentences. max_length: the tokens of
        the longest sentence to translate as a whole when texts are split, such as those that the model was trained on.
        """
        self.engine, self.tokenizer, self.config = engine, tokenizer, config or DecodeConfig()
        self.language, self.max_length = language, max_length
        self._fallback = functools.cache(fallback) if fallback else None

    def with_beam_size(self, beam_size: int) -> "Translator":
        """The same, with another beam."""
        other = copy.copy(self)
        other.config = replace(self.config, beam_size=beam_size)
        return other

    def translate(
        self,
        texts: Sequence[str],
        *,
        n_best: int = 1,
        align: bool = False,
        glossary: Sequence[Term] = (),
        sentences: bool = False,
    ) -> list[Translation]:
        """One translation per text, in order; with n_best > 1 it has up to n_best - 1 other texts.

        align: link each word of a translation to the words of its source (`Translation.links`). glossary: where the
        source of a term occurs in a text, every translation contains its target. sentences: a text has any number of
        sentences and paragraphs, perhaps with tags and placeholders, which are kept; otherwise it is one sentence, of
        which a model that was trained on masked placeholders sees them masked, too.

        A blank text has an empty translation and never reaches the model. Raises UserError that names the text by its
        number, from 1, if it contains a line break without `sentences`, is longer than the model's positions or has
        terms that are; if n_best exceeds the beam, or if no engine of the model supports what the options ask for.
        """
        texts = _as_list(texts)
        options = TranslationOptions(n_best, align, tuple(glossary), sentences)
        return self._translate(texts, options, None, range(1, len(texts) + 1))

    def translate_lines(
        self,
        lines: Iterable[str],
        options: TranslationOptions = PLAIN,
        *,
        kinds: Iterable[TextKind] | None = None,
        numbers: Iterable[int] | None = None,
    ) -> Iterator[Translation]:
        """The same for a stream of any length; kinds: of the texts of a document; numbers: of the lines in messages.

        CHUNK_LINES lines are translated together, so that a part of a file that begins with a whole number of them has
        the same translations as within the file, to the last bit.
        """
        stream = zip(lines, kinds or repeat("plain"), numbers or count(1), strict=False)
        while chunk := list(islice(stream, CHUNK_LINES)):
            texts, their_kinds, their_numbers = zip(*chunk, strict=True)
            yield from self._translate(list(texts), options, their_kinds if kinds else None, their_numbers)

    def _translate(
        self, texts: list[str], options: TranslationOptions, kinds: Sequence[TextKind] | None, numbers: Sequence[int]
    ) -> list[Translation]:
        if not (options.sentences or kinds or self.tokenizer.has_stand_ins):
            return self.translate_sentences(texts, options, numbers)
        plan = self.plan(texts, options, kinds=kinds)
        translations, text_of = [BLANK] * len(plan.sentences), plan.text_of
        for group in plan.groups:
            sentences = [plan.sentences[place] for place in group.places]
            theirs = [numbers[text_of[place]] for place in group.places]
            for place, each in zip(
                group.places, self.translate_sentences(sentences, group.options, theirs), strict=True
            ):
                translations[place] = each
        return plan.assemble(translations)

    def plan(
        self,
        texts: Sequence[str],
        options: TranslationOptions = PLAIN,
        *,
        kinds: Sequence[TextKind] | None = None,
    ) -> "Plan":
        """The sentences of texts, to be translated in any way, and what puts the texts together again."""
        from transduce.decoding.plan import Plan  # too slow for a line

        positions = self.engine.max_positions
        limits = [self.max_length if options.sentences else None, positions and positions - 1]
        return Plan(
            texts,
            self.language if options.sentences else None,
            options=options,
            kinds=kinds,
            lengths=self.lengths,
            max_length=min((limit for limit in limits if limit), default=None),
            stand_ins=self.tokenizer.has_stand_ins,
            beam_size=self.config.beam_size,
            can_align=options.align or "attention" in self.engine.supports,
        )

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text, EOS not counted."""
        return list(map(len, self.tokenizer.encode_source(texts)))

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[Scored]:
        """How probable each target is as the translation of its source, one sentence each, by forced decoding.

        A target is split into pieces as the tokenizer does it; a search may have found the same text in other pieces,
        and then reported the score of those. A blank pair has probability 1, as in translation. A model that was
        trained on masked placeholders sees them masked where both sides have the same. Raises UserError as `translate`
        does, and for unequal numbers of sources and targets.
        """
        if self.tokenizer.has_stand_ins and len(sources) == len(targets):
            from transduce.text.placeholder_tokens import both  # too slow for a line

            masked = [both(*pair) or pair for pair in zip(sources, targets, strict=True)]
            sources, targets = [source for source, _ in masked], [target for _, target in masked]
        return self.score_sentences(sources, targets)

    def score_sentences(self, sources: Sequence[str], targets: Sequence[str]) -> list[Scored]:
        """The same for sentences as they stand: nothing is masked."""
        sources, targets = _as_list(sources), _as_list(targets)
        if len(sources) != len(targets):
            raise UserError(f"There are {len(sources)} sources but {len(targets)} targets; line n belongs to line n.")
        numbers = range(1, len(sources) + 1)
        _check_lines(sources, numbers)
        _check_lines(targets, numbers)
        places = [i for i in range(len(sources)) if sources[i].strip() or targets[i].strip()]
        source_ids = self.tokenizer.encode_source([sources[i] for i in places])
        target_ids = self.tokenizer.encode_target([targets[i] for i in places])
        self._check_lengths("Source", source_ids, [numbers[i] for i in places])
        self._check_lengths("Target", target_ids, [numbers[i] for i in places])
        scored = [Scored(0.0, 0, 0.0)] * len(sources)
        lengths = [max(len(source), len(target)) + 1 for source, target in zip(source_ids, target_ids, strict=True)]
        for batch in batches(lengths, self.engine.budget(self.config, sum(lengths))):
            log_probs = self.engine.log_probs([source_ids[i] for i in batch], [target_ids[i] for i in batch])
            for i, log_prob in zip(batch, log_probs, strict=True):
                length = len(target_ids[i]) + 1
                score = log_prob / length_penalty(length, self.config.length_penalty)
                scored[places[i]] = Scored(log_prob, length, score)
        return scored

    @phase("text")
    def translate_sentences(
        self,
        sentences: Sequence[str],
        options: TranslationOptions = PLAIN,
        numbers: Sequence[int] | None = None,
    ) -> list[Translation]:
        """Translations of sentences as they stand: nothing is split or masked.

        numbers: those of the sentences in messages; from 1 by default. Raises UserError as `translate` does.
        """
        sentences, n_best = _as_list(sentences), options.n_best
        numbers = numbers or range(1, len(sentences) + 1)
        if not 1 <= n_best <= self.config.beam_size:
            raise UserError(f"n_best must be from 1 to decode.beam_size ({self.config.beam_size}), not {n_best}.")
        _check_lines(sentences, numbers)
        places: dict[str, int] = {}  # of what is not blank; what is repeated is searched once
        for place, text in enumerate(sentences):
            if text.strip():
                places.setdefault(text, place)
        texts = list(places)
        distinct = Sentences(texts, self.tokenizer.encode_source(texts), [numbers[place] for place in places.values()])
        self._check_lengths("Source", distinct.sources, distinct.numbers)
        aligner = self.engine_for("attention") if options.align else None
        n_best_lists = self.search(self.engine, distinct, n_best)
        if options.glossary:
            n_best_lists = resolve_name(ENFORCE_GLOSSARY)(self, options.glossary, distinct, n_best_lists, n_best)
        by_text = self._by_text(n_best_lists)
        translations = self._translations(by_text, [self.limit(source) for source in distinct.sources])
        if aligner:
            hypotheses = [list(ranked.values()) for ranked in by_text]
            translations = align(aligner, self.tokenizer, self.config, distinct, hypotheses, translations)
        translated = dict(zip(texts, translations, strict=True))
        return [translated.get(text, BLANK) for text in sentences]

    def sentence_stream(self, sentences: Iterable[str]) -> Iterator[Translation]:
        """The same for a stream of any length, CHUNK_LINES sentences at a time."""
        stream = iter(sentences)
        while chunk := list(islice(stream, CHUNK_LINES)):
            yield from self.translate_sentences(chunk)

    def search(
        self, engine: Engine, sentences: Sentences, n_best: int, constraints: Constraints | None = None
    ) -> NBestLists:
        """The best hypotheses of each sentence."""
        lengths = [len(source) + 1 for source in sentences.sources]
        if constraints:
            lengths = [length * beams for length, beams in zip(lengths, constraints.beams, strict=True)]
        together = list(batches(lengths, engine.budget(self.config, sum(lengths))))
        requests = [
            self.request(sentences.select(batch), constraints and constraints.select(batch)) for batch in together
        ]
        n_best_lists: NBestLists = [[]] * len(sentences.texts)
        for batch, hypotheses in zip(together, engine.search(requests, self.config, n_best), strict=True):
            for i, best in zip(batch, hypotheses, strict=True):
                n_best_lists[i] = best
        return n_best_lists

    def request(self, sentences: Sentences, constraints: Constraints | None = None) -> Request:
        """The request by which an engine searches these sentences together."""
        limits = [self.limit(source) for source in sentences.sources]
        selector = functools.partial(constraints.selector, limits) if constraints else None
        return Request(sentences.texts, sentences.sources, limits, selector)

    def limit(self, source: Sequence[int]) -> int:
        """The longest translation of a source in tokens, EOS not counted; the decoder's input is one longer, by BOS."""
        limit, positions = len(source) + self.config.max_extra_tokens, self.engine.max_positions
        return limit if positions is None else min(limit, positions - 1)

    def engine_for(self, feature: Feature) -> Engine:
        """The engine, or where it lacks a feature, one for the same model; raises UserError if there is none."""
        if feature in self.engine.supports:
            return self.engine
        other = self._fallback() if self._fallback else None
        if other is None or feature not in other.supports:
            raise UserError(f"{(other or self.engine).name} can't {PURPOSES[feature]} with this model.")
        return other

    def _by_text(self, n_best_lists: NBestLists) -> list[dict[str, Hypothesis]]:
        """Each sentence's hypotheses by their texts: of the same text in other pieces, the most probable."""
        texts = iter(self.tokenizer.decode([hypothesis.tokens for best in n_best_lists for hypothesis in best]))
        by_text: list[dict[str, Hypothesis]] = [{} for _ in n_best_lists]
        for distinct, hypotheses in zip(by_text, n_best_lists, strict=True):
            for hypothesis in hypotheses:
                distinct.setdefault(next(texts), hypothesis)
        return by_text

    def _translations(self, by_text: list[dict[str, Hypothesis]], limits: list[int]) -> list[Translation]:
        """The best of each sentence's hypotheses with the others as its alternatives."""
        if not all(by_text):
            raise UserError(
                "The model's probabilities are not numbers: its weights are damaged; use another checkpoint."
            )
        translations = []
        for hypotheses, limit in zip(by_text, limits, strict=True):
            best, *others = (
                Translation(
                    text,
                    score,
                    tuple(self.tokenizer.target_pieces(tokens)),
                    flags=(CUT,) if len(tokens) == limit else (),
                )
                for text, (score, tokens) in hypotheses.items()
            )
            translations.append(replace(best, alternatives=tuple(others)) if others else best)
        return translations

    def _check_lengths(self, side: str, rows: list[list[int]], numbers: Sequence[int]) -> None:
        positions = self.engine.max_positions
        other = ", or choose the engine torch" if self._fallback and "positions" not in self.engine.supports else ""
        for row, number in zip(rows, numbers, strict=True):
            if positions is not None and len(row) + 1 > positions:
                raise UserError(
                    f"{side} text {number} has {len(row)} tokens, and {self.engine.name} knows positions for "
                    f"{positions - 1}; split it into shorter ones{other}."
                )


def _as_list(texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str):
        raise TypeError("a list of texts is expected, not one text: its characters would be translated one by one")
    return list(texts)


def _check_lines(texts: Sequence[str], numbers: Sequence[int]) -> None:
    for number, text in zip(numbers, texts, strict=True):
        if "\n" in text:
            raise UserError(f"Text {number} contains a line break; a text is one line: split it before translating.")
