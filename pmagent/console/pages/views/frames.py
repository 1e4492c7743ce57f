"""The pictures of frames that a session of the PLA rests on: only what is a picture, and only what the log names."""

from __future__ import annotations

import re
from contextlib import closing
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from pmagent.actors.pla.frames.folder import BYTES_MAX
from pmagent.actors.pla.frames.pictures import NotAPicture, TooLarge, picture
from pmagent.console.pages.context import context_of
from pmagent.console.pages.reading.searching import until
from pmagent.events.errors import NotFound
from pmagent.events.event import StoredEvent
from pmagent.events.reader import event_at, matching_runs
from pmagent.events.storage import StorageReader
from pmagent.log.query import Query, needles
from pmagent.log.summaries import payload
from pmagent.workspace.layout import Layout

LOOK_SECONDS: Final = 2.0

_POSITION: Final = re.compile(r"[1-9][0-9]{0,15}", re.ASCII)
_NAMING: Final = ("pla.proposed", "pla.observed")
_NEEDLES: Final = needles(Query(types=_NAMING))
_SANDBOX: Final = "default-src 'none'; sandbox"


async def show(request: Request) -> Response:
    """``GET /sessions/{session_id}/frames/{position}``. Raises NotFound where the session has no such picture."""
    context = context_of(request)
    named, session_id = str(request.path_params["position"]), str(request.path_params["session_id"])
    if not _POSITION.fullmatch(named):
        raise _none(session_id, named)
    content, media_type = await context.read(_picture, context.layout, session_id, int(named))
    ending = media_type.rpartition("/")[2]
    return Response(
        content, media_type=media_type,
        headers={
            "Content-Security-Policy": _SANDBOX, "Content-Disposition": f'inline; filename="frame-{named}.{ending}"',
        },
    )  # fmt: skip


def _picture(layout: Layout, session_id: str, position: int) -> tuple[bytes, str]:
    """The bytes of the picture, and what they are: as their beginning says, whatever the event does."""
    with closing(layout.store.reader()) as storage:
        event = event_at(storage, position)
        frame = payload(event) if event.type == "pla.frame_observed" else {}
        if not (frame.get("kept") and _rests_on(storage, event, session_id)):
            raise _none(session_id, str(position))
    blob = layout.store.blobs().reader(str(frame.get("sha256")))
    try:
        if blob.size > BYTES_MAX:
            raise NotFound(f"what was kept of the frame at {position} is larger than a picture may be")
        content = b"".join(blob.pieces())
    finally:
        blob.close()
    try:
        return content, picture(content).media_type
    except (NotAPicture, TooLarge) as error:
        raise NotFound(f"what was kept of the frame at {position} is no picture: {error.text}") from error


def _rests_on(storage: StorageReader, frame: StoredEvent, session_id: str) -> bool:
    """Whether something of the session names the frame; that comes after it, as long as there is time to look."""
    going = until(LOOK_SECONDS)
    for run, _ in matching_runs(storage, frame.position + 1, storage.tail().position, _NEEDLES):
        for event in run:
            if event.type in _NAMING and _names(payload(event), session_id, frame.position):
                return True
        if not going():
            return False
    return False


def _names(data: dict[str, Any], session_id: str, position: int) -> bool:
    return data.get("session_id") == session_id and data.get("frame") == position


def _none(session_id: str, named: str) -> NotFound:
    return NotFound(f"session {session_id[:64]!r} has no picture {named[:20]!r}", "its page shows those that it has")


routes: list[BaseRoute] = [Route("/sessions/{session_id}/frames/{position}", show)]
