"""What a server does, without HTTP: texts and documents through the queue, languages, attention."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeVar

from transduce import model_folder
from transduce.decoding.documents import Plan
from transduce.decoding.glossary import Glossary, Term
from transduce.decoding.translator import Translation, Translator
from transduce.system.errors import UserError
from transduce.text.formats import Document, read_document
from transduce.text.inline import TextKind
from transduce.text.plain import BYTE_ORDER_MARK
from transduce.wings.inspection.maps import attention_of
from transduce.wings.inspection.picture import picture_of
from transduce.wings.serving.batching import Batcher, Part, Want
from transduce.wings.serving.languages import Detected, Detector, Direction, Served, codes
from transduce.wings.serving.limits import Limits
from transduce.wings.serving.metrics import Metrics

Result = TypeVar("Result")
AUTO = "auto"
SHORT = 1000  # characters, with which a thread would take longer
ATTENDED = 200  # characters of a sentence whose attention is drawn: its maps grow with their square


class Wish(NamedTuple):
    """How texts are to be translated, beyond from which language into which."""

    alternatives: int = 0
    align: bool = False
    beam_size: int | None = None  # None: the model's own
    glossary: tuple[Term, ...] = ()


class Service:
    """Models behind one queue."""

    def __init__(self, models: dict[Direction, Served], limits: Limits):
        self.models, self.limits = models, limits
        self.metrics = Metrics(lambda: self.batcher.requests, lambda: self.batcher.tokens)
        self.batcher = Batcher(limits.queue, limits.queue_tokens, limits.batch_tokens, limits.wait, self.metrics.batch)
        # What is long is taken apart one after the other, beside the rest: it takes time and memory.
        self._for_long = ThreadPoolExecutor(1, "long")
        self._detector = Detector(codes(models))
        self._translators: dict[tuple[Direction, int], Translator] = {}  # by their beams
        self._whole: dict[Direction, model_folder.Bundle] = {}  # models to look into

    def detect(self, text: str, target: str = "") -> list[Detected]:
        """The likeliest languages first: of all that are served, or those that can be translated into `target`."""
        among = [each.source for each in self.models if each.target == target] if target else codes(self.models)
        if not among:
            raise UserError(f"There is no model that translates into {target!r}; GET /languages lists them.")
        return self._detector.detect(text, among)

    def served(self, source: str, target: str) -> Served:
        """Raises UserError if there is no such model."""
        found = self.models.get(Direction(source, target))
        if found is None:
            raise UserError(f"There is no model from {source!r} to {target!r}; GET /languages lists them.")
        return found

    async def translate(
        self, texts: Sequence[str], served: Served, wish: Wish, *, kinds: Sequence[TextKind] | None = None
    ) -> list[Translation]:
        """The translations of texts of any number of sentences.

        Raises UserError for what can't be, QueueFullError if there is no room.
        """
        beam_size = max(wish.beam_size or served.translator.config.beam_size, wish.alternatives + 1)
        Glossary(wish.glossary)  # a mistake in it is not to be found in every sentence
        size = sum(map(len, texts))
        plan, tokens = await self._run(size, lambda: _plan(served, texts, kinds))
        translator, n_best = self._translator(served, beam_size), wish.alternatives + 1
        ways = plan.ways(n_best, beam_size, align=wish.align)
        found = await self.batcher.translate(
            [
                Part(
                    Want(translator, count, align, wish.glossary),
                    [plan.sentences[i] for i in places],
                    [tokens[i] for i in places],
                )
                for (count, align), places in ways.items()
            ]
        )
        by_place = dict(zip(chain(*ways.values()), chain(*found), strict=True))
        return await self._run(size, lambda: plan.assemble([by_place[i] for i in range(len(by_place))], n_best))

    def _translator(self, served: Served, beam_size: int) -> Translator:
        """Always the same one, so that those who want the same are translated together."""
        key = served.direction, beam_size
        if key not in self._translators:
            self._translators[key] = served.translator.with_beam_size(beam_size)
        return self._translators[key]

    async def translate_html(self, texts: Sequence[str], served: Served, wish: Wish) -> list[Translation]:
        """The same for texts with markup, all of which is kept; nothing in it is aligned."""
        size = sum(map(len, texts))
        pages = await self._run(
            size,
            lambda: [read_document((BYTE_ORDER_MARK + text).encode(), "q.html", *served.direction) for text in texts],
        )
        wish = wish._replace(align=False)
        found = iter(await self.translate(_texts(pages), served, wish, kinds=_kinds(pages)))
        return await self._run(
            size, lambda: [_page(page, [next(found) for _ in page.texts], wish.alternatives) for page in pages]
        )

    async def translate_document(self, content: bytes, name: str, served: Served) -> bytes:
        """A whole file; raises UserError as `translate` and `read_document` do."""
        source, target = served.direction
        document = await self._run(len(content), lambda: read_document(content, name, source, target))
        lengths = list(map(len, document.texts))
        for what, count, most in (
            ("a text of", max(lengths, default=0), self.limits.characters),
            ("texts of", sum(lengths), self.limits.document_characters),
        ):
            if count > most:
                raise UserError(f"{name} holds {what} {count:,} characters; {most:,} are allowed here.")
        translations = await self.translate(document.texts, served, Wish(), kinds=document.kinds)
        return await self._run(len(content), lambda: document.write([each.text for each in translations]))

    async def _run(self, characters: int, compute: Callable[[], Result]) -> Result:
        """Take texts of so many characters apart or put them together, where it holds nobody up."""
        if characters <= SHORT:
            return compute()
        threads = self._for_long if characters > self.limits.characters else None
        return await asyncio.get_running_loop().run_in_executor(threads, compute)

    async def attention(self, text: str, served: Served) -> str:
        """What the model attends to for one sentence, as JSON; raises UserError for what can't be shown."""
        if len(text) > ATTENDED:
            raise UserError(f"The attention of up to {ATTENDED} characters can be drawn, not of {len(text):,}.")
        return await self.batcher.call(lambda: self._attention(" ".join(text.split()), served))

    def _attention(self, text: str, served: Served) -> str:
        model = self._whole.get(served.direction)
        if model is None:
            model = self._whole[served.direction] = model_folder.load(Path(served.folder))
        config = served.translator.config
        return picture_of(model.model, attention_of(model.model, model.tokenizer, text, config)).json()


def _plan(served: Served, texts: Sequence[str], kinds: Sequence[TextKind] | None) -> tuple[Plan, list[int]]:
    """The sentences of texts, and the tokens of each."""
    lengths = _lengths(served.translator)
    positions = served.translator.engine.max_positions
    longest = min(served.max_length, positions - 1 if positions else served.max_length)
    stand_ins = served.translator.tokenizer.has_stand_ins
    plan = Plan(texts, served.direction.source, kinds=kinds, lengths=lengths, longest=longest, stand_ins=stand_ins)
    return plan, lengths(plan.sentences)


def _lengths(translator: Translator) -> Callable[[Sequence[str]], list[int]]:
    return lambda texts: list(map(len, translator.tokenizer.encode_source(texts)))


def _texts(pages: Sequence[Document]) -> list[str]:
    return [text for page in pages for text in page.texts]


def _kinds(pages: Sequence[Document]) -> list[TextKind]:
    return [kind for page in pages for kind in page.kinds]


def _page(page: Document, translations: Sequence[Translation], alternatives: int) -> Translation:
    """A page of the translations of its texts; its n-th alternative is made of the n-th of each, or of its last."""
    found: dict[str, Translation] = {}
    for rank in range(alternatives + 1):
        chosen = [[each, *each.alternatives][min(rank, len(each.alternatives))] for each in translations]
        text = page.write([each.text for each in chosen]).decode().removeprefix(BYTE_ORDER_MARK)
        found.setdefault(text, Translation(text, sum(each.score for each in chosen) / max(1, len(chosen)), ()))
    whole, *others = found.values()
    return replace(whole, alternatives=tuple(others))
