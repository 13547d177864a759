"""`transduce import`."""

import time
from pathlib import Path

from transduce.commands.recipes import Files, FromCode, ToCode, pairs_in
from transduce.system.errors import UserError

NOT_COMPARED = "Not compared with the original, since transformers is missing: pip install 'transduce[export]'."


def import_model(
    folder: Path,
    /,
    *,
    out: Path,
    source: FromCode = "",
    target: ToCode = "",
    valid: Files = (),
) -> None:
    """Turn a Marian or OPUS-MT model in Hugging Face's format into a model folder.

    The model can translate, be trained further (`transduce train --init`) and be exported. If transformers is
    installed, both models translate the same sentences, and the import fails unless the tokens are identical.

    Args:
        folder: The folder with config.json, model.safetensors, source.spm, target.spm and vocab.json.
        out: The model folder to write.
        source: Language code of the source; by default the code that the folder names.
        target: Language code of the target; by default the code that the folder names.
        valid: Sentences to compare on: two text files or one bilingual file. By default, short English sentences, or
            German ones for a model that translates from German.
    """
    from transduce.wings.export.importing import import_model as run  # torch: too slow for --help

    began = time.monotonic()
    if out.exists():
        raise UserError(f"{out} exists already and is never overwritten; name another folder with --out.")
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder.")
    imported = run(folder, out, source, target, pairs_in(valid, source or "src", target or "tgt"))
    for line in imported.parity.report() if imported.parity else [NOT_COMPARED]:
        print(line)
    print(f"{out}: {imported.parameters:,} parameters, in {time.monotonic() - began:.0f} s")
