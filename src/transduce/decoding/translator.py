"""From text to text: translations, and the probability of given ones.

A text is one line. Lines in are lines out, in order; how they are sorted and batched on the way changes nothing.
"""

import copy
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from transduce.config.schema import DecodeConfig
from transduce.decoding.alignment import Link, Weights, find_links
from transduce.decoding.engines.ct2.engine import POSITIONS
from transduce.decoding.engines.engine import Edges, Engine, Found, Hypothesis, Request, Terms, Wanted, penalty
from transduce.decoding.glossary import Glossary, Term, edges, holds, in_pieces
from transduce.system.errors import UserError
from transduce.system.profiling import phase
from transduce.tokens.tokenizer import Tokenizer

CUT = "cut"  # flag: the translation reached the length limit, where it was made to end
CHUNK = 4096  # lines that a stream is sorted within: enough that little of a batch is padding


@dataclass(frozen=True)
class Translation:
    """What a user gets for a line."""

    text: str
    score: float  # log-probability / length penalty; 0 for a blank line
    tokens: tuple[str, ...]  # pieces of the target, to show to people
    alternatives: tuple["Translation", ...] = ()  # the next best, best first
    flags: tuple[str, ...] = ()  # CUT
    links: tuple[Link, ...] = ()  # of its words to those of the source, where that was asked for


class Scored(NamedTuple):
    """How probable a given translation is."""

    log_prob: float  # ln p(target | source), its end included
    num_tokens: int  # pieces, EOS counted
    score: float  # log_prob / length penalty, comparable with Translation.score


BLANK = Translation("", 0.0, ())


class _Lines(NamedTuple):
    """Texts that are not blank, each once."""

    texts: list[str]
    sources: list[list[int]]  # their ids
    numbers: list[int]  # by which a complaint names them


class Translator:
    """An engine, which searches a model or an ensemble, with its tokenizer."""

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        config: DecodeConfig | None = None,
        own: Callable[[], Engine] | None = None,
    ):
        """own: what makes an engine for the same model that obeys a glossary, where `engine` does not."""
        self.engine, self.tokenizer, self.config = engine, tokenizer, config or DecodeConfig()
        self._own = functools.cache(own) if own else None

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
        numbers: Sequence[int] | None = None,
    ) -> list[Translation]:
        """One translation per text, in order; with n_best > 1 it has up to n_best - 1 other texts.

        align: say of each word of a translation which words of its source it comes from (`Translation.links`).
        glossary: where the source of an entry occurs in a text, every translation holds its target.

        A blank text has an empty translation, which no model is asked for. Raises UserError that names the text by its
        number, from 1 unless `numbers` are given, if it holds a line break, is longer than the model's positions or has
        terms that are; if n_best exceeds the beam, or for a glossary that the engine can't obey.
        """
        texts = _as_list(texts)
        return self._translate(texts, n_best, numbers or range(1, len(texts) + 1), align, Glossary(glossary))

    def translate_lines(
        self,
        lines: Iterable[str],
        *,
        n_best: int = 1,
        align: bool = False,
        glossary: Sequence[Term] = (),
        first: int = 1,
    ) -> Iterator[Translation]:
        """The same for a stream of any length, some thousand lines at a time, numbered from `first` in what it raises.

        What is translated together is CHUNK lines, so that a part of a file that begins with a whole number of them
        has the translations that it has within the file, to the last bit.
        """
        stream, terms = iter(lines), Glossary(glossary)
        while chunk := list(islice(stream, CHUNK)):
            yield from self._translate(chunk, n_best, range(first, first + len(chunk)), align, terms)
            first += len(chunk)

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[Scored]:
        """How probable each target is as the translation of its source, by forced decoding with the engine.

        A target is split into pieces as the tokenizer does it; a search may have found the same text in other pieces,
        and then reported the score of those. A blank pair has probability 1, as in translation. Raises UserError as
        `translate` does, and for unequal numbers of sources and targets.
        """
        sources, targets = _as_list(sources), _as_list(targets)
        if len(sources) != len(targets):
            raise UserError(f"There are {len(sources)} sources but {len(targets)} targets; line n belongs to line n.")
        every = range(1, len(sources) + 1)
        _check_lines(sources, every)
        _check_lines(targets, every)
        places = [i for i in range(len(sources)) if sources[i].strip() or targets[i].strip()]
        source_ids = self.tokenizer.encode_source([sources[i] for i in places])
        target_ids = self.tokenizer.encode_target([targets[i] for i in places])
        numbers = [every[i] for i in places]
        self._check_lengths("Source", source_ids, numbers)
        self._check_lengths("Target", target_ids, numbers)
        scored = [Scored(0.0, 0, 0.0)] * len(sources)
        lengths = [max(len(source), len(target)) + 1 for source, target in zip(source_ids, target_ids, strict=True)]
        for batch in batches(lengths, self.engine.budget(self.config, sum(lengths))):
            found = self.engine.log_probs([source_ids[i] for i in batch], [target_ids[i] for i in batch])
            for i, log_prob in zip(batch, found, strict=True):
                length = len(target_ids[i]) + 1
                scored[places[i]] = Scored(log_prob, length, log_prob / penalty(length, self.config.length_penalty))
        return scored

    @phase("text")
    def _translate(
        self, texts: list[str], n_best: int, numbers: Sequence[int], align: bool, glossary: Glossary
    ) -> list[Translation]:
        """numbers: those of the texts in what is raised."""
        if not 1 <= n_best <= self.config.beam_size:
            raise UserError(f"n_best must be from 1 to decode.beam_size ({self.config.beam_size}), not {n_best}.")
        _check_lines(texts, numbers)
        places: dict[str, int] = {}  # of what is not blank; what is repeated is searched once
        for place, text in enumerate(texts):
            if text.strip():
                places.setdefault(text, place)
        distinct = list(places)
        sources = self.tokenizer.encode_source(distinct)
        lines = _Lines(distinct, sources, [numbers[place] for place in places.values()])
        self._check_lengths("Source", sources, lines.numbers)
        found = self._obeying(glossary, lines, self._search(self.engine, distinct, sources, n_best), n_best)
        by_text = self._by_text(found)
        limits = [self._limit(len(source)) for source in sources]
        translations = self._translations(by_text, limits)
        if align:
            translations = self._aligned(distinct, sources, [[*each.values()] for each in by_text], translations)
        translated = dict(zip(distinct, translations, strict=True))
        return [translated.get(text, BLANK) for text in texts]

    def _search(
        self,
        engine: Engine,
        texts: list[str],
        sources: list[list[int]],
        n_best: int,
        wanted: list[list[Wanted]] | None = None,
    ) -> Found:
        """The best hypotheses of each text, with what is wanted of each."""
        lengths = [len(source) + 1 for source in sources]
        if wanted:  # the beam grows with them
            lengths = [
                n * (1 + sum(len(term.ways[0]) for term in each)) for n, each in zip(lengths, wanted, strict=True)
            ]
        together = list(batches(lengths, engine.budget(self.config, sum(lengths))))
        requests = [self.request([texts[i] for i in batch], [sources[i] for i in batch]) for batch in together]
        if wanted:
            terms = (Terms([wanted[i] for i in batch], self._edges) for batch in together)
            requests = [request._replace(terms=each) for request, each in zip(requests, terms, strict=True)]
        found: Found = [[]] * len(texts)
        for batch, hypotheses in zip(together, engine.search(requests, self.config, n_best), strict=True):
            for i, each in zip(batch, hypotheses, strict=True):
                found[i] = each
        return found

    def _obeying(self, glossary: Glossary, lines: _Lines, found: Found, n_best: int) -> Found:
        """What was found freely, where it holds the terms; elsewhere what is found with them."""
        asked = {i: targets for i, text in enumerate(lines.texts) if (targets := glossary.targets(text))}
        kept = {i: [each for each in found[i] if self._holds(each.tokens, targets)] for i, targets in asked.items()}
        lacking = [i for i in asked if len(kept[i]) < len(found[i])]
        if not lacking:
            return found
        wanted = [[in_pieces(self.tokenizer, target) for target in asked[i]] for i in lacking]
        for i, each in zip(lacking, wanted, strict=True):
            if sum(len(term.ways[0]) for term in each) > self._limit(len(lines.sources[i])):
                raise UserError(
                    f"Text {lines.numbers[i]}: what the glossary asks for ({', '.join(asked[i])}) is longer than its "
                    "translation may be; give shorter terms, or raise decode.max_extra_tokens."
                )
        texts, sources = [lines.texts[i] for i in lacking], [lines.sources[i] for i in lacking]
        again = self._search(self._engine_for_terms(), texts, sources, n_best, wanted)
        better = {i: _merged(kept[i], each, n_best) for i, each in zip(lacking, again, strict=True)}
        return [better.get(i, each) for i, each in enumerate(found)]

    def _holds(self, tokens: list[int], targets: list[str]) -> bool:
        [text] = self.tokenizer.decode([tokens])
        return all(holds(text, target) for target in targets)

    def _engine_for_terms(self) -> Engine:
        if self.engine.takes_terms:
            return self.engine
        if self._own is None:
            raise UserError(f"The engine {self.engine.name} can't obey a glossary; use --engine torch.")
        return self._own()

    @functools.cached_property
    def _edges(self) -> Edges:
        return edges(self.tokenizer)

    def request(self, texts: list[str], sources: list[list[int]]) -> Request:
        """What to ask an engine for, of texts and their ids."""
        return Request(texts, sources, [self._limit(len(source)) for source in sources])

    def _by_text(self, found: Found) -> list[dict[str, Hypothesis]]:
        """Each sentence's hypotheses by their texts: of the same text in several ways of pieces, the most probable."""
        texts = iter(self.tokenizer.decode([hypothesis.tokens for each in found for hypothesis in each]))
        by_text: list[dict[str, Hypothesis]] = [{} for _ in found]
        for kept, hypotheses in zip(by_text, found, strict=True):
            for hypothesis in hypotheses:
                kept.setdefault(next(texts), hypothesis)
        return by_text

    def _translations(self, found: list[dict[str, Hypothesis]], limits: list[int]) -> list[Translation]:
        """The best of each sentence's hypotheses with the others as its alternatives."""
        if not all(found):
            raise UserError(
                "The model's probabilities are not numbers: its weights are damaged; use another checkpoint."
            )
        translations = []
        for hypotheses, limit in zip(found, limits, strict=True):
            best, *others = (
                Translation(
                    text, score, tuple(self.tokenizer.target_pieces(tokens)), (), (CUT,) * (len(tokens) == limit)
                )
                for text, (score, tokens) in hypotheses.items()
            )
            translations.append(replace(best, alternatives=tuple(others)) if others else best)
        return translations

    def _aligned(
        self, texts: list[str], sources: list[list[int]], found: Found, translations: list[Translation]
    ) -> list[Translation]:
        """The same translations, and their alternatives, with links."""
        rows = [(i, hypothesis.tokens) for i, hypotheses in enumerate(found) for hypothesis in hypotheses]
        lengths = [max(len(sources[i]), len(tokens)) + 1 for i, tokens in rows]
        weights: dict[int, Weights] = {}
        for batch in batches(lengths, self.engine.budget(self.config, sum(lengths))):
            chosen = [rows[row] for row in batch]
            each = self.engine.attention([sources[i] for i, _ in chosen], [tokens for _, tokens in chosen])
            weights.update(zip(batch, each, strict=True))
        spans = [self.tokenizer.source_spans(text, source) for text, source in zip(texts, sources, strict=True)]
        numbers = iter(range(len(rows)))

        def aligned(translation: Translation) -> Translation:
            row = next(numbers)
            i, tokens = rows[row]
            written = self.tokenizer.target_spans(tokens)
            return replace(translation, links=find_links(weights[row], texts[i], spans[i], translation.text, written))

        return [replace(aligned(best), alternatives=tuple(map(aligned, best.alternatives))) for best in translations]

    def _limit(self, source_length: int) -> int:
        """The longest translation in tokens, EOS not counted; the decoder's input is one longer, by BOS."""
        limit = source_length + self.config.max_extra_tokens
        most = self.engine.max_positions
        return limit if most is None else min(limit, most - 1)

    def _check_lengths(self, side: str, rows: list[list[int]], numbers: Sequence[int]) -> None:
        most = self.engine.max_positions
        other = ", or try --engine torch" if self._own and most == POSITIONS else ""  # which may know any
        for row, number in zip(rows, numbers, strict=True):
            if most is not None and len(row) + 1 > most:
                raise UserError(
                    f"{side} text {number} has {len(row)} tokens, and the model knows positions for "
                    f"{most - 1}; split it into shorter ones{other}."
                )


def shared_tokenizer(tokenizers: Sequence[Tokenizer], names: Sequence[str]) -> Tokenizer:
    """The one tokenizer of the models of an ensemble; raises UserError that names a model with another vocabulary."""
    first = tokenizers[0]
    for tokenizer, name in zip(tokenizers[1:], names[1:], strict=True):
        if not tokenizer.same_pieces(first):
            raise UserError(
                f"{name} has another vocabulary than {names[0]}; models can translate together only if they "
                "were trained on the same prepared data."
            )
    return first


def batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Every place in `lengths` once, the longest first, in batches with count x longest <= budget (or of one)."""
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > budget:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _merged(some: list[Hypothesis], others: list[Hypothesis], n_best: int) -> list[Hypothesis]:
    """The best of both; what is in both once."""
    by_tokens = {tuple(each.tokens): each for each in (*others, *some)}
    return sorted(by_tokens.values(), key=lambda each: -each.score)[:n_best]


def _as_list(texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str):
        raise TypeError("a list of texts is expected, not one text: its characters would be translated one by one")
    return list(texts)


def _check_lines(texts: Sequence[str], numbers: Sequence[int]) -> None:
    for number, text in zip(numbers, texts, strict=True):
        if "\n" in text:
            raise UserError(f"Text {number} holds a line break; a text is one line: split it before translating.")
