"""Connections between the processes of one training, by which all learn at once that one has ended, and why.

Rank 0 listens, the others call it. Whoever ends in good order says so, whoever fails says why; a connection that breaks
without a word belonged to a process that was killed. What one says, rank 0 tells all others, and every process ends:
it would wait for ever, or for half an hour, for a sum that never comes.
"""

import json
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, TextIO

from transduce.errors import UserError

END = "end"
ANSWER_SECONDS = 10.0
SECOND_THOUGHTS = 5.0  # seconds in which another's end may turn out to be the cause of an error here
KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4}  # a machine without power is found in 30 seconds


class Lifeline:
    """This process's connections: of rank 0 to all others, of the others to rank 0."""

    def __init__(self, rank: int) -> None:
        self.name = f"Rank {rank} (process {os.getpid()} on {socket.gethostname()})"
        self._peers: list[socket.socket] = []
        self._over = threading.Event()  # this process ends by itself

    def fail(self, error: BaseException) -> None:
        """Tell the others why this process ends; if the reason may be that another has ended, wait for word of that."""
        if not isinstance(error, (UserError, KeyboardInterrupt, SystemExit)):
            time.sleep(SECOND_THOUGHTS)
        self._over.set()
        self._tell(f"{self.name} ended: {_sentence(error)}")

    def close(self) -> None:
        """Say that this process ends in good order."""
        self._over.set()
        self._tell(END)

    def follow(self, peer: socket.socket, words: TextIO, name: str) -> None:
        """From now on, end with this peer, of which `words` reads what it says."""
        for option, value in KEEPALIVE.items():
            if hasattr(socket, option):  # some are Linux's own
                peer.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        peer.settimeout(None)
        self._peers.append(peer)
        threading.Thread(target=self._wait, args=(words, name), daemon=True).start()

    def _wait(self, words: TextIO, name: str) -> None:
        word = ""
        with suppress(OSError):
            word = words.readline().strip()
        if word == END or self._over.is_set():
            return
        cause = word or f"{name} is gone without a word: it was killed (for want of memory?), or its machine is down."
        self._tell(cause)
        print(f"transduce: {cause}", file=sys.stderr, flush=True)
        os._exit(1)  # the main thread may be waiting where no exception reaches it

    def _tell(self, word: str) -> None:
        for peer in self._peers:
            with suppress(OSError):
                peer.sendall(f"{word}\n".encode())


class Listener:
    """Rank 0's end, before the others have called."""

    def __init__(self, addresses: Sequence[str]) -> None:
        """addresses: by which other machines may reach this one."""
        both = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if both else socket.AF_INET
        self._server = socket.create_server(("", 0), family=family, dualstack_ipv6=both)
        self._token = secrets.token_hex()
        self.announcement = json.dumps([list(addresses), self._server.getsockname()[1], self._token])

    def accept(self, count: int, welcome: str, seconds: float) -> Lifeline:
        """Wait for so many calls and answer each with `welcome`; strangers are sent away.

        Raises UserError if they don't come.
        """
        lifeline, until = Lifeline(0), time.monotonic() + seconds
        with self._server:
            while count:
                self._server.settimeout(max(until - time.monotonic(), 0.01))
                try:
                    peer, _ = self._server.accept()
                except TimeoutError:
                    raise UserError(
                        f"{count} ranks have not come in {seconds:.0f} seconds; start all together."
                    ) from None
                peer.settimeout(ANSWER_SECONDS)
                words = peer.makefile(encoding="utf-8")
                name = self._greeted(words)
                if name:
                    with suppress(OSError):
                        peer.sendall(f"{welcome}\n".encode())
                    lifeline.follow(peer, words, name)
                    count -= 1
                else:
                    words.close()
                    peer.close()
        return lifeline

    def _greeted(self, words: TextIO) -> str:
        """The caller's name, or nothing if it does not know the word."""
        try:
            token, name = json.loads(words.readline())
        except (OSError, ValueError, TypeError):
            return ""
        return str(name) if secrets.compare_digest(str(token), self._token) else ""


class Welcome(NamedTuple):
    """What a call to rank 0 leads to."""

    lifeline: Lifeline
    address: str  # of rank 0, as it was reached
    text: str


def call(announcement: Callable[[], str], rank: int, seconds: float) -> Welcome:
    """Reach rank 0 at what it announces, which may for a while be what an earlier one did that has died.

    Raises UserError if rank 0 can't be reached.
    """
    lifeline, until = Lifeline(rank), time.monotonic() + seconds
    while True:
        addresses, port, token = json.loads(announcement())
        for address in addresses:
            with suppress(OSError):
                peer = socket.create_connection((address, port), timeout=ANSWER_SECONDS)
                peer.sendall((json.dumps([token, lifeline.name]) + "\n").encode())
                words = peer.makefile(encoding="utf-8")
                if text := words.readline().strip():
                    lifeline.follow(peer, words, f"Rank 0 on {address}")
                    return Welcome(lifeline, address, text)
        if time.monotonic() > until:
            where = " or ".join(addresses)
            raise UserError(f"{lifeline.name} can't reach rank 0 at {where}, port {port}; see to the network.")
        time.sleep(0.2)


def _sentence(error: BaseException) -> str:
    """What is wrong, on one line."""
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        return "it was interrupted."
    text = " ".join(str(error).split())
    return text if isinstance(error, UserError) else f"{type(error).__name__}: {text}"
