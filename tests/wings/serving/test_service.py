"""What the service counts, and how it translates texts, pages and documents."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from servers import Echo, store_of
from transduce.config.schema import DecodeConfig
from transduce.system.errors import UserError
from transduce.tokens.tokenizer import Tokenizer
from waiting import PATIENCE

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
pytest.importorskip("prometheus_client", reason="pip install 'transduce[serve]'")
from requests_of_tests import translator_of
from transduce.decoding.types import (
    CUT,
    LOOP,
    NBestLists,
    Request,
    Term,
    Translation,
    TranslationOptions,
)
from transduce.text.formats import read_document
from transduce.wings.serving.limits import Limits
from transduce.wings.serving.models import Served
from transduce.wings.serving.service import PAGE, Metrics, Order, Service, _plan, _written


def test_metrics_by_hand() -> None:
    queue = [3, 40]
    metrics = Metrics(lambda: queue[0], lambda: queue[1])
    metrics.batch(7, 100)
    metrics.batch(8, 20)
    metrics.batch(129, 3)
    metrics.answers.labels("/translate", "200").inc()
    metrics.seconds.labels("/translate").observe(0.3)
    lines = metrics.text().decode().split("\n")
    numbers = dict(line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
    assert numbers["transduce_sentences_total"] == "144.0"
    assert numbers["transduce_source_tokens_total"] == "123.0"
    assert (numbers["transduce_queue_requests"], numbers["transduce_queue_tokens"]) == (
        "3.0",
        "40.0",
    )
    assert numbers['transduce_requests_total{route="/translate",status="200"}'] == "1.0"
    sizes = {
        name.split('"')[1]: float(number)
        for name, number in numbers.items()
        if name.startswith("transduce_batch_sentences_bucket")
    }
    borders = ["1.0", "2.0", "4.0", "8.0", "16.0", "32.0", "64.0", "128.0", "+Inf"]
    assert sizes == dict(zip(borders, [0, 0, 0, 2, 2, 2, 2, 2, 3], strict=True))
    seconds = [
        name.split('le="')[1].split('"')[0]
        for name in numbers
        if name.startswith("transduce_request_seconds_bucket")
    ]
    assert seconds == [
        "0.01",
        "0.025",
        "0.05",
        "0.1",
        "0.25",
        "0.5",
        "1.0",
        "2.5",
        "5.0",
        "10.0",
        "30.0",
        "+Inf",
    ]
    assert "# HELP transduce_batch_sentences Sentences of a batch." in lines
    assert "# HELP transduce_queue_tokens Source tokens waiting or being translated." in lines
    queue[:] = 0, 0
    assert b"transduce_queue_requests 0.0" in metrics.text()


def test_a_page_is_written_with_the_translations_of_one_rank_after_another() -> None:
    page = read_document(b"<p>One</p><p>Two</p><p>Three</p>", PAGE, "en", "de")

    def made(text: str, score: float, *others: Translation, **fields: object) -> Translation:
        return Translation(text, score, ("t",), others, **fields)

    translations = [
        made("Eins", -1.0, made("Ein", -2.0, flags=(LOOP,)), flags=(CUT,), confidence=0.7),
        made(
            "Zwei", -2.0, made("Zwo", -4.0), made("Zwei", -5.0), flags=(LOOP, CUT), confidence=0.4
        ),
        made("Drei", -3.0),
    ]
    found = _written(page, translations, 4)
    assert (found.text, found.score, found.tokens) == (
        "<p>Eins</p><p>Zwei</p><p>Drei</p>",
        -2.0,
        (),
    )
    assert (found.flags, found.confidence) == ((CUT, LOOP), 0.4)
    assert [(each.text, each.score, each.flags) for each in found.alternatives] == [
        ("<p>Ein</p><p>Zwo</p><p>Drei</p>", -3.0, (LOOP,)),
        ("<p>Ein</p><p>Zwei</p><p>Drei</p>", -10 / 3, (LOOP,)),
    ]
    assert _written(page, translations, 1).alternatives == ()
    bare = _written(read_document(b"<hr>", PAGE, "en", "de"), [], 2)
    assert (bare.text, bare.score, bare.confidence) == ("<hr>", 0.0, None)


# -- translating


@dataclass
class Recording(Echo):
    """An engine that records the beam sizes of its searches."""

    beam_sizes: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.gate.set()

    def search(
        self, requests: Sequence[Request], config: DecodeConfig, n_best: int
    ) -> Iterator[NBestLists]:
        self.beam_sizes.append(config.beam_size)
        yield from super().search(requests, config, n_best)


def run(service: Service, body: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    async def whole() -> Any:
        service.batcher.start()
        try:
            return await asyncio.wait_for(body(), PATIENCE)
        finally:
            await service.batcher.stop()

    return asyncio.run(whole())


def service_of(
    tokenizer: Tokenizer, *directions: tuple[str, str], engine: Echo | None = None, **limits: int
) -> tuple[Service, tuple[Served, ...]]:
    """A service, and the models of its directions, one after the other."""
    engine = engine or Recording()
    store = store_of(*(translator_of(engine, tokenizer, *each) for each in directions))
    route = tuple(Served(model.version, model.directions[0]) for model in store.models)
    return Service(store, Limits(**limits)), route


def options(**chosen: Any) -> TranslationOptions:
    return TranslationOptions(sentences=True, **chosen)


def test_the_queue_has_the_limits_of_the_server(tokenizer: Tokenizer) -> None:
    limits = {"queue": 1, "queue_tokens": 2, "batch_tokens": 3, "wait": 4}
    batcher = service_of(tokenizer, ("ka", "zu"), **limits)[0].batcher
    found = batcher.room, batcher.room_for_tokens, batcher.batch_tokens, batcher.wait
    assert found == (1, 2, 3, 4)


@pytest.mark.parametrize(
    ("order", "beam_size"),
    [
        (Order(options()), 2),  # the model's own
        (Order(options(), 5), 5),
        (Order(options(), 1), 1),
        (Order(options(n_best=4)), 4),
        (Order(options(n_best=4), 3), 4),
        (Order(options(n_best=4), 6), 6),
    ],
)
def test_the_beam_of_a_request(tokenizer: Tokenizer, order: Order, beam_size: int) -> None:
    engine = Recording()
    service, route = service_of(tokenizer, ("ka", "zu"), engine=engine)
    [found] = run(service, lambda: service.translate(["ka lo. mi"], route, order))
    assert found.text == "ka lo. mi" and {*engine.beam_sizes} == {beam_size}


def test_words_are_not_aligned_by_an_engine_that_cannot_or_in_pages(tokenizer: Tokenizer) -> None:
    """The engine would raise NotImplementedError."""
    for align, supports, is_page, fails in (
        (True, set(), False, False),
        (True, {"attention"}, True, False),
        (True, {"attention"}, False, True),
        (False, {"attention"}, False, False),
    ):
        engine = Recording(supports=frozenset(supports))
        service, route = service_of(tokenizer, ("ka", "zu"), engine=engine)
        work = service.translate_pages if is_page else service.translate
        order = Order(options(align=align))
        asked = lambda work=work, route=route, order=order: work(["ka lo"], route, order)  # noqa: E731
        if fails:
            with pytest.raises(RuntimeError):
                run(service, asked)
        else:
            assert run(service, asked)[0].links == ()


def test_a_mistake_in_a_glossary_is_refused(tokenizer: Tokenizer) -> None:
    service, route = service_of(tokenizer, ("ka", "zu"))
    order = Order(options(glossary=(Term(" ", "x"),)))
    with pytest.raises(UserError):
        run(service, lambda: service.translate(["ka lo"], route, order))


def test_sentences_are_sent_to_the_queue_with_their_lengths_and_texts(
    tokenizer: Tokenizer,
) -> None:
    translator = translator_of(Echo(), tokenizer, "ka", "zu")
    _, [part] = _plan(translator, ["Ka lo. Mi.", "", "Va"], options(n_best=2), None, None)
    numbers = dict(zip(part.sentences, part.numbers, strict=True))
    assert (numbers["Ka lo."], numbers["Mi."], numbers["Va"]) == (1, 1, 3)
    assert part.key.translator is translator and part.key.options.n_best == 2
    lengths = [len(tokens) for tokens in tokenizer.encode_source(part.sentences)]
    assert list(part.tokens) == lengths and len({*lengths}) > 1


XLIFF = """<xliff version="1.2"><file source-language="en" target-language="{}"><body>
<trans-unit id="1"><source>ka &lt; lo</source></trans-unit></body></file></xliff>"""


def test_documents_and_pages_have_the_languages_of_the_whole_route(tokenizer: Tokenizer) -> None:
    """A passage in another language than the source stays."""
    page = "<p>ka</p><p lang='de'>mi nu</p><p lang='en'>va</p>"

    def work(translate: Callable[[Service, Any], Coroutine[Any, Any, Any]]) -> tuple[Any, str]:
        engine = Recording()
        service, route = service_of(tokenizer, ("en", "de"), ("de", "fr"), engine=engine)
        found = run(service, lambda: translate(service, route))
        return found, " ".join(text for batch in engine.searched for text in batch)

    [found], searched = work(
        lambda service, route: service.translate_pages([page], route, Order(options()))
    )
    assert found.text == page and "va" in searched and "nu" not in searched

    def translate(target: str) -> bytes:
        document = XLIFF.format(target).encode()
        return work(
            lambda service, route: service.translate_document(
                document, "a.xlf", route, Order(options())
            )
        )[0]

    assert b"<target>ka &lt; lo</target>" in translate("fr")
    with pytest.raises(UserError):
        translate("de")


def test_a_text_without_a_model_stays(tokenizer: Tokenizer) -> None:
    service, _ = service_of(tokenizer, ("ka", "zu"))
    for work in (service.translate, service.translate_pages):
        found = asyncio.run(work(["<p>ka"], (), Order(options())))
        assert found == [Translation("<p>ka", 0.0, ())]


def test_the_kinds_of_texts_reach_the_engine(tokenizer: Tokenizer) -> None:
    """Tags are markup in pages only, and `%s` is a placeholder in messages."""
    page = "<p>ka <b>lo</b> mi</p>"
    sources: list[list[list[str]]] = []
    for texts in (
        lambda service, route: service.translate(["ka <b>lo</b> mi"], route, Order(options())),
        lambda service, route: service.translate_pages([page], route, Order(options())),
        lambda service, route: service.translate_document(
            page.encode(), "a.html", route, Order(options())
        ),
    ):
        engine = Recording()
        service, route = service_of(tokenizer, ("ka", "zu"), engine=engine)
        run(service, lambda texts=texts, of=(service, route): texts(*of))
        sources.append(engine.searched)
    assert sources[1] == sources[2] == [["ka lo mi"]]


def test_a_document_may_reach_its_limits(tokenizer: Tokenizer) -> None:
    service, route = service_of(tokenizer, ("ka", "zu"), characters=5, document_characters=9)

    def translate(content: bytes, name: str = "a.txt") -> Any:
        return run(
            service, lambda: service.translate_document(content, name, route, Order(options()))
        )

    assert translate(b"ka lo\nka l\n") == b"ka lo\nka l\n" and translate(b"") == b""
    for content, sentence in (
        (b"ka\nka loo\n", "a.txt holds a text of 6 characters; at most 5 are allowed."),
        (b"ka lo\nka lo\n", "a.txt holds texts of 10 characters; at most 9 are allowed."),
    ):
        with pytest.raises(UserError) as error:
            translate(content)
        assert str(error.value) == f"{sentence} Split the document."
    with pytest.raises(UserError):
        run(service, lambda: service.translate_document(b"ka", "a.exe", (), Order(options())))
    same = run(
        service, lambda: service.translate_document(b"ka lo mi nu", "a.txt", (), Order(options()))
    )
    assert same == b"ka lo mi nu", "nothing is read"


def test_only_the_attention_of_short_texts_is_drawn(tokenizer: Tokenizer) -> None:
    service, [served] = service_of(tokenizer, ("ka", "zu"))
    drawn: list[Any] = []
    served.version.attention = lambda *asked: drawn.append(asked) or "{}"  # type: ignore[func-returns-value,method-assign]
    text = "\n ka  lo ".ljust(200)
    assert run(service, lambda: service.attention(text, served)) == "{}"
    assert drawn == [(served.direction, "ka lo")]
    with pytest.raises(UserError, match=r"for at most 200 characters, not 1,000\."):
        run(service, lambda: service.attention("x" * 1000, served))
    with pytest.raises(UserError):
        run(service, lambda: service.attention("x" * 201, served))


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (1001, 10_000, True),
        (10_000, 10_000, True),
        (10_001, 20_000, False),
        (20_000, 20_001, True),
        (20_001, 80_000, False),
        (80_000, 80_001, True),
        (80_001, 9_000_000, False),
    ],
)
def test_long_documents_wait_for_those_of_their_size_only(
    tokenizer: Tokenizer, first: int, second: int, together: bool
) -> None:
    service, _ = service_of(tokenizer, ("ka", "zu"), characters=10_000)
    both = threading.Barrier(2)

    def meet() -> bool:
        try:
            both.wait(PATIENCE if together else 0.05)
        except threading.BrokenBarrierError:
            return False
        return True

    async def body() -> list[bool]:
        assert await service._run(1000, threading.current_thread) is threading.main_thread()
        return await asyncio.gather(service._run(first, meet), service._run(second, meet))

    assert run(service, body) == [together] * 2


def test_languages_are_detected_among_those_into_the_target(tokenizer: Tokenizer) -> None:
    service, _ = service_of(tokenizer, ("en", "de"), ("de", "fr"))
    catalogue = service.catalogues.default
    german = "Ein Hund rennt über die Straße."

    def language(text: str, target: str, **chosen: Any) -> str:
        asked = lambda: service.sources([text], catalogue, target, **chosen)  # noqa: E731
        [found] = run(service, asked)
        return found.language

    assert [language(german, target) for target in ("de", "fr")] == ["de", "de"]
    page = f"<style>the dog is in the house and on the street {{}}</style><p>{german}</p>"
    assert language(page, "fr") == "en" and language(page, "fr", html=True) == "de"
    shown = run(service, lambda: service.shown("<p>Ein &amp;</p><p>Hund</p>", "fr"))
    assert shown.split() == ["Ein", "&", "Hund"]
    with pytest.raises(UserError, match="looks like French"):
        language("Je ne sais pas ce que vous voulez dire.", "de")
