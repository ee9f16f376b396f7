"""Calls of the native part as futures."""

from __future__ import annotations

import asyncio
import atexit
from concurrent.futures import Future
from typing import Any, Callable, TypeVar

from . import _weir

T = TypeVar("T")

GATE = _weir.Gate()
"""Closed when the interpreter ends: no call of the native part comes back after that."""
atexit.register(GATE.close)

Callback = Callable[[Any, Any], None]
Start = Callable[[Callback], "_weir.Task"]


def start(begin: Start, convert: Callable[[Any], T]) -> "Future[T]":
    """Begins a call; the future has what ``convert`` makes of its value."""
    future: "Future[T]" = Future()

    def done(value: Any, error: Any) -> None:
        if not future.set_running_or_notify_cancel():
            return
        if error is not None:
            future.set_exception(error)
            return
        try:
            future.set_result(convert(value))
        except BaseException as failed:  # noqa: B902 - the waiting call raises it
            future.set_exception(failed)

    task = begin(done)
    future.add_done_callback(lambda f: task.cancel() if f.cancelled() else None)
    return future


def waited(future: "Future[T]") -> T:
    """Waits in this thread; an interruption ends the call."""
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


async def awaited(future: "Future[T]") -> T:
    """Waits in asyncio; a cancellation ends the call."""
    return await asyncio.wrap_future(future)
