"""The speed of training and search on a GPU: base, big and small models, and transformers beside them.

    python benchmarks/gpu.py [--models base big small] [--ways padded packed compiled transformers] [--seconds 20]
        [--rounds 3] [--vocabulary 37000] [--tokens 25000] [--pack 512] [--sentences 3000] [--precision bfloat16]

Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, as the command transduce does.

Training: the pairs are random sentences with lengths like those of newspaper text (log-normal, 27 subwords on average),
in a corpus that transduce has prepared. The training loop of transduce reads, batches and copies them: in padded
batches, in packed rows of --pack tokens, or in packed rows with a compiled model. transformers trains its Marian model
of the same shape, compiled by torch.compile, with the padded batches, label smoothing and the fused Adam. The ways take
turns, --rounds times; each time, the first updates are not timed, and the others last --seconds. tokens/s counts target
tokens without padding, and is a median; the ratio to the fastest way of transduce has the smallest and the largest
value in brackets. TFLOP/s counts the matrix products of forward and backward passes.

Search: beam 4 with random weights, 30 source and 30 target tokens, in float16 and float32, in large batches and for a
single sentence; transformers generates in float16, with its dynamic and its static cache.

To try the script without a GPU, run it with smaller numbers and --precision float32.
"""

import math
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext, redirect_stderr
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from measuring import ratio, run_script

from transduce.config.schema import DataConfig, DecodeConfig, ModelConfig, RunConfig, TrainConfig
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.types import Request
from transduce.model.build import build
from transduce.model.device import choose_device
from transduce.system.journal import Journal, read_events
from transduce.tokens.mixture import Mixture
from transduce.tokens.store import Encoded, TokenStore, write_store
from transduce.tokens.vocabulary import Rows
from transduce.training import loop
from transduce.training.batches import ahead
from transduce.training.checkpoint import TrainState
from transduce.training.update import make_optimizer
from transduce_lab.operations import ceiling, per_target_token
from transduce_lab.paper.table3 import BASE, BIG

Way = Literal["padded", "packed", "compiled", "transformers"]
Kind = Literal["base", "big", "small"]
SMALL = replace(
    BASE, num_encoder_layers=3, num_decoder_layers=3, d_model=256, d_ff=1024, num_heads=4
)
MODELS = {"base": BASE, "big": BIG, "small": SMALL}
WARM = 8  # updates that are not timed: they compile and allocate
PAIRS, LENGTH, LONGEST = 300_000, 27, 100
OUT = 30
DEVICE = choose_device()


class Measured(NamedTuple):
    """The results of a training."""

    rate: float  # target tokens a second
    loss: float  # per token, the mean of the first ten updates
    memory: float  # peak of the GPU's memory in GiB
    first: float  # seconds up to the end of the first update, which compiles


def main(
    *,
    models: list[Kind] = ["base", "big", "small"],  # noqa: B006
    ways: list[Way] = ["padded", "packed", "compiled", "transformers"],  # noqa: B006
    seconds: float = 20,
    rounds: int = 3,
    vocabulary: int = 37_000,
    tokens: int = 25_000,
    pack: int = 512,
    sentences: int = 3_000,
    precision: Literal["bfloat16", "float32"] = "bfloat16",
) -> None:
    """Measure all models and ways, and print the tables."""
    name = torch.cuda.get_device_name(DEVICE) if DEVICE.type == "cuda" else "CPU"
    most = ceiling(DEVICE, getattr(torch, precision))
    print(f"{name}, torch {torch.__version__}, {precision}, {time.strftime('%Y-%m-%d')}")
    print(f"large products: {most / 1e12:.1f} TFLOP/s\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        data = random_pairs(Path(folder) / "data", vocabulary)
        print(
            "| training | tokens/s | ratio | TFLOP/s | of large products | memory | loss | first update |"
        )
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        for kind in models:
            model = replace(MODELS[kind], vocab_size=vocabulary)
            work = per_target_token(model, LENGTH + 1, LENGTH + 1)
            found: dict[Way, list[Measured]] = {way: [] for way in ways}
            for _ in range(rounds):
                for way in ways:
                    config = RunConfig(
                        model=model,
                        data=DataConfig(
                            max_tokens=tokens, pack=pack if way in ("packed", "compiled") else 0
                        ),
                        train=TrainConfig(precision=precision, accumulate=1, steps=10**9),
                    )
                    found[way].append(train(config, data, way, seconds))
            rates = {way: [each.rate for each in them] for way, them in found.items()}
            ours = [way for way in ways if way != "transformers"]
            fastest = max(ours or ways, key=lambda way: statistics.median(rates[way]))
            for way, them in found.items():
                rate = statistics.median(rates[way])
                print(
                    f"| {kind}, {way} | {rate:,.0f} | {ratio(rates[way], rates[fastest])} | {rate * work / 1e12:.1f} "
                    f"| {rate * work / most:.0%} | {them[0].memory:.1f} GiB | {them[0].loss:.3f} "
                    f"| {them[0].first:.1f} s |",
                    flush=True,
                )
    print("\n| search, beam 4 | tokens/s | ratio | one sentence |\n| --- | --- | --- | --- |")
    for kind in models:
        measure_search(kind, replace(MODELS[kind], vocab_size=vocabulary), sentences, rounds, ways)


def random_pairs(folder: Path, vocabulary: int) -> Mixture:
    """A prepared corpus of random sentences."""
    random = np.random.default_rng(1)
    source = random.lognormal(np.log(LENGTH) - 0.15, 0.55, PAIRS).astype(int).clip(1, LONGEST)
    target = (source * random.normal(1, 0.1, PAIRS)).astype(int).clip(1, LONGEST)

    def rows(lengths: np.ndarray) -> Rows:
        return Rows(random.integers(4, vocabulary, lengths.sum()), lengths)

    numbers = np.arange(PAIRS)
    write_store(
        folder, [Encoded(rows(source), rows(target), numbers.astype(np.int32) * 0, numbers)]
    )
    return Mixture([TokenStore(folder)], [1.0])


def train(config: RunConfig, data: Mixture, way: Way, seconds: float) -> Measured:
    """Train for WARM updates and `seconds` with one way."""
    if DEVICE.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    torch.manual_seed(1)
    # Packed rows would be compiled, too.
    stance = torch.compiler.set_stance("force_eager") if way == "packed" else nullcontext()
    with tempfile.TemporaryDirectory() as folder, stance:
        model = build(config.model).to(DEVICE)
        training = loop.Training(
            config=replace(
                config, train=replace(config.train, save_every=10**9, validate_every=10**9)
            ),
            model=model,
            wrapped_model=model,
            optimizer=make_optimizer(model.parameters(), config.train),
            data=data,
            origin=str,
            state=TrainState(),
            journal=Journal(Path(folder) / "journal.jsonl"),
            folder=Path(folder) / "checkpoints",
            validate=lambda _: None,
            device=DEVICE,
            delay=int(DEVICE.type == "cuda"),
        )
        marks: list[tuple[float, int]] = []  # before each update: seconds, target tokens

        def stop() -> bool:
            now = time.perf_counter()
            marks.append((now, training.state.tokens_seen))
            return len(marks) > WARM + 1 and now - marks[WARM][0] > seconds

        learn = train_transformers if way == "transformers" else loop.train
        with redirect_stderr(StringIO()):  # progress
            learn(training, stop)
        losses = [event["loss"] for event in read_events(Path(folder) / "journal.jsonl")]
    memory = torch.cuda.max_memory_allocated() / 2**30 if DEVICE.type == "cuda" else 0.0
    start, before = marks[WARM]
    end, after = marks[-1]
    first = marks[1 + training.delay][0] - marks[0][0]
    return Measured((after - before) / (end - start), [*losses, math.nan][0], memory, first)


def marian(config: ModelConfig) -> Any:
    """transformers' Marian model of this shape, with random weights."""
    from transformers import MarianConfig, MarianMTModel

    sizes = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (
            ("layers", config.num_encoder_layers),
            ("ffn_dim", config.d_ff),
            ("attention_heads", config.num_heads),
        )
    }
    return MarianMTModel(
        MarianConfig(
            vocab_size=config.vocab_size,
            d_model=config.d_model,
            activation_function="relu",
            dropout=config.dropout,
            attention_dropout=0.0,
            activation_dropout=0.0,
            scale_embedding=True,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=1,
            forced_eos_token_id=None,
            init_std=config.d_model**-0.5,
            **sizes,
        )
    ).to(DEVICE)


def train_transformers(training: loop.Training, stop: Callable[[], bool]) -> None:
    """Train transformers' model with the same batches."""
    config = training.config
    model = marian(config.model).train()
    compiled = torch.compile(model, dynamic=True) if DEVICE.type == "cuda" else model
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5, betas=(0.9, 0.98), fused=True)
    criterion = torch.nn.CrossEntropyLoss(ignore_index=0, label_smoothing=0.1, reduction="sum")
    is_low = config.train.precision == "bfloat16"
    losses: list[tuple[torch.Tensor, int]] = []
    plan = ahead(loop.planned_updates(training), training.delay)
    while not stop():
        [batch] = next(plan).batches
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=is_low):
            logits = compiled(
                input_ids=batch.src, attention_mask=batch.src != 0, decoder_input_ids=batch.tgt_in
            ).logits
            loss = criterion(logits.flatten(0, 1).float(), batch.tgt_out.flatten())
        (loss / batch.num_tokens).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        training.state.tokens_seen += batch.num_tokens
        losses.append((loss.detach(), batch.num_tokens))
        if len(losses) > 1:  # as transduce does, read the loss one update late
            losses[-2][0].item()
    mean = sum(loss.item() for loss, _ in losses[:10]) / sum(count for _, count in losses[:10])
    training.journal.write("update", step=10, loss=mean)


def measure_search(
    kind: Kind, config: ModelConfig, count: int, rounds: int, ways: list[Way]
) -> None:
    """Print the speeds of all searches."""
    sources = np.random.default_rng(1).integers(4, config.vocab_size, (count, OUT)).tolist()
    model = build(config).to(DEVICE).eval()
    with torch.no_grad():
        model.embedding.weight[2] = 0.0  # EOS: its logit is 0, and many others are larger
    engine = TorchEngine([model])

    def search(precision: Any) -> Callable[[list[list[int]]], None]:
        options = DecodeConfig(beam_size=4, precision=precision)

        def run(rows: list[list[int]]) -> None:
            size = engine.budget(options, len(rows) * (OUT + 1)) // (OUT + 1)
            requests = [
                Request([""] * len(part), part, [OUT] * len(part))
                for part in (rows[start : start + size] for start in range(0, len(rows), size))
            ]
            list(engine.search(requests, options, 1))

        return run

    searches: dict[str, Callable[[list[list[int]]], None]] = {
        name: search(name)
        for name in (("float16", "float32") if DEVICE.type == "cuda" else ("float32",))
    }
    if "transformers" in ways:
        network = marian(config).eval()
        network = network.half() if DEVICE.type == "cuda" else network

        def generation(cache: str | None, size: int) -> Callable[[list[list[int]]], None]:
            @torch.inference_mode()
            def generate(rows: list[list[int]]) -> None:
                for start in range(0, len(rows), size):
                    ids = torch.tensor(rows[start : start + size], device=DEVICE)
                    network.generate(
                        input_ids=ids,
                        attention_mask=torch.ones_like(ids),
                        num_beams=4,
                        min_new_tokens=OUT,
                        max_new_tokens=OUT,
                        cache_implementation=cache,
                    )

            return generate

        searches["transformers, dynamic cache"] = generation(None, 500)
        searches["transformers, static cache"] = generation("static", 500)
    many: dict[str, list[float]] = {name: [] for name in searches}
    one: dict[str, list[float]] = {name: [] for name in searches}
    for number in range(rounds + 1):
        for name, run in searches.items():
            for rows, seconds in ((sources, many), (sources[:1], one)):
                began = time.perf_counter()
                run(rows)
                synchronize()
                if number:  # the first round compiles and allocates
                    seconds[name].append(time.perf_counter() - began)
    first = next(iter(searches))
    for name in searches:
        speed = count * OUT / statistics.median(many[name])
        print(
            f"| {kind}, {name} | {speed:,.0f} | {ratio(many[first], many[name])} "
            f"| {1000 * statistics.median(one[name]):.0f} ms |",
            flush=True,
        )


def synchronize() -> None:
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    run_script(main, __doc__)
