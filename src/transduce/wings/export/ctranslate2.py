"""Exports a folder for CTranslate2 and SentencePiece.

The folder contains model.bin, config.json, the vocabulary and one or two SentencePiece models.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

import sentencepiece

from transduce.model_folder import Bundle
from transduce.system.errors import UserError, needing
from transduce.system.machine import cores
from transduce.text.pairs import Pair
from transduce.tokens.vocabulary import SPACE
from transduce.wings.ct2.convert import Pieces, convert
from transduce.wings.export.parity import Output, Runner
from transduce.wings.export.readme import about_tags, fill
from transduce.wings.formats import max_positions

JOINT_MODEL, SOURCE_MODEL, TARGET_MODEL = "sentencepiece.model", "source.spm", "target.spm"


def usage(model: Bundle) -> str:
    """The Markdown text that explains how to use the folder."""
    tokenizer = model.tokenizer
    decode = model.config.decode
    joint = len({*tokenizer.models}) == 1
    source, target = _names(joint=joint)
    return fill(
        "ctranslate2",
        source=source,
        target=target,
        beam_size=decode.beam_size,
        length_penalty=decode.length_penalty,
        max_extra_tokens=decode.max_extra_tokens,
        most=max_positions(model.config.model) - 1,
        plain="" if joint else f'.replace("{SPACE}", " ").strip()',
        **_about_tags(model),
    )


def _about_tags(model: Bundle) -> dict[str, str]:
    """What the text says about the tags of a multilingual model, which may also begin each translation."""
    tokenizer = model.tokenizer
    tags = about_tags(tokenizer.source.tags, '["{0}"] + ')
    if not tokenizer.has_own_tags:
        return {**tags, "prefix": "", "begin": ""}
    data = model.config.data
    target, source = tokenizer.source.pieces(tokenizer.into(data.target, data.source).tags)
    prefix = f'    target_prefix=[["{target}"]] * len(pieces),  # the target language\n'
    said = tags["tags"].replace("target language", "own language")
    return {"tag": f'["{source}"] + ', "tags": said, "prefix": prefix, "begin": "[1:]"}


def write(model: Bundle, folder: Path, compute_type: str) -> None:
    """Write the folder's files; raises UserError if ctranslate2 is missing or doesn't support `compute_type`."""
    tokenizer = model.tokenizer
    pieces = Pieces(
        tokenizer.source.all_pieces(),
        tokenizer.target.all_pieces(),
    )
    with needing("export", "This export"):
        import ctranslate2  # noqa: F401
    try:
        convert(model.model, model.config.model, folder, compute_type, pieces=pieces)
    except ValueError as error:
        raise UserError(f"CTranslate2 can't compute in {compute_type}: {error}.") from None
    for name, content in zip(
        _names(joint=len({*tokenizer.models}) == 1), tokenizer.models, strict=True
    ):
        (folder / name).write_bytes(content)


def open_runner(folder: Path) -> Runner:
    """Open an exported folder for greedy translation by CTranslate2 and SentencePiece."""
    source, target = _names(joint=(folder / JOINT_MODEL).exists())
    return runner(folder, folder / source, folder / target)


def runner(model: Path, *pieces: Path, adds_tags: bool = False) -> Runner:
    """Open a converted model for greedy translation; `pieces` are the SentencePiece models of source and target.

    `adds_tags`: CTranslate2 itself begins each source with its tag.
    """
    import ctranslate2

    joint = pieces[0] == pieces[1]
    ctranslate2.set_log_level(logging.ERROR)  # otherwise it prints the compute type
    source, target = (sentencepiece.SentencePieceProcessor(model_file=str(path)) for path in pieces)
    translator = ctranslate2.Translator(str(model), inter_threads=cores(), intra_threads=1)

    def translate(
        pairs: Sequence[Pair], tags: Sequence[Sequence[str]], max_tokens: int
    ) -> list[Output]:
        rows = source.encode([pair.source for pair in pairs], out_type=str)
        if not adds_tags:
            rows = [[*its[-1:], *row] for its, row in zip(tags, rows, strict=True)]
        # Of two tags, the first is for the decoder.
        begin = int(any(len(its) > 1 for its in tags))
        results = translator.translate_batch(
            rows,
            target_prefix=[its[:1] for its in tags] if begin else None,
            beam_size=1,
            max_decoding_length=max_tokens + begin,
            min_decoding_length=0,
            max_input_length=0,
            max_batch_size=2048,
            batch_type="tokens",
        )
        translations = [result.hypotheses[0][begin:] for result in results]
        silent = {piece for its in tags for piece in its} if begin else set[str]()
        decoded = (
            target.decode([piece for piece in each if piece not in silent]) for each in translations
        )
        plain = decoded if joint else (text.replace(SPACE, " ").strip() for text in decoded)
        return [Output(*each) for each in zip(translations, plain, strict=True)]

    return Runner(translate, str(translator.compute_type))


def _names(*, joint: bool) -> tuple[str, str]:
    """The file names of the source's and the target's SentencePiece model, equal if `joint`."""
    return (JOINT_MODEL, JOINT_MODEL) if joint else (SOURCE_MODEL, TARGET_MODEL)
