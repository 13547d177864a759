"""Tests of transduce/wings/ct2/registers.py."""

import os
import subprocess
import sys

import pytest

from engines import SMALL, converted, lively
from transduce.wings.ct2.registers import AVX512, features

OPEN = """
from pathlib import Path
from transduce.config.schema import ModelConfig
from transduce.wings.ct2.engine import CTranslate2Engine
CTranslate2Engine(Path({folder!r}), "float32", ModelConfig(), threads=1)
"""


def test_features_are_read_from_the_first_processor(tmp_path):
    (tmp_path / "cpuinfo").write_text(
        "processor\t: 0\nflags\t\t: fpu avx2\n\nprocessor\t: 1\nflags\t\t: fpu avx512f\n"
    )
    assert "avx2" in features(tmp_path / "cpuinfo")
    assert "avx512f" not in features(tmp_path / "cpuinfo")
    assert not features(tmp_path / "none")


@pytest.mark.skipif(not features() >= AVX512, reason="no AVX-512")
def test_ctranslate2_uses_avx512_unless_the_user_says_otherwise(tmp_path):
    converted(lively(SMALL), SMALL, tmp_path)
    others = {name: value for name, value in os.environ.items() if not name.startswith("CT2")}
    command = [sys.executable, "-c", OPEN.format(folder=str(tmp_path))]
    for told in ({}, {"CT2_FORCE_CPU_ISA": "AVX2"}):
        environment = others | {"CT2_VERBOSE": "1"} | told
        said = subprocess.run(
            command, env=environment, stderr=subprocess.PIPE, text=True, check=True
        ).stderr
        assert f"Selected ISA: {told.get('CT2_FORCE_CPU_ISA', 'AVX512')}\n" in said
