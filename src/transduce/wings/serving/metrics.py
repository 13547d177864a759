"""Metrics for Prometheus; they never contain a user's text."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest


class Metrics:
    """Counters of one server."""

    def __init__(self, requests: Callable[[], float], tokens: Callable[[], float]):
        """requests, tokens: return the current length of the queue."""
        registry = self._registry = CollectorRegistry()
        labels = ["route", "status"]
        self.answers = Counter("transduce_requests", "Requests by route and status.", labels, registry=registry)
        self.seconds = Histogram(
            "transduce_request_seconds",
            "Seconds from a request's headers to the end of its answer.",
            ["route"],
            buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
            registry=registry,
        )
        self.sentences = Counter("transduce_sentences", "Sentences translated.", registry=registry)
        self.tokens = Counter("transduce_source_tokens", "Source tokens translated.", registry=registry)
        sizes = (1, 2, 4, 8, 16, 32, 64, 128)
        self.batches = Histogram("transduce_batch_sentences", "Sentences of a batch.", buckets=sizes, registry=registry)
        for name, what, count in (("requests", "Requests", requests), ("tokens", "Source tokens", tokens)):
            gauge = Gauge(f"transduce_queue_{name}", f"{what} waiting or being translated.", registry=registry)
            gauge.set_function(count)

    def batch(self, sentences: int, tokens: int) -> None:
        """Count a translated batch."""
        self.sentences.inc(sentences)
        self.tokens.inc(tokens)
        self.batches.observe(sentences)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)
