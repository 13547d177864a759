"""Whether what was exported translates as the model does: both translate sentences that were held out.

Both search greedily, for every library ends a beam by another rule.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from transduce.decoding.check_sentences import PHRASEBOOK
from transduce.decoding.engines.torch import TorchEngine
from transduce.decoding.stepper import forced_log_probs
from transduce.decoding.translator import Translator
from transduce.decoding.types import CUT, Translation
from transduce.evaluation.scores import Comparison, compare
from transduce.model.batch import make_batch
from transduce.model_folder import Bundle
from transduce.preparation.prepare import VALID
from transduce.system.errors import UserError
from transduce.text.pairs import Pair

SENTENCES = 1000  # to be compared on
LONGEST, EXTRA = 400, 50  # tokens of such a sentence; by how many more its translation may have: together less than 512
TIE = 1e-3  # in log-probability: two tokens that rounding may decide between
SAME = 0.99  # of the sentences, at least, come out token for token
LOSS = 0.3  # BLEU, at most, of what is not exact
SIGNIFICANT = 0.05
# In a source: SentencePiece alone takes a literal U+2581 for a space, and transformers such names for pieces, a code of
# a language too. Ours doesn't, and no export could.
READ_OTHERWISE = re.compile("\u2581|</?s>|<pad>|<unk>|^>>.*<<")


class Output(NamedTuple):
    """A translation by another program."""

    pieces: list[str]  # without the beginning and the end
    text: str


class Peer(NamedTuple):
    """Another program, ready to translate greedily."""

    translate: Callable[[Sequence[str], int], list[Output]]  # texts, the most tokens of a translation
    computes: str  # in what, on this machine


class Proof(NamedTuple):
    """What was compared and found."""

    sentences: int
    origin: str
    same: int  # that came out token for token
    computes: str  # in what the other program did, on the machine where it was compared
    bleu: Comparison | None  # of the model and of an export that isn't exact

    def report(self) -> list[str]:
        """Sentences for people."""
        found = [
            f"{self.same:,} of {self.sentences:,} sentences of {self.origin} were translated to the same tokens here "
            f"and there, where {self.computes} is computed in; both searched greedily."
        ]
        if self.bleu is None:
            tie = "In the others two tokens were equally probable, and rounding decided between them."
            return found + [tie] * (self.same < self.sentences)
        _, ours, theirs, p_value = self.bleu
        found.append(
            f"BLEU {theirs.value:.2f} instead of {ours.value:.2f} (paired bootstrap: p = {p_value:.3f}; "
            f"{ours.signature})."
        )
        if self.sentences < SENTENCES:
            found.append(
                f"So few sentences say little: the model's own BLEU lies between {ours.low:.1f} and {ours.high:.1f} "
                f"with 95 % confidence. {SENTENCES:,} or more would be better (--valid)."
            )
        return found


def prove(model: Bundle, pairs: Sequence[Pair], peer: Peer, *, exact: bool) -> Proof:
    """Compare; `exact` is an export whose numbers are those of the model.

    An exact one has to give the same tokens for SAME of the sentences, and where it doesn't, the first token that
    differs has to be as probable as ours, within TIE. Another one may lose LOSS BLEU, and not significantly.
    Raises UserError that says how it differs.
    """
    decode = replace(model.config.decode, beam_size=1, max_extra_tokens=EXTRA)
    translator = Translator(TorchEngine([model.model]), model.tokenizer, decode)
    pairs = _fitting(translator, pairs)
    texts = [pair.source for pair in pairs]
    ours = translator.translate_sentences(texts)
    limits = [translator.limit(source) for source in model.tokenizer.encode_source(texts)]
    found = peer.translate(texts, max(limits))
    theirs = [
        Output(output.pieces[:limit], output.text) for output, limit in zip(found, limits, strict=True)
    ]  # where ours has to end, too
    different = [i for i in range(len(texts)) if not _same(ours[i], theirs[i])]
    proof = Proof(len(texts), _origin(pairs[0].origin.file), len(texts) - len(different), peer.computes, None)
    if exact:
        for i in different:
            _refuse_unless_tied(model, texts[i], ours[i], theirs[i], proof)
        if proof.same < SAME * proof.sentences:
            raise UserError(_differs(proof, texts[different[0]], ours[different[0]].text, theirs[different[0]].text))
        return proof
    return _compare(model, pairs, [each.text for each in ours], [each.text for each in theirs], proof)


def _fitting(translator: Translator, pairs: Sequence[Pair]) -> list[Pair]:
    """Those with a source that is neither blank, too long, nor READ_OTHERWISE; raises UserError if there are none.

    What reads an imported vocabulary here reads as the others do.
    """
    sources = translator.tokenizer.encode_source([pair.source for pair in pairs])
    most = min(LONGEST, translator.engine.max_positions or LONGEST)
    alike = translator.tokenizer.is_foreign
    fitting = [
        pair
        for pair, ids in zip(pairs, sources, strict=True)
        if pair.source.strip() and len(ids) < most and (alike or not READ_OTHERWISE.search(pair.source))
    ]
    if not fitting:
        raise UserError(
            f"There is no sentence of fewer than {most} tokens to compare on: name a text with --valid, and nothing "
            "was written."
        )
    return fitting


def _origin(file: str) -> str:
    """Where sentences come from, for people; the path of a file is nobody's business."""
    name = Path(file).name
    return {PHRASEBOOK: PHRASEBOOK, VALID: "the text that the training held out"}.get(name, name)


def _same(ours: Translation, theirs: Output) -> bool:
    """Token for token, and the same text, but for spaces around it, and line breaks, which ours doesn't let out."""
    cut = CUT in ours.flags  # their text may go on
    return list(ours.tokens) == theirs.pieces and (cut or ours.text.strip() == theirs.text.replace("\n", " ").strip())


def _refuse_unless_tied(model: Bundle, text: str, ours: Translation, theirs: Output, proof: Proof) -> None:
    """Raise UserError unless the first tokens that differ are equally probable."""
    difference = _first_difference(model, text, list(ours.tokens), theirs.pieces)
    if difference is None or difference > TIE:
        raise UserError(_differs(proof, text, ours.text, theirs.text))


def _first_difference(model: Bundle, text: str, ours: list[str], theirs: list[str]) -> float | None:
    """By how much the model prefers its own first token that differs; None if none does, or if one has no id."""
    ids = {piece: i for i, piece in enumerate(model.tokenizer.target_pieces(range(model.tokenizer.target_size)))}
    if ours == theirs or not ids.keys() >= {*theirs}:
        return None
    targets = [[ids[piece] for piece in pieces] for pieces in (ours, theirs)]
    place = next((i for i, pair in enumerate(zip(*targets, strict=False)) if pair[0] != pair[1]), None)
    place = min(map(len, targets)) if place is None else place  # one of them ends there
    [source] = model.tokenizer.encode_source([text])
    log_probs = forced_log_probs([model.model], make_batch([source, source], targets))
    first, second = log_probs[:, place].tolist()
    return float(abs(first - second))


def _differs(proof: Proof, text: str, ours: str, theirs: str) -> str:
    return (
        f"It translates otherwise, and nothing was written: of {proof.sentences:,} sentences "
        f"{proof.sentences - proof.same:,} differ. '{text}' becomes '{ours}' here and '{theirs}' there."
    )


def _compare(model: Bundle, pairs: Sequence[Pair], ours: Sequence[str], theirs: Sequence[str], proof: Proof) -> Proof:
    data = model.config.data
    if pairs[0].origin.file == PHRASEBOOK and (data.source, data.target) != ("en", "de"):
        raise UserError(
            "What the training held out is gone, and an export that isn't float32 is judged by its BLEU: "
            "give sentences with their translations by --valid."
        )
    references = [pair.target for pair in pairs]
    bleu = compare(ours, theirs, references, tokenize=data.bleu_tokenize)[0]
    loss = bleu.first.value - bleu.second.value
    if loss > LOSS or (loss > 0 and bleu.p_value < SIGNIFICANT):
        raise UserError(
            f"The export translates worse, and nothing was written: BLEU {bleu.second.value:.2f} "
            f"instead of {bleu.first.value:.2f} on {len(pairs):,} sentences (paired bootstrap: p = {bleu.p_value:.3f})"
            "; export with --compute-type float32."
        )
    return proof._replace(bleu=bleu)
