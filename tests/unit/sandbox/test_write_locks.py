"""Runs that may write the same folder go one after the other, in order; others do not wait."""

from __future__ import annotations

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.sandbox.spec import within
from pmagent.actors.sandbox.write_locks import WriteLocks

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

SETTLED = 20


async def settle() -> None:
    for _ in range(SETTLED):
        await checkpoint()


class Writers:
    """Claims of folders, each held until it is told to end."""

    def __init__(self) -> None:
        self.claims = WriteLocks()
        self.writing: list[str] = []
        self.ends: dict[str, anyio.Event] = {}

    async def write(self, name: str, *folders: str) -> None:
        self.ends[name] = anyio.Event()
        async with self.claims.of(folders):
            self.writing.append(name)
            await self.ends[name].wait()
            self.writing.remove(name)


async def test_overlapping_claims_wait_in_order_and_others_do_not() -> None:
    writers = Writers()
    async with anyio.create_task_group() as group:
        for name, *folders in (
            ("a", "/w"), ("b", "/w/sub"), ("c", "/w/other", "/v"), ("d", "/v/deep"), ("e", "/x"), ("f", "/wider"),
            ("g",),
        ):  # fmt: skip
            group.start_soon(writers.write, name, *folders)
            await settle()
        assert writers.writing == ["a", "e", "f", "g"], "d waits for c, which came before it"
        writers.ends["a"].set()
        await settle()
        assert writers.writing == ["e", "f", "g", "b", "c"]
        writers.ends["c"].set()
        await settle()
        assert writers.writing == ["e", "f", "g", "b", "d"]
        for end in writers.ends.values():
            end.set()
    assert writers.writing == []


async def test_who_gives_up_waiting_holds_nobody_up() -> None:
    writers = Writers()
    async with anyio.create_task_group() as group:
        group.start_soon(writers.write, "first", "/w")
        await settle()
        with anyio.CancelScope() as waits:
            group.start_soon(writers.write, "last", "/w/sub")
            async with anyio.create_task_group() as inner:
                inner.start_soon(writers.write, "second", "/w")
                await settle()
                waits.cancel()
        writers.ends["first"].set()
        await settle()
        assert writers.writing == ["last"]
        writers.ends["last"].set()


async def test_a_block_that_fails_lets_go() -> None:
    claims = WriteLocks()
    with pytest.raises(ZeroDivisionError):
        async with claims.of(("/w",)):
            raise ZeroDivisionError
    with anyio.fail_after(120):
        async with claims.of(("/w",)):
            pass


FOLDERS = st.lists(st.sampled_from(["/a", "/a/b", "/a/b/c", "/a/d", "/ab", "/e"]), max_size=2).map(tuple)


@given(wanted=st.lists(FOLDERS, max_size=8), order=st.randoms(use_true_random=False))
def test_no_two_ever_hold_overlapping_folders_and_all_get_their_turn(
    anyio_backend: str, wanted: list[tuple[str, ...]], order: object
) -> None:
    async def body() -> None:
        claims = WriteLocks()
        holding: list[tuple[str, ...]] = []
        done = 0

        async def write(folders: tuple[str, ...], steps: int) -> None:
            nonlocal done
            async with claims.of(folders):
                held = [path for others in holding for path in others]
                assert not any(within(a, b) or within(b, a) for a in folders for b in held)
                holding.append(folders)
                for _ in range(steps):
                    await checkpoint()
                holding.remove(folders)
                done += 1

        async with anyio.create_task_group() as group:
            for folders in wanted:
                group.start_soon(write, folders, order.randrange(4))  # type: ignore[attr-defined]
        assert done == len(wanted)

    anyio.run(body, backend=anyio_backend)
