"""A tool's call as a verdict needs it. Whatever depends on this machine is looked up here, once, before the call is
recorded."""

from __future__ import annotations

import os
import posixpath
import re
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec

from pmagent.contracts.guest_calls import Call, Harness, Kind
from pmagent.guests.cedar import opinion_of
from pmagent.guests.files import Moment, answer, same
from pmagent.guests.gathered import ALL, Filter, Gathered, Word
from pmagent.guests.keys import without_prose
from pmagent.guests.policy import cedar_files
from pmagent.guests.programs import note_address, note_patch
from pmagent.workspace.git import checked_out

_KINDS: Final[dict[str, Kind]] = {
    **dict.fromkeys((
        "bash", "shell", "run_shell_command", "run_terminal_cmd", "exec_command", "exec", "local_shell", "powershell",
        "write_stdin", "terminal", "execute",
    ), "shell"),
    **dict.fromkeys((
        "read", "read_file", "read_many_files", "glob", "grep", "ls", "list", "list_directory", "list_dir", "view",
        "view_image", "notebookread", "search_file_content", "grep_search", "file_search", "codebase_search", "lsp",
    ), "read"),
    **dict.fromkeys(("write", "write_file", "create", "create_file", "save_memory", "delete", "delete_file"), "write"),
    **dict.fromkeys((
        "edit", "multiedit", "notebookedit", "replace", "edit_file", "search_replace", "strreplace",
        "str_replace_editor", "apply_patch", "patch", "multi_edit",
    ), "edit"),
    **dict.fromkeys(("webfetch", "web_fetch", "fetch"), "fetch"),
    **dict.fromkeys(("websearch", "web_search", "google_web_search", "web_search_request"), "search"),
    **dict.fromkeys(("agent", "task", "spawn_agent"), "agent"),
}  # fmt: skip
"""Names of tools, in small letters, of all harnesses."""
_INSIDE: Final = frozenset((
    "todowrite", "todoread", "write_todos", "exitplanmode", "enterplanmode", "askuserquestion", "update_plan",
    "bashoutput", "killshell", "killbash", "taskoutput", "toolsearch", "taskcreate", "taskupdate", "tasklist",
    "taskget", "taskstop", "wait_agent", "close_agent", "request_user_input",
))  # fmt: skip
"""Tools that touch nothing but their session."""
_LISTING: Final = frozenset(("glob", "ls", "list", "list_directory", "list_dir", "file_search"))
_SEARCHING: Final = frozenset(("grep", "search_file_content", "grep_search", "codebase_search"))
_PATHS: Final = (
    "file_path", "filePath", "absolute_path", "notebook_path", "target_file", "path", "dir_path", "directory",
    "target_directory", "relative_workspace_path",
)  # fmt: skip
CALLS_KEPT: Final = 2000
INPUT_BYTES_KEPT: Final = 2000
"""A call with a larger input is looked at anew each time."""
_canonical: Final = msgspec.json.Encoder(order="sorted").encode
_COMMANDS: Final = ("command", "cmd", "script")
_LOOPBACK: Final = frozenset(("localhost", "127.0.0.1", "::1"))


def look(
    harness: Harness,
    session: str,
    agent: str,
    agent_type: str,
    tool: str,
    tool_input: Mapping[str, Any],
    server: str,
    cwd: str,
    root: str,
    now: datetime | None = None,
    cedar: Sequence[Path] | None = None,
    moment: Moment | None = None,
) -> Call:
    """The call of a tool with this input, as it is on this machine at this moment. ``cwd`` is the folder in which the
    agent works, ``root`` its workspace; ``cedar``: the files of policies in Cedar (None: as they may
    lie there); ``moment``: of calls that are looked at together: each question about the machine is asked once."""
    now_asked: Moment = {} if moment is None else moment
    where, home = _workspace(root) if root else "", os.environ.get("HOME", "")
    key = (harness, agent, agent_type, tool, server, cwd, where, home, _kept(tool, tool_input))
    known = _seen.get(key) if key[-1] else None
    if known is None or not _stands(known, now_asked):
        known = _look(key, tool_input, now_asked)
    call = msgspec.structs.replace(
        known.call, session=session, branch=answer(now_asked, (checked_out, known.folder)),
        hour=now.hour if now is not None else time.localtime().tm_hour,
    )  # fmt: skip
    files = cedar_files(Path(root), os.environ) if cedar is None else cedar
    return msgspec.structs.replace(call, opinion=opinion_of(call, files)) if files else call


class _Seen(msgspec.Struct, frozen=True, eq=False):
    """A call of no session that was looked at, where its branch is to be asked for, and all that it depends on."""

    call: Call
    folder: str
    questions: Moment


_seen: Final[dict[tuple[Any, ...], _Seen]] = {}
"""Agents make the same calls again and again. Those facts are the same if the files are."""


def _stands(seen: _Seen, moment: Moment) -> bool:
    """Whether all that it depends on is as it was: asked once in a moment."""
    asked = (same, seen)
    stands = moment.get(asked)
    if stands is None:
        stands = moment[asked] = same(seen.questions, moment)
    return bool(stands)


def _kept(tool: str, tool_input: Mapping[str, Any]) -> bytes:
    """By which a call is known again; empty: it is not kept."""
    try:
        given = _canonical(without_prose(tool, tool_input))
    except (UnicodeEncodeError, RecursionError):
        return b""
    return given if len(given) <= INPUT_BYTES_KEPT else b""


def _look(key: tuple[Any, ...], tool_input: Mapping[str, Any], moment: Moment) -> _Seen:
    harness, agent, agent_type, tool, server, cwd, where, home, kept = key
    found = Gathered(where, home, moment)
    folder: str | None = _folder(tool_input, cwd, found) if cwd.startswith("/") else None
    kind = "mcp" if server or tool.startswith("mcp__") else _KINDS.get(tool.lower(), "other")
    if folder is None and kind in ("shell", "read", "write", "edit"):
        found.why("the agent's folder is not known")
    starts = parser = ""
    if kind == "shell":
        parser = _of_shell(tool, tool_input, found, folder)
    elif kind == "read":
        _of_reading(tool.lower(), tool_input, found, folder)
    elif kind in ("write", "edit"):
        _of_writing(tool.lower(), tool_input, found, folder)
    elif kind == "fetch":
        _of_fetching(tool_input, found)
    elif kind == "agent":
        starts = next((one for key in ("subagent_type", "agent_type", "agent", "type") if
                       isinstance(one := tool_input.get(key), str)), "")  # fmt: skip
    else:
        found.outward = kind in ("mcp", "search") or tool.lower() not in _INSIDE
        for text in _texts(tool_input):
            if found.outward and len(text) < 1024 and "\n" not in text:
                found.mention(text.removeprefix("file://"), folder)
    call = Call(
        harness=harness, session="", tool=tool, kind=kind, agent=agent, agent_type=agent_type, server=server,
        cwd=cwd, root=where, commands=found.commands, reads=[*found.reads], writes=[*found.writes],
        trees=[*found.trees], mentions=[one for one in found.mentions if one not in found.reads and
                                        one not in found.writes],
        spelled=[*found.spelled], hosts=[*found.hosts], outward=found.outward, starts=_clean(starts, found),
        unclear=[*found.unclear], parser=parser,
    )  # fmt: skip
    seen = _Seen(call, folder or where, found.files.questions or {})
    if kept and found.files.questions is not None:
        if len(_seen) >= CALLS_KEPT:
            _seen.clear()
        _seen[key] = seen
    return seen


@lru_cache(maxsize=8)
def _workspace(root: str) -> str:
    """A workspace's own path; it is the daemon's, and stays what it was when it was first looked at."""
    return os.path.realpath(root)


def _clean(text: str, found: Gathered) -> str:
    """The text, if it can be written down."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        found.why("a text holds halves of characters")
        return text.encode("utf-8", "replace").decode()
    return text


def _folder(tool_input: Mapping[str, Any], cwd: str, found: Gathered) -> str:
    for key in ("workdir", "cwd", "working_directory"):
        given = tool_input.get(key)
        if isinstance(given, str) and given:
            return posixpath.join(cwd, _clean(given, found))
    return cwd


def _of_shell(tool: str, tool_input: Mapping[str, Any], found: Gathered, cwd: str | None) -> str:
    """Take a command line apart; the parser's name, "" where none was asked."""
    given = next((tool_input[key] for key in _COMMANDS if key in tool_input), None)
    if isinstance(given, list) and given and all(isinstance(one, str) for one in given):
        given = shlex.join(given)
    if tool == "write_stdin":
        found.why("it types into a program that runs already")
    elif not isinstance(given, str):
        found.why("the call names no command line")
    elif tool.lower() == "powershell":
        found.why("a line for PowerShell is not looked into")
        found.outward = True
    else:
        directory = tool_input.get("directory") or tool_input.get("dir_path")
        if isinstance(directory, str) and directory and cwd is not None:
            cwd = posixpath.join(cwd, _clean(directory, found))
        try:
            from pmagent.guests.shell import parser_name, read_line  # an extra; and few calls need it
        except ImportError:
            found.why("the parser of command lines is not installed: pip install 'pmagent[guests]'")
            return ""
        read_line(_clean(given, found), found, cwd)
        return parser_name()
    return ""


def _named(tool_input: Mapping[str, Any], found: Gathered) -> list[str]:
    return [_clean(one, found) for key in _PATHS if isinstance(one := tool_input.get(key), str) and one]


def _of_reading(tool: str, tool_input: Mapping[str, Any], found: Gathered, cwd: str | None) -> None:
    paths = _named(tool_input, found)
    pattern = tool_input.get("pattern") or tool_input.get("glob_pattern") or ""
    if tool in _LISTING and isinstance(pattern, str) and pattern.startswith(("/", "~", "..")):
        head = re.split(r"[*?\[{]", found.at_home(_clean(pattern, found)))[0]
        paths.append(head if head.endswith("/") else posixpath.dirname(head))
    for key in ("paths", "include", "file_paths"):
        if isinstance(several := tool_input.get(key), list):
            for one in several:
                if isinstance(one, str):
                    found.read(Word(_clean(one, found), glob=bool(re.search(r"[*?\[]", one))), cwd)
            if several and not paths:
                return
    if not paths:
        if tool not in _LISTING and tool not in _SEARCHING:
            found.why("the call names no file")
            return
        paths = ["."]
    wanted = tool_input.get("glob") or tool_input.get("include")
    simple = (
        isinstance(wanted, str) and re.fullmatch(r"[*\w.-]+", wanted) is not None and not str(wanted).startswith("!")
    )
    tree = Filter((str(wanted),) if simple else (), hidden=True, ignored=False) if tool in _SEARCHING else None
    for path in paths:
        found.read(Word(found.at_home(path)), cwd, tree=tree)


def _of_writing(tool: str, tool_input: Mapping[str, Any], found: Gathered, cwd: str | None) -> None:
    if tool in ("apply_patch", "patch"):
        text = next((one for key in ("command", "input", "patch", "patchText", "patch_text") if
                     isinstance(one := tool_input.get(key), str)), "")  # fmt: skip
        note_patch(_clean(text, found), found, cwd)
        return
    if tool == "save_memory":
        found.write(Word(f"{found.home}/.gemini/GEMINI.md"), cwd)
        return
    paths = _named(tool_input, found)
    for path in paths:
        found.write(Word(found.at_home(path)), cwd, tree=ALL if tool.startswith("delete") else None)
    if not paths:
        found.why("the call names no file")


def _of_fetching(tool_input: Mapping[str, Any], found: Gathered) -> None:
    texts = [_clean(one, found) for one in _texts(tool_input)]
    addresses = [one for text in texts for one in re.findall(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s'\"<>]+", text)]
    for one in addresses:
        note_address(one, found)
    if not addresses:
        found.why("the call names no address")
    found.outward = any(host not in _LOOPBACK for host in found.hosts) or not found.hosts


def _texts(value: object, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping) and depth < 6:
        for one in value.values():
            yield from _texts(one, depth + 1)
    elif isinstance(value, list) and depth < 6:
        for one in value:
            yield from _texts(one, depth + 1)
