"""The speed of training and decoding the paper's base and big models on a GPU, and of a whole training on Multi30k.

    python benchmarks/gpu.py [--models base big small] [--ways padded packed compiled] [--updates 30]
                             [--vocabulary 37000] [--tokens 25000] [--pack 512]
                             [--multi30k RECIPE TRAIN TRAIN VALID VALID TEST TEST]

Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, as the command transduce does.

Training: batches have up to --tokens source and target tokens, in random sentences with lengths like those of newspaper
text (log-normal, 27 subwords on average): padded to the longest one of a batch, packed into rows of --pack tokens, or
packed for a model that torch.compile has compiled. The first updates are not timed; the seconds of the very first one
are shown. tokens/s counts target tokens without padding. TFLOP/s counts the matrix products of forward and backward
passes, and is compared with the measured speed of large products. A second training in float32 shows whether
bfloat16 reaches the same loss. Decoding: beam 4 with random weights, 30 source and 30 target tokens, in large batches
and for a single sentence. To try the script without a GPU, run it with smaller numbers and --precision float32.
"""

import argparse
import platform
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from transduce.commands.recipes import gather
from transduce.config.schema import DecodeConfig, ModelConfig, TrainConfig
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.types import Request
from transduce.model.build import build
from transduce.model.device import choose_device
from transduce.model.packing import pack
from transduce.model.seq2seq import Batch, make_batch
from transduce.tokens.batching import micro_batches, packed_batches
from transduce.training.run import train as run_training
from transduce.training.update import make_optimizer, update
from transduce_lab.operations import ceiling, per_target_token
from transduce_lab.paper.table3 import BASE, BIG

SMALL = replace(
    BASE, num_encoder_layers=3, num_decoder_layers=3, d_model=256, d_ff=1024, num_heads=4
)
MODELS = {"base": BASE, "big": BIG, "small": SMALL}
WAYS = ("padded", "packed", "compiled")
WARM, LENGTH, LONGEST = 5, 27, 100
OUT, SENTENCES = 30, 2000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--precision", default="bfloat16", choices=("bfloat16", "float32"))
    parser.add_argument("--pack", type=int, default=512)
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
    most = ceiling(device, getattr(torch, arguments.precision))
    print(
        f"{name}, torch {torch.__version__}, {time.strftime('%Y-%m-%d')}; large products: {most / 1e12:.1f} TFLOP/s\n"
    )
    print(
        "| | tokens/s | TFLOP/s | share of large products | peak memory | loss a token (float32) | first update |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for kind in arguments.models:
        model = replace(MODELS[kind], vocab_size=arguments.vocabulary)
        for way in arguments.ways:
            width = 0 if way == "padded" else arguments.pack
            batches = random_batches(arguments, device, width)
            trained = train(model, batches, arguments.precision, compiled=way == "compiled")
            exact = train(model, batches, "float32", compiled=False).loss
            work = trained.rate * per_target_token(model, LENGTH + 1, LENGTH + 1)
            speed = f"{trained.rate:,.0f} | {work / 1e12:.1f} | {work / most:.0%}"
            print(
                f"| {kind}, {way} | {speed} | {trained.memory / 2**30:.1f} GiB | {trained.loss:.4f} ({exact:.4f}) | "
                f"{trained.first:.1f} s |",
                flush=True,
            )
        rate, alone = decode(model, arguments.sentences, device)
        print(
            f"| {kind}, beam 4 | {rate:,.0f} | one sentence: {1000 * alone:.0f} ms | | | | |",
            flush=True,
        )
    if arguments.multi30k:
        print(multi30k(arguments.multi30k))


class Trained(NamedTuple):
    """The results of a training."""

    rate: float  # target tokens a second
    loss: float  # of the last batch, per token
    memory: int  # peak of the GPU's memory in bytes
    first: float  # seconds of the first update, which compiles


def random_batches(arguments: argparse.Namespace, device: torch.device, width: int) -> list[Batch]:
    """Make one batch of random sentences per update, in packed rows of `width` tokens if it is not 0."""
    random = np.random.default_rng(1)
    count = 2 * (arguments.updates + WARM) * arguments.tokens // LENGTH
    source = random.lognormal(np.log(LENGTH) - 0.15, 0.55, count).astype(int).clip(1, LONGEST)
    target = (source * random.normal(1, 0.1, count)).astype(int).clip(1, LONGEST)
    make = partial(packed_batches, width=width) if width else micro_batches
    plan = make(source, target, budget=arguments.tokens, seed=1, epoch=0)
    plan = plan[: arguments.updates + WARM]

    def rows(lengths: np.ndarray) -> list[np.ndarray]:
        return [random.integers(4, arguments.vocabulary, length) for length in lengths]

    sides = ((rows(source[batch]), rows(target[batch])) for batch in plan)
    packed = partial(pack, width=width, rows=arguments.tokens // width) if width else make_batch
    return [packed(*side).to(device) for side in sides]


def train(
    config: ModelConfig, batches: Sequence[Batch], precision: str, *, compiled: bool
) -> Trained:
    device = batches[0].src.device
    model: nn.Module = build(config).to(device).train()
    if compiled:
        model = torch.compile(model, dynamic=False)  # type: ignore[assignment]
    options = TrainConfig(precision=precision)
    optimizer = make_optimizer(model.parameters(), options)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    tokens = 0
    first = 0.0
    loss = 0.0
    began = time.perf_counter()
    for step, batch in enumerate(batches, start=1):
        if step == WARM + 1:
            synchronize(device)
            began = time.perf_counter()
        outcome = update(model, optimizer, [batch], step=step, rate=1e-4, train=options)
        tokens += outcome.num_tokens * (step > WARM)
        loss = outcome.loss / outcome.num_tokens
        first = first or time.perf_counter() - began  # reading the loss has waited for the device
    synchronize(device)
    seconds = time.perf_counter() - began
    memory = torch.cuda.max_memory_allocated() if device.type == "cuda" else 0
    return Trained(tokens / seconds, loss, memory, first)


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
