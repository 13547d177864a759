"""`transduce export`."""

import time
from pathlib import Path

from rich.filesize import decimal

from transduce.commands.recipes import Files, pairs_in
from transduce.wings.formats import Format


def export(
    model: Path,
    /,
    *,
    to: Format,
    out: Path,
    compute_type: str = "float32",
    valid: Files = (),
    direction: str = "",
    onnxruntime: Path | None = None,
) -> None:
    """Convert a model to another program's format, and compare the translations of the model and the export.

    In float32, at most 1 % of the translations may differ, and only where two tokens are equally probable. With other
    number types, a loss of BLEU must be at most 0.3 and not significant. If the comparison fails, nothing is written.

    Args:
        model: A model folder.
        to: The format: ctranslate2 (with SentencePiece), argos (a package for Argos Translate and LibreTranslate),
            huggingface (a Marian model for transformers), onnx, marian or web (a page that translates in the browser).
        out: The folder to write.
        onnxruntime: For web, a folder with the npm package onnxruntime-web; by default node_modules.
        compute_type: Number type for ctranslate2 and argos: float32, int8, int8_float32, int16, float16 or bfloat16.
        direction: For argos, the direction of a multilingual model, such as en-de; a package has one direction.
        valid: Text for the comparison: two text files or one bilingual file; by default text held out from training.
    """
    from transduce import model_folder  # imports torch: too slow for --help
    from transduce.wings.export.exporting import FORMS, in_direction, report
    from transduce.wings.export.exporting import export as run

    began = time.monotonic()
    data = in_direction(model_folder.read_config(model), direction).data
    parity = run(model, to, out, compute_type, pairs_in(valid, data), direction, onnxruntime)
    for line in report(parity, FORMS[to].title):
        print(line)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    print(
        f"{out}: {decimal(size)}, in {time.monotonic() - began:.0f} s; its README.md says how to use it"
    )
