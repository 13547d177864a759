"""Tests of transduce/wings/cluster/on_ray.py."""

import pytest

from sharded import contents, corpus_files
from transduce.preparation.prepare import prepare
from transduce.wings.cluster.on_ray import prepare_on_ray


@pytest.mark.slow
def test_a_corpus_prepared_on_ray_is_the_same(tmp_path):
    data = corpus_files(tmp_path)
    prepare(data, tmp_path / "one", vocab_size=lambda _: 290)
    prepare_on_ray(data, tmp_path / "ray", vocab_size=290, workers=2)
    assert contents(tmp_path / "ray") == contents(tmp_path / "one")
    assert not (tmp_path / "ray.shards").exists()
