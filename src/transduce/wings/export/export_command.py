"""`transduce export`."""

import time
from pathlib import Path

from rich.filesize import decimal

from transduce.commands.recipes import Files, pairs_in
from transduce.decoding.engines.formats import Format
from transduce.system.errors import UserError


def export(
    model: Path,
    /,
    *,
    to: Format,
    out: Path,
    compute_type: str = "float32",
    valid: Files = (),
) -> None:
    """Write a model in the form that another program reads, if it translates as the model does there, too.

    Both translate sentences that the training held out. In float32 the same tokens have to come out; in other types
    BLEU must not fall. Otherwise nothing is written.

    Args:
        model: A model folder.
        to: ctranslate2 (with SentencePiece), argos (a package for Argos Translate and LibreTranslate), huggingface
            (Marian's form, for transformers) or onnx.
        out: The folder to write.
        compute_type: What ctranslate2 and argos compute in: float32, int8, int8_float32, int16, float16, bfloat16 …
        valid: Other sentences to compare on, with their translations: two text files or one bilingual file.
    """
    from transduce import model_folder  # torch: too slow for --help
    from transduce.wings.export.exporting import export as run

    began = time.monotonic()
    if out.exists():
        raise UserError(f"{out} exists already and is never overwritten; give another folder with --out.")
    data = model_folder.read_config(model).data
    proof = run(model, to, out, compute_type, pairs_in(valid, data.source, data.target))
    for line in proof.report():
        print(line)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    print(f"{out}: {decimal(size)}, in {time.monotonic() - began:.0f} s; its README.md says how it is used")
