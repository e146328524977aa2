"""The jobs that tests run inline end as a real worker ends them: the same stream through both."""

import asyncio

import pytest
from procrastinate import RetryStrategy
from sqlalchemy import text

from cardsync.operations.processes.worker import (
    CATALOG_QUEUES,
    NOTICE_QUEUES,
    PICTURE_QUEUES,
    QUEUES,
    SENDING_QUEUES,
    run_worker,
)
from cardsync.platform.concurrency import beside
from cardsync.platform.work.jobs import jobs


@pytest.fixture
def seen():
    """What the tasks below have noted; they are known only while a test runs."""
    notes = []

    @jobs.task(name="test.note", queue="imports")
    async def note(name):
        notes.append(name)

    @jobs.task(name="test.fail", pass_context=True, retry=RetryStrategy(max_attempts=3))
    async def fail(context, name, times):
        notes.append((name, context.job.attempts))
        if context.job.attempts < times:
            raise RuntimeError(name)

    @jobs.task(name="test.later", retry=RetryStrategy(max_attempts=3, wait=3600))
    async def fail_until_later(name):
        notes.append(name)
        raise RuntimeError(name)

    @jobs.task(name="test.crash")
    async def crash(name):
        notes.append(name)
        raise RuntimeError(name)

    @jobs.task(name="test.abort")
    async def abort(name):
        notes.append(name)
        raise asyncio.CancelledError

    @jobs.task(name="test.defer")
    async def defer(name):
        await note.defer_async(name=f"{name}: deferred")
        notes.append(name)

    yield notes
    for name in [name for name in jobs.tasks if name.startswith("test.")]:
        del jobs.tasks[name]


def queued(task, lock=None, **options):
    return jobs.configure_task(f"test.{task}", lock=lock, queue="imports", **options)


async def left_over(service):
    """What waits in the queue, and is taken away."""
    async with service.database.shared() as session:
        rows = await session.execute(
            text("""
                DELETE FROM procrastinate_jobs WHERE task_name LIKE 'test.%'
                RETURNING id, task_name, lock, status, attempts,
                          extract(epoch FROM scheduled_at - now()) AS pause
            """)
        )
        return [
            (row.task_name, row.lock, row.status, row.attempts, row.pause and row.pause > 3000)
            for row in sorted(rows, key=lambda row: row.id)
        ]


async def sent():
    await queued("note").defer_async(name="first")
    await queued("defer").defer_async(name="one that defers")
    await queued("crash", lock="of the crash").defer_async(name="a crash")
    await queued("note", lock="of the crash").defer_async(name="behind the crash")
    await queued("abort", lock="of the abortion").defer_async(name="an abortion")
    await queued("note", lock="of the abortion").defer_async(name="behind the abortion")
    await queued("fail", lock="of retries").defer_async(name="fails twice", times=2)
    await queued("note", lock="of retries").defer_async(name="behind the retries")
    await queued("fail").defer_async(name="fails for good", times=9)
    await queued("later", lock="of an hour").defer_async(name="in an hour")
    await queued("note", lock="of an hour").defer_async(name="behind the hour")
    await queued("note", schedule_in={"hours": 1}).defer_async(name="tomorrow")
    await queued("unknown", allow_unknown=True).defer_async(name="nobody's")
    await queued("note", priority=1).defer_async(name="before all")
    await queued("note", priority=-1).defer_async(name="after all")


async def test_jobs_run_inline_end_as_with_a_real_worker(service, seen):
    await service.run_jobs()
    await sent()
    await service.run_jobs()
    inline, waits = list(seen), await left_over(service)
    seen.clear()
    await sent()
    async with asyncio.timeout(60), beside(run_worker(service.work)):
        while "after all" not in seen:
            await asyncio.sleep(0.05)
    assert inline == seen
    assert waits == await left_over(service)
    assert inline[:2] == ["before all", "first"]
    assert inline[-1] == "after all"
    assert [attempt for name, attempt in filter(lambda note: len(note) == 2, seen)] == [
        *(0, 1, 2),
        *(0, 1, 2, 3),
    ]
    assert waits == [
        ("test.later", "of an hour", "todo", 1, True),
        ("test.note", "of an hour", "todo", 0, None),
        ("test.note", None, "todo", 0, True),
    ]


def test_a_worker_serves_the_queue_of_each_task():
    ours = {name: task for name, task in jobs.tasks.items() if task.queue != "builtin"}
    served = {*QUEUES, *PICTURE_QUEUES, *CATALOG_QUEUES, *NOTICE_QUEUES, *SENDING_QUEUES}
    assert {task.queue for task in ours.values()} == served
