"""Watching a real workspace: changes are told, in whatever way the files were changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.streams.memory import MemoryObjectReceiveStream

from pmagent.actors.kernel.effects import watch
from pmagent.actors.kernel.surfaces import digest
from pmagent.contracts.kernel import KernelObserved
from pmagent.events.atomic import write_atomic

BOOTSTRAP = "share/PM_BOOTSTRAP_STATE.json"
Observations = MemoryObjectReceiveStream[KernelObserved]


@asynccontextmanager
async def watching(workspace: Path, known: str = "") -> AsyncIterator[Observations]:
    """The watcher's observations while the block runs; it is cancelled at the end."""
    send, receive = anyio.create_memory_object_stream[KernelObserved](100)

    async def run() -> None:
        async with send:
            async for observed in watch(workspace, known=known):
                await send.send(observed)

    async with anyio.create_task_group() as group, receive:
        group.start_soon(run)
        yield receive
        group.cancel_scope.cancel()


async def next_observation(stream: Observations) -> KernelObserved:
    with anyio.fail_after(120):
        return await stream.receive()


def branch(observed: KernelObserved) -> str | None:
    content = observed.surfaces[0].content
    return content["branch"] if content else None


def content_with(workspace: Path, name: str) -> bytes:
    return json.dumps(json.loads((workspace / BOOTSTRAP).read_text()) | {"branch": name}).encode()


def run(test: Callable[[], Awaitable[None]]) -> None:
    anyio.run(test)


def test_the_first_reading_and_each_change_are_told(workspace: Path) -> None:
    async def test() -> None:
        async with watching(workspace) as stream:
            assert branch(await next_observation(stream)) == "main"
            (workspace / BOOTSTRAP).write_bytes(content_with(workspace, "in-place"))
            assert branch(await next_observation(stream)) == "in-place"
            write_atomic(workspace / BOOTSTRAP, content_with(workspace, "renamed-over"))
            assert branch(await next_observation(stream)) == "renamed-over"
            (workspace / BOOTSTRAP).unlink()
            assert (await next_observation(stream)).surfaces[0].status == "missing"

    run(test)


def test_share_may_come_go_and_be_replaced(workspace: Path, tmp_path: Path) -> None:
    async def test() -> None:
        shutil.move(workspace / "share", tmp_path / "aside")
        async with watching(workspace) as stream:
            assert {one.status for one in (await next_observation(stream)).surfaces} == {"missing"}
            shutil.copytree(tmp_path / "aside", tmp_path / "copy")
            (tmp_path / "copy").rename(workspace / "share")
            assert branch(await next_observation(stream)) == "main"
            shutil.rmtree(workspace / "share")
            while (observed := await next_observation(stream)).surfaces[0].status != "missing":
                pass
            assert branch(observed) is None
            (tmp_path / "aside").rename(workspace / "share")
            while branch(observed := await next_observation(stream)) != "main":
                pass
            (workspace / BOOTSTRAP).write_bytes(content_with(workspace, "afterwards"))
            assert branch(await next_observation(stream)) == "afterwards"

    run(test)


def test_what_the_projections_write_and_equal_content_wake_nobody(workspace: Path) -> None:
    async def test() -> None:
        async with watching(workspace) as stream:
            await next_observation(stream)
            (workspace / "share/orchestrator_assistant").mkdir()
            for number in range(5):
                write_atomic(workspace / "share/orchestrator_assistant/STATE.json", b"%d" % number)
            write_atomic(workspace / BOOTSTRAP, (workspace / BOOTSTRAP).read_bytes())
            (workspace / BOOTSTRAP).write_bytes(content_with(workspace, "next"))
            assert branch(await next_observation(stream)) == "next", "nothing was told in between"

    run(test)


def test_a_file_that_state_names_is_told_when_it_comes_or_goes(workspace: Path) -> None:
    async def test() -> None:
        async with watching(workspace) as stream:
            assert "share/kb_registry.json" in (await next_observation(stream)).existing
            (workspace / "share/kb_registry.json").unlink()
            assert "share/kb_registry.json" not in (await next_observation(stream)).existing

    run(test)


def test_a_kernel_that_is_known_already_is_not_told_again(workspace: Path) -> None:
    async def test() -> None:
        async with watching(workspace) as stream:
            first = await next_observation(stream)
        async with watching(workspace, known=digest(first.surfaces)) as stream:
            (workspace / BOOTSTRAP).write_bytes(content_with(workspace, "next"))
            assert branch(await next_observation(stream)) == "next"

    run(test)


@pytest.mark.parametrize("cancelled", [True, False])
def test_watching_ends_promptly(workspace: Path, cancelled: bool) -> None:
    async def test() -> None:
        stop = anyio.Event()

        async def follow() -> None:
            async for _ in watch(workspace, stop=stop, poll_s=60.0):
                seen.set()

        seen = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(follow)
            with anyio.fail_after(120):
                await seen.wait()
            await anyio.wait_all_tasks_blocked()
            begun = anyio.current_time()
            if cancelled:
                group.cancel_scope.cancel()
            else:
                stop.set()
        assert anyio.current_time() - begun < 20.0, "and not when it would have looked again, after a minute"

    run(test)
