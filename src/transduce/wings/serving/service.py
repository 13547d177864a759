"""Translates texts and documents, detects languages and computes attention for the HTTP routes."""

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import NamedTuple, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from transduce.decoding.pivot import hops_with_options, joined
from transduce.decoding.plan import Plan
from transduce.decoding.recall import recall
from transduce.decoding.translator import Translator, typed_texts
from transduce.decoding.types import (
    BLANK_TRANSLATION,
    Guides,
    Translation,
    TranslationOptions,
)
from transduce.system.errors import UserError
from transduce.text.formats import Document, TextKind, document_format, read_document
from transduce.text.languages import Direction
from transduce.text.plain import BYTE_ORDER_MARK
from transduce.wings.serving.batching import Batcher, BatchKey, Part
from transduce.wings.serving.catalogue import Catalogue, Catalogues
from transduce.wings.serving.corrections import Corrections
from transduce.wings.serving.languages import UNDETERMINED, Detected, Detector, without_markup
from transduce.wings.serving.limits import Limits
from transduce.wings.serving.models import Served
from transduce.wings.serving.store import ModelStore
from transduce.wings.serving.turns import Turns
from transduce.wings.terms.glossary import open_glossary

Result = TypeVar("Result")
AUTO = "auto"
PAGE = "q.html"  # the name of a request's HTML text
MAX_INLINE_CHARACTERS = 1000  # shorter texts are planned faster than a thread starts
# Documents of up to this many times limits.characters do not wait for longer documents.
LONG_TEXTS = 2, 8, math.inf
# Maximum for a text whose attention is drawn; maps grow quadratically.
MAX_ATTENTION_CHARACTERS = 200
Opened = tuple[Served, ...]  # the models that translate a text one after the other
PageReader = Callable[
    [str, str, str], Document
]  # a text, its language, the target -> what is translated


def read_page(text: str, source: str, target: str) -> Document:
    """The texts of an HTML page or fragment."""
    return read_document(_page(text), PAGE, source, target)


class Order(NamedTuple):
    """The translation options of a request."""

    options: TranslationOptions
    beam_size: int | None = None  # None: the model's own; n_best if that is more


class Metrics:
    """Prometheus metrics of a server, without any user's text."""

    def __init__(self, requests: Callable[[], float], tokens: Callable[[], float]):
        """`requests` and `tokens` return how many requests and source tokens are in the queue."""
        registry = self._registry = CollectorRegistry()
        labels = ["route", "status"]
        self.answers = Counter(
            "transduce_requests", "Requests by route and status.", labels, registry=registry
        )
        self.seconds = Histogram(
            "transduce_request_seconds",
            "Seconds from a request's headers to the end of its answer.",
            ["route"],
            buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
            registry=registry,
        )
        self.sentences = Counter("transduce_sentences", "Sentences translated.", registry=registry)
        self.tokens = Counter(
            "transduce_source_tokens", "Source tokens translated.", registry=registry
        )
        sizes = (1, 2, 4, 8, 16, 32, 64, 128)
        self.batches = Histogram(
            "transduce_batch_sentences", "Sentences of a batch.", buckets=sizes, registry=registry
        )
        for name, what, count in (
            ("requests", "Requests", requests),
            ("tokens", "Source tokens", tokens),
        ):
            gauge = Gauge(
                f"transduce_queue_{name}", f"{what} waiting or being translated.", registry=registry
            )
            gauge.set_function(count)

    def batch(self, sentences: int, tokens: int) -> None:
        """Count a translated batch."""
        self.sentences.inc(sentences)
        self.tokens.inc(tokens)
        self.batches.observe(sentences)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)


class Service:
    """The models of a server. All models share one queue."""

    def __init__(self, store: ModelStore, limits: Limits, corrections: Corrections | None = None):
        self.store = store
        self.corrections = corrections
        self.limits = limits
        self.metrics = Metrics(lambda: self.batcher.requests, lambda: self.batcher.tokens)
        self.batcher = Batcher(
            limits.queue, limits.queue_tokens, limits.batch_tokens, limits.wait, self.metrics.batch
        )
        self._for_long = {factor: Turns(f"up to {factor} texts") for factor in LONG_TEXTS}
        self._detector = Detector(self.catalogues.default.codes)

    @property
    def catalogues(self) -> Catalogues:
        """The models by their names. A new version of a model can change the choice of pivots."""
        return self.store.catalogues

    def detect(self, text: str) -> list[Detected]:
        """Rank the likeliest languages of a text."""
        return self._detector.detect(text)

    async def shown(self, content: bytes | str, target: str, name: str = PAGE) -> str:
        """The first texts of a document that are to be translated to `target`, for language detection."""
        content = _page(content) if isinstance(content, str) else content

        def read() -> str:
            texts = read_document(content, name, UNDETERMINED, target).texts
            return without_markup("\n".join(texts))

        return await self._run(len(content), read)

    async def sources(
        self, texts: Sequence[str], catalogue: Catalogue, target: str, *, html: bool = False
    ) -> list[Detected]:
        """Detect the language of each text of a request, among the languages that are translated to `target`.

        Raises UserError if each text clearly is in another language. If all texts together look like `target`, and a
        model translates from `target`, texts that look like it get this language.
        """
        texts = [await self.shown(text, target) for text in texts] if html else texts
        among = catalogue.sources(target)
        kept = catalogue.kept(target)

        return await self._run(
            sum(map(len, texts)), lambda: self._detector.choose(texts, among, kept)
        )

    async def translate(
        self,
        texts: Sequence[str],
        route: Opened,
        order: Order,
        *,
        kinds: Sequence[TextKind] | None = None,
        guides: Guides = None,
    ) -> list[Translation]:
        """Translate texts in batches that are shared with other requests. Without a model, return the texts.

        Words are aligned only if the engine can align. Raises QueueFullError or the UserErrors of the translator.
        """
        if not route:
            if any(guide.is_typed for guide in guides or ()):
                raise UserError(
                    "source and target are the same language, so a text can't have a prefix or a suffix."
                )
            return [replace(BLANK_TRANSLATION, text=text) for text in texts]
        memory = order.options.translation_memory
        if not memory:
            return await self._relay(texts, route, order, kinds, guides)
        direction = str(Direction(*_ends(route)))
        size = sum(map(len, texts))
        found = await self._run(size, lambda: recall(memory, texts, direction, kinds, guides))
        others = [texts[i] for i in found.others]
        their_kinds = kinds and [kinds[i] for i in found.others]
        translations = await self._relay(others, route, order, their_kinds, found.guides())
        return found.with_translations(translations)

    async def _relay(
        self,
        texts: Sequence[str],
        route: Opened,
        order: Order,
        kinds: Sequence[TextKind] | None,
        guides: Guides,
    ) -> list[Translation]:
        """Translate texts by each model of a route in turn. Only a single model uses the translation memory."""
        if len(route) > 1:
            order = order._replace(options=order.options._replace(translation_memory=None))
        numbers = range(1, len(texts) + 1)
        typed = typed_texts(texts, order.options, numbers, guides, Direction(*_ends(route)))
        if typed:
            texts = typed.texts
            guides = typed.guides
        translations = []
        for served, options, known in hops_with_options(route, order.options, guides):
            its = order._replace(options=options)
            hop = await self._translate(texts, served, its, kinds, known)
            translations.append(hop)
            texts = [each.text for each in hop]
        found = joined(translations)
        return typed.finished(found) if typed else found

    async def _translate(
        self,
        texts: Sequence[str],
        served: Served,
        order: Order,
        kinds: Sequence[TextKind] | None,
        guides: Guides,
    ) -> list[Translation]:
        options = order.options._replace(align=order.options.align and served.can_align)
        beam_size = max(
            order.beam_size or served.version.loaded.config.beam_size, order.options.n_best
        )
        translator = served.version.translator(served.direction, beam_size)
        size = sum(map(len, texts))
        if options.glossary:  # raises UserError for a mistake in the glossary
            characters = sum(map(len, chain.from_iterable(options.glossary)))
            await self._run(
                characters, lambda: open_glossary(options.glossary, translator.language)
            )
        plan, parts = await self._run(
            size, lambda: _plan(translator, texts, options, kinds, guides)
        )
        translated = await self.batcher.translate(parts)
        return await self._run(size, lambda: plan.assemble(plan.placed(translated)))

    async def translate_pages(
        self, texts: Sequence[str], route: Opened, order: Order, read: PageReader = read_page
    ) -> list[Translation]:
        """Translate texts with markup, and keep the markup. The translations have no word alignment."""
        if not route:
            return await self.translate(texts, route, order)
        size = sum(map(len, texts))
        languages = _ends(route)
        pages = await self._run(size, lambda: [read(text, *languages) for text in texts])
        order = order._replace(options=order.options._replace(align=False))
        contents = [text for each in pages for text in each.texts]
        kinds = [kind for each in pages for kind in each.kinds]
        translations = iter(await self.translate(contents, route, order, kinds=kinds))
        n_best = order.options.n_best
        return await self._run(
            size,
            lambda: [
                _written(each, list(islice(translations, len(each.texts))), n_best)
                for each in pages
            ],
        )

    async def translate_document(
        self,
        content: bytes,
        name: str,
        route: Opened,
        order: Order,
        observe: Callable[[int], object] = bool,
    ) -> bytes:
        """Translate a file. `observe` receives the number of characters before they are translated.

        Raises QueueFullError, or UserError if the file is unreadable or too long.
        """
        if not route and document_format(name):
            return content
        languages = _ends(route)
        document = await self._run(len(content), lambda: read_document(content, name, *languages))
        lengths = list(map(len, document.texts))
        longest = max(lengths, default=0)
        total = sum(lengths)
        limits = (
            ("a text of", longest, self.limits.characters),
            ("texts of", total, self.limits.document_characters),
        )
        for what, count, limit in limits:
            if count > limit:
                raise UserError(
                    f"{name} holds {what} {count:,} characters; at most {limit:,} are allowed.",
                    "Split the document.",
                )
        observe(total)
        translations = await self.translate(document.texts, route, order, kinds=document.kinds)
        return await self._run(
            len(content), lambda: document.write([each.text for each in translations])
        )

    async def _run(self, characters: int, compute: Callable[[], Result]) -> Result:
        """Call `compute`, in a thread if `characters` is large, so that other requests are not delayed."""
        if characters <= MAX_INLINE_CHARACTERS:
            return compute()
        if characters <= self.limits.characters:
            return await asyncio.to_thread(compute)
        turns = next(
            turns
            for factor, turns in self._for_long.items()
            if characters <= factor * self.limits.characters
        )
        computed: Result = await turns.run(characters, compute)
        return computed

    async def attention(self, text: str, served: Served) -> str:
        """Return the attention for a sentence as JSON. Raises UserError if the sentence is blank or too long."""
        if len(text) > MAX_ATTENTION_CHARACTERS:
            raise UserError(
                f"Attention is drawn for at most {MAX_ATTENTION_CHARACTERS} characters, not {len(text):,}."
            )
        return await self.batcher.call(
            lambda: served.version.attention(served.direction, " ".join(text.split()))
        )


def _ends(route: Opened) -> tuple[str, str]:
    """The languages that a route translates from and into."""
    return route[0].direction.source, route[-1].direction.target


def _page(text: str) -> bytes:
    """The HTML text of a request as bytes with a byte order mark."""
    return (BYTE_ORDER_MARK + text.removeprefix(BYTE_ORDER_MARK)).encode()


def _plan(
    translator: Translator,
    texts: Sequence[str],
    options: TranslationOptions,
    kinds: Sequence[TextKind] | None,
    guides: Guides,
) -> tuple[Plan, list[Part]]:
    """Split texts into sentences. Returns the plan, and one `Part` per group of its sentences."""
    plan = translator.plan(texts, options, kinds=kinds, guides=guides)
    tokens = translator.lengths(plan.sentences)
    parts = []
    for group in plan.groups:
        key = BatchKey(translator, group.options)
        numbers = [text + 1 for text in group.texts]
        sizes = group.select(tokens)
        its = group.select(plan.guides)
        parts.append(Part(key, group.select(plan.sentences), sizes, numbers, its))
    return plan, parts


def _written(page: Document, translations: Sequence[Translation], n_best: int) -> Translation:
    """Write a translated page and its alternatives from the translations of its texts."""
    by_text: dict[str, Translation] = {}
    for rank in range(n_best):
        ranked = [
            [each, *each.alternatives][min(rank, len(each.alternatives))] for each in translations
        ]
        text = page.write([each.text for each in ranked]).decode().removeprefix(BYTE_ORDER_MARK)
        score = sum(each.score for each in ranked) / max(1, len(ranked))
        flags = tuple(dict.fromkeys(flag for each in ranked for flag in each.flags))
        confidence = min(
            (each.confidence for each in ranked if each.confidence is not None), default=None
        )
        terms = tuple(term for each in ranked for term in each.terms)
        translation = Translation(text, score, (), flags=flags, confidence=confidence, terms=terms)
        by_text.setdefault(text, translation)
    best, *others = by_text.values()
    return replace(best, alternatives=tuple(others))
