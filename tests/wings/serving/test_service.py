"""What the service counts, and how it writes the translation of a page."""

import pytest

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
pytest.importorskip("prometheus_client", reason="pip install 'transduce[serve]'")
from transduce.decoding.types import CUT, LOOP, Translation
from transduce.text.formats import read_document
from transduce.wings.serving.service import PAGE, Metrics, _written


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
