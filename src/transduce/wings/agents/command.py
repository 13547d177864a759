"""`transduce mcp`."""

from pathlib import Path

from transduce.config.families import TEXT_SOURCES
from transduce.decoding.registry import EngineName
from transduce.system.errors import UserError, needing


def mcp(*models: Path, engine: EngineName = "auto") -> None:
    """Translate for an agent: serve models as tools of the Model Context Protocol, on standard input and output.

    The tools are translate, score, glossary and languages. The client starts the command; docs/guides/mcp.md shows its
    configuration.

    Args:
        models: Model folders. The first model of a language pair translates it.
        engine: The engine; `transduce translate --help` describes the choices.
    """
    with needing("mcp", "`transduce mcp`"):
        from transduce.wings.agents.tools import server
    from transduce.decoding.loading import load  # imports numpy: too slow for --help

    if not models:
        raise UserError(
            "There is no model to translate with.", "Name a model folder: transduce mcp MODEL."
        )
    translators = [load(model, engine=engine) for model in models]
    for model, translator in zip(models, translators, strict=True):
        if translator.tokenizer.source_kind != TEXT_SOURCES:
            raise UserError(
                f"{model}: the sources of the model are files, and agents may not name files of this machine.",
                "Name a model of texts.",
            )
    server(translators).run("stdio")
