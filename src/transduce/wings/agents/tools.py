"""The tools that `transduce mcp` offers to an agent."""

import functools
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from transduce.decoding.directions import matching
from transduce.decoding.translator import Translator
from transduce.decoding.types import as_terms
from transduce.system.errors import UserError
from transduce.text.languages import Direction
from transduce.wings.terms.glossary import Glossary

INSTRUCTIONS = (
    "Translates with models that run on this machine; `languages` lists the directions. Check a translation that has "
    "flags or a low confidence. For terms that must be translated in one way, use `glossary`."
)


@dataclass(frozen=True)
class Translated:
    """A translation, as an agent sees it."""

    text: str
    confidence: float | None  # probability that the translation is good
    flags: tuple[str, ...]
    alternatives: list[str]


@dataclass(frozen=True)
class Rated:
    """The score of a translation, as an agent sees it."""

    log_prob: float
    confidence: float | None
    detached: bool


class Tools:
    """The tools, with the glossaries of the session. Each call raises UserError for what it can't do."""

    def __init__(self, translators: Sequence[Translator]) -> None:
        self._translators = translators
        self._directions = [each for one in translators for each in one.directions]
        self._terms: dict[Direction, dict[str, str]] = {}

    def translate(
        self,
        texts: list[str],
        source: str = "",
        target: str = "",
        glossary: dict[str, str] | None = None,
        alternatives: int = 0,
    ) -> list[Translated]:
        """Translate texts of any length; line breaks, tags and placeholders are kept.

        `source` and `target` are language codes; leave out what is clear. `glossary` has terms for this call, as
        {"source term": "translation"}, besides those of the session. `alternatives` is the number of other translations
        wanted for each text that is one sentence. `flags` name reasons to check a translation, such as `loop`, `cut`,
        `detached` (unrelated to its source), `untranslated`, `numbers` or `term` (a term of the glossary is missing).
        `confidence` is the probability that the translation is better than usual, or null if it is unknown.
        """
        translator = self._toward(source, target)
        terms = self._terms.get(translator.require_direction(), {}) | (glossary or {})
        found = translator.translate(texts, n_best=alternatives + 1, glossary=terms, sentences=True)
        return [
            Translated(
                each.text, each.confidence, each.flags, [other.text for other in each.alternatives]
            )
            for each in found
        ]

    def score(
        self, sources: list[str], targets: list[str], source: str = "", target: str = ""
    ) -> list[Rated]:
        """Rate translations from any origin, each of one sentence, by the probability that the model gives to them.

        `log_prob` is in nats, for the whole sentence. `detached` translations are hardly related to their source.
        """
        found = self._toward(source, target).score(sources, targets)
        return [Rated(each.log_prob, each.confidence, each.detached) for each in found]

    def glossary(
        self, terms: dict[str, str] | None = None, source: str = "", target: str = ""
    ) -> dict[str, str]:
        """Add terms to the glossary of this session, which `translate` uses, and return all of its terms.

        `terms` is {"source term": "translation"}; the translation "" removes a term. Each direction has its own terms.
        """
        direction = self._toward(source, target).require_direction()
        merged = self._terms.get(direction, {}) | (terms or {})
        kept = {term: translation for term, translation in merged.items() if translation}
        Glossary(as_terms(kept))  # raises UserError for an unusable term
        self._terms[direction] = kept
        return kept

    def languages(self) -> list[dict[str, str]]:
        """List the directions in which this server translates."""
        return [each._asdict() for each in dict.fromkeys(self._directions)]

    def _toward(self, source: str, target: str) -> Translator:
        """The translator for a direction, which may lead through a pivot."""
        if source and target:
            for each in self._translators:
                with suppress(UserError):
                    return each.toward(source, target)
        found = {*matching(self._directions, source, target)}
        if len(found) > 1:
            raise UserError(
                f"There are several such directions: {', '.join(sorted(map(str, found)))}.",
                "Name the source and the target.",
            )
        [direction] = found
        return next(
            each.toward(*direction) for each in self._translators if direction in each.directions
        )


def server(translators: Sequence[Translator]) -> MCPServer[Any]:
    """An MCP server for one session, whose calls are made one after the other."""
    app: MCPServer[Any] = MCPServer("transduce", instructions=INSTRUCTIONS, log_level="WARNING")
    tools = Tools(translators)
    lock = Lock()

    def add(tool: Callable[..., Any]) -> None:
        @functools.wraps(tool)
        def call(**arguments: Any) -> Any:
            try:
                with lock:
                    return tool(**arguments)
            except UserError as error:
                raise ToolError(str(error)) from None

        app.add_tool(call)

    for tool in (tools.translate, tools.score, tools.glossary, tools.languages):
        add(tool)
    return app
