"""Where the work of a server happens: beside the event loop, never too much at once, never long."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

from service.outcomes import BusyError
from service.worker import ProcessWorker, ThreadWorker, Worker

A = TypeVar("A")
B = TypeVar("B")


class Workers:
    """Runs tasks in processes, or in one thread when `processes` is 0 (for tests).

    At most `max_waiting` tasks wait for a free worker, each at most `max_wait_s`; others are
    refused.
    """

    def __init__(self, *, processes: int, max_waiting: int, max_wait_s: float) -> None:
        number = max(1, processes)
        self._workers: list[Worker] = [
            ProcessWorker() if processes else ThreadWorker() for _ in range(number)
        ]
        self._idle: asyncio.Queue[Worker] = asyncio.Queue()
        for worker in self._workers:
            self._idle.put_nowait(worker)
        self._callers = ThreadPoolExecutor(max_workers=number)
        self._room = number + max_waiting
        self._running = 0
        self._max_wait_s = max_wait_s

    async def run(self, task: Callable[[A], B], argument: A, *, limit_s: float) -> B:
        """The task's result.

        Raises BusyError when there is no room or no worker gets free, OverdueError when the task
        takes longer than `limit_s`; its worker is then stopped and replaced.
        """
        if self._running >= self._room:
            raise BusyError("all workers are busy; try again in a moment")
        self._running += 1
        try:
            worker = await asyncio.wait_for(self._idle.get(), self._max_wait_s)
        except TimeoutError:
            self._running -= 1
            raise BusyError(f"no worker got free in {self._max_wait_s:g} s; try later") from None
        except BaseException:
            self._running -= 1
            raise
        return await asyncio.shield(self._call(worker, task, argument, limit_s))

    def close(self) -> None:
        """Stop the workers, whatever they do."""
        for worker in self._workers:
            worker.close()
        self._callers.shutdown(wait=True, cancel_futures=True)

    async def _call(self, worker: Worker, task: Callable[[A], B], argument: A, limit_s: float) -> B:
        """Run to the end also when nobody waits for it any more: the worker is taken until then."""
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(self._callers, worker.call, task, argument, limit_s)
        finally:
            self._idle.put_nowait(worker)
            self._running -= 1
        return cast("B", found)
