"""What a server accepts, each limit with its meaning; `transduce serve --show-limits` prints them."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from transduce.config.schema import option
from transduce.system.errors import UserError

SECTION = "limits."
DIGITS = 9  # of a limit: what operating systems take as a number of connections or seconds


@dataclass(frozen=True)
class Limits:
    """Every limit; all are whole numbers above zero."""

    body: int = option(1 << 20, "of a request, but for uploaded documents", unit="bytes")
    document: int = option(4 << 20, "of an uploaded document", unit="bytes")
    document_characters: int = option(1_000_000, "of all texts of an uploaded document", unit="characters")
    uploads: int = option(32, "being sent or translated at the same time", unit="documents")
    depth: int = option(8, "lists and objects in each other in JSON", unit="levels")
    texts: int = option(256, "in one request", unit="texts")
    characters: int = option(20_000, "of one text", unit="characters")
    beam_size: int = option(8, "that a request may ask for", unit="hypotheses")
    alternatives: int = option(7, "that a request may ask for: with the best they need a beam", unit="texts")
    terms: int = option(64, "of a request's glossary", unit="terms")
    term_characters: int = option(200, "of one side of a term", unit="characters")
    queue: int = option(256, "waiting or being translated; more are told to come again", unit="requests")
    queue_tokens: int = option(60_000, "source tokens waiting or being translated", unit="tokens")
    wait: int = option(20, "that a request may have to wait for those before it", unit="seconds")
    batch_tokens: int = option(1024, "source tokens that are translated together", unit="tokens")
    connections: int = option(1024, "open at the same time", unit="connections")
    header_seconds: int = option(10, "until all headers of a request have come", unit="seconds")
    body_seconds: int = option(30, "until all of a request's body has come", unit="seconds")
    answer_seconds: int = option(60, "until a client has taken what it was answered", unit="seconds")
    document_seconds: int = option(600, "that a translated document is kept for its download", unit="seconds")
    documents: int = option(64, "translated documents kept at the same time", unit="documents")
    drain_seconds: int = option(25, "in which what was accepted is answered after SIGTERM", unit="seconds")
    per_key: int = option(1200, "requests a minute with one key", unit="requests")
    per_address: int = option(1200, "requests a minute from one address that is not this machine's", unit="requests")


class Limit(NamedTuple):
    """A row of the table."""

    name: str
    value: int
    unit: str
    help: str


def rows(limits: Limits) -> Iterator[Limit]:
    """The table, in the order above."""
    for field in dataclasses.fields(limits):
        yield Limit(SECTION + field.name, getattr(limits, field.name), field.metadata["unit"], field.metadata["help"])


def limits_from(given: Mapping[str, str]) -> Limits:
    """The defaults, and what was given as limits.NAME=NUMBER; raises UserError for what is none."""
    known = {SECTION + field.name: field.name for field in dataclasses.fields(Limits)}
    chosen = {}
    for name, text in given.items():
        if name not in known:
            raise UserError(f"There is no limit {name}; `transduce serve --show-limits` lists them all.")
        number = text.replace("_", "")
        if not (number.isascii() and number.isdigit() and len(number) <= DIGITS and int(number)):
            raise UserError(f"{name} must be a whole number above zero of at most {DIGITS} digits, not '{text}'.")
        chosen[known[name]] = int(number)
    return Limits(**chosen)
