"""`transduce export`."""

import time
from pathlib import Path

from rich.filesize import decimal

from transduce.commands.recipes import Files, pairs_in
from transduce.system.errors import UserError
from transduce.wings.formats import Format


def export(
    model: Path,
    /,
    *,
    to: Format,
    out: Path,
    compute_type: str = "float32",
    valid: Files = (),
) -> None:
    """Write a model for another program, after comparing the translations of both.

    Both translate the held-out text of the training. In float32 the tokens must be identical; in other types BLEU
    must not fall. Otherwise nothing is written.

    Args:
        model: A model folder.
        to: ctranslate2 (with SentencePiece), argos (a package for Argos Translate and LibreTranslate), huggingface
            (as a Marian model, for transformers) or onnx.
        out: The folder to write.
        compute_type: Number type of ctranslate2 and argos: float32, int8, int8_float32, int16, float16 or bfloat16.
        valid: Sentences to compare on, instead of the held-out text: two text files or one bilingual file.
    """
    from transduce import model_folder  # torch: too slow for --help
    from transduce.wings.export.exporting import export as run

    began = time.monotonic()
    if out.exists():
        raise UserError(f"{out} exists already and is never overwritten; name another folder with --out.")
    data = model_folder.read_config(model).data
    parity = run(model, to, out, compute_type, pairs_in(valid, data.source, data.target))
    for line in parity.report():
        print(line)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    print(f"{out}: {decimal(size)}, in {time.monotonic() - began:.0f} s; its README.md says how to use it")
