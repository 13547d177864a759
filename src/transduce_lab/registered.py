"""What the lab adds to the registries of transduce, by the entry points in pyproject.toml."""

from transduce.config.commands import STUDY, Command
from transduce.config.families import Family
from transduce.text.formats import Format

COMMANDS = {
    "compare": Command(
        "transduce_lab.comparing.command:compare", STUDY, "Train with different options, and compare them."
    ),
    "parse": Command("transduce_lab.parsing.command:parse", STUDY, "Parse sentences into constituency trees."),
    "reproduce": Command(
        "transduce_lab.paper.reproduce_command:reproduce", STUDY, "Compute the paper's tables, or check a training run."
    ),
}
OPTIONS = {
    "evaluate --against": "transduce_lab.comparing.evaluate_command:compare_translations",
    "evaluate --evalb": "transduce_lab.parsing.command:evaluate_trees",
    "evaluate --paper-bleu": "transduce_lab.paper.paper_bleu:paper_bleu",
    "train --profile": "transduce_lab.operations:print_training_speed",
    "translate --profile": "transduce_lab.operations:print_search_speed",
}
FAMILIES = {
    "recurrent": Family("transduce_lab.families.recurrent:Recurrent", ("attention",)),
    "convolutional": Family("transduce_lab.families.convolutional:Convolutional", ("positions",)),
    "bytenet": Family("transduce_lab.families.bytenet:ByteNet"),
}
ATTENTIONS = {"additive": "transduce_lab.families.additive:make_additive"}
PARTS = {
    "feed-forward": "transduce_lab.families.experts:make_experts",
    "heads ahead": "transduce_lab.families.blockwise:make_heads",
}
MODEL_OPTIONS = {
    "blockwise": "transduce_lab.options:BlockwiseOptions",
    "experts": "transduce_lab.options:ExpertOptions",
    "recurrent": "transduce_lab.options:RecurrentOptions",
    "kernel": "transduce_lab.options:KernelOptions",
    "convolutions": "transduce_lab.options:ConvolutionOptions",
}
ENGINES = {"blockwise": "transduce_lab.families.blockwise:open_engine"}  # greedy search for model.block_size > 1
_TREES = Format("transduce_lab.parsing.trees:read_tree_pairs", symbols=True)
FILE_FORMATS = dict.fromkeys((".mrg", ".ptb", ".tree", ".parse"), _TREES)  # the Penn Treebank, GUM, CRAFT, OntoNotes
