"""One worker that can be stopped: a process, or for tests a thread that is left behind."""

import multiprocessing
import signal
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from threading import Lock
from typing import Any, Protocol, cast

from service.outcomes import BusyError, OverdueError

Task = Callable[[Any], Any]

START_LIMIT_S = 30.0
"""A process that has not started by then does not start at all."""
WARM = "service.usecases"
"""What a process loads before it says that it is ready."""


class Worker(Protocol):
    """Runs one task at a time."""

    def call(self, task: Task, argument: object, limit_s: float) -> object:
        """The task's result; OverdueError when it takes longer than `limit_s`."""
        ...

    def close(self) -> None:
        """Stop, whatever is being done."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What a task raised, as text: an exception may not survive the way between processes."""

    trace: str


class ProcessWorker:
    """A worker in a process of its own, replaced when it dies or is stopped."""

    def __init__(self) -> None:
        self._closed = False
        self._killing = Lock()
        self._start()

    def call(self, task: Task, argument: object, limit_s: float) -> object:
        """The task's result; a process that is overdue is killed."""
        try:
            if not self._ready:
                self._receive(START_LIMIT_S)
                self._ready = True
            self._connection.send((task, argument))
            answer = self._receive(limit_s)
        except (EOFError, OSError) as error:
            self._restart()
            raise BusyError("the worker died and was replaced; try again") from error
        if isinstance(answer, Failure):
            raise RuntimeError(answer.trace)
        return answer

    def close(self) -> None:
        """Kill the process."""
        self._closed = True
        self._kill()

    def _receive(self, limit_s: float) -> object:
        if not self._connection.poll(limit_s):
            self._restart()
            raise OverdueError(limit_s)
        return self._connection.recv()

    def _restart(self) -> None:
        self._kill()
        if not self._closed:
            self._start()

    def _kill(self) -> None:
        with self._killing:
            self._process.kill()
            self._process.join()
            self._connection.close()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, far = context.Pipe()
        self._process = context.Process(target=serve_tasks, args=(far,), daemon=True)
        self._process.start()
        far.close()
        self._ready = False


def serve_tasks(connection: Connection) -> None:
    """What a worker process does: answer tasks until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import_module(WARM)
    with suppress(EOFError, OSError):
        connection.send(None)
        while True:
            task, argument = cast("tuple[Task, object]", connection.recv())
            connection.send(attempt(task, argument))


def attempt(task: Task, argument: object) -> object:
    """The task's result, or its failure."""
    try:
        return task(argument)
    except Exception:  # noqa: BLE001  the process must outlive the bug
        return Failure(trace=traceback.format_exc())


class ThreadWorker:
    """A worker in a thread. A thread cannot be stopped: one that is overdue is left behind."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1)

    def call(self, task: Task, argument: object, limit_s: float) -> object:
        """The task's result."""
        future = self._executor.submit(task, argument)
        try:
            return future.result(limit_s)
        except TimeoutError:
            self.close()
            self._executor = ThreadPoolExecutor(max_workers=1)
            raise OverdueError(limit_s) from None

    def close(self) -> None:
        """Take no more tasks."""
        self._executor.shutdown(wait=False, cancel_futures=True)
