"""What is said about a model and its training, by hand."""

from dataclasses import replace

import pytest

from transduce.config.schema import DataConfig, ModelConfig, RunConfig
from transduce.training.facts import measured_facts, model_facts, vocabulary

CONFIG = RunConfig(
    model=ModelConfig(vocab_size=12_345), data=DataConfig(source="en", target="de", tokenizer="bpe")
)


def test_the_vocabularies_of_a_model():
    separate = replace(CONFIG, model=replace(CONFIG.model, source_vocab_size=1_000))
    trees = replace(separate, data=replace(CONFIG.data, symbols=True))
    assert [vocabulary(each) for each in (CONFIG, separate, trees)] == [
        "12,345 joint bpe tokens",
        "1,000 + 12,345 separate bpe tokens",
        "1,000 bpe tokens and 12,345 symbols",
    ]
    assert model_facts(CONFIG) == [
        ("languages", "en to de"),
        ("model", CONFIG.model.shape),
        ("vocabulary", "12,345 joint bpe tokens"),
    ]


SCORE = {"name": "BLEU", "value": 31.26, "low": 30.04, "high": 32.55, "signature": "tok:13a"}
METRICS = {
    "imported": "opus",
    "parameters": 1234567,
    "averaged_steps": [1000, 2000],
    "corpus": {"corpora": [["a.en", "a.de"], ["b.tsv"]], "pairs": 5000, "target_tokens": 60000},
    "training": {
        "steps": 2000,
        "target_tokens": 70000,
        "seconds": 3725.4,
        "device": "cpu",
        "revision": "1.0 (abc)",
        "torch": "2.0",
    },
    "validation": {"perplexity": 3.14159},
    "confidence": {"calibration_error": 0.0123, "area": 0.876},
    "test": {"scores": [SCORE, SCORE | {"name": "TER", "value": 50.0}]},
}


def test_everything_that_was_measured_is_said():
    assert list(measured_facts(METRICS)) == [
        ("imported", "from opus"),
        ("parameters", "1,234,567"),
        ("checkpoint", "average of steps 1,000, 2,000"),
        ("corpus", "a.en + a.de; b.tsv"),
        ("pairs", "5,000 (60,000 target tokens)"),
        ("training", "2,000 updates, 70,000 target tokens, 1:02:05 on cpu"),
        ("trained by", "transduce 1.0 (abc), torch 2.0"),
        ("validation", "perplexity 3.14"),
        ("confidence", "area under the ROC curve 0.88, calibration error 0.012"),
        ("test BLEU", "31.3 [30.0, 32.5], tok:13a"),
        ("test TER", "50.0 [30.0, 32.5], tok:13a"),
    ]


@pytest.mark.parametrize(
    ("metrics", "facts"),
    [
        ({}, []),
        ({"averaged_steps": [7]}, [("checkpoint", "step 7")]),
        ({"averaged_steps": []}, []),
        ({"validation": {"perplexity": None}}, [("validation", "perplexity not finite")]),
        ({"validation": {"perplexity": 2e6}}, [("validation", "perplexity 2.00e+06")]),
        (
            {
                "training": {
                    key: METRICS["training"][key]
                    for key in ("steps", "target_tokens", "seconds", "device")
                }
            },
            [("training", "2,000 updates, 70,000 target tokens, 1:02:05 on cpu")],
        ),
        ({"test": {}}, []),
        ({"directions": {"en-de": {}, "de-en": {"validation": None}}}, []),
        (
            {
                "directions": {
                    "en-de": {
                        "validation": {"bleu": 20.04, "chrf": 50.06},
                        "before": {"bleu": 19.0},
                        "test": {"scores": [SCORE]},
                    },
                    "de-en": {"validation": {"bleu": None, "chrf": None}, "before": {"bleu": 1.0}},
                    "en-fr": {"validation": {"bleu": 1.0, "chrf": 2.0}},
                }
            },
            [
                (
                    "en-de",
                    "validation BLEU 20.0, chrF 50.1 (greedy); BLEU 19.0 before languages were added; "
                    "test BLEU 31.3 [30.0, 32.5], tok:13a",
                ),
                ("en-fr", "validation BLEU 1.0, chrF 2.0 (greedy)"),
            ],
        ),
    ],
)
def test_what_is_missing_is_not_said(metrics, facts):
    assert list(measured_facts(metrics)) == facts
