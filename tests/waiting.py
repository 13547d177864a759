"""Waiting for what another process or thread does, on a machine that may be slow and busy with ten other things."""

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 600.0  # seconds; what is waited for takes a fiftieth of it on an idle machine
PAUSE = 0.04  # seconds between two looks

Found = TypeVar("Found")


def wait_for(condition: Callable[[], Found], ended: Callable[[], object] = lambda: False) -> Found:
    """What the condition gives once that is true; it must not take PATIENCE, nor may what it depends on have ended."""
    until = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert not ended(), "it has ended, and what is waited for can't come any more"
        assert time.monotonic() < until, "what is waited for has not come"
        time.sleep(PAUSE)
    return found
