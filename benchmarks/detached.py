"""Measures how well a model's confidence and its flag `detached` judge translations.

    python benchmarks/detached.py MODEL test.en test.de

A detached output is the translation of another line. Its score is computed by forced decoding.
"""

import argparse
from pathlib import Path

import numpy as np
from sacrebleu.metrics.chrf import CHRF

import transduce
from transduce.evaluation.calibration import area_under_curve, calibration_error


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    arguments = parser.parse_args()
    sources, references = (
        file.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        for file in (arguments.source, arguments.target)
    )
    translator = transduce.load(arguments.model)
    assert translator.confidence
    translations = translator.translate(sources)
    outputs = [translation.text for translation in translations]
    chrf = [
        CHRF().sentence_score(text, [ref]).score
        for text, ref in zip(outputs, references, strict=True)
    ]
    is_good = np.array(chrf) >= translator.confidence.min_chrf
    confidence = np.array([translation.confidence for translation in translations])
    print(
        f"good translations: {is_good.mean():.1%} (chrF of at least {translator.confidence.min_chrf:.1f})"
    )
    area = area_under_curve(confidence, is_good)
    error = calibration_error(confidence, is_good)
    print(f"confidence: area {area:.3f}, error {error:.3f}")
    wrong = translator.score(sources, [*outputs[1:], outputs[0]])
    both = np.concatenate((confidence, [each.confidence for each in wrong]))
    is_own = np.arange(len(both)) < len(confidence)
    alarms = np.mean(["detached" in translation.flags for translation in translations])
    found = np.mean([each.detached for each in wrong])
    area = area_under_curve(both, is_own)
    print(
        f"detached: {found:.1%} found, {alarms:.1%} false alarms; area of the confidence {area:.3f}"
    )


if __name__ == "__main__":
    main()
