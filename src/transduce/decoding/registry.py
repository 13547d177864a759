"""What decoding loads by name: engines, plans of texts, and what enforces a glossary. An entry is "module:function".

Users can name the engines torch (our own search, for every model), int8 (the same with products in 8 bits) and
ctranslate2. CTranslate2 is a wing because it is an optional package that knows one family of models, and because the
system is complete without it: its translations are accepted only if they are as good as those of our own search.
"""

from typing import Literal

EngineName = Literal["auto", "torch", "int8", "ctranslate2"]

# Each entry: ModelToOpen -> Engine | Refusal.
ENGINES = {
    "torch": "transduce.decoding.torch_engine:open_engine",
    "int8": "transduce.wings.int8:open_engine",
    "ctranslate2": "transduce.wings.ct2.engine:open_engine",
    "onnx": "transduce.wings.export.onnx_engine:open_engine",  # of an export, which no user names
}
AUTOMATIC = ("ctranslate2", "torch")  # the engines that "auto" tries, the first that is not refused counts
EXPORTS = {"encoder.onnx": "onnx"}  # a file by which an export is recognised, and the engine that reads the export

PLAN_TEXTS = "transduce.wings.inline.plan:Plan"  # takes texts apart into sentences
EXPORT_FORMATS = "transduce.wings.formats:formats"  # folder, config -> the formats it can be exported to
READ_GLOSSARY = "transduce.wings.terms.glossary:read_glossary"  # file -> list[Term]
ENFORCE_GLOSSARY = "transduce.wings.terms.enforce:enforce"  # see there
