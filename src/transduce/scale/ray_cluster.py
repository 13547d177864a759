"""Ray, started and ended, and work handed to it: the one place that knows how.

Ray is an extra. It is started without a dashboard, without reports to its makers, with a small store of objects, and
in a folder of its own that goes when it ends.
"""

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from transduce.errors import UserError
from transduce.machine import cores

LOCAL = "ray"
COMPLAINT = "complaint"  # a column of what workers return: a sentence, or nothing
STORE = 160 << 20  # bytes for what is on its way between processes; Ray wants at least 75 MiB
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # its coming default, without the warning
    "RAY_worker_niceness": "0",  # or whatever else runs on the machine comes first
}


Row = dict[str, list[Any]]  # as Ray Data has it: columns by name


class Pool(NamedTuple):
    """Workers that do the same at the same time."""

    size: int
    cpus: int  # of each
    gpus: int


def read_address(on: str) -> str:
    """The address of the cluster that --on names, "" for one on this machine; raises UserError for anything else."""
    if on == LOCAL:
        return os.environ.get("RAY_ADDRESS", "")
    if on.startswith("ray://"):
        return on
    raise UserError(f"--on {on} is not known: give --on ray, or --on ray://HOST:PORT for a cluster.")


@contextmanager
def running(address: str, workers: int | None, *, gpus: bool = True) -> Iterator[Pool]:
    """A block in which Ray runs, with the workers that there is room for; what was started for it ends with it.

    gpus: whether a worker can use one. Raises UserError if Ray isn't installed or the cluster can't be reached.
    """
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise UserError(f"--on ray needs {error.name}: pip install 'transduce[scale]'") from None
    folder = "" if address else tempfile.mkdtemp(prefix="ray-", dir=_short_folder())
    try:
        with _silence():
            if address:
                _connect(address)
            else:
                ray.init(
                    address="local",
                    num_cpus=workers or cores(),
                    include_dashboard=False,
                    object_store_memory=STORE,
                    logging_level=logging.ERROR,
                    log_to_driver=False,
                    _temp_dir=folder,
                )
        _quieten()
        with redirect_stdout(sys.stderr):  # where Ray tells of workers that died
            yield _pool(workers, gpus)
    finally:
        ray.shutdown()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def raise_complaints(rows: Iterable[Mapping[str, Any]]) -> None:
    """Go through what workers return, until one complains: raise UserError with its sentence.

    They return what is the user's mistake, as it is no reason to try again; whatever else they raise, Ray does.
    """
    for row in rows:
        if row[COMPLAINT]:
            raise UserError(row[COMPLAINT])


@contextmanager
def _silence() -> Iterator[None]:
    """Nothing on the standard error while Ray starts, which tells there how much it will tell; what fails is raised."""
    kept = os.dup(2)
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _connect(address: str) -> None:
    import ray

    try:
        ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
    except (ConnectionError, ImportError, RuntimeError, ValueError) as error:
        why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UserError(f"The Ray cluster {address} can't be reached: {why.rstrip('.')}; is it running?") from None


def _quieten() -> None:
    """No progress bars and no reports of every step; what goes wrong is raised."""
    from ray.data import DataContext

    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    context: Any = DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.target_max_block_size = 1  # byte: every row is handed on by itself, as soon as it is there


def _pool(workers: int | None, gpus: bool) -> Pool:
    import ray

    there = ray.cluster_resources()
    cards, processors = int(there.get("GPU", 0)) if gpus else 0, max(1, int(there.get("CPU", 1)))
    if cards:
        return Pool(min(workers or cards, cards), 0, 1)
    return Pool(min(workers or processors, processors), 1, 0)


def _short_folder() -> str | None:
    """Where Ray's sockets may lie, whose paths can't be long."""
    return None if len(tempfile.gettempdir()) < 30 else "/tmp"
