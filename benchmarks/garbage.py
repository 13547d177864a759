"""How much garbage is held back among corrections, and the weights of the evidence for it.

    python benchmarks/garbage.py MODEL TEXTS [MODEL TEXTS ...] [--begin 0] [--pairs 300] [--fitted]

TEXTS is a bilingual file in the direction of the model before it. --pairs of its pairs, from the one with the number
--begin on, are judged as they are, and as six kinds of garbage, against the model's validation pairs. Prints the shares
that are held back. With --fitted, a logistic regression on all evidence prints the weights of judging.py instead;
references count five times, as much as five kinds of garbage together (texts that were not translated are judged by
another rule).
"""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from corrections import Texts, texts_of
from measuring import run_script

import transduce
from transduce.decoding.translator import Translator
from transduce.wings.memories.judging import Evidence, Judge, held_out_pairs

INSULTS = (
    "Espèce d'idiot !",
    "You are all stupid.",
    "Va te faire voir.",
    "Das ist Schwachsinn.",
    "bande de nuls",
    "what an idiot",
)
OTHER_LANGUAGE = (
    "Hunden springer fort over engen og gøer.",
    "Esta frase no tiene nada que ver con el texto.",
    "Questo è un testo in un'altra lingua, del tutto diversa.",
    "We hebben gisteren lang op de bus gewacht.",
)
REFERENCES = "references"
COPIES = "the text itself"


def garbage(texts: Texts, rng: random.Random) -> Iterator[tuple[str, list[str]]]:
    """The kinds of garbage, and one of each for every text."""
    targets = [target for _, target in texts]
    yield "another language", [rng.choice(OTHER_LANGUAGE) for _ in texts]
    yield "another line's translation", targets[7:] + targets[:7]
    yield "half of the translation", [each[: len(each) // 2] for each in targets]
    yield COPIES, [source for source, _ in texts]
    letters = "abcdefghijklmnopqrstuvwxyz   "
    yield "random characters", ["".join(rng.choices(letters, k=max(8, len(t)))) for t in targets]
    yield "an insult behind", [f"{each} {rng.choice(INSULTS)}" for each in targets]


def judge_of(model: Path, translator: Translator) -> Judge:
    return Judge(translator, [(pair.source, pair.target) for pair in held_out_pairs(model)])


def held_back(judge: Judge, texts: Texts, machine: Sequence[str]) -> list[str]:
    """For the references and each kind of garbage, the share that is held back."""
    shares = []
    for name, given in kinds(texts):
        doubts = [
            bool(judge.doubt(source, correction, own))
            for (source, target), correction, own in zip(texts, given, machine, strict=True)
            if name == REFERENCES or correction != target
        ]
        shares.append(f"{sum(doubts) / len(doubts):.1%}")
    return shares


def kinds(texts: Texts) -> list[tuple[str, list[str]]]:
    references = [target for _, target in texts]
    return [(REFERENCES, references), *garbage(texts, random.Random(1))]


def fit(models: Sequence[tuple[Path, Texts]]) -> None:
    """Print the weights of a logistic regression by gradient descent on standardised evidence."""
    rows = list[Evidence]()
    good = list[bool]()
    weights = list[float]()
    for model, texts in models:
        judge = judge_of(model, transduce.load(model, device="cpu"))
        for name, given in kinds(texts):
            if name == COPIES:
                continue
            pairs = [
                (source, correction)
                for (source, target), correction in zip(texts, given, strict=True)
                if name == REFERENCES or correction != target
            ]
            rows += judge.evidence(pairs)
            good += [name == REFERENCES] * len(pairs)
            weights += [(5 if name == REFERENCES else 1) / len(pairs)] * len(pairs)
    inputs = np.array(rows)
    outputs = np.array(good)
    mean = inputs.mean(axis=0)
    deviation = inputs.std(axis=0)
    features = np.column_stack([(inputs - mean) / deviation, np.ones(len(inputs))])
    share = np.array(weights) / sum(weights)
    found = np.zeros(features.shape[1])
    for _ in range(20_000):
        errors = outputs - 1 / (1 + np.exp(-features @ found))
        found += (share * errors) @ features - 1e-4 * found
    raw = found[:-1] / deviation
    print({name: round(float(w), 2) for name, w in zip(Evidence._fields, raw, strict=True)})
    print("bias", round(float(found[-1] - raw @ mean), 2))
    print("typical", np.median(inputs[outputs], axis=0).round(1))


def main(
    *models_and_texts: str,
    begin: int = 0,
    pairs: int = 300,
    fitted: bool = False,
) -> None:
    """Judge, or fit, and print."""
    given = []
    for model, file in zip(models_and_texts[::2], models_and_texts[1::2], strict=True):
        direction = transduce.load(Path(model), device="cpu").require_direction()
        given.append((Path(model), texts_of(file, direction)[begin : begin + pairs]))
    if fitted:
        fit(given)
        return
    names = [name for name, _ in kinds(given[0][1])]
    print(f"| model | {' | '.join(names)} |")
    print(f"| --- |{' --- |' * len(names)}")
    for folder, texts in given:
        translator = transduce.load(folder, device="cpu")
        machine = translator.translate([source for source, _ in texts], sentences=True)
        shares = held_back(judge_of(folder, translator), texts, [each.text for each in machine])
        print(f"| {folder.name} | {' | '.join(shares)} |", flush=True)


if __name__ == "__main__":
    run_script(main, __doc__)
