"""Harnesses' own records of their sessions, read as what a hook would have heard (docs/guests.md).

They are what a session is held against at its end, and what ``pmagent import`` reads. A file is read as a stream; lines
that tell of no call are passed over, and a line that is not understood is ``Unheard``. A last line without its end is
still being written, and left out.

Sources: files that Claude Code 2.1.330, Codex 0.169.0 and Gemini CLI 0.61.0 wrote.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from pmagent.guests.dialects import Asked, Ended, Finished, Heard, Started, Unheard

LINE_BYTES_MAX: Final = 64 << 20
FILE_BYTES_MAX: Final = 4 << 30
MENTION: Final = "@file"
"""The tool's name of a file that a person mentioned: its content goes to the model, and no hook is told."""


class Entry(NamedTuple):
    """An event, and its time (RFC 3339, UTC; "" where the line does not say)."""

    time: str
    heard: Heard


def home(harness: str, environ: Mapping[str, str]) -> Path:
    """The folder where the harness keeps them. Raises KeyError for one that keeps none that is known."""
    user = Path(environ.get("HOME") or os.path.expanduser("~"))
    return {
        "claude": Path(environ.get("CLAUDE_CONFIG_DIR") or user / ".claude") / "projects",
        "codex": Path(environ.get("CODEX_HOME") or user / ".codex") / "sessions",
        "gemini": user / ".gemini/tmp",
    }[harness]


def sessions(harness: str, path: Path) -> Iterator[Path]:
    """The files of sessions in a folder, the oldest first, without those of their subagents; a file is itself."""
    if path.is_file():
        yield path
        return
    found = [one for one in path.rglob("*.jsonl") if one.parent.name != "subagents"]
    for one in sorted(found, key=lambda one: one.stat().st_mtime):
        if harness != "codex" or _session(one) is not None:
            yield one


def entries(harness: str, path: Path) -> Iterator[Entry]:
    """Entries of a session's file, then those of its subagents, then its end. Raises OSError, KeyError."""
    read = READERS[harness]
    session, last = "", ""
    for file in (path, *_subagents(harness, path)):
        for entry in read(file):
            session = session or getattr(entry.heard, "session", "")
            last = max(last, entry.time)
            if file == path or not isinstance(entry.heard, Started):
                yield entry
    if session:
        yield Entry(last, Ended(session=session, reason="", transcript=str(path)))


def calls(harness: str, path: Path) -> list[Asked]:
    """The calls that a session and its subagents made, as its harness recorded them. Raises OSError, KeyError."""
    return [entry.heard for entry in entries(harness, path) if isinstance(entry.heard, Asked)]


# --- Claude Code ----------------------------------------------------------------------------------------------------


class _Part(msgspec.Struct):
    """A part of a message: a text, a call, a result."""

    type: str = ""
    id: str = ""
    name: str = ""
    input: Any = None
    tool_use_id: str = ""
    content: Any = None
    is_error: bool | None = None


class _Message(msgspec.Struct):
    content: str | list[_Part] = ""
    model: str = ""


class _Attachment(msgspec.Struct):
    type: str = ""
    filename: str = ""


class _Line(msgspec.Struct, rename={"session": "sessionId", "agent": "agentId"}):
    session: str = ""
    agent: str | None = None
    timestamp: str = ""
    cwd: str = ""
    version: str = ""
    uuid: str = ""
    type: str = ""
    message: _Message | None = None
    attachment: _Attachment | None = None


_claude_line: Final = msgspec.json.Decoder(_Line).decode
_CLAUDE_MARKS: Final = (b'"tool_use"', b'"tool_result"', b'"filename"')


def _claude(path: Path) -> Iterator[Entry]:
    """A file of Claude Code: calls are parts of the model's messages, results parts of the user's."""
    started, tools = False, dict[str, str]()
    for number, line in enumerate(_lines(path), 1):
        if started and not any(mark in line for mark in _CLAUDE_MARKS):
            continue
        data = _decoded(_claude_line, line)
        if data is None:
            yield Entry("", Unheard(why=f"{path}:{number} is not understood"))
            continue
        if not started and data.session and data.version:
            started = True
            start = Started(session=data.session, cwd=data.cwd, version=data.version, source="transcript")
            yield Entry(data.timestamp, msgspec.structs.replace(start, transcript=str(path)))
        if data.attachment is not None and data.attachment.type == "file" and data.attachment.filename:
            given = {"file_path": data.attachment.filename}
            mention = Asked(session=data.session, tool=MENTION, tool_input=given, call=data.uuid, cwd=data.cwd)
            yield Entry(data.timestamp, mention)
        content = data.message.content if data.message is not None else ""
        if data.type in ("assistant", "user") and not isinstance(content, str):
            for part in content:
                heard = _claude_part(data, part, tools)
                if heard is not None:
                    yield Entry(data.timestamp, heard)


def _claude_part(data: _Line, part: _Part, tools: dict[str, str]) -> Heard | None:
    agent = data.agent or ""
    if part.type == "tool_use" and data.type == "assistant":
        tools[part.id] = part.name
        if not isinstance(part.input, dict):
            return Unheard(why=f"the input of {part.id} is no object")
        first, *rest = part.name.split("__", 2)
        server = rest[0] if first == "mcp" and len(rest) == 2 else ""
        return Asked(
            session=data.session, tool=part.name, tool_input=part.input, call=part.id, agent=agent, server=server,
            cwd=data.cwd,
        )  # fmt: skip
    if part.type == "tool_result" and data.type == "user":
        tool = tools.pop(part.tool_use_id, "")
        return Finished(
            session=data.session, tool=tool, ok=not part.is_error, call=part.tool_use_id, agent=agent,
            output=part.content, cwd=data.cwd,
        )  # fmt: skip
    return None


class _Turn(msgspec.Struct):
    id: str = ""
    stop_reason: str | None = None
    content: str | list[_Part] = ""


class _Spoken(msgspec.Struct):
    """A line of the model's, which holds one part of a message, or more."""

    type: str = ""
    entrypoint: str = ""
    message: _Turn | None = None


_claude_turn: Final = msgspec.json.Decoder(_Spoken).decode
TURN_BYTES: Final = 4 << 20


def only_call_of_its_turn(path: Path, call: str) -> bool:
    """Whether the call is the only one of the message in which the model made it, that message is whole, and the
    session is one of ``claude -p``; False where the transcript does not say so (yet). Its end alone is read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TURN_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return False
    said = [data for line in lines if b'"tool_use"' in line and (data := _decoded(_claude_turn, line)) is not None]
    turns = [(one, one.message) for one in said if one.type == "assistant" and one.message is not None]
    own = [(one, turn) for one, turn in turns if call in _calls_of(turn)]
    if not own or any(one.entrypoint != "sdk-cli" or turn.stop_reason != "tool_use" for one, turn in own):
        return False
    message = own[0][1].id
    return [name for _, turn in turns if turn.id == message for name in _calls_of(turn)] == [call]


def _calls_of(turn: _Turn) -> list[str]:
    return [part.id for part in turn.content if not isinstance(part, str) and part.type == "tool_use"]


# --- Codex ----------------------------------------------------------------------------------------------------------


class _Payload(msgspec.Struct):
    type: str = ""
    id: str | None = None
    session_id: str = ""
    cwd: str = ""
    cli_version: str = ""
    name: str = ""
    call_id: str = ""
    arguments: str = ""
    input: str = ""
    output: Any = None
    action: Any = None


class _Rollout(msgspec.Struct):
    timestamp: str = ""
    type: str = ""
    payload: _Payload = msgspec.field(default_factory=_Payload)


_codex_line: Final = msgspec.json.Decoder(_Rollout).decode
_CODEX_MARKS: Final = (b'"response_item"', b'"session_meta"')
_CODEX_CALLS: Final = (b'_call"', b'_call_output"', b'"session_meta"')
DAYS_MAX: Final = 31
"""A session that lasts longer has no subagents that are found."""
_EXIT: Final = re.compile(r"(?:Process exited with code|Exit code:) (-?\d+)")
_SHELLS: Final = {"exec_command": "cmd", "shell_command": "command"}
"""Tools that its hooks call ``Bash``, and the name of the command line in their arguments."""


def _codex(path: Path) -> Iterator[Entry]:
    """A file of Codex: one for each thread; that of a subagent names its session."""
    session = agent = cwd = ""
    tools: dict[str, str] = {}
    for number, line in enumerate(_lines(path), 1):
        if not any(mark in line for mark in _CODEX_MARKS) or not any(mark in line for mark in _CODEX_CALLS):
            continue
        data = _decoded(_codex_line, line)
        if data is None:
            yield Entry("", Unheard(why=f"{path}:{number} is not understood"))
            continue
        payload = data.payload
        if data.type == "session_meta" and not session:
            session, cwd = payload.session_id or payload.id or "", payload.cwd
            agent = payload.id if payload.id is not None and payload.id != session else ""
            start = Started(session=session, cwd=cwd, version=payload.cli_version, source="transcript")
            yield Entry(data.timestamp, msgspec.structs.replace(start, transcript=str(path)))
        elif data.type == "response_item" and payload.type.endswith("_call_output"):
            output = payload.output
            code = _EXIT.search(output) if isinstance(output, str) else None
            tool = tools.pop(payload.call_id, "")
            ok = code is None or code[1] == "0"
            finished = Finished(
                session=session, tool=tool, ok=ok, call=payload.call_id, agent=agent, output=output, cwd=cwd
            )
            yield Entry(data.timestamp, finished)
        elif data.type == "response_item" and payload.type.endswith("_call"):
            asked = _codex_call(payload, session, agent, cwd)
            if isinstance(asked, Asked):
                tools[payload.call_id] = asked.tool
            yield Entry(data.timestamp, asked)


def _codex_call(payload: _Payload, session: str, agent: str, cwd: str) -> Heard:
    """A call, named and with the input that a hook would have seen."""
    given: Any = {"input": payload.input} if payload.input else {"action": payload.action}
    if payload.arguments:
        given = _decoded(msgspec.json.decode, payload.arguments.encode())
    if not isinstance(given, dict):
        return Unheard(why=f"the arguments of {payload.call_id} are no object")
    tool = payload.name or payload.type.removesuffix("_call")
    if tool in _SHELLS:
        cwd = given.get("workdir") or cwd
        tool, given = "Bash", {"command": given.get(_SHELLS[tool], "")}
    elif tool == "apply_patch":
        given = {"command": given.get("input", "")}
    call = payload.call_id or payload.id or ""
    return Asked(session=session, tool=tool, tool_input=given, call=call, agent=agent, cwd=cwd)


# --- Gemini CLI -----------------------------------------------------------------------------------------------------


class _ToolCall(msgspec.Struct):
    id: str = ""
    name: str = ""
    args: Any = None
    result: Any = None
    status: str = ""
    timestamp: str = ""


class _Said(msgspec.Struct, rename="camel"):
    type: str = ""
    timestamp: str = ""
    tool_calls: list[_ToolCall] = []


class _Set(msgspec.Struct):
    messages: list[_Said] = []


class _Chat(_Said, rename="camel"):
    session_id: str = ""
    start_time: str = ""
    set: _Set | None = msgspec.field(name="$set", default=None)


_gemini_line: Final = msgspec.json.Decoder(_Chat).decode
_GEMINI_MARKS: Final = (b'"toolCalls"', b'"sessionId"')


def _gemini(path: Path) -> Iterator[Entry]:
    """A file of Gemini CLI: messages, which are written again as they grow; each has its calls with their results. The
    folder stands in a file beside."""
    session = ""
    known = set[str]()
    root = path.parent.parent / ".project_root"
    cwd = root.read_text("utf-8", "replace").strip() if root.is_file() else ""
    for number, line in enumerate(_lines(path), 1):
        if not any(mark in line for mark in _GEMINI_MARKS):
            continue
        data = _decoded(_gemini_line, line)
        if data is None:
            yield Entry("", Unheard(why=f"{path}:{number} is not understood"))
            continue
        if data.session_id and not session:
            session = data.session_id
            start = Started(session=session, cwd=cwd, source="transcript", transcript=str(path))
            yield Entry(data.start_time, start)
        for said in (data, *(data.set.messages if data.set is not None else ())):
            for one in said.tool_calls:
                if one.id not in known:
                    known.add(one.id)
                    yield from _gemini_call(session, cwd, one, said.timestamp)


def _gemini_call(session: str, cwd: str, one: _ToolCall, began: str) -> Iterator[Entry]:
    if not isinstance(one.args, dict):
        yield Entry("", Unheard(why=f"the input of {one.id} is no object"))
        return
    asked = Asked(session=session, tool=one.name, tool_input=one.args, call=one.id, cwd=cwd)
    yield Entry(began or one.timestamp, asked)
    ok = one.status == "success"
    ended = Finished(session=session, tool=one.name, ok=ok, call=one.id, output=one.result, cwd=cwd)
    yield Entry(one.timestamp or began, ended)


READERS: Final[dict[str, Callable[[Path], Iterator[Entry]]]] = {"claude": _claude, "codex": _codex, "gemini": _gemini}


def _subagents(harness: str, path: Path) -> Iterator[Path]:
    """The files of a session's subagents. Codex keeps them beside it, begun on the same day or later."""
    if harness == "claude":
        yield from sorted((path.with_suffix("") / "subagents").glob("agent-*.jsonl"))
    own = _session(path) if harness == "codex" else None
    if own is None:
        return
    others = (other for day in _days(path) for other in sorted(day.glob("rollout-*.jsonl")))
    yield from (other for other in others if other.name > path.name and own == _session(other, of_subagent=True))


def _days(path: Path) -> Iterator[Path]:
    """The folder of a file of Codex, and those of the days (``YYYY/MM/DD``) until it was last written."""
    yield path.parent
    try:
        begin = date.fromisoformat("-".join(path.parent.parts[-3:]))
    except ValueError:  # it lies elsewhere
        return
    end = datetime.fromtimestamp(path.stat().st_mtime, UTC).astimezone().date()
    for number in range(1, min((end - begin).days, DAYS_MAX) + 1):
        yield path.parents[3] / (begin + timedelta(number)).strftime("%Y/%m/%d")


def _session(path: Path, *, of_subagent: bool = False) -> str | None:
    """The session of a file of Codex, if it is the session's own file, or a subagent's; its name ends with the thread's
    id."""
    first = next(_codex(path), None)
    if first is None or not isinstance(first.heard, Started):
        return None
    return first.heard.session if (first.heard.session not in path.name) == of_subagent else None


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, as long as it is now; a device or a file of the kernel's has none. Raises OSError."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        left = os.fstat(file.fileno()).st_size
        if left > FILE_BYTES_MAX:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        while left > 0 and (line := file.readline(min(left, LINE_BYTES_MAX))):
            left -= len(line)
            if line.endswith(b"\n") or len(line) == LINE_BYTES_MAX:
                yield line


def _decoded(decode: Callable[[bytes], Any], line: bytes) -> Any:
    """The content of a line; None where it is of another kind."""
    try:
        return decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
