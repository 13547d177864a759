"""The speed of training and decoding the paper's base and big models on a GPU, and of a whole training on Multi30k.

    python benchmarks/gpu.py [--models base big] [--updates 30] [--vocabulary 37000] [--tokens 25000]
                             [--multi30k RECIPE TRAIN TRAIN VALID VALID TEST TEST]

Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, as the command transduce does.

Training: batches have up to --tokens source and target tokens, in random sentences with lengths like those of newspaper
text (log-normal, 27 subwords on average). The first updates are not timed. tokens/s counts target tokens without
padding. TFLOP/s counts the matrix products of forward and backward passes, and is compared with the measured speed of
large bfloat16 products. A second training in float32 shows whether bfloat16 reaches the same loss. Decoding: beam 4
with random weights, 30 source and 30 target tokens, in large batches and for a single sentence. To try the script
without a GPU, run it on a CPU with smaller numbers.
"""

import argparse
import platform
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from transduce.commands.recipes import gather
from transduce.config.schema import DecodeConfig, ModelConfig, TrainConfig
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.types import Request
from transduce.model.build import build
from transduce.model.device import choose_device
from transduce.model.seq2seq import Batch, make_batch
from transduce.tokens.batching import micro_batches
from transduce.training.run import train as run_training
from transduce.training.update import make_optimizer, update
from transduce_lab.operations import ceiling, per_target_token
from transduce_lab.paper.table3 import BASE, BIG

MODELS = {"base": BASE, "big": BIG}
WARM, LENGTH, LONGEST = 5, 27, 100
OUT, SENTENCES = 30, 2000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--updates", type=int, default=30)
    parser.add_argument("--vocabulary", type=int, default=37_000)
    parser.add_argument("--tokens", type=int, default=25_000)
    parser.add_argument("--sentences", type=int, default=SENTENCES)
    parser.add_argument("--multi30k", nargs=7, metavar="FILE")
    arguments = parser.parse_args()
    device = choose_device()
    name = (
        torch.cuda.get_device_name(device)
        if device.type == "cuda"
        else platform.processor() or "CPU"
    )
    most = ceiling(device, torch.bfloat16)
    print(
        f"{name}, torch {torch.__version__}, {time.strftime('%Y-%m-%d')}; large products: {most / 1e12:.1f} TFLOP/s\n"
    )
    print(
        "| | tokens/s | TFLOP/s | share of large products | peak memory | loss a token (float32) |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for kind in arguments.models:
        model = replace(MODELS[kind], vocab_size=arguments.vocabulary)
        batches = random_batches(arguments, device)
        rate, loss, memory = train(model, batches, "bfloat16")
        _, exact, _ = train(model, batches, "float32")
        lengths = (
            sum(len(b.src) * b.src.size(1) for b in batches),
            sum(b.num_tokens for b in batches),
        )
        pairs = sum(len(b.src) for b in batches)
        work = rate * per_target_token(model, *(round(length / pairs) for length in lengths))
        speed = f"{rate:,.0f} | {work / 1e12:.1f} | {work / most:.0%}"
        print(
            f"| {kind}, training | {speed} | {memory / 2**30:.1f} GiB | {loss:.4f} ({exact:.4f}) |",
            flush=True,
        )
        rate, alone = decode(model, arguments.sentences, device)
        print(
            f"| {kind}, beam 4 | {rate:,.0f} | one sentence: {1000 * alone:.0f} ms | | | |",
            flush=True,
        )
    if arguments.multi30k:
        print(multi30k(arguments.multi30k))


def random_batches(arguments: argparse.Namespace, device: torch.device) -> list[Batch]:
    """Make one batch of random sentences per update."""
    random = np.random.default_rng(1)
    count = 2 * (arguments.updates + WARM) * arguments.tokens // LENGTH
    source = random.lognormal(np.log(LENGTH) - 0.15, 0.55, count).astype(int).clip(1, LONGEST)
    target = (source * random.normal(1, 0.1, count)).astype(int).clip(1, LONGEST)
    plan = micro_batches(source, target, budget=arguments.tokens, seed=1, epoch=0)[
        : arguments.updates + WARM
    ]

    def rows(lengths: np.ndarray) -> list[np.ndarray]:
        return [random.integers(4, arguments.vocabulary, length) for length in lengths]

    return [make_batch(rows(source[batch]), rows(target[batch])).to(device) for batch in plan]


def train(
    config: ModelConfig, batches: Sequence[Batch], precision: str
) -> tuple[float, float, int]:
    """Train; returns target tokens a second, the last batch's loss per token, and peak GPU memory in bytes."""
    device = batches[0].src.device
    model = build(config).to(device).train()
    options = TrainConfig(precision=precision)
    optimizer = make_optimizer(model.parameters(), options)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    tokens = 0
    began = 0.0
    loss = 0.0
    for step, batch in enumerate(batches, start=1):
        if step == WARM + 1:
            synchronize(device)
            began = time.perf_counter()
        outcome = update(model, optimizer, [batch], step=step, rate=1e-4, train=options)
        tokens += outcome.num_tokens * (step > WARM)
        loss = outcome.loss / outcome.num_tokens
    synchronize(device)
    seconds = time.perf_counter() - began
    return tokens / seconds, loss, torch.cuda.max_memory_allocated() if device.type == "cuda" else 0


def decode(config: ModelConfig, count: int, device: torch.device) -> tuple[float, float]:
    """Output tokens a second in large batches, and the seconds for one sentence; EOS is made very unlikely."""
    model = build(config).to(device).eval()
    engine = TorchEngine([model])
    options = DecodeConfig(beam_size=4)
    with torch.no_grad():
        model.embedding.weight[2] = 0.0  # EOS: its logit is 0, and many others are larger
    sources = np.random.default_rng(1).integers(4, config.vocab_size, (count, OUT)).tolist()
    size = engine.budget(options, count * (OUT + 1)) // (OUT + 1)
    requests = [
        Request([""] * len(part), part, [OUT] * len(part))
        for part in (sources[start : start + size] for start in range(0, count, size))
    ]
    seconds = []
    for some in (
        requests[:1],
        requests,
        [Request([""], sources[:1], [OUT])],
        [Request([""], sources[1:2], [OUT])],
    ):
        synchronize(device)
        began = time.perf_counter()
        found = list(engine.search(some, options, 1))
        seconds.append(time.perf_counter() - began)
        tokens = sum(len(best.tokens) for each in found for best, *_ in each)
        if some is requests:
            rate = tokens / seconds[-1]
    return rate, seconds[-1]


def multi30k(files: Sequence[str]) -> str:
    """Train with a recipe; returns a sentence with the BLEU of the test text and the time."""
    recipe, *texts = files
    given = gather(
        recipe,
        train=texts[:2],
        valid=texts[2:4],
        test=texts[4:],
        languages=("en", "de"),
        assignments=(),
    )
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        result = run_training(given, Path(folder) / "model")
        seconds = time.perf_counter() - began
    bleu = next(
        score["value"] for score in result.metrics["test"]["scores"] if score["name"] == "BLEU"
    )
    return f"\n{recipe}: BLEU {bleu:.1f} in {seconds:.0f} s, including start and test"


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
