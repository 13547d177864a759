"""Looks up a corpus in the catalogue of OPUS."""

import json

from transduce.system.errors import UserError
from transduce.wings.corpora.fetch.download import read_address
from transduce.wings.corpora.fetch.table import CORPUS_NAME, Entry, Request

KIB, MAX_BYTES = 1024, 1 << 50  # the unit and the limit of the catalogue's sizes


def look_up(entry: Entry, request: Request) -> Request:
    """Add the newest version to a request. Raises UserError if the catalogue lists no version or can't be read."""
    source, target = request.languages
    url = entry.catalogue.format_map(request.placeholders() | {"version": "latest"})
    named = f"{entry.name}:{request.corpus}/VERSION:{source}-{target}"
    try:
        answer = read_address(url)
    except UserError as error:
        remedies = [error.hint.text] if error.hint else []
        remedies.append(f"If you know the version, write {named}, which needs no catalogue.")
        raise UserError(error.cause, " ".join(remedies)) from None
    try:
        for row in json.loads(answer)["corpora"]:
            first = str(row["source"])
            second = str(row["target"])
            if row["corpus"] == request.corpus and {first, second} == {source, target}:
                version = str(row["version"])
                size = int(row.get("size") or 0) * KIB
                if not CORPUS_NAME.fullmatch(version) or not 0 <= size < MAX_BYTES:
                    raise ValueError
                return request._replace(version=version, stored=(first, second), size=size)
    except (ValueError, OverflowError, LookupError, TypeError, RecursionError):
        raise UserError(
            f"The answer of {url} is not a catalogue.",
            f"If you know the version, write {named}.",
        ) from None
    raise UserError(
        f"{entry.name} has no {request.corpus} for {source}-{target} ({url}).",
        "Names are case-sensitive, as in zh_CN.",
    )
