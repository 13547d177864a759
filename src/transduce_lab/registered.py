"""What the lab adds to the registries of model families, engines and file formats, by entry points."""

from transduce.config.families import Family, SourceKind
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
    "front end": "transduce_lab.modalities.front_end:make_front_end",
}
MODEL_OPTIONS = {
    "blockwise": "transduce_lab.options:BlockwiseOptions",
    "window": "transduce_lab.options:WindowOptions",
    "experts": "transduce_lab.options:ExpertOptions",
    "recurrent": "transduce_lab.options:RecurrentOptions",
    "kernel": "transduce_lab.options:KernelOptions",
    "convolutions": "transduce_lab.options:ConvolutionOptions",
    "front end": "transduce_lab.options:FrontEndOptions",
}
# Sources that are not text: pictures, and recorded speech.
SOURCE_KINDS = {
    "image": SourceKind("transduce_lab.modalities.pictures:read_picture", 192),
    "audio": SourceKind("transduce_lab.modalities.sounds:read_sound", 40),
}
# Greedy search for model.block_size > 1.
ENGINES = {"blockwise": "transduce_lab.families.blockwise:open_engine"}
_TREES = Format("transduce_lab.parsing.trees:read_tree_pairs", symbols=True)
# The Penn Treebank, GUM, CRAFT, OntoNotes.
FILE_FORMATS = dict.fromkeys((".mrg", ".ptb", ".tree", ".parse"), _TREES)
