"""A folder that CTranslate2 and SentencePiece alone translate with.

model.bin  config.json  shared_vocabulary.json      CTranslate2's
sentencepiece.model                                 or source.spm and target.spm
"""

import json
import logging
from collections.abc import Sequence
from pathlib import Path

import sentencepiece

from transduce.model_folder import Bundle
from transduce.system.errors import UserError
from transduce.system.machine import cores
from transduce.tokens.imported_vocabulary import SPACE, is_code, without_code
from transduce.wings.ct2.convert import Pieces, convert
from transduce.wings.ct2.engine import max_positions
from transduce.wings.export.parity import Output, Peer

JOINT, SOURCE, TARGET = "sentencepiece.model", "source.spm", "target.spm"


def usage(model: Bundle) -> str:
    """How it is used, as Markdown."""
    first, second = model.tokenizer.models
    joint = first == second
    source, target = _names(joint=joint)
    plain = "" if joint else f'.replace("{SPACE}", " ").strip()'
    known = [piece for piece in model.tokenizer.source_pieces(range(model.tokenizer.source_size)) if is_code(piece)]
    decode, most = model.config.decode, max_positions(model.config.model) - 1
    codes = f"The language to translate to, such as {known[0]}, is a piece of its own, the first.\n" if known else ""
    return f"""\
In this folder, with the packages ctranslate2 and sentencepiece:

```python
import sys, ctranslate2, sentencepiece

source = sentencepiece.SentencePieceProcessor(model_file="{source}")
target = sentencepiece.SentencePieceProcessor(model_file="{target}")
translator = ctranslate2.Translator(".")
pieces = source.encode([line.rstrip("\\n") for line in sys.stdin], out_type=str)
results = translator.translate_batch(
    pieces,
    beam_size={decode.beam_size},
    length_penalty={decode.length_penalty},
    max_input_length={most},  # all positions that the model knows; by default it cuts at 1,024, and translations at 256
    max_decoding_length=min({most}, max(map(len, pieces), default=0) + {decode.max_extra_tokens}),
    max_batch_size=2048,
    batch_type="tokens",
)
for result in results:
    print(target.decode(result.hypotheses[0]){plain})
```

The end of a source is added by CTranslate2.
{codes}"""


def write(model: Bundle, folder: Path, compute_type: str) -> None:
    """Write the converted model, with the real pieces as its vocabulary, and what cuts text into them.

    Raises UserError for a type that CTranslate2 doesn't know.
    """
    write_model(model, folder, compute_type)
    models = model.tokenizer.models
    for name, content in zip(_names(joint=models[0] == models[1]), models, strict=True):
        (folder / name).write_bytes(content)


def write_model(model: Bundle, folder: Path, compute_type: str) -> None:
    """The converted model alone; raises as `write` does."""
    tokenizer = model.tokenizer
    pieces = Pieces(
        tokenizer.source_pieces(range(tokenizer.source_size)), tokenizer.target_pieces(range(tokenizer.target_size))
    )
    try:
        import ctranslate2  # noqa: F401
    except ImportError:
        raise UserError("The package ctranslate2 is needed: pip install 'transduce[export]'.") from None
    try:
        convert(model.model, model.config.model, folder, compute_type, pieces=pieces)
    except ValueError as error:
        raise UserError(f"--compute-type {compute_type}: {error}.") from None


def open_peer(folder: Path) -> Peer:
    """CTranslate2 as others use it."""
    source, target = _names(joint=(folder / JOINT).exists())
    return peer(folder, folder / source, folder / target)


def peer(model: Path, *pieces: Path) -> Peer:
    """The same with the SentencePiece files of source and target."""
    import ctranslate2

    joint = pieces[0] == pieces[1]
    ctranslate2.set_log_level(logging.ERROR)  # what it computes in is told otherwise
    source, target = (sentencepiece.SentencePieceProcessor(model_file=str(path)) for path in pieces)
    [vocabulary] = [*model.glob("shared_vocabulary.json"), *model.glob("source_vocabulary.json")]
    known = {*json.loads(vocabulary.read_bytes())}
    translator = ctranslate2.Translator(str(model), inter_threads=cores(), intra_threads=1)

    def translate(texts: Sequence[str], longest: int) -> list[Output]:
        parted = [without_code(text, known) for text in texts]
        rows = source.encode([text for _, text in parted], out_type=str)
        results = translator.translate_batch(
            [code + row for (code, _), row in zip(parted, rows, strict=True)],
            beam_size=1,
            max_decoding_length=longest,
            min_decoding_length=0,
            max_input_length=0,
            max_batch_size=2048,
            batch_type="tokens",
        )
        found = [result.hypotheses[0] for result in results]
        texts = [target.decode(each) for each in found]
        return [Output(each, _plain(text, joint)) for each, text in zip(found, texts, strict=True)]

    return Peer(translate, str(translator.compute_type))


def _plain(text: str, joint: bool) -> str:
    """Pieces that one SentencePiece model alone knows stay as they are in what the other puts together."""
    return text if joint else text.replace(SPACE, " ").strip()


def _names(*, joint: bool) -> tuple[str, str]:
    """What cuts the source into pieces, and what puts the target together."""
    return (JOINT, JOINT) if joint else (SOURCE, TARGET)
