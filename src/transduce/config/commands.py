"""The registries of commands, and of functions in the wings and the lab that implement options of core commands.

To add a command, write its function and add an entry to COMMANDS (see CONTRIBUTING.md).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from transduce.system.errors import Hint, NotInstalledError
from transduce.system.registry import load, plugins

TRAIN, TRANSLATE, PREPARE = "Train a model", "Translate", "Prepare corpora"
EXCHANGE, STUDY, SHOW = "Exchange models", "Study a model", "Show details"
GROUPS = (TRAIN, TRANSLATE, PREPARE, EXCHANGE, STUDY, SHOW)  # in the order of `transduce --help`


class Command(NamedTuple):
    """The function that runs a command, and the command's group and summary in `transduce --help`."""

    function: str  # "module:function"
    group: str
    summary: str
    usage: str = ""  # arguments, and an example on a second line; "": as cyclopts writes it


_WINGS = "transduce.wings"
COMMANDS = {
    "demo": Command(
        f"{_WINGS}.demo.command:demo", TRAIN, "Train a small model in minutes and write a report."
    ),
    "train": Command(
        "transduce.commands.train:train",
        TRAIN,
        "Train a model, or resume an interrupted training run.",
        "[RECIPE] --train FILES --out MODEL [OPTIONS]\n"
        "Example: transduce train --train train.en train.de --from en --to de --out MODEL",
    ),
    "distill": Command(
        f"{_WINGS}.synthetic.command:distill", TRAIN, "Translate a corpus to train a smaller model."
    ),
    "learn": Command(
        f"{_WINGS}.learning.command:learn",
        TRAIN,
        "Improve a model by corrections, if they do.",
        "MODEL --memory DATABASE [OPTIONS]\nExample: transduce learn MODEL --memory memory.tmx.sqlite",
    ),
    "versions": Command(
        f"{_WINGS}.learning.command:versions",
        SHOW,
        "List what a model has learnt from corrections.",
    ),
    "rollback": Command(
        f"{_WINGS}.learning.command:rollback",
        TRAIN,
        "Go back to an earlier version of a model.",
        "MODEL [VERSION]\nExample: transduce rollback MODEL",
    ),
    "average": Command(
        "transduce.commands.average:average",
        TRAIN,
        "Average checkpoints of a training run, or two models.",
        "MODEL [OTHER] --out FOLDER [OPTIONS]\n"
        "Example: transduce average OLD TUNED --weight 0.7 --out MODEL",
    ),
    "translate": Command(
        "transduce.commands.translate:translate",
        TRANSLATE,
        "Translate a document, a file or standard input.",
        "MODEL [TEXTS...] [OPTIONS]\n"
        "Example: transduce translate MODEL --input text.en --output text.de",
    ),
    "serve": Command(
        f"{_WINGS}.serving.command:serve",
        TRANSLATE,
        "Serve models via a web page and LibreTranslate's API.",
        "[MODELS...] [OPTIONS]\nExample: transduce serve en-de=MODEL --port 5000",
    ),
    "mcp": Command(
        f"{_WINGS}.agents.command:mcp",
        TRANSLATE,
        "Serve models as tools for agents (MCP).",
        "MODELS...\nExample: transduce mcp MODEL",
    ),
    "memory": Command(
        f"{_WINGS}.memories.command:memory",
        TRANSLATE,
        "Review and export translation memories.",
        "ACTION DATABASE [OPTIONS]\nExample: transduce memory review memory.tmx.sqlite",
    ),
    "score": Command(
        "transduce.commands.score:score",
        TRANSLATE,
        "Print the log-probability of each translation.",
    ),
    "evaluate": Command(
        "transduce.commands.evaluate:evaluate",
        TRANSLATE,
        "Score translations: BLEU, chrF and TER.",
        "[FILES...] [OPTIONS]\nExample: transduce evaluate MODEL test.en test.de",
    ),
    "fetch": Command(
        f"{_WINGS}.corpora.fetch.command:fetch",
        PREPARE,
        "Download a known corpus as aligned text files.",
        "[NAME] [OPTIONS]\nExample: transduce fetch multi30k --out multi30k",
    ),
    "doctor": Command(
        f"{_WINGS}.corpora.doctor.command:doctor",
        PREPARE,
        "Check a corpus, a model or this machine.",
        "[WHAT...] [OPTIONS]\nExample: transduce doctor train.en train.de --from en --to de",
    ),
    "prepare": Command(
        "transduce.commands.prepare:prepare",
        PREPARE,
        "Clean and encode a corpus to train several models.",
        "[RECIPE] --train FILES --out DATA [OPTIONS]\n"
        "Example: transduce prepare --train text.en text.de --from en --to de --out DATA",
    ),
    "join": Command(
        f"{_WINGS}.cluster.command:join", PREPARE, "Merge the shards of a corpus or a translation."
    ),
    "export": Command(
        f"{_WINGS}.export.command:export",
        EXCHANGE,
        "Convert a model for another program.",
        "MODEL --to FORMAT --out FOLDER [OPTIONS]\n"
        "Example: transduce export MODEL --to ctranslate2 --out FOLDER",
    ),
    "import": Command(
        f"{_WINGS}.pretrained.command:import_model",
        EXCHANGE,
        "Import an OPUS-MT, NLLB, M2M-100 or mBART model.",
        "FOLDER --out MODEL [OPTIONS]\n"
        "Example: transduce import opus-mt-en-de --from en --to de --out MODEL",
    ),
    "attention": Command(
        f"{_WINGS}.inspection.command:attention", STUDY, "Show how a model translates a sentence."
    ),
    "info": Command("transduce.commands.info:info", SHOW, "Show a model's details."),
    "options": Command(
        "transduce.commands.options:options", SHOW, "List every option with its default."
    ),
}
OPTIONS = {  # an option of a command or recipe -> the function that implements it
    "data.translation_memory": f"{_WINGS}.memories.copying:pairs_with_matches",
    "data.terms": f"{_WINGS}.terms.annotating:pairs_with_terms",
    "data.rules": f"{_WINGS}.rules.more_rules:MoreRules",
    "pairs of Python objects": f"{_WINGS}.tables.records:read_records",
    "glossary": f"{_WINGS}.terms.glossary:open_glossary",
    "glossary search": f"{_WINGS}.terms.searching:TermSearch",
    "similar texts": f"{_WINGS}.memories.nearest:helped_by",
    "info": f"{_WINGS}.ct2.opening:facts",
    "completion": f"{_WINGS}.completion.typed:typed_texts",
    "prefix search": f"{_WINGS}.completion.prefixes:prefix_filter",
    "suffix search": f"{_WINGS}.completion.infilling:infilled",
    "add a language with --remember": f"{_WINGS}.synthetic.remembering:remembered_directions",
    "extend an imported vocabulary": f"{_WINGS}.pretrained.extending:extended",
    "faults of a corpus": f"{_WINGS}.rules.corpus_faults:faults_of_corpus",
    "prepare --shard": f"{_WINGS}.cluster.command:prepare_in_shards",
    "train.low_rank": f"{_WINGS}.pretrained.low_rank:use_low_rank",
    "train --remember": f"{_WINGS}.synthetic.remembering:with_remembered",
    "train --monolingual": f"{_WINGS}.synthetic.back_translation:with_back_translations",
    "translate --memory": f"{_WINGS}.memories.opening:open_memory",
    "translate --glossary": f"{_WINGS}.terms.glossary:read_glossary",
    "translate --prefixes": f"{_WINGS}.completion.lines_command:guided_lines",
    "translate --shard": f"{_WINGS}.cluster.command:translate_in_shards",
    "translate --input": f"{_WINGS}.documents.lines_command:check_lines",
    "translate --input DOCUMENT": f"{_WINGS}.documents.translate_command:run",
}


def commands() -> Mapping[str, Command]:
    """All commands; the commands of the core and the wings come first."""
    return {**COMMANDS, **plugins("commands")}


def option(name: str) -> Any:
    """The function that implements an option. Raises UserError if its wing, or the lab, is not installed."""
    registered = {**OPTIONS, **plugins("options")}
    if name not in registered:
        raise NotInstalledError(f"`{name}` needs the lab.", Hint.install("lab"))
    return load(registered[name])
