"""Ray, started and ended, and work handed to it: the one place that knows how.

Ray is an extra. It is started without a dashboard, without reports to its makers, with a small store of objects, and
in a folder of its own that goes when it ends.
"""

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from transduce.system.errors import UserError
from transduce.system.files import write_text
from transduce.system.machine import cores
from transduce.wings.cluster.shards import Plan, Shard, check_version

LOCAL, CLIENT = "ray", "ray://"
COMPLAINT, GIVEN_UP = "complaint", "given up"  # columns of what workers return: a sentence or nothing; whether
TRIES = 4  # of a shard: a worker may die for reasons that lie elsewhere, three times of four
BEGUN = ".begun"  # ends the name of a file with a byte for every worker that began a shard
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
    if on.startswith(CLIENT):
        return on
    raise UserError(f"--on {on} is not known: give --on ray, or --on ray://HOST:PORT for a cluster.")


def conduct(address: str, workers: int | None, work: Callable[[Pool], None], *, gpus: bool = True) -> None:
    """Do the work with Ray, which runs so long, and the workers that there is room for.

    work: hands rows to workers; behind a client port, where Ray Data can't be used, it is done on the cluster itself.
    gpus: whether a worker can use one. Raises UserError if Ray isn't installed or the cluster can't be reached, and
    what `work` complains of.
    """
    if workers is not None and workers < 1:
        raise UserError(f"--workers {workers} are too few: give 1 or more, or leave it out for one a core.")
    with _running(address, workers):
        if address.startswith(CLIENT):
            import ray

            complaint = ray.get(
                ray.remote(num_cpus=0, max_retries=0)(_work_there).remote(work, workers, gpus, Path.cwd())
            )
            if complaint:
                raise UserError(complaint)
        else:
            _quieten()
            work(_pool(workers, gpus))


def _work_there(work: Callable[[Pool], None], workers: int | None, gpus: bool, home: Path) -> str:
    """Do the work in a process on the cluster; what it complains of."""
    try:
        with working_in(home):
            _quieten()
            work(_pool(workers, gpus))
    except UserError as error:
        return str(error)
    return ""


@contextmanager
def _running(address: str, workers: int | None) -> Iterator[None]:
    """A block in which Ray runs; what was started for it ends with it."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    logging.getLogger("ray").setLevel(logging.ERROR)
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
        with redirect_stdout(sys.stderr):  # where Ray tells of workers that died
            yield
    finally:
        ray.shutdown()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def do_shard(row: Mapping[str, Any], folder: Path, plan: Plan, home: Path, do: Callable[[Shard], object]) -> Row:
    """Do the shard that a row is about, in a worker; the row that tells of it.

    Ray gives a shard of which the worker dies to another one, without end. So the folder of the shards knows how often
    it was begun, and after TRIES it is given up, for the others' sake.
    """
    shard, complaint, tries = Shard(int(row["number"][0]), plan.shards), "", 0
    try:
        check_version(plan)
        with working_in(home):
            begun = folder / f".{shard.name}{BEGUN}"
            tries = begun.stat().st_size if begun.exists() else 0
            if tries < TRIES:
                write_text(begun, "." * (tries + 1))
                do(shard)
                begun.unlink(missing_ok=True)
    except UserError as error:
        complaint = str(error)
    return {"number": row["number"], COMPLAINT: [complaint], GIVEN_UP: [tries >= TRIES]}


def forget_tries(folder: Path) -> None:
    """Have every shard tried as often again as if it had never been."""
    for begun in folder.glob(f".*{BEGUN}"):
        begun.unlink()


def raise_complaints(rows: Iterable[Mapping[str, Any]], plan: Plan, things: str) -> None:
    """Go through what workers return, until one complains: raise UserError with its sentence.

    They return what is the user's mistake, as it is no reason to try again; whatever else they raise, Ray does. In the
    end, raise UserError if shards were given up. things: what the plan shares out.
    """
    given_up = []
    for row in rows:
        if row[COMPLAINT]:
            raise UserError(row[COMPLAINT])
        if row[GIVEN_UP]:
            given_up.append(Shard(int(row["number"]), plan.shards))
    if given_up:
        named = "; ".join(f"{shard} ({plan.part(shard, things)})" for shard in given_up)
        raise UserError(
            f"The worker died {TRIES} times of {TRIES} at shard {named}: something there crashes it, or memory is "
            "short; mend that and start the same command again, which keeps all other shards."
        )


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Have relative names mean in a worker what they mean where the call was started."""
    try:
        before = Path.cwd()
        os.chdir(folder)
    except OSError as error:
        raise UserError(
            f"A worker can't enter {folder}: {error.strerror}; all machines need the same files at the same place."
        ) from None
    try:
        yield
    finally:
        os.chdir(before)


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
        why = str(error).strip().partition("\n")[0] or type(error).__name__
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
