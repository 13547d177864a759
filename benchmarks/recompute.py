"""Recompute from the records of Table 2's runs what its page concludes.

    python benchmarks/recompute.py [--test test_2016_flickr.en test_2016_flickr.de]

Reads benchmarks/results/paper/table2-runs.tar.xz, and prints for every row the share of the updates that are warm-up,
the gradient norms, the revisions of the code, and the p-value of its difference from the Transformer: per token if both
have the same vocabulary, and corrected for the number of rows. With the test text: the translations with loops, too.
For the rows with RL, the gradient norm of the likelihood in the loss is estimated from the end of the first stage.
"""

import json
import tarfile
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measuring import run_script

from transduce.decoding.repetition import is_loop
from transduce.system.journal import read_events
from transduce.text.plain import read_lines
from transduce_lab.comparing.statistics import difference, holm, jackknife_error, spread

ARCHIVE = Path(__file__).parent / "results" / "paper" / "table2-runs.tar.xz"
BASE = "Transformer"
OTHER_VOCABULARY = "ByteNet,-characters"
COMPARED_ROWS = 10  # rows of the page that are compared with the base
LAST = 10  # updates of the first stage whose gradient norms are averaged


class Finished(NamedTuple):
    """The record of a run."""

    config: dict[str, Any]
    updates: list[dict[str, Any]]
    log_probs: list[float]
    num_tokens: list[int]
    outputs: list[str]
    revision: str

    @property
    def log_perplexity(self) -> float:
        return -sum(self.log_probs) / sum(self.num_tokens)

    @property
    def warmup_share(self) -> float:
        """The share of the updates in which the learning rate rises."""
        return float(self.config["train"]["warmup"] / self.config["train"]["steps"])

    def gradient_norms(self) -> list[float]:
        return [update["gradient_norm"] for update in self.updates]

    def left_out(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The logarithm of the perplexity without each sentence."""
        log_probs = np.array(self.log_probs)
        tokens = np.array(self.num_tokens)
        return -(log_probs.sum() - log_probs) / (tokens.sum() - tokens)


def read_runs(archive: Path = ARCHIVE) -> dict[str, list[Finished]]:
    """The runs of each row, by the name of the row's folder."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as records:
            records.extractall(folder, filter="data")
        places = sorted(Path(folder).glob("paper/table2/*/seed-*"))
        rows = dict[str, list[Finished]]()
        for place in places:
            rows.setdefault(place.parent.name, []).append(_read_run(place))
        return rows


def _read_run(place: Path) -> Finished:
    outcome = json.loads((place / ".test.json").read_text())
    record = json.loads((place / "run.json").read_text())
    return Finished(
        tomllib.loads((place / "config.toml").read_text()),
        [event for event in read_events(place / "journal.jsonl") if event["event"] == "update"],
        outcome["log_probs"],
        outcome["num_tokens"],
        outcome["outputs"],
        record["sessions"][-1]["revision"],
    )


def p_values(rows: dict[str, list[Finished]]) -> dict[str, float]:
    """The corrected p-value of each row with several runs and the base's vocabulary."""
    base = rows[BASE]
    found = dict[str, float]()
    for name, runs in rows.items():
        if name not in (BASE, OTHER_VOCABULARY):
            gap = np.mean([run.left_out() for run in runs], axis=0)
            gap -= np.mean([run.left_out() for run in base], axis=0)
            both = (spread([run.log_perplexity for run in its]) for its in (runs, base))
            found[name] = difference(*both, jackknife_error(gap), len(gap)).p_value
    corrected = holm(list(found.values()), COMPARED_ROWS)
    return dict(zip(found, corrected, strict=True))


def likelihood_norm(first_stage: Finished, second_stage: Finished) -> float:
    """The gradient norm of the likelihood in the loss of the second stage, at its start."""
    weight = second_stage.config["train"]["likelihood_weight"]
    return float(weight * np.mean(first_stage.gradient_norms()[-LAST:]))


def loops(run: Finished, sources: Sequence[str]) -> int:
    """The number of translations that repeat themselves without a reason in their sources."""
    pairs = zip(sources, run.outputs, strict=True)
    return sum(is_loop(source.split(), output.split()) for source, output in pairs)


def main(*, test: list[str] | None = None) -> None:
    """Print what the page concludes."""
    rows = read_runs()
    sources = list(read_lines(test[0])) if test else []
    p_of = p_values(rows)
    print("| row | runs | warm-up | p | gradient norms | likelihood's share | loops | revision |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, runs in rows.items():
        norms = [norm for run in runs for norm in run.gradient_norms()]
        first_stage = rows.get(name.removesuffix("-RL"), []) if name.endswith("-RL") else []
        stages = zip(first_stage, runs, strict=bool(first_stage))
        share = ", ".join(f"{likelihood_norm(*stage):.4f}" for stage in stages)
        found = ", ".join(str(loops(run, sources)) for run in runs) if sources else ""
        p = f"{p_of[name]:.4f}" if name in p_of else ""
        revisions = ", ".join(dict.fromkeys(run.revision for run in runs))
        print(
            f"| {name} | {len(runs)} | {runs[0].warmup_share:.0%} | {p} "
            f"| {min(norms):.4f} to {max(norms):.4f} | {share} | {found} | {revisions} |"
        )


if __name__ == "__main__":
    run_script(main, __doc__)
