"""What OPUS has: its catalogue tells the newest version of a corpus, and in which order it names two languages."""

import json
from typing import Any

from transduce.system.errors import UserError
from transduce.wings.corpora.fetch.download import read_address
from transduce.wings.corpora.fetch.table import Entry, Found, Request, places

KILO = 1024  # sizes in the catalogue are in KiB


def look_up(entry: Entry, request: Request) -> Found:
    """The newest version of a corpus for two languages; raises UserError if there is none, or no answer."""
    source, target = request.languages
    url = entry.catalogue.format_map(places(request) | {"version": "latest"})
    named = f"{entry.name}:{request.corpus}/VERSION:{source}-{target}"
    try:
        answer = read_address(url)
    except UserError as error:
        raise UserError(f"{error} If you know the version, {named} does without this catalogue.") from None
    try:
        found = [_found(each) for each in json.loads(answer)["corpora"] if each["corpus"] == request.corpus]
    except (ValueError, LookupError, TypeError):
        raise UserError(f"{url} doesn't answer as a catalogue does; if you know the version, write {named}.") from None
    for each in found:
        if {each.first, each.second} == {source, target}:
            return each
    raise UserError(
        f"{entry.name} has no {request.corpus} for {source}-{target}; upper and lower case matter, as in 'Books' "
        f"and 'zh_CN' ({url})."
    )


def _found(each: dict[str, Any]) -> Found:
    return Found(str(each["version"]), str(each["source"]), str(each["target"]), int(each.get("size") or 0) * KILO)
