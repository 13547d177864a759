"""Unknown words of a vocabulary of words, and the lengths of texts in word pieces and in BPE's subwords.

    python benchmarks/words.py --train train.en train.de --valid val.en val.de

The first table has, for each language, the share of unknown words in the validation text, and the share of these that
the dictionary of PosUnk translates; it copies the others. The second table has the number of pieces for each word of
the validation text.
"""

from pathlib import Path

from measuring import run_script

from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import SPACE
from transduce_lab.comparing.unknown_words import dictionary_of
from transduce_lab.words import split


def main(*, train: list[Path], valid: list[Path], vocab_size: int = 6000) -> None:
    """Learn the vocabularies, and print the tables."""
    texts = [path.read_text(encoding="utf-8").splitlines() for path in train]
    tested = [path.read_text(encoding="utf-8").splitlines() for path in valid]
    names = [path.name for path in valid]
    words = Tokenizer.train(*texts, vocab_size=vocab_size, kind="word", joint=False, quotes="")
    dictionary = dictionary_of(zip(*texts, strict=True))
    print("| text | words | unknown | of these in the dictionary |\n| --- | --- | --- | --- |")
    for name, lines, side in zip(names, tested, (words.source, words.target), strict=True):
        known = {*side.all_pieces()}
        all_words = [word for line in lines for word in split(line)]
        unknown = [word.removeprefix(SPACE) for word in all_words if word not in known]
        found = sum(word in dictionary for word in unknown) / max(1, len(unknown))
        translated = f"{found:.1%}" if side is words.source else ""
        share = len(unknown) / len(all_words)
        print(f"| {name} | {len(all_words):,} | {share:.1%} | {translated} |")
    print(f"\n| kind | {' | '.join(names)} |\n| --- | --- | --- |")
    for kind in ("bpe", "wordpiece"):
        tokenizer = Tokenizer.train(*texts, vocab_size=vocab_size, kind=kind, quotes="")
        ratios = []
        for lines in tested:
            pieces = sum(map(len, tokenizer.encode_target(lines)))
            ratios.append(f"{pieces / sum(len(line.split()) for line in lines):.2f}")
        print(f"| {kind} | {' | '.join(ratios)} |")


if __name__ == "__main__":
    run_script(main, __doc__)
