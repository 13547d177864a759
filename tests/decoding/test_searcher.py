"""Tests of transduce/decoding/searcher.py."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import transduce
from transduce.decoding.searcher import Fallback
from transduce.decoding.types import Engine


def test_several_threads_open_the_engine_for_glossaries_once(trained):
    loaded, opened = transduce.load(trained, engine="ctranslate2"), []

    def open_engine() -> Engine:
        opened.append(loaded.fallback.engine)
        return opened[-1]

    translator = replace(loaded, fallback=Fallback(open_engine))
    with ThreadPoolExecutor(5) as pool:
        found = list(
            pool.map(
                lambda _: translator.translate(["A dog runs."], glossary={"dog": "Katze"}), range(5)
            )
        )
    assert all(each == found[0] for each in found)
    assert len(opened) == 1
