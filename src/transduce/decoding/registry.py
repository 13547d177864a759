"""What decoding loads by name: engines, plans of texts, and what enforces a glossary. An entry is "module:function".

CTranslate2 is a wing because it is an optional package that knows one family of models, and because the system is
complete without it: its translations are accepted only if they are as good as those of our own search.
"""

from typing import TYPE_CHECKING, Literal

# The engines that users can name. Each entry: ModelToOpen -> Engine | Refusal.
ENGINES = {
    "torch": "transduce.decoding.torch_engine:open_engine",  # our own search, for every model
    "int8": "transduce.wings.int8:open_engine",  # the same with matrix products in 8 bits
    "ctranslate2": "transduce.wings.ct2.engine:open_engine",
}
AUTOMATIC = ("ctranslate2", "torch")  # the engines that "auto" tries; the first one that is not refused is used
EXPORT_ENGINES = {"encoder.onnx": "transduce.wings.export.onnx_engine:open_engine"}  # by a file of the export
if TYPE_CHECKING:
    EngineName = str
else:
    EngineName = Literal["auto", *ENGINES]  # the command line checks it, and shows it in --help

PLAN_TEXTS = "transduce.wings.inline.plan:Plan"  # takes texts apart into sentences
EXPORT_FORMATS = "transduce.wings.formats:formats"  # folder, config -> the formats it can be exported to
READ_GLOSSARY = "transduce.wings.terms.glossary:read_glossary"  # file -> list[Term]
ENFORCE_GLOSSARY = "transduce.wings.terms.enforce:enforce"  # see there
