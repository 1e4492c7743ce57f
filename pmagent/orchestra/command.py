"""One command as a run: a plan of one task, and the line of the configuration that lets tasks start its program."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from pmagent.actors.orchestra.planning.config import FILE, read_config
from pmagent.actors.orchestra.planning.plan import as_plan
from pmagent.actors.sandbox.programs import found
from pmagent.contracts.orchestra import INTENT_CHARS_MAX, PlanText
from pmagent.contracts.orchestra_config import OrchestraConfig
from pmagent.contracts.text import from_yaml
from pmagent.events.atomic import write_atomic
from pmagent.events.errors import PmagentError
from pmagent.jobs.kinds import Source

WHERE: Final = "the command"

_FLOW: Final = re.compile(r"^(whitelist_tools:[ \t]*\[[^\]#]*?)\s*,?\s*\]", re.MULTILINE)
_BLOCK: Final = re.compile(r"^whitelist_tools:[ \t]*(?:#.*)?\n(?:[ \t]*(?:#.*)?\n)*(?:([ \t]*)- .*\n)+", re.MULTILINE)


class NotListed(PmagentError, exit_code=2):
    """The command's program is not in whitelist_tools; nothing was recorded."""


def intent_of(words: Sequence[str]) -> str:
    """The command for people, as a shell would take it."""
    return shlex.join(words)[:INTENT_CHARS_MAX]


def program_of(words: Sequence[str], workspace: Path, search: Sequence[str]) -> str:
    """The name of the command's program. A path is one only if the program is found there by its name. Raises
    NotListed."""
    name = os.path.basename(words[0])
    if name == words[0]:
        return name
    whole = os.path.join(os.getcwd(), words[0])
    if name and os.path.normpath(whole) in {one.path for one in found([name], str(workspace), search)}:
        return name
    raise NotListed(
        f"{words[0]} is a path, and programs are started by name",
        "name an interpreter first, such as sh or python; or install the program in .venv/bin or node_modules/.bin",
    )


def plan_of(program: str, words: Sequence[str], *, retried: bool) -> PlanText:
    """The plan that runs the command once; ``retried``: as often as the configuration says. It may write where the
    configuration lets tasks write. Raises BadPlan."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", program).lstrip("._-")[:64] or "command"
    task = {"task_id": name, "intent": intent_of(words), "tools": [program], "inputs": {"args": list(words[1:])}}
    once = {} if retried else {"max_retries": 0}
    return as_plan([{**task, "constraints": {**once, "sandbox": {"fs": "rw"}}}], WHERE)


def whitelist_line(config: OrchestraConfig, tools: Iterable[str]) -> str:
    """The line of the configuration that lets tasks start ``tools``, too."""
    return f"whitelist_tools: [{', '.join(map(_text, dict.fromkeys((*config.whitelist_tools, *tools))))}]"


def _text(name: str) -> str:
    """The name as YAML reads it back: some, such as true and 7, must be quoted."""
    return name if isinstance(from_yaml(name, WHERE), str) else f'"{name}"'


def not_listed(program: str, config: OrchestraConfig, where: str) -> NotListed:
    """The error that names the line to write, into the configuration ``where``."""
    line = whitelist_line(config, [program])
    return NotListed(f"{program} is not in whitelist_tools", f"write into {where}: {line}")


def allow(program: str, workspace: Path, source: Source | None, config: OrchestraConfig) -> None:
    """Write ``program`` into the workspace's whitelist; all else in the file stays as it is. ``source``: the file as it
    was read (None: there is none). Raises NotListed where that cannot be done; OSError."""
    if source is None:
        text = f'version: "1.0"\n{whitelist_line(config, [program])}\n'
    else:
        text = _extended(source, program) or ""
        if not text:
            raise not_listed(program, config, source.where)
    path = workspace / FILE
    mode = path.stat().st_mode & 0o777 if source is not None else 0o644

    def unchanged() -> None:
        if source is not None and path.read_bytes() != source.content:
            raise NotListed(f"{FILE} changed meanwhile", "run the command again")

    write_atomic(path, text.encode(), mode, unchanged)


def _extended(source: Source, program: str) -> str | None:
    """The file's text with ``program`` in its whitelist, checked by reading it again; None where it has a form that is
    not known here."""
    before = read_config(source.content, source.where)
    wanted = msgspec.structs.replace(before, whitelist_tools=[*before.whitelist_tools, program])
    for text in _tried(source.content.decode(), program, before):
        try:
            if read_config(text, source.where) == wanted:
                return text
        except PmagentError:
            continue
    return None


def _tried(text: str, program: str, config: OrchestraConfig) -> Iterator[str]:
    ending = "" if text.endswith("\n") else "\n"
    name = _text(program)
    yield _FLOW.sub(rf"\g<1>, {name}]", text, count=1)
    yield _BLOCK.sub(rf"\g<0>\g<1>- {name}\n", text + ending, count=1)
    yield f"{text}{ending}{whitelist_line(config, [program])}\n"
