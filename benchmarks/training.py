"""The training speed of transduce, transformers and eole on the same batches, in target tokens a second.

    python benchmarks/training.py DATA --peers transformers=PYTHON eole=PYTHON [--shapes small base] [--rounds 5]

DATA is a folder written by `transduce prepare … data.vocab_size=8000`. Each PYTHON is the interpreter of an environment
with the same torch and one other toolkit: transformers' Marian model in a plain loop, or eole's own model, loss and
update. All train on the same padded batches of up to 4,096 tokens, in bfloat16 (--float32: in float32), with dropout
0.1, label smoothing 0.1 and Adam. Each measurement is a separate process; the toolkits take turns. The first three
updates are not timed. The losses are compared after the last update of the shortest run: all toolkits must learn.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

Shape = Literal["small", "base"]
SHAPES: dict[Shape, tuple[int, int, int, int]] = {
    "small": (3, 256, 1024, 4),
    "base": (6, 512, 2048, 8),
}  # layers, d_model, d_ff, heads
WARM, BATCHES, BUDGET, PAD = 3, 80, 4096, 0
# Src, tgt_in, tgt_out -> loss per token.
Learn = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], float]


def options(shape: Shape, float32: bool) -> dict[str, object]:
    """The options of the model and its precision, for `transduce.config.parse.configure`."""
    layers, d_model, d_ff, heads = SHAPES[shape]
    return {
        "model.vocab_size": 8000,
        "model.num_encoder_layers": layers,
        "model.num_decoder_layers": layers,
        "model.d_model": d_model,
        "model.d_ff": d_ff,
        "model.num_heads": heads,
        "model.dropout": 0.1,
        "train.precision": "float32" if float32 else "bfloat16",
    }


def main(
    data: Path,
    *,
    peers: list[str] | None = None,
    shapes: list[Shape] | None = None,
    rounds: int = 5,
    seconds: float = 20.0,
    threads: int = 2,
    float32: bool = False,
) -> None:
    """Measure all toolkits in turns, and print the table; a peer is NAME=PYTHON."""
    from measuring import ratio

    from transduce.system.machine import SPIN_COUNT

    sides = {"transduce": sys.executable} | dict(peer.split("=", 1) for peer in peers or [])
    print(
        "| shape | | tokens/s | transduce is faster by | first update after | peak memory | loss a token |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        batches = Path(folder) / "batches.npz"
        write_batches(data, batches)
        for shape in shapes or SHAPES:
            rows: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
            for _ in range(rounds):
                for side, python in sides.items():
                    given = [str(batches), side, shape, float32, threads, seconds]
                    command = [python, __file__, "measure", json.dumps(given)]
                    spins = {"GOMP_SPINCOUNT": SPIN_COUNT} if side == "transduce" else {}
                    environment = spins | os.environ
                    run = subprocess.run(
                        command, stdout=subprocess.PIPE, text=True, check=True, env=environment
                    )
                    rows[side].append(json.loads(run.stdout.splitlines()[-1]))
            updates = min(len(row["losses"]) for each in rows.values() for row in each) - 1
            for side, each in rows.items():
                speed, first, memory = (
                    statistics.median(row[key] for row in each)
                    for key in ("speed", "first", "memory")
                )
                times = ratio(column(rows["transduce"]), column(each))
                loss = statistics.mean(row["losses"][updates] for row in each)
                print(
                    f"| {shape} | {side} | {speed:,.0f} | {times if side != 'transduce' else ''} | {first:.0f} s "
                    f"| {memory:,.0f} MiB | {loss:.2f} |",
                    flush=True,
                )


def write_batches(data: Path, file: Path) -> None:
    """Write the first batches of an epoch to a file that needs only NumPy to read."""
    from transduce.model.seq2seq import make_batch
    from transduce.preparation.prepared import open_prepared

    mixture = open_prepared(data).mixture
    arrays = {}
    epoch = mixture.plan(1, 0, budget=BUDGET, accumulate=1, seed=1)
    for number, [batch] in enumerate(epoch[:BATCHES]):
        made = make_batch(mixture.sources(batch), mixture.targets(batch))
        arrays |= {
            f"{name}-{number}": tensor.numpy() for name, tensor in zip("sio", made[:3], strict=True)
        }
    np.savez(file, **arrays)


def read_batches(file: Path) -> Iterator[tuple[torch.Tensor, ...]]:
    """Yield src, tgt_in and tgt_out of each batch; the batches are repeated without end."""
    with np.load(file) as arrays:
        loaded = dict(arrays)
    while True:
        for number in range(len(loaded) // 3):
            yield tuple(torch.from_numpy(loaded[f"{name}-{number}"]) for name in "sio")


def column(rows: list[dict[str, Any]]) -> list[float]:
    return [row["speed"] for row in rows]


def measure(
    batches: str, side: str, shape: Shape, float32: bool, threads: int, seconds: float
) -> dict[str, Any]:
    """Train with one toolkit for so many seconds, and return the measurements."""
    began = time.perf_counter()
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    learn = LEARNERS[side](shape, float32)
    losses: list[float] = []
    tokens = 0
    start = 0.0
    first = 0.0
    for src, tgt_in, tgt_out in read_batches(Path(batches)):
        losses.append(learn(src, tgt_in, tgt_out))
        first = first or time.perf_counter() - began
        if len(losses) == WARM:
            start = time.perf_counter()
        elif len(losses) > WARM:
            tokens += int((tgt_out != PAD).sum())
            if time.perf_counter() - start > seconds:
                break
    speed = tokens / (time.perf_counter() - start)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"speed": speed, "first": first, "memory": memory, "losses": losses}


def transduce_learner(shape: Shape, float32: bool) -> Learn:
    from transduce.config.parse import configure
    from transduce.model.build import build
    from transduce.model.seq2seq import Batch
    from transduce.system.machine import keep_few_kernels, keep_memory
    from transduce.training.update import make_optimizer, update

    config = configure(options(shape, float32))
    keep_memory()
    keep_few_kernels()
    model = build(config.model).train()
    optimizer = make_optimizer(model.parameters(), config.train)
    step = 0

    def learn(src: torch.Tensor, tgt_in: torch.Tensor, tgt_out: torch.Tensor) -> float:
        nonlocal step
        step += 1
        batch = Batch(src, tgt_in, tgt_out, int((tgt_out != PAD).sum()))
        outcome = update(model, optimizer, [batch], step=step, rate=step * 5e-6, train=config.train)
        return outcome.loss / batch.num_tokens

    return learn


def transformers_learner(shape: Shape, float32: bool) -> Learn:
    from transformers import MarianConfig, MarianMTModel

    layers, d_model, d_ff, heads = SHAPES[shape]
    sizes = {f"{side}_{name}": value for side in ("encoder", "decoder")
             for name, value in (("layers", layers), ("ffn_dim", d_ff), ("attention_heads", heads))}  # fmt: skip
    model = MarianMTModel(
        MarianConfig(vocab_size=8000, d_model=d_model, activation_function="relu", dropout=0.1, attention_dropout=0.0,
                     activation_dropout=0.0, scale_embedding=True, pad_token_id=PAD, bos_token_id=1, eos_token_id=2,
                     decoder_start_token_id=1, forced_eos_token_id=None, init_std=d_model**-0.5, **sizes)
    ).train()  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
    step = 0
    criterion = torch.nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)

    def learn(src: torch.Tensor, tgt_in: torch.Tensor, tgt_out: torch.Tensor) -> float:
        nonlocal step
        step += 1
        optimizer.param_groups[0]["lr"] = step * 5e-6
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=not float32):
            mask = (src != PAD).long()
            logits = model(
                input_ids=src, attention_mask=mask, decoder_input_ids=tgt_in, use_cache=False
            ).logits
            loss = criterion(logits.flatten(0, 1), tgt_out.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return learn


def eole_learner(shape: Shape, float32: bool) -> Learn:
    """eole's model, loss, optimizer and update, as in `eole train`; eole has only pre-norm models."""
    from eole import train_single
    from eole.config.run import TrainConfig
    from eole.models.model import get_model_class
    from eole.trainer import build_trainer
    from eole.utils import Statistics
    from eole.utils.optimizers import Optimizer

    layers, d_model, d_ff, heads = SHAPES[shape]
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "text"
        vocabulary = Path(folder) / "vocabulary"
        text.write_text("no text\n")
        vocabulary.write_text("".join(f"piece{number}\t1\n" for number in range(8000)))
        precision = {"compute_dtype": "fp32" if float32 else "bf16", "use_amp": not float32}
        config = TrainConfig(
            data={"corpus": {"path_src": str(text), "path_tgt": str(text), "transforms": []}},
            src_vocab=str(vocabulary), tgt_vocab=str(vocabulary), src_vocab_size=8000, tgt_vocab_size=8000,
            share_vocab=True, save_data=folder,
            training={"model_path": folder, "world_size": 0, "num_workers": 0, "optim": "adam", "adam_beta2": 0.98,
                      "learning_rate": 1.0, "warmup_steps": 4000, "decay_method": "noam", "max_grad_norm": 1.0,
                      "label_smoothing": 0.1, "dropout": [0.1], "attention_dropout": [0.0], "dropout_steps": [0],
                      "normalization": "tokens", "param_init_method": "xavier_uniform", **precision},
            model={"architecture": "transformer", "layers": layers, "hidden_size": d_model, "heads": heads,
                   "transformer_ff": d_ff, "share_embeddings": True, "share_decoder_embeddings": True,
                   "add_qkvbias": True, "add_ffnbias": True,
                   "embeddings": {"word_vec_size": d_model, "position_encoding_type": "SinusoidalInterleaved"}},
        )  # fmt: skip
        context = train_single.TrainingInitializer(config).initialize()
    config = context.config
    vocabs = context.vocabs
    model = get_model_class(config.model).for_training(
        config.model, vocabs, config.training, device_id=-1
    )
    trainer = build_trainer(config, -1, model, vocabs, Optimizer.from_config(model, config))
    model.train()
    pad = vocabs["tgt"][vocabs["specials"]["pad_token"]]

    def renumbered(ids: torch.Tensor) -> torch.Tensor:
        return torch.where(ids == PAD, pad, torch.where(ids == pad, PAD, ids))

    def learn(src: torch.Tensor, tgt_in: torch.Tensor, tgt_out: torch.Tensor) -> float:
        tgt = torch.cat([tgt_in[:, :1], tgt_out], 1)
        stats = Statistics()
        lengths = {"srclen": (src != PAD).sum(1), "tgtlen": (tgt != PAD).sum(1)}
        unused = {"images": None, "prefix_len": None, "cid": (), "cid_line_number": ()}
        batch = {"src": renumbered(src), "tgt": renumbered(tgt)} | lengths | unused
        trainer._process_accumulated_batches(
            [batch], int((tgt_out != PAD).sum()), Statistics(), stats
        )
        return stats.loss / stats.n_tokens

    return learn


LEARNERS = {
    "transduce": transduce_learner,
    "transformers": transformers_learner,
    "eole": eole_learner,
}

if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        print(json.dumps(measure(*json.loads(sys.argv[2]))))
    else:
        from measuring import run_script  # other toolkits' environments lack its packages

        run_script(main, __doc__)
