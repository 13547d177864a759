"""Names, as "module:name", of code that is imported only when it is used.

The engine CTranslate2 is in `wings/` because it needs an optional package and supports only one model family.
"""

from typing import TYPE_CHECKING, Literal

# The engines that users can name. Each function takes a ModelToOpen and returns an Engine or a Refusal.
ENGINES = {
    "torch": "transduce.decoding.torch_engine:open_engine",  # our own search, for every model
    "int8": "transduce.wings.int8:open_engine",  # our own search with 8-bit matrix products
    "ctranslate2": "transduce.wings.ct2.engine:open_engine",
    "blockwise": "transduce.wings.families.blockwise:open_engine",  # greedy search for model.block_size > 1
}
ENGINE_CHOICE = "transduce.wings.ct2.engine:choice"  # folder, config -> text about the engine that "auto" chooses
AUTOMATIC = ("ctranslate2", "torch")  # "auto" uses the first of these engines that returns no Refusal
EXPORT_ENGINES = {"encoder.onnx": "transduce.wings.export.onnx_engine:open_engine"}  # by a file of the export
if TYPE_CHECKING:
    EngineName = str
else:
    EngineName = Literal["auto", *ENGINES]  # the command line checks the name, and --help lists the choices

PLAN_TEXTS = "transduce.wings.inline.plan:Plan"  # splits texts into sentences
EXPORT_FORMATS = "transduce.wings.formats:formats"  # folder, config -> formats to which the model can be exported
READ_GLOSSARY = "transduce.wings.terms.glossary:read_glossary"  # file -> list[Term]
ENFORCE_GLOSSARY = "transduce.wings.terms.enforce:enforce"  # searches again where terms are missing
GLOSSARY = "transduce.wings.terms.glossary:Glossary"  # finds the terms in a text
