"""Shards on Ray: starts Ray or connects to a cluster, and hands shards to its workers as tasks."""

import logging
import os
import shutil
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from transduce.system.errors import UserError
from transduce.system.machine import cores
from transduce.wings.cluster.shards import Plan, Shard, check_version

LOCAL, CLIENT = "ray", "ray://"
SHARD_ATTEMPTS = 4  # per shard: a worker may die for reasons that lie elsewhere
OBJECT_STORE_BYTES = 160 << 20  # Ray wants at least 75 MiB
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # its coming default, without the warning
    "RAY_worker_niceness": "0",  # Ray's 15 would let everything else on the machine run first
}

Task = tuple[Shard, tuple[Any, ...]]  # a shard, and what its worker needs beside it


class Pool(NamedTuple):
    """Workers that run at the same time."""

    size: int
    cpus: int  # of each
    gpus: int


def read_address(on: str) -> str:
    """The address of the cluster that "ray" or "ray://HOST:PORT" names, "" for this machine.

    Raises UserError for anything else.
    """
    if on == LOCAL:
        return os.environ.get("RAY_ADDRESS", "")
    if on.startswith(CLIENT):
        return on
    raise UserError(f"{on} is no Ray cluster: give ray, or ray://HOST:PORT.")


@contextmanager
def ray_pool(address: str, workers: int | None, *, gpus: bool = True) -> Iterator[Pool]:
    """A block in which Ray runs, with the workers that there is room for; what was started for it ends with it.

    gpus: a worker gets a GPU if the cluster has any. Raises UserError if Ray isn't installed or the cluster can't be
    reached.
    """
    if workers is not None and workers < 1:
        raise UserError(f"{workers} workers are too few: give 1 or more, or leave the number out for one a core.")
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    logging.getLogger("ray").setLevel(logging.ERROR)
    try:
        import ray
    except ImportError:
        raise UserError("Ray is not installed: pip install 'transduce[scale]'") from None
    folder = "" if address else tempfile.mkdtemp(prefix="ray-", dir=_short_folder())
    local = {"num_cpus": workers or cores(), "include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
    try:
        with _silence():
            _start(address, {} if address else local | {"_temp_dir": folder})
        with redirect_stdout(sys.stderr):  # where Ray reports workers that died
            yield _pool(workers, gpus)
    finally:
        ray.shutdown()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def run_tasks(pool: Pool, plan: Plan, tasks: Iterable[Task], do: Callable[..., object], things: str) -> Iterator[Shard]:
    """Call `do` with every task's shard and arguments, in workers; yields each shard when it is done.

    A shard whose worker dies is given to another one, at most SHARD_ATTEMPTS times in all. Raises UserError that a task
    raises, at once, and for shards that were given up, in the end. things: what the plan shares out, for that error.
    """
    import ray

    # A worker lives until Ray ends, so that it loads a model once; Ray would start a new one for each task on a GPU.
    run = ray.remote(num_cpus=pool.cpus, num_gpus=pool.gpus, max_retries=0, max_calls=0)(_run)
    new, again = iter(tasks), deque[Task]()
    running: dict[Any, Task] = {}
    attempts, given_up = Counter[Shard](), list[Shard]()
    while True:
        # New tasks first, so that a shard that kills workers doesn't keep others waiting.
        while len(running) < pool.size and (task := next(new, None) or (again.popleft() if again else None)):
            shard, arguments = task
            attempts[shard] += 1
            running[run.remote(do, plan, Path.cwd(), shard, *arguments)] = task
        if not running:
            break
        [done], _ = ray.wait([*running], num_returns=1)
        task = running.pop(done)
        shard = task[0]
        try:
            complaint = ray.get(done)
        except ray.exceptions.RayTaskError:
            raise
        except ray.exceptions.RayError:  # the worker died
            if attempts[shard] < SHARD_ATTEMPTS:
                again.append(task)
            else:
                given_up.append(shard)
            continue
        if complaint:
            raise UserError(complaint)
        yield shard
    if given_up:
        named = "; ".join(f"{shard} ({plan.part(shard, things)})" for shard in given_up)
        raise UserError(
            f"The worker died {SHARD_ATTEMPTS} times of {SHARD_ATTEMPTS} at shard {named}: something there crashes it, "
            "or memory is short. Remove the cause and start the same command again, which keeps all other shards."
        )


def _run(do: Callable[..., object], plan: Plan, home: Path, shard: Shard, *arguments: Any) -> str:
    """Do a shard in a worker; returns the message of a UserError, which is no reason to try again.

    home: the folder where the call was started, so that relative names mean the same here.
    """
    try:
        check_version(plan)
        _enter(home)
        do(shard, *arguments)
    except UserError as error:
        return str(error)
    return ""


def _enter(folder: Path) -> None:
    try:
        os.chdir(folder)
    except OSError as error:
        raise UserError(
            f"A worker can't enter {folder}: {error.strerror}; all machines need the same files at the same place."
        ) from None


@contextmanager
def _silence() -> Iterator[None]:
    """Nothing on the standard error while Ray starts, which writes about its own logging; errors are raised."""
    kept = os.dup(2)
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _start(address: str, options: dict[str, Any]) -> None:
    """Start Ray on this machine, or connect to the cluster at an address."""
    import ray

    try:
        ray.init(address or "local", logging_level=logging.ERROR, log_to_driver=False, **options)
    except (ConnectionError, ImportError, RuntimeError, ValueError) as error:
        if not address:
            raise
        why = str(error).strip().partition("\n")[0] or type(error).__name__
        raise UserError(f"The Ray cluster {address} can't be reached: {why.rstrip('.')}; is it running?") from None


def _pool(workers: int | None, gpus: bool) -> Pool:
    import ray

    resources = ray.cluster_resources()
    cards, processors = int(resources.get("GPU", 0)) if gpus else 0, max(1, int(resources.get("CPU", 1)))
    if cards:
        return Pool(min(workers or cards, cards), 0, 1)
    return Pool(min(workers or processors, processors), 1, 0)


def _short_folder() -> str | None:
    """Where Ray's sockets may lie, whose paths can't be long."""
    return None if len(tempfile.gettempdir()) < 30 else "/tmp"
