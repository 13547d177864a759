"""Tests of transduce/wings/cluster/translating.py."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from corpora import reverse_texts
from transduce.commands.translate import LineFormat
from transduce.decoding.loading import load
from transduce.decoding.translator import CHUNK_LINES
from transduce.wings.cluster.on_ray import shards_for, translate_on_ray
from transduce.wings.cluster.translating import Job, unit_for


@pytest.mark.parametrize(
    ("lines", "workers"), [(5000, 2), (4097, 1), (16_385, 2), (100_000, 16), (1_000_000, 100)]
)
def test_shards_on_ray_begin_where_one_process_begins_its_chunks(lines, workers):
    assert unit_for(lines, shards_for(lines, workers)) == CHUNK_LINES


@pytest.mark.slow
def test_translation_on_ray_survives_killed_workers(model, tmp_path):
    """Whoever is seen with the file of a shard open is killed, three times; the result is that of one process."""
    lines = [
        " ".join(line.split()) for line in reverse_texts(6 * CHUNK_LINES, seed=2, longest=9)[0]
    ]
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    job = Job((str(model),), {}, "torch", LineFormat())
    killed, done = list[int](), False

    def hunt() -> None:
        while not done and len(killed) < 3:
            for pid in {*writers(tmp_path / "out.txt.shards")} - {*killed}:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
                break
            time.sleep(0.01)

    hunter = Thread(target=hunt)
    hunter.start()
    try:
        translate_on_ray(job, str(text), tmp_path / "out.txt", workers=2, shards=3)
    finally:
        done = True
        hunter.join()
    assert len(killed) == 3
    alone = load([str(model)], engine="torch", threads=1)
    expected = [translation.text for translation in alone.translate_lines(lines)]
    assert (tmp_path / "out.txt").read_text(encoding="utf-8").split("\n") == [*expected, ""]
    assert not (tmp_path / "out.txt.shards").exists()


def writers(shards: Path) -> set[int]:
    """The processes that have the file of a shard open."""
    found = set[int]()
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            target = link.readlink()
            if target.parent == shards and ".txt.aside-" in target.name:
                found.add(int(link.parts[2]))
    return found
