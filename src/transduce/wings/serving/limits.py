"""Defines the limits of a server."""

import dataclasses
import re
from collections.abc import Iterable
from dataclasses import dataclass

from transduce.config.schema import option
from transduce.system.errors import UserError

PREFIX = "limits."


@dataclass(frozen=True)
class Limits:
    """All limits of a server, as positive integers."""

    body: int = option(1 << 20, "size of a request that uploads no document", unit="bytes")
    document: int = option(4 << 20, "size of an uploaded document", unit="bytes")
    document_characters: int = option(
        1_000_000, "total length of the texts of an uploaded document", unit="characters"
    )
    uploads: int = option(32, "documents uploaded or translated at the same time", unit="documents")
    depth: int = option(8, "nesting of lists and objects in JSON", unit="levels")
    texts: int = option(256, "texts in one request", unit="texts")
    characters: int = option(20_000, "length of one text", unit="characters")
    beam_size: int = option(8, "beam size that a request may set", unit="hypotheses")
    alternatives: int = option(
        7, "alternative translations of a text; the beam is widened if necessary", unit="texts"
    )
    terms: int = option(5_000, "entries of a request's glossary", unit="terms")
    term_characters: int = option(
        200, "length of the source or target of a glossary entry", unit="characters"
    )
    queue: int = option(
        256, "requests waiting or being translated; further requests get a 503", unit="requests"
    )
    queue_tokens: int = option(60_000, "source tokens waiting or being translated", unit="tokens")
    wait: int = option(
        20, "estimated wait in the queue; requests that would wait longer get a 503", unit="seconds"
    )
    batch_tokens: int = option(1024, "source tokens of a batch", unit="tokens")
    connections: int = option(1024, "open connections", unit="connections")
    body_seconds: int = option(30, "time to receive the body of a request", unit="seconds")
    answer_seconds: int = option(
        60, "time in which a client must read a part of its answer (Linux)", unit="seconds"
    )
    month_characters: int = option(
        10**12,
        "characters that one key may have translated in a month, with DeepL's API",
        unit="characters",
    )
    document_seconds: int = option(
        600, "time that a translated document is kept for download", unit="seconds"
    )
    documents: int = option(64, "translated documents kept for download", unit="documents")
    drain_seconds: int = option(
        25, "time to answer accepted requests after SIGTERM", unit="seconds"
    )
    per_key: int = option(1200, "requests a minute with one key", unit="requests")
    per_address: int = option(
        1200, "requests a minute from one address other than a loopback address", unit="requests"
    )


def memory_from(text: str) -> int:
    """The number of bytes in a size such as 500M or 4G. Raises UserError if the text is no size."""
    size = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([KMGT])", text.upper())
    if not size or not float(size[1]):
        raise UserError(f"'{text}' is not a size.", "Write, for example, 500M or 4G.")
    return int(float(size[1]) * 1024 ** (1 + "KMGT".index(size[2])))


def rows(limits: Limits) -> list[tuple[str, str, str, str]]:
    """A table of the limits with columns for name, value, unit and meaning."""
    return [
        (
            PREFIX + field.name,
            f"{getattr(limits, field.name):,}",
            field.metadata["unit"],
            field.metadata["help"],
        )
        for field in dataclasses.fields(limits)
    ]


def limits_from(arguments: Iterable[str]) -> Limits:
    """Parse arguments of the form limits.NAME=NUMBER. Raises UserError for unknown names and invalid numbers."""
    known = {PREFIX + field.name: field.name for field in dataclasses.fields(Limits)}
    values = {}
    for argument in arguments:
        name, _, text = argument.partition("=")
        if name not in known:
            raise UserError(
                f"'{argument}' is not a limit.",
                "`transduce serve --show-limits` lists all limits.",
            )
        number = text.replace("_", "")
        # Larger numbers overflow in system calls.
        if not re.fullmatch("(?=.*[1-9])[0-9]{1,9}", number):
            raise UserError(
                f"{name} must be a whole number above zero of at most 9 digits, not '{text}'."
            )
        values[known[name]] = int(number)
    return Limits(**values)
