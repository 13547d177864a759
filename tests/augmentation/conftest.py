"""Fixtures for the tests in this folder."""

import pytest

from sampled import ENGLISH, GERMAN
from transduce.tokens.tokenizer import Tokenizer


@pytest.fixture(scope="session", params=["bpe", "unigram"])
def vocabulary(request):
    return Tokenizer.train(ENGLISH, GERMAN, vocab_size=400, kind=request.param).target
