"""Where the planning of a server happens: beside the event loop, and never too much at once."""

import asyncio
import multiprocessing
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from service.outcomes import BusyError

A = TypeVar("A")
B = TypeVar("B")


class Workers:
    """Runs tasks in processes, or in one thread when `processes` is 0 (for tests).

    At most `max_waiting` tasks wait for a free worker; more are refused at once.
    """

    def __init__(self, *, processes: int, max_waiting: int) -> None:
        self._processes = processes
        self._room = max(1, processes) + max_waiting
        self._running = 0
        self._executor = self._make_executor()

    async def run(self, task: Callable[[A], B], argument: A) -> B:
        """The task's result; raises `BusyError` when there is no room or the worker died."""
        if self._running >= self._room:
            raise BusyError("all workers are busy; try again in a moment")
        executor = self._executor
        self._running += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(executor, task, argument)
        except BrokenProcessPool as error:
            self._replace(executor)
            raise BusyError("the worker died and was replaced; try again") from error
        finally:
            self._running -= 1

    def close(self) -> None:
        """Stop the workers; what runs is finished first."""
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _make_executor(self) -> Executor:
        if self._processes == 0:
            return ThreadPoolExecutor(max_workers=1)
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(max_workers=self._processes, mp_context=context)

    def _replace(self, broken: Executor) -> None:
        if self._executor is broken:
            broken.shutdown(wait=False)
            self._executor = self._make_executor()
