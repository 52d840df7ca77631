"""Workers: stopped when overdue, replaced when dead, refused when there are too many."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from service.outcomes import BusyError, OverdueError
from service.workers import Workers


def double(value: int) -> int:
    return 2 * value


def sleep(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def die(code: int) -> None:
    os._exit(code)


def fail(word: str) -> None:
    raise ZeroDivisionError(word)


@asynccontextmanager
async def opened(
    *, processes: int = 1, max_waiting: int = 4, max_wait_s: float = 60.0
) -> AsyncGenerator[Workers]:
    workers = Workers(processes=processes, max_waiting=max_waiting, max_wait_s=max_wait_s)
    try:
        yield workers
    finally:
        workers.close()


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario()

    asyncio.run(main())


@pytest.mark.parametrize("processes", [0, 1])
def test_what_is_overdue_is_stopped_and_the_next_task_runs(processes: int) -> None:
    async def scenario() -> None:
        async with opened(processes=processes) as workers:
            assert await workers.run(double, 3, limit_s=60) == 6
            before = time.monotonic()
            with pytest.raises(OverdueError, match="allow more time"):
                await workers.run(sleep, 3.0 if processes == 0 else 600.0, limit_s=0.5)
            assert time.monotonic() - before < 3
            assert await workers.run(double, 4, limit_s=60) == 8

    run(scenario)


def test_a_worker_that_dies_is_replaced_and_one_that_fails_is_kept() -> None:
    async def scenario() -> None:
        async with opened() as workers:
            with pytest.raises(RuntimeError, match="ZeroDivisionError: oh"):
                await workers.run(fail, "oh", limit_s=60)
            with pytest.raises(BusyError, match="died"):
                await workers.run(die, 3, limit_s=60)
            assert await workers.run(double, 5, limit_s=60) == 10

    run(scenario)


def test_nobody_waits_for_ever() -> None:
    async def scenario() -> None:
        async with opened(processes=0, max_waiting=1, max_wait_s=0.2) as workers:
            first = asyncio.create_task(workers.run(sleep, 1.0, limit_s=60))
            await asyncio.sleep(0.05)
            second = asyncio.create_task(workers.run(double, 1, limit_s=60))
            await asyncio.sleep(0.05)
            with pytest.raises(BusyError, match="busy"):
                await workers.run(double, 2, limit_s=60)
            with pytest.raises(BusyError, match="no worker got free"):
                await second
            assert await first == 1.0
            assert await workers.run(double, 3, limit_s=60) == 6

    run(scenario)


def test_a_caller_who_leaves_frees_no_worker_that_is_at_work() -> None:
    async def scenario() -> None:
        async with opened(processes=0) as workers:
            left = asyncio.create_task(workers.run(sleep, 0.5, limit_s=60))
            await asyncio.sleep(0.1)
            left.cancel()
            before = time.monotonic()
            assert await workers.run(double, 3, limit_s=0.3) == 6
            assert time.monotonic() - before > 0.2

    run(scenario)


def test_closing_does_not_wait_for_what_is_stuck() -> None:
    async def scenario() -> None:
        async with opened() as workers:
            await workers.run(double, 1, limit_s=60)
            stuck = asyncio.create_task(workers.run(sleep, 600.0, limit_s=600))
            await asyncio.sleep(0.2)
        with pytest.raises(BusyError):
            await stuck

    run(scenario)
