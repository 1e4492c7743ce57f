"""The operations by which an operator is shown a file of the policy, and accepts a text as it (docs/policy.md).

The request is recorded first, with the guests' actor's answer; then the file is written, if it is still the one that
was shown. The guest socket, to which agents' hooks have access, does not know it.
"""

from __future__ import annotations

import os
import stat
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import anyio.to_thread
import msgspec
from msgspec import Meta

from pmagent.contracts.control import OperatorId
from pmagent.contracts.guests import GuestPolicyEditRequested, Sha256
from pmagent.events.atomic import write_atomic
from pmagent.events.errors import PmagentError
from pmagent.guests.gate import Gate
from pmagent.guests.policy import BYTES_MAX, FILE, user_file
from pmagent.guests.policy_edit import BadEdit, layer_of, raw_of, seen, shown
from pmagent.pla.proving import proof
from pmagent.service.answer import Answer, request_of, understood
from pmagent.service.host import Host, asker
from pmagent.service.requests import FAR
from pmagent.workspace.trust import accept_policy

EDIT: Final = "guests.policy_edit"
_EDITED: Final = frozenset(("guest.policy_edit_accepted", "guest.policy_edit_refused"))


class NotWritten(PmagentError, exit_code=1):
    """A text was accepted, and could not be written: the policy is what it was."""


class _Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``before``: the SHA-256 of the file that was shown, ``sha256``: of the text that was."""

    layer: Literal["user", "project"]
    text: Annotated[str, Meta(max_length=BYTES_MAX)]
    before: Sha256 = ""
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}(?![\s\S])")]
    operator: OperatorId
    channel: Literal["cli", "console", "api"] = "api"
    secret: Annotated[str, Meta(max_length=1024)] = ""
    by_secret: bool = False


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    layer: Literal["user", "project"]


async def file(host: Host, arguments: dict[str, Any]) -> Answer:
    """A file of the policy as it lies here, to be changed: ``{layer, path, text, sha256}``. Raises BadEdit, BadText."""
    asked = understood(arguments, _File, refused=BadEdit, what="this is no file of the policy", hint="user, or project")
    found = await anyio.to_thread.run_sync(shown, asked.layer, str(_path(host, asked.layer)))
    if asker.get() == FAR and host.runtime.intake.masked(found.text) != found.text:
        raise BadEdit("the file holds what looks like a secret, which must not leave this machine", "edit it there")
    return Answer(document=msgspec.to_builtins(found))


def _path(host: Host, layer: Literal["user", "project"]) -> Path:
    """Where the file lies. Raises BadEdit."""
    if layer == "project":
        return host.layout.workspace / FILE
    if asker.get() == FAR:
        what = "the user's policy holds for every workspace of the holder's machine, and is not edited from elsewhere"
        raise BadEdit(what, "edit it there, or the project's")
    path = user_file(os.environ)
    if path is None:
        raise BadEdit("the user's policy has no place here", "set HOME")
    return path


async def edit(host: Host, arguments: dict[str, Any]) -> Answer:
    """Let a text be the policy's file: ``{accepted: true, layer, sha256, …}``, or the refusal's reasons and exit code
    1. Raises BadEdit, BadText, BadPolicy, BadOperation, NotProven, NotWritten, Refused, TimedOut."""
    asked = understood(arguments, _Edit, refused=BadEdit, what="this is no edit of the policy", hint="edit the file")
    path = _path(host, asked.layer)
    seen(asked.text, str(path))
    if layer_of(asked.text, asked.layer, str(path), os.environ.get("HOME", "")).sha256 != asked.sha256:
        raise BadEdit("the text is not the one that was tried", "try it again")
    known = await proof(host, asked.operator, asked.channel, asked.secret, by_secret=asked.by_secret)
    raw = await anyio.to_thread.run_sync(raw_of, path)
    payload = GuestPolicyEditRequested(
        layer=asked.layer, before=asked.before, found="" if raw is None else sha256(raw).hexdigest(),
        sha256=asked.sha256, operator_id=asked.operator, channel=asked.channel, proof=known,
        asking=await anyio.to_thread.run_sync(host.resources[Gate].processes.session_of, asker.get()),
    )  # fmt: skip
    draft = await anyio.to_thread.run_sync(host.drafted, payload, request_of(arguments, EDIT))
    event = await host.ask_draft(draft, _EDITED, whole=True, but=("found",), shown=False)
    accepted = event.type == "guest.policy_edit_accepted"
    if accepted:
        await anyio.to_thread.run_sync(partial(_write, host.layout.workspace, path, asked))
        await host.resources[Gate].follow_policy(host, at_once=True)
    fields: dict[str, Any] = msgspec.to_builtins(event.data)
    return Answer(document={"accepted": accepted, **fields, "position": event.position}, exit_code=0 if accepted else 1)


def _write(workspace: Path, path: Path, asked: _Edit) -> None:
    """Accept the text, and write it in the place of the file that was shown. Raises NotWritten."""
    def look() -> None:
        raw = raw_of(path)
        if (sha256(raw).hexdigest() if raw is not None else "") not in (asked.before, asked.sha256):
            raise NotWritten(f"{path} has been changed since it was shown, and stays so", "look at it again")

    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644
        if asked.layer == "project":
            accept_policy(workspace, asked.text.encode())
        write_atomic(path, asked.text.encode(), mode, look)
    except OSError as error:
        raise NotWritten(f"{path} cannot be written: {error.strerror}", "mend that, and accept it again") from error
