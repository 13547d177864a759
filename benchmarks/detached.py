"""Measures how well a model's confidence and its flag `detached` judge translations.

    python benchmarks/detached.py MODEL test.en test.de

A detached output is the translation of another line. Its score is computed by forced decoding.
"""

from pathlib import Path

import numpy as np
from measuring import run_script
from sacrebleu.metrics.chrf import CHRF

import transduce
from transduce.evaluation.calibration import area_under_curve, calibration_error
from transduce.text.plain import read_lines


def main(model: Path, source: Path, target: Path) -> None:
    """Print the figures of the confidence and of the flag."""
    sources, references = (list(read_lines(str(file))) for file in (source, target))
    translator = transduce.load(model)
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
    run_script(main, __doc__)
