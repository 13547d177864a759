"""Parity of an export: it and the model translate the same held-out sentences.

Both search greedily, since every library ends a beam search by its own rule.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from transduce.config.schema import RunConfig
from transduce.decoding.stepper import forced_log_probs
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import CUT, Engine, Translation
from transduce.evaluation.scores import Comparison, compare
from transduce.model.seq2seq import make_batch
from transduce.model_folder import Bundle
from transduce.preparation.prepared import VALID_FILE
from transduce.system.errors import UserError
from transduce.text.pairs import Pair
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.phrasebook.examples import PHRASEBOOK

MAX_COMPARED_SENTENCES = 1000  # compared
MAX_SOURCE_TOKENS, EXTRA_TOKENS = 400, 50  # of a source; more of its translation than of it: together below 512
MAX_TIE_NATS = 1e-3  # difference of log-probability below which rounding may decide between two tokens
MIN_IDENTICAL = 0.99  # share of sentences with identical tokens, in float32
MAX_BLEU_LOSS = 0.3  # of an export in another type than float32
MAX_P_VALUE = 0.05  # at which a loss is significant
# SentencePiece takes a literal U+2581 in a source for a space, and transformers takes these names for special pieces.
# Our tokenizer doesn't, and no export can do the same.
READ_DIFFERENTLY = re.compile("\u2581|</?s>|<pad>|<unk>|^>>.*<<")


class Output(NamedTuple):
    """A translation by another program."""

    pieces: list[str]  # without the beginning and the end
    text: str


class Runner(NamedTuple):
    """Another program, ready to translate greedily."""

    translate: Callable[[Sequence[str], int], list[Output]]  # texts, maximum tokens of a translation
    compute_type: str  # on this machine


class Parity(NamedTuple):
    """The result of a comparison."""

    sentences: int
    origin: str
    identical: int  # sentences with the same tokens
    compute_type: str  # of the other program, on this machine
    bleu: Comparison | None  # of the model and the export; None for an export in float32

    def report(self) -> list[str]:
        """Sentences for people."""
        lines = [
            f"{self.identical:,} of {self.sentences:,} sentences from {self.origin} produced identical tokens in both "
            f"({self.compute_type}, greedy)."
        ]
        if self.bleu is None:
            tie = "In the others, two tokens were equally probable and rounding decided between them."
            return lines + [tie] * (self.identical < self.sentences)
        _, ours, theirs, p_value = self.bleu
        significance = f"paired bootstrap: p = {p_value:.3f}; {ours.signature}"
        lines.append(f"BLEU {theirs.value:.2f} instead of {ours.value:.2f} ({significance}).")
        if self.sentences < MAX_COMPARED_SENTENCES:
            lines.append(
                f"{self.sentences:,} sentences are few: the model's BLEU lies between {ours.low:.1f} and "
                f"{ours.high:.1f} with 95 % confidence. Compare on at least {MAX_COMPARED_SENTENCES:,} sentences."
            )
        return lines


def check_parity(model: Bundle, pairs: Sequence[Pair], runner: Runner, *, exact: bool) -> Parity:
    """Compare an export with its model; raises UserError that says how they differ.

    exact: the export has the model's numbers. It must produce the same tokens for MIN_IDENTICAL of the sentences; in
    the others, the first different token must be as probable as ours, within MAX_TIE_NATS. An export that is not exact
    may lose MAX_BLEU_LOSS, and not significantly.
    """
    translator = greedy(TorchEngine([model.model]), model.tokenizer, model.config)
    pairs = _fitting(translator, pairs)
    texts = [pair.source for pair in pairs]
    ours = translator.translate_sentences(texts)
    limits = [translator.limit(source) for source in model.tokenizer.encode_source(texts)]
    outputs = runner.translate(texts, max(limits))
    theirs = [output._replace(pieces=output.pieces[:limit]) for output, limit in zip(outputs, limits, strict=True)]
    name = Path(pairs[0].origin.file).name  # without the path of a file, which is private
    origin = "the text that the training held out" if name == VALID_FILE else name
    different = [i for i in range(len(texts)) if not _identical(ours[i], theirs[i])]
    identical = len(texts) - len(different)
    parity = Parity(len(texts), origin, identical, runner.compute_type, None)
    if exact:
        too_many = identical < MIN_IDENTICAL * len(texts)
        for i in different:
            if too_many or not _is_tie(model, texts[i], list(ours[i].tokens), theirs[i].pieces):
                raise UserError(
                    f"Nothing was written, since the translations differ in {len(different):,} of {len(texts):,} "
                    f"sentences. '{texts[i]}' becomes '{ours[i].text}' by the model, '{theirs[i].text}' by the export."
                )
        return parity
    bleu = _check_bleu(model, pairs, [translation.text for translation in ours], [output.text for output in theirs])
    return parity._replace(bleu=bleu)


def greedy(engine: Engine, tokenizer: Tokenizer, config: RunConfig) -> Translator:
    """A translator that searches as other programs do here."""
    return Translator(engine, tokenizer, replace(config.decode, beam_size=1, max_extra_tokens=EXTRA_TOKENS))


def _fitting(translator: Translator, pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs whose source is neither blank, too long nor READ_DIFFERENTLY; raises UserError if none is left."""
    sources = translator.tokenizer.encode_source([pair.source for pair in pairs])
    max_tokens = min(MAX_SOURCE_TOKENS, translator.engine.max_positions or MAX_SOURCE_TOKENS)
    imported = translator.tokenizer.is_imported  # and reads special pieces as the original does
    fitting = [
        pair
        for pair, ids in zip(pairs, sources, strict=True)
        if pair.source.strip() and len(ids) < max_tokens and (imported or not READ_DIFFERENTLY.search(pair.source))
    ]
    if not fitting:
        raise UserError(
            f"Nothing was written, since no sentence of fewer than {max_tokens} tokens is there to compare on. "
            "Name a validation text."
        )
    return fitting


def _identical(ours: Translation, theirs: Output) -> bool:
    """Same tokens and same text, except for line breaks and spaces at the ends, which our text never has."""
    cut = CUT in ours.flags  # the other text may continue
    return list(ours.tokens) == theirs.pieces and (cut or ours.text.strip() == theirs.text.replace("\n", " ").strip())


def _is_tie(model: Bundle, text: str, ours: list[str], theirs: list[str]) -> bool:
    """Whether the first different tokens are equally probable; not if no token differs or a piece has no id."""
    ids = {piece: i for i, piece in enumerate(model.tokenizer.target_pieces(range(model.tokenizer.target_size)))}
    if ours == theirs or not ids.keys() >= {*theirs}:
        return False
    targets = [[ids[piece] for piece in pieces] for pieces in (ours, theirs)]
    position = next((i for i, (a, b) in enumerate(zip(*targets, strict=False)) if a != b), min(map(len, targets)))
    [source] = model.tokenizer.encode_source([text])
    log_probs = forced_log_probs([model.model], make_batch([source, source], targets))
    first, second = log_probs[:, position].tolist()
    return float(abs(first - second)) <= MAX_TIE_NATS


def _check_bleu(model: Bundle, pairs: Sequence[Pair], ours: Sequence[str], theirs: Sequence[str]) -> Comparison:
    """The paired comparison; raises UserError if the export is worse."""
    data = model.config.data
    if pairs[0].origin.file == PHRASEBOOK and (data.source, data.target) != ("en", "de"):
        raise UserError(
            "The held-out text of the training is gone, and only BLEU can judge an export that is not in float32. "
            "Name a validation text with its translations."
        )
    references = [pair.target for pair in pairs]
    bleu = compare(ours, theirs, references, tokenize=data.bleu_tokenize)[0]
    loss = bleu.first.value - bleu.second.value
    if loss > MAX_BLEU_LOSS or (loss > 0 and bleu.p_value < MAX_P_VALUE):
        raise UserError(
            f"Nothing was written, since the export translates worse: BLEU {bleu.second.value:.2f} instead of "
            f"{bleu.first.value:.2f} on {len(pairs):,} sentences (paired bootstrap: p = {bleu.p_value:.3f}). "
            "Export in float32."
        )
    return bleu
