"""What the lab adds to the registries of model families, engines and file formats, by entry points."""

from transduce.config.families import Family
from transduce.text.formats import Format

FAMILIES = {
    "recurrent": Family("transduce_lab.families.recurrent:Recurrent", ("attention",)),
    "convolutional": Family("transduce_lab.families.convolutional:Convolutional", ("positions",)),
    "bytenet": Family("transduce_lab.families.bytenet:ByteNet"),
    "deep_att": Family("transduce_lab.families.deep_att:DeepAtt"),
    "neural_gpu": Family("transduce_lab.families.neural_gpu:NeuralGPU"),
}
ATTENTIONS = {"additive": "transduce_lab.families.additive:additive_attention"}
PARTS = {
    "self-attention": "transduce_lab.families.restricted:make_restricted",
    "feed-forward": "transduce_lab.families.experts:make_experts",
    "heads ahead": "transduce_lab.families.blockwise:make_heads",
}
MODEL_OPTIONS = {
    "blockwise": "transduce_lab.options:BlockwiseOptions",
    "window": "transduce_lab.options:WindowOptions",
    "experts": "transduce_lab.options:ExpertOptions",
    "recurrent": "transduce_lab.options:RecurrentOptions",
    "kernel": "transduce_lab.options:KernelOptions",
    "convolutions": "transduce_lab.options:ConvolutionOptions",
}
# Greedy search for model.block_size > 1.
ENGINES = {"blockwise": "transduce_lab.families.blockwise:open_engine"}
_TREES = Format("transduce_lab.parsing.trees:read_tree_pairs", symbols=True)
# The Penn Treebank, GUM, CRAFT, OntoNotes.
FILE_FORMATS = dict.fromkeys((".mrg", ".ptb", ".tree", ".parse"), _TREES)
