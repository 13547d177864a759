"""What the lab adds to the registry of commands, by entry points. `--help` imports this module."""

from transduce.config.commands import STUDY, Command

COMMANDS = {
    "compare": Command(
        "transduce_lab.comparing.command:compare",
        STUDY,
        "Train with different options, and compare them.",
    ),
    "parse": Command(
        "transduce_lab.parsing.command:parse", STUDY, "Parse sentences into constituency trees."
    ),
    "reproduce": Command(
        "transduce_lab.paper.reproduce_command:reproduce",
        STUDY,
        "Compute the paper's tables, or check a training run.",
        "[WHAT] [OPTIONS]\nExample: transduce reproduce table1",
    ),
}
OPTIONS = {
    "evaluate --against": "transduce_lab.comparing.evaluate_command:compare_translations",
    "evaluate --evalb": "transduce_lab.parsing.command:evaluate_trees",
    "evaluate --paper-bleu": "transduce_lab.paper.paper_bleu:paper_bleu",
    "data.tokenizer=word": "transduce_lab.words:learn",
    "vocabulary of words": "transduce_lab.words:WordVocabulary",
    "train --profile": "transduce_lab.operations:print_training_speed",
    "translate --profile": "transduce_lab.operations:print_search_speed",
}
