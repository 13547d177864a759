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
from contextlib import suppress

from transduce.errors import UserError

END = "end"
CALL_SECONDS = 60.0  # for all to have called
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

    def follow(self, peer: socket.socket, name: str) -> None:
        """From now on, end with this peer."""
        for option, value in KEEPALIVE.items():
            if hasattr(socket, option):  # some are Linux's own
                peer.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        peer.settimeout(None)
        self._peers.append(peer)
        threading.Thread(target=self._wait, args=(peer, name), daemon=True).start()

    def _wait(self, peer: socket.socket, name: str) -> None:
        word = ""
        with suppress(OSError):
            word = peer.makefile(encoding="utf-8").readline().strip()
        if word == END or self._over.is_set():
            return
        cause = word or f"{name} is gone without a word: it was killed, for want of memory perhaps, or its machine was."
        self._tell(cause)
        print(f"transduce: {cause}", file=sys.stderr, flush=True)
        os._exit(1)  # the main thread may be waiting where no exception reaches it

    def _tell(self, word: str) -> None:
        for peer in self._peers:
            with suppress(OSError):
                peer.sendall(f"{word}\n".encode())


class Listener:
    """Rank 0's end, before the others have called: an address and a word to be known by."""

    def __init__(self) -> None:
        both = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if both else socket.AF_INET
        self._server = socket.create_server(("", 0), family=family, dualstack_ipv6=both)
        self.port = self._server.getsockname()[1]
        self.token = secrets.token_hex()

    def accept(self, count: int) -> Lifeline:
        """Wait for so many calls; strangers are sent away. Raises UserError if they don't come."""
        lifeline, until = Lifeline(0), time.monotonic() + CALL_SECONDS
        with self._server:
            while count:
                self._server.settimeout(max(until - time.monotonic(), 0.01))
                try:
                    peer, _ = self._server.accept()
                except TimeoutError:
                    raise UserError(
                        f"{count} ranks don't reach rank 0 at port {self.port}; see to the network."
                    ) from None
                name = self._greeted(peer)
                if name:
                    lifeline.follow(peer, name)
                    count -= 1
                else:
                    peer.close()
        return lifeline

    def _greeted(self, peer: socket.socket) -> str:
        """The caller's name, or nothing if it does not know the word."""
        peer.settimeout(10)
        try:
            token, name = json.loads(peer.makefile(encoding="utf-8").readline())
        except (OSError, ValueError, TypeError):
            return ""
        return str(name) if secrets.compare_digest(str(token), self.token) else ""


def call(address: str, port: int, token: str, rank: int) -> Lifeline:
    """The lifeline of another rank than the first; raises UserError if rank 0 can't be reached."""
    lifeline = Lifeline(rank)
    try:
        peer = socket.create_connection((address, port), timeout=CALL_SECONDS)
        peer.sendall((json.dumps([token, lifeline.name]) + "\n").encode())
    except OSError as error:
        raise UserError(
            f"{lifeline.name} can't reach rank 0 at {address}:{port}: {error}; see to the network."
        ) from None
    lifeline.follow(peer, f"Rank 0 on {address}")
    return lifeline


def _sentence(error: BaseException) -> str:
    """What is wrong, on one line."""
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        return "it was interrupted."
    text = " ".join(str(error).split())
    return text if isinstance(error, UserError) else f"{type(error).__name__}: {text}"
