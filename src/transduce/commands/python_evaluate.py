"""`transduce.evaluate`, the command `evaluate` as a function."""

from pathlib import Path

from transduce.commands.python_corpora import Corpus, names_of
from transduce.commands.test_sets import read_test_set
from transduce.config.commands import option
from transduce.decoding.directions import choose_direction, directions_of
from transduce.decoding.loading import load_models, refuse_parser
from transduce.evaluation.evaluate import Evaluation
from transduce.evaluation.evaluate import evaluate as measure


def evaluate(model: str | Path, test: Corpus, *, source: str = "", target: str = "") -> Evaluation:
    """Translate the sources of a test set, and score the translations, as `transduce evaluate MODEL` does.

    `test` is names of files or pairs, as for `train`. `source` and `target` choose the direction of a multilingual
    model. Raises UserError for an unusable model or test set, and if several directions remain.
    """
    [bundle] = load_models([model])
    refuse_parser(bundle.tokenizer, bundle.folder)
    data = bundle.config.data
    direction = choose_direction(directions_of(data), source, target)
    names = names_of(test)
    if names is None:
        _, pairs = option("pairs of Python objects")(test, direction, "test")
        name = str(direction) if data.directions else ""
        pairs = [pair._replace(direction=name) for pair in pairs]
    else:
        pairs = read_test_set(names, data, direction)
    return measure([bundle], pairs, bundle.config.decode, tokenize=data.bleu_tokenize)
