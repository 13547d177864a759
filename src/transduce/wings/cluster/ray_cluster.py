"""Runs shards as Ray tasks, on this machine or on a cluster."""

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

from transduce.system.errors import Hint, UserError
from transduce.system.machine import cores
from transduce.wings.cluster.shards import Plan, Shard, check_version

LOCAL, CLIENT = "ray", "ray://"
SHARD_ATTEMPTS = 4  # per shard: workers may also die for reasons outside the shard
OBJECT_STORE_BYTES = 160 << 20  # Ray requires at least 75 MiB
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # Ray's future default; setting it avoids a warning
    "RAY_worker_niceness": "0",  # with Ray's default of 15, all other processes would have priority
}

# A shard, and the further arguments of the function that processes it.
Task = tuple[Shard, tuple[Any, ...]]


class Pool(NamedTuple):
    """The number of workers, and the numbers of CPUs and GPUs that each worker uses."""

    size: int
    cpus: int
    gpus: int


def read_address(on: str) -> str:
    """Parse the value of `--on` into a Ray address, or "" for this machine. Raises UserError for an invalid value."""
    if on == LOCAL:
        return os.environ.get("RAY_ADDRESS", "")
    if on.startswith(CLIENT):
        return on
    raise UserError(f"{on} is not a Ray cluster.", "Give ray or ray://HOST:PORT.")


@contextmanager
def ray_pool(address: str, workers: int | None, *, gpus: bool = True) -> Iterator[Pool]:
    """Start Ray on this machine or connect to a cluster, and yield the pool of workers.

    If `gpus` is true and there are GPUs, each worker uses one GPU. Raises UserError if Ray is missing or unreachable.
    """
    if workers is not None and workers < 1:
        raise UserError(
            f"{workers} workers are too few.",
            "Give at least 1, or leave out the number of workers.",
        )
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    logging.getLogger("ray").setLevel(logging.ERROR)
    try:
        import ray
    except ImportError:
        raise UserError("Ray is not installed.", Hint.install("scale")) from None
    folder = "" if address else tempfile.mkdtemp(prefix="ray-", dir=_short_folder())
    local = {
        "num_cpus": workers or cores(),
        "include_dashboard": False,
        "object_store_memory": OBJECT_STORE_BYTES,
    }
    try:
        with _silence():
            _start(address, {} if address else local | {"_temp_dir": folder})
        with redirect_stdout(sys.stderr):  # Ray reports dead workers on stdout
            yield _pool(workers, gpus)
    finally:
        ray.shutdown()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def run_tasks(
    pool: Pool, plan: Plan, tasks: Iterable[Task], do: Callable[..., object], things: str
) -> Iterator[Shard]:
    """Call `do` in a Ray worker for each task, and yield the task's shard when the call has succeeded.

    If a worker dies, another worker repeats its task. Raises UserError if `do` raises UserError, or after the last task
    if SHARD_ATTEMPTS workers died at one task. `things` is "lines" or "pairs", for the error message.
    """
    import ray

    # max_calls=0: workers stay alive and load the model once. By default, Ray starts a new worker for each GPU task.
    run = ray.remote(num_cpus=pool.cpus, num_gpus=pool.gpus, max_retries=0, max_calls=0)(_run)
    new = iter(tasks)
    again = deque[Task]()
    running: dict[Any, Task] = {}
    attempts = Counter[Shard]()
    given_up = list[Shard]()
    while True:
        # New tasks first, so that a shard that kills its workers doesn't delay the others.
        while len(running) < pool.size and (
            task := next(new, None) or (again.popleft() if again else None)
        ):
            shard, arguments = task
            attempts[shard] += 1
            running[run.remote(do, plan, Path.cwd(), shard, *arguments)] = task
        if not running:
            break
        [done], _ = ray.wait([*running], num_returns=1)
        task = running.pop(done)
        shard = task[0]
        try:
            error: UserError | None = ray.get(done)
        except ray.exceptions.RayTaskError:
            raise
        except ray.exceptions.RayError:  # the worker died
            if attempts[shard] < SHARD_ATTEMPTS:
                again.append(task)
            else:
                given_up.append(shard)
            continue
        if error:
            raise error
        yield shard
    if given_up:
        named = "; ".join(f"{shard} ({plan.part(shard, things)})" for shard in given_up)
        raise UserError(
            f"The worker died in all {SHARD_ATTEMPTS} attempts at shard {named}. Possible causes: the input crashes "
            "the worker, or the memory is too small.",
            "Fix the cause and repeat the command; complete shards are kept.",
        )


def _run(
    do: Callable[..., object], plan: Plan, home: Path, shard: Shard, *arguments: Any
) -> UserError | None:
    """Call `do` in a worker, in the folder `home`. Returns the UserError that `do` raised, or None on success."""
    try:
        check_version(plan)
        _enter(home)
        do(shard, *arguments)
    except UserError as error:
        return error
    return None


def _enter(folder: Path) -> None:
    try:
        os.chdir(folder)
    except OSError as error:
        raise UserError(
            f"A worker can't enter {folder}: {error.strerror}.",
            "All machines need the same files under the same paths.",
        ) from None


@contextmanager
def _silence() -> Iterator[None]:
    """Discard everything that is written to standard error inside the `with` block."""
    kept = os.dup(2)
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _start(address: str, options: dict[str, Any]) -> None:
    import ray

    try:
        ray.init(address or "local", logging_level=logging.ERROR, log_to_driver=False, **options)
    except (ConnectionError, ImportError, RuntimeError, ValueError) as error:
        if not address:
            raise
        why = str(error).strip().partition("\n")[0] or type(error).__name__
        raise UserError(
            f"The Ray cluster {address} can't be reached: {why.rstrip('.')}.",
            "Check whether it is running.",
        ) from None


def _pool(workers: int | None, gpus: bool) -> Pool:
    import ray

    resources = ray.cluster_resources()
    cards = int(resources.get("GPU", 0)) if gpus else 0
    processors = max(1, int(resources.get("CPU", 1)))
    if cards:
        return Pool(min(workers or cards, cards), 0, 1)
    return Pool(min(workers or processors, processors), 1, 0)


def _short_folder() -> str | None:
    """A short path for the parent of Ray's temporary folder, or None if Python's default path is short enough."""
    return None if len(tempfile.gettempdir()) < 30 else "/tmp"
