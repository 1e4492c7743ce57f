"""A device that is unplugged, at whatever moment, is the end of the port, and no error of the event loop."""

from __future__ import annotations

import asyncio
import os
import tty
from typing import Any

import anyio

from pmagent.actors.pla.line.port import open_port
from tests.support.cases import each
from tests.support.commands import SECONDS


@each("writing", [True, False])
def test_unplugged_while_something_is_written_the_port_has_ended_and_nothing_else(writing: bool) -> None:
    errors: list[dict[str, Any]] = []

    async def unplugged() -> bool:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        master, end = os.openpty()
        tty.setraw(end)
        news = asyncio.Event()
        port = await open_port(os.ttyname(end), news.set)
        os.close(end)
        if writing:
            port.write(b"a line that does not leave any more\n")
        os.close(master)  # before the event loop comes to writing
        with anyio.fail_after(SECONDS):
            while not port.ended:
                await news.wait()
                news.clear()
        await port.close()
        return port.ended

    assert asyncio.run(unplugged())
    assert errors == []
