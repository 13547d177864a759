"""Metrics for Prometheus; they never contain a user's text."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest


class Metrics:
    """Counters of one server."""

    def __init__(self, requests: Callable[[], float], tokens: Callable[[], float]):
        """requests, tokens: return the current length of the queue."""
        self._registry = CollectorRegistry()
        self.answers = Counter(
            "transduce_requests", "Requests by route and status.", ["route", "status"], registry=self._registry
        )
        self.seconds = Histogram(
            "transduce_request_seconds",
            "Seconds from a request's headers to the end of its answer.",
            ["route"],
            buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
            registry=self._registry,
        )
        self.sentences = Counter("transduce_sentences", "Sentences translated.", registry=self._registry)
        self.tokens = Counter("transduce_source_tokens", "Source tokens translated.", registry=self._registry)
        self.batches = Histogram(
            "transduce_batch_sentences",
            "Sentences of a batch.",
            buckets=(1, 2, 4, 8, 16, 32, 64, 128),
            registry=self._registry,
        )
        Gauge(
            "transduce_queue_requests", "Requests waiting or being translated.", registry=self._registry
        ).set_function(requests)
        Gauge(
            "transduce_queue_tokens", "Source tokens waiting or being translated.", registry=self._registry
        ).set_function(tokens)

    def batch(self, sentences: int, tokens: int) -> None:
        """Count a translated batch."""
        self.sentences.inc(sentences)
        self.tokens.inc(tokens)
        self.batches.observe(sentences)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)
