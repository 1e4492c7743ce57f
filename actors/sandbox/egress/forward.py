"""One plain HTTP request, carried to the host, and its answer back; both are parsed, and written anew."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import h11

from pmagent.actors.sandbox.egress.rules import ProxyRequest, answered
from pmagent.actors.sandbox.egress.streams import ENDS, Line, Tool, next_event, next_head
from pmagent.actors.sandbox.egress.upstream import HostUnreachable


class Forward:
    """``connection`` has read the head of what ``tool`` asks for; ``line`` leads to the host."""

    def __init__(self, tool: Tool, connection: h11.Connection, line: Line, head_bytes: int) -> None:
        self._tool = tool
        self._connection = connection
        self._line = line
        self._heard = h11.Connection(h11.CLIENT, max_incomplete_event_size=head_bytes)
        self._head_bytes = head_bytes
        self._begun = False
        self._whole = False

    async def carry_out(self, asked: ProxyRequest) -> bool:
        """Whether the answer came whole: one that breaks off must be a connection that does. Raises HostUnreachable
        when the host gives none."""
        await self._line.send(
            self._heard.send(h11.Request(method=asked.method, target=asked.target, headers=list(asked.headers))) or b""
        )
        if self._connection.they_are_waiting_for_100_continue:
            await self._tool.send(self._connection.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
        async with anyio.create_task_group() as group:
            group.start_soon(self._body, group.cancel_scope.cancel)
            group.start_soon(self._answer, group.cancel_scope.cancel)
        if not self._begun:
            raise HostUnreachable(f"{asked.host} gives no answer that could be read", "try again later", status=502)
        return self._whole

    async def _body(self, end: Callable[[], None]) -> None:
        try:
            while True:
                event = await next_event(self._tool, self._connection)
                if not isinstance(event, h11.Data | h11.EndOfMessage):
                    return
                # Trailers end here: whoever needs them has to look for them, and few do.
                data = self._heard.send(h11.EndOfMessage() if isinstance(event, h11.EndOfMessage) else event)
                try:
                    await self._line.send(data or b"")
                except anyio.BrokenResourceError:
                    return  # the host reads no more; its answer may be there
                if isinstance(event, h11.EndOfMessage):
                    return
        except ENDS:
            end()

    async def _answer(self, end: Callable[[], None]) -> None:
        try:
            while not self._whole:
                if self._begun:
                    event = await next_event(self._line, self._heard)
                else:
                    event = await next_head(self._line, self._heard, self._head_bytes)
                if isinstance(event, h11.InformationalResponse):
                    continue
                if isinstance(event, h11.Response):
                    headers = list(answered(tuple(event.headers)))
                    event = h11.Response(status_code=event.status_code, reason=event.reason, headers=headers)
                    self._begun = True
                elif isinstance(event, h11.EndOfMessage):
                    event = h11.EndOfMessage()
                    self._whole = True
                elif not isinstance(event, h11.Data):
                    break
                await self._tool.send(self._connection.send(event) or b"")
            end()
        except ENDS:
            self._whole = False
            end()
