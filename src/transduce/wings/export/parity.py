"""Compares a model with its export by greedy search, because the libraries' beam searches differ."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from transduce.config.schema import RunConfig
from transduce.decoding.directions import encode_sources
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import CUT, PLAIN_SEARCH, Engine, Translation
from transduce.evaluation.scores import Comparison, compare
from transduce.model_folder import Bundle
from transduce.preparation.prepared import VALID_FILE
from transduce.system.errors import UserError
from transduce.text.languages import target_of
from transduce.text.pairs import Pair
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import SPACE
from transduce.wings.phrasebook.examples import PHRASEBOOK

MAX_COMPARED_SENTENCES = 1000
# A translation may be 50 tokens longer than its source: both below 512.
MAX_SOURCE_TOKENS, EXTRA_TOKENS = (
    400,
    50,
)
# Difference of log-probability below which rounding may decide between two tokens.
MAX_TIE_NATS = 1e-3
MIN_IDENTICAL = 0.99  # share of sentences with identical tokens, in float32
MAX_BLEU_LOSS = 0.3  # maximum loss of an export in a type other than float32
MAX_P_VALUE = 0.05  # a loss with a smaller p-value is significant
# Parts of a text that exports read differently from our tokenizers, for which they are ordinary text:
READ_DIFFERENTLY = re.compile("</?s>|<pad>|<unk>")  # special pieces for transformers
TAGGED = re.compile(">>.*<<")  # a tag at the start of a text


class Output(NamedTuple):
    """A translation by another program."""

    pieces: list[str]  # pieces without the start and end tokens
    text: str


class Runner(NamedTuple):
    """A model opened in another program, ready to translate greedily."""

    # Arguments: pairs whose sources to translate, the tags that begin them, maximum tokens of a translation.
    translate: Callable[[Sequence[Pair], Sequence[Sequence[str]], int], list[Output]]
    compute_type: str  # number type that the program uses on this machine


class Parity(NamedTuple):
    """The result of comparing an export with its model."""

    sentences: int
    origin: str  # where the sentences come from, in words
    identical: int  # number of sentences with identical tokens
    compute_type: str  # the number type in which the other program computes on this machine
    bleu: Comparison | None  # BLEU of the model and the export; None for an export in float32

    def report(self) -> list[str]:
        """The result in sentences, for the terminal and for README.md."""
        lines = [
            f"{self.identical:,} of {self.sentences:,} sentences from {self.origin} produced identical tokens in both "
            f"programs ({self.compute_type}, greedy)."
        ]
        if self.bleu is None:
            tie = "In each remaining sentence, two tokens were equally probable, and rounding decided between them."
            return [*lines, tie] if self.identical < self.sentences else lines
        ours = self.bleu.first
        theirs = self.bleu.second
        significance = f"{_test(self.bleu)}; {ours.signature}"
        lines.append(
            f"The export's BLEU is {theirs.value:.2f}, the model's {ours.value:.2f} ({significance})."
        )
        if self.sentences < MAX_COMPARED_SENTENCES:
            lines.append(
                f"Use at least {MAX_COMPARED_SENTENCES:,} sentences. With only {self.sentences:,} sentences, the 95 % "
                f"confidence interval of the model's BLEU is {ours.low:.1f} to {ours.high:.1f}."
            )
        return lines


def check_parity(model: Bundle, pairs: Sequence[Pair], runner: Runner, *, exact: bool) -> Parity:
    """Compare an export with its model; raises UserError if the translations of the export differ too much.

    If `exact`, the share of translations with identical tokens must be at least MIN_IDENTICAL. Other translations may
    differ only where two tokens are almost equally probable. If not `exact`, the loss of BLEU must be at most
    MAX_BLEU_LOSS and not significant.
    """
    translator = greedy(TorchEngine([model.model]), model.tokenizer, model.config)
    pairs = _fitting(translator, pairs)
    texts = [pair.source for pair in pairs]
    sources = encode_sources(model.tokenizer, pairs)
    ours = translator.translate_pairs(pairs)
    limits = [translator.limit(source) for source in sources]
    tags = [
        model.tokenizer.source.pieces(model.tokenizer.toward(pair.direction).tags) for pair in pairs
    ]
    outputs = runner.translate(pairs, tags, max(limits))
    theirs = [
        output._replace(pieces=output.pieces[:limit])
        for output, limit in zip(outputs, limits, strict=True)
    ]
    name = Path(pairs[0].origin.file).name  # without the folder, which is private
    origin = "the text held out from training" if name == VALID_FILE else name
    different = [i for i in range(len(texts)) if not _identical(ours[i], theirs[i])]
    identical = len(texts) - len(different)
    parity = Parity(len(texts), origin, identical, runner.compute_type, None)
    if exact:
        too_many = identical < MIN_IDENTICAL * len(texts)
        for i in different:
            if too_many or not _is_tie(
                translator, sources[i], list(ours[i].tokens), theirs[i].pieces
            ):
                raise UserError(
                    f"Nothing was written: the translations differ in {len(different):,} of {len(texts):,} sentences. "
                    f"The model translates '{texts[i]}' as '{ours[i].text}', the other program as '{theirs[i].text}'."
                )
        return parity
    bleu = _check_bleu(
        model, pairs, [translation.text for translation in ours], [output.text for output in theirs]
    )
    return parity._replace(bleu=bleu)


def greedy(engine: Engine, tokenizer: Tokenizer, config: RunConfig) -> Translator:
    """A translator with greedy search, as in the other program."""
    plain = replace(config.decode, no_repeat_ngram=0, **PLAIN_SEARCH)
    return Translator(engine, tokenizer, replace(plain, beam_size=1, max_extra_tokens=EXTRA_TOKENS))


def _fitting(translator: Translator, pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs whose sources both programs can translate, with normalised sources.

    Raises UserError if there is no such pair.
    """
    normalised = translator.tokenizer.normalizer([pair.source for pair in pairs])
    pairs = [pair._replace(source=source) for pair, source in zip(pairs, normalised, strict=True)]
    sources = encode_sources(translator.tokenizer, pairs)
    max_tokens = min(MAX_SOURCE_TOKENS, translator.engine.max_positions or MAX_SOURCE_TOKENS)
    fitting = [
        pair
        for pair, ids in zip(pairs, sources, strict=True)
        if pair.source.strip()
        and len(ids) < max_tokens
        and not TAGGED.match(pair.source)
        and not READ_DIFFERENTLY.search(pair.source)
        and (
            translator.tokenizer.is_imported or SPACE not in pair.source
        )  # SentencePiece reads it as a space
    ]
    if not fitting:
        raise UserError(
            f"Nothing was written, since the comparison needs a sentence of fewer than {max_tokens} tokens.",
            "Name another validation text.",
            "valid",
        )
    return fitting


def _identical(ours: Translation, theirs: Output) -> bool:
    """Whether two translations have equal tokens and equal texts, apart from white space."""
    cut = CUT in ours.flags  # if ours was cut off, the other text may be longer
    return list(ours.tokens) == theirs.pieces and (
        cut or ours.text.strip() == theirs.text.replace("\n", " ").strip()
    )


def _is_tie(translator: Translator, source: list[int], ours: list[str], theirs: list[str]) -> bool:
    """Whether the first tokens that differ have log-probabilities at most MAX_TIE_NATS apart."""
    vocabulary = translator.tokenizer.target
    ids = {piece: i for i, piece in enumerate(vocabulary.all_pieces())}
    if ours == theirs or not ids.keys() >= {*theirs}:
        return False
    targets = [[ids[piece] for piece in pieces] for pieces in (ours, theirs)]
    position = next(
        (i for i, (a, b) in enumerate(zip(*targets, strict=False)) if a != b),
        min(map(len, targets)),
    )
    first, second = translator.engine.log_probs([source, source], targets)
    return abs(first[position] - second[position]) <= MAX_TIE_NATS


def _check_bleu(
    model: Bundle, pairs: Sequence[Pair], ours: Sequence[str], theirs: Sequence[str]
) -> Comparison:
    """Compare the BLEU of the model and the export; raises UserError if the export's BLEU is too low."""
    data = model.config.data
    is_english_german = (data.source, data.target) == ("en", "de") and not data.directions
    if pairs[0].origin.file == PHRASEBOOK and not is_english_german:
        raise UserError(
            "The text held out from training is missing. An export that is not in float32 can only be judged by BLEU.",
            "Name a validation text with its translations.",
            "valid",
        )
    references = [pair.target for pair in pairs]
    targets = {target_of(pair.direction) for pair in pairs}
    language = (targets.pop() or data.target) if len(targets) == 1 else ""
    bleu = compare(ours, theirs, references, tokenize=data.bleu_tokenize, language=language)[0]
    loss = bleu.first.value - bleu.second.value
    if loss > MAX_BLEU_LOSS or (loss > 0 and bleu.p_value < MAX_P_VALUE):
        raise UserError(
            "Nothing was written, since the export translates worse: BLEU "
            f"{bleu.second.value:.2f} instead of {bleu.first.value:.2f} on "
            f"{len(pairs):,} sentences ({_test(bleu)}).",
            "Export in float32, or to a format that has it.",
            "compute_type",
        )
    return bleu


def _test(bleu: Comparison) -> str:
    is_tested = not math.isnan(bleu.p_value)
    return f"paired bootstrap: p = {bleu.tested()}" if is_tested else "too few sentences for a test"
