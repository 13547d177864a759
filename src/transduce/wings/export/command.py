"""`transduce export` and `transduce import`."""

import time
from pathlib import Path

from rich.filesize import decimal

from transduce.commands.recipes import Files, FromCode, ToCode, pairs_in
from transduce.config.schema import DataConfig
from transduce.system.errors import UserError
from transduce.wings.formats import Format

NOT_COMPARED = "Not compared with the original, since transformers is missing: pip install 'transduce[export]'."


def export(
    model: Path, /, *, to: Format, out: Path, compute_type: str = "float32", valid: Files = ()
) -> None:
    """Convert a model to another program's format, and compare the translations of the model and the export.

    In float32, at most 1 % of the translations may differ, and only where two tokens are equally probable. With other
    number types, a loss of BLEU must be at most 0.3 and not significant. If the comparison fails, nothing is written.

    Args:
        model: A model folder.
        to: The format: ctranslate2 (with SentencePiece), argos (a package for Argos Translate and LibreTranslate),
            huggingface (a Marian model for transformers) or onnx.
        out: The folder to write.
        compute_type: Number type for ctranslate2 and argos: float32, int8, int8_float32, int16, float16 or bfloat16.
        valid: Text for the comparison: two text files or one bilingual file; by default text held out from training.
    """
    from transduce import model_folder  # imports torch: too slow for --help
    from transduce.wings.export.exporting import export as run

    began = time.monotonic()
    data = model_folder.read_config(model).data
    parity = run(model, to, out, compute_type, pairs_in(valid, data))
    for line in parity.report():
        print(line)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    print(
        f"{out}: {decimal(size)}, in {time.monotonic() - began:.0f} s; its README.md says how to use it"
    )


def import_model(
    folder: Path, /, *, out: Path, source: FromCode = "", target: ToCode = "", valid: Files = ()
) -> None:
    """Convert a Marian or OPUS-MT model in Hugging Face's format to a model folder.

    The new model can translate, be fine-tuned (`transduce train --init`) and be exported. If transformers is installed,
    both models translate the same sentences, as a check. If the translations differ too much, nothing is written.

    Args:
        folder: The folder with config.json, model.safetensors, source.spm, target.spm and vocab.json.
        out: The model folder to write.
        source: Language code of the source; by default the code in FOLDER.
        target: Language code of the target; by default the code in FOLDER.
        valid: Text to translate for the comparison: two text files or one bilingual file. By default short German
            sentences if the model translates from German, otherwise short English sentences.
    """
    # Imports torch: too slow for --help.
    from transduce.wings.export.importing import (
        import_model as run,
    )

    began = time.monotonic()
    if not folder.is_dir():
        raise UserError(
            f"{folder} is not a folder.",
            "Name the folder that holds config.json and model.safetensors.",
        )
    named = DataConfig(source=source or "src", target=target or "tgt")
    imported = run(folder, out, source, target, pairs_in(valid, named))
    for line in imported.parity.report() if imported.parity else [NOT_COMPARED]:
        print(line)
    print(f"{out}: {imported.parameters:,} parameters, in {time.monotonic() - began:.0f} s")
