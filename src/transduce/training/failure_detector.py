"""Ends this process when another rank has died, instead of hanging in an all-reduce.

torchrun ends the processes of its own machine only, and other launchers end none. So rank 0 and every other rank send
each other heartbeats over gloo: if a process dies, its connections close and the others notice at once.
"""

import datetime
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

import torch
import torch.distributed as dist

from transduce.system.errors import UserError

HEARTBEAT_SECONDS = 10.0
SILENCE_SECONDS = 120.0  # a machine without power or network closes no connection
CAUSE_SECONDS = 5.0  # an error here may be the consequence of a death that another thread is about to report
MESSAGE_BYTES = 1024
FINISHED = "finished"


class FailureDetector:
    """Heartbeats of rank 0 with every other rank; an empty message is a heartbeat, a text the reason to end."""

    def __init__(self, names: Sequence[str], rank: int) -> None:
        """names: of all ranks, for messages. All ranks must call it."""
        self._names, self._rank = names, rank
        self._peers = list(range(1, len(names))) if rank == 0 else [0]
        self._group = dist.new_group(backend="gloo", timeout=datetime.timedelta(seconds=SILENCE_SECONDS))
        self._ending, self._sending = threading.Event(), threading.Lock()
        self._listeners = [threading.Thread(target=self._listen, args=(peer,), daemon=True) for peer in self._peers]
        for thread in [*self._listeners, threading.Thread(target=self._beat, daemon=True)]:
            thread.start()

    def fail(self, error: BaseException) -> None:
        """Tell the other ranks why this process ends."""
        if not isinstance(error, (UserError, KeyboardInterrupt, SystemExit)):
            time.sleep(CAUSE_SECONDS)
        self._end_with(f"{self._names[self._rank]} ended: {_sentence(error)}")

    def close(self) -> None:
        """Tell the other ranks that this process ends as planned."""
        self._end_with(FINISHED)

    def _end_with(self, text: str) -> None:
        self._ending.set()
        self._send(text)
        for listener in self._listeners:  # a thread that wakes while Python shuts down aborts the process
            listener.join(CAUSE_SECONDS)

    def _beat(self) -> None:
        while not self._ending.wait(HEARTBEAT_SECONDS):
            self._send("")

    def _send(self, text: str) -> None:
        message = torch.zeros(MESSAGE_BYTES, dtype=torch.uint8)
        encoded = text.encode()[:MESSAGE_BYTES]
        message[: len(encoded)] = torch.tensor(list(encoded), dtype=torch.uint8)
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
        self._send(text)  # from rank 0 to the others
        print(f"transduce: {text}", file=sys.stderr, flush=True)
        os._exit(1)  # the main thread may hang where no exception reaches it


def _sentence(error: BaseException) -> str:
    """What is wrong, on one line."""
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        return "it was interrupted."
    text = " ".join(str(error).split())
    return text if isinstance(error, UserError) else f"{type(error).__name__}: {text}"
