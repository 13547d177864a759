"""Connects the processes of a training run, and ends all of them if one dies.

If a process dies, torchrun ends only the other processes on the same machine. Other launchers end no process. Processes
on other machines would hang in an all-reduce. Therefore rank 0 exchanges heartbeats with every other rank over gloo.
If a rank dies, rank 0 ends all other ranks. If rank 0 dies, each of the other ranks ends itself.
"""

import datetime
import os
import socket
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from transduce.system.console import log
from transduce.system.errors import UserError

JOIN_SECONDS = 300.0  # processes on a cluster may start minutes after each other
TORCHRUN_JOIN_SECONDS = 45.0  # torchrun waits for all machines before it starts processes
STALE_TIMEOUT = datetime.timedelta(seconds=2)  # the stored address may be that of a dead rank 0
NOTICE_SECONDS = 20.0  # time until a message names the missing rank
ALL_REDUCE_TIMEOUT = datetime.timedelta(seconds=300)
HEARTBEAT_SECONDS = 10.0
# A rank counts as dead after this time without heartbeats: a machine without power closes no connection.
SILENCE_SECONDS = 120.0
# Delay of error reports: if a dead rank is the cause, another thread reports it first.
CAUSE_SECONDS = 5.0
MESSAGE_BYTES = 1024
FINISHED = "finished"


def environment_number(name: str, default: int | None = None) -> int:
    """The number in the environment variable `name`, or `default` if it is unset. Raises UserError for other text."""
    text = os.environ.get(name, "")
    if not text and default is not None:
        return default
    if not text.isdecimal():
        raise UserError(
            f"{name} is '{text}', but it must be a number, since WORLD_SIZE is set.",
            "Start the processes with torchrun, or unset WORLD_SIZE.",
        )
    return int(text)


def meet(rank: int, world: int) -> "FailureDetector":
    """Join the other ranks in a process group. Raises UserError if a rank is missing."""
    try:
        store = _store(rank)
        names = _roll_call(store, rank, world)
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(
            backend, store=store, rank=rank, world_size=world, timeout=ALL_REDUCE_TIMEOUT
        )
        return FailureDetector(names, rank)
    except (RuntimeError, ValueError) as error:
        raise UserError(
            f"Rank {rank} of {world} can't connect to the others: {' '.join(str(error).split())}; all ranks need the "
            "same MASTER_ADDR, MASTER_PORT and WORLD_SIZE, and must be started together."
        ) from error


def _store(rank: int) -> Any:
    """Return the key-value store that all ranks share. Rank 0 creates the store."""
    address = os.environ.get("MASTER_ADDR") or "localhost"
    port = environment_number("MASTER_PORT")
    if port > 65535:
        raise UserError(f"MASTER_PORT is {port}; the highest port is 65535.")
    timeout = datetime.timedelta(seconds=JOIN_SECONDS)
    if not _has_torchrun():
        return TCPStore(address, port, None, rank == 0, timeout)
    # torchrun's own store keeps the keys of earlier starts. It only serves to share a new store's address.
    meeting = TCPStore(address, port, None, False, timeout)
    if rank == 0:
        store = TCPStore("localhost", 0, None, True, timeout)
        meeting.set("transduce/rank 0", f"{_own_address(address, port)} {store.port}")
        return store
    until = time.monotonic() + TORCHRUN_JOIN_SECONDS
    while True:
        address, number = meeting.get("transduce/rank 0").decode().split()
        try:
            store = TCPStore(address, int(number), None, False, STALE_TIMEOUT)
        except RuntimeError:
            if time.monotonic() > until:
                raise
        else:
            store.set_timeout(timeout)
            return store


def _own_address(address: str, port: int) -> str:
    """The IP address of this machine in the network of `address`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender, suppress(OSError):
        sender.connect((address, port))  # sends nothing
        return str(sender.getsockname()[0])
    return address


def _has_torchrun() -> bool:
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


def _roll_call(store: Any, rank: int, world: int) -> list[str]:
    """Wait for all ranks and return their names. Raises UserError if a rank is missing or exists twice."""
    name = f"Rank {rank} (process {os.getpid()} on {socket.gethostname()})"
    if store.add(f"transduce/count/{rank}", 1) > 1:
        raise UserError(
            f"Two processes have the same rank: {name}.", "Give each process its own RANK."
        )
    store.set(f"transduce/name/{rank}", name)
    seconds = TORCHRUN_JOIN_SECONDS if _has_torchrun() else JOIN_SECONDS
    for other in range(world):
        keys = [f"transduce/name/{other}"]
        missing = f"{name} has not heard from rank {other}"
        try:
            store.wait(keys, datetime.timedelta(seconds=min(NOTICE_SECONDS, seconds)))
        except RuntimeError:
            log(f"{missing}: was it killed, or never started? Waiting up to {seconds:.0f} seconds.")
            try:
                store.wait(keys, datetime.timedelta(seconds=max(1.0, seconds - NOTICE_SECONDS)))
            except RuntimeError:
                raise UserError(
                    f"{missing} for {seconds:.0f} seconds.",
                    "Start all ranks together, and check the network.",
                ) from None
    return [store.get(f"transduce/name/{other}").decode() for other in range(world)]


class FailureDetector:
    """Exchanges heartbeats between rank 0 and every other rank, and ends this process if another rank dies."""

    def __init__(self, names: Sequence[str], rank: int) -> None:
        """Start the heartbeats (collective call). `names` holds the name of each rank, for messages."""
        self._names = names
        self._rank = rank
        self._peers = list(range(1, len(names))) if rank == 0 else [0]
        self._group = dist.new_group(
            backend="gloo", timeout=datetime.timedelta(seconds=SILENCE_SECONDS)
        )
        self._ending = threading.Event()
        self._sending = threading.Lock()
        self._listeners = [
            threading.Thread(target=self._listen, args=(peer,), daemon=True) for peer in self._peers
        ]
        for thread in [*self._listeners, threading.Thread(target=self._beat, daemon=True)]:
            thread.start()

    def close(self, error: BaseException | None = None) -> None:
        """Tell other ranks that this process ends because of `error`, or has finished if `error` is None."""
        if error and not isinstance(error, (UserError, KeyboardInterrupt, SystemExit)):
            time.sleep(CAUSE_SECONDS)
        self._ending.set()
        self._send(f"{self._names[self._rank]} ended: {_sentence(error)}" if error else FINISHED)
        for (
            listener
        ) in self._listeners:  # a thread that wakes while Python shuts down aborts the process
            listener.join(CAUSE_SECONDS)

    def _beat(self) -> None:
        while not self._ending.wait(HEARTBEAT_SECONDS):
            self._send("")

    def _send(self, text: str) -> None:
        message = torch.tensor(
            list(text.encode()[:MESSAGE_BYTES].ljust(MESSAGE_BYTES, b"\0")), dtype=torch.uint8
        )
        for peer in self._peers:
            with self._sending, suppress(RuntimeError):  # the listener reports a dead peer
                dist.send(message, peer, group=self._group)

    def _listen(self, peer: int) -> None:
        message = torch.zeros(MESSAGE_BYTES, dtype=torch.uint8)
        text = ""
        while not text:
            try:
                dist.recv(message, peer, group=self._group)
            except RuntimeError:
                text = f"{self._names[peer]} died: it was killed (out of memory?), or its machine is down."
            else:
                text = bytes(message.tolist()).rstrip(b"\0").decode("utf-8", "replace")
        if text == FINISHED or self._ending.is_set():
            return
        self._send(text)  # rank 0 sends to all other ranks
        print(f"transduce: {text}", file=sys.stderr, flush=True)
        os._exit(1)  # the main thread may hang where no exception reaches it


def _sentence(error: BaseException) -> str:
    """The message of an error, on one line."""
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        return "it was interrupted."
    text = " ".join(str(error).split())
    return text if isinstance(error, UserError) else f"{type(error).__name__}: {text}"
