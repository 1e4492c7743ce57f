"""Codex runs a hook only when its user has trusted its hash; its app-server tells the hash and takes it.

Source: ``codex app-server``, version 0.169.0: ``hooks/list`` and ``config/batchWrite``, as JSON lines.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from pmagent import __version__
from pmagent.events.errors import PmagentError
from pmagent.guests.harnesses import EVENTS, Hook, names


class CodexFailed(PmagentError, exit_code=1):
    """Codex's app-server does not do what it is asked."""


class AppServer:
    """A running ``codex app-server``, while the block lasts."""

    def __init__(self, program: str, environ: Mapping[str, str], folder: Path) -> None:
        self._number = 0
        self._process = subprocess.Popen(
            [program, "app-server"], env=dict(environ), cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.ask("initialize", clientInfo={"name": "pmagent", "title": "pmagent", "version": __version__})
        self._send({"method": "initialized"})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self, method: str, **params: Any) -> Any:
        """The result of a request. Raises CodexFailed."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = msgspec.json.decode(line)
            if answer.get("id") == self._number:
                if "error" in answer:
                    why = answer["error"].get("message")
                    raise CodexFailed(f"Codex refuses {method}: {why}", "type /hooks in Codex")
                return answer["result"]
        raise CodexFailed(f"Codex's app-server ended before it answered {method}", "does codex app-server start?")

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(msgspec.json.encode(message) + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise CodexFailed("Codex's app-server ended at once", "does codex app-server start?") from None


def trust(program: str, environ: Mapping[str, str], folder: Path, settings: Path, hook: Hook) -> list[str]:
    """Trust our hooks in the file ``settings`` as they are now, and nobody else's; their keys. Raises CodexFailed, also
    when Codex goes on distrusting one of them."""
    with AppServer(program, environ, folder) as server:
        hashes = {one["key"]: {"trusted_hash": one["currentHash"]} for one in _hooks(server, folder, settings, hook)}
        if not hashes:
            if settings.parent.parent == folder:
                what = f"Codex does not read {settings}: of a project, only where its user trusts the folder"
                raise CodexFailed(what, f"start codex in {folder} once, and trust it; then pmagent connect codex again")
            what = f"Codex leaves out all of {settings}: one entry in it has another form than it takes"
            raise CodexFailed(what, "mend the entries of others; then pmagent connect codex again")
        edit = {"keyPath": "hooks.state", "value": hashes, "mergeStrategy": "upsert"}
        server.ask("config/batchWrite", edits=[edit])
        left = [one["key"] for one in _hooks(server, folder, settings, hook) if not _runs(one)]
    if left:
        raise CodexFailed(f"Codex does not trust {', '.join(left)}", "type /hooks in Codex, and trust them")
    return list(hashes)


def skipped(program: str, environ: Mapping[str, str], folder: Path, settings: Path, hook: Hook) -> list[str]:
    """Our events in the file ``settings`` that Codex skips, or does not know. Raises CodexFailed."""
    with AppServer(program, environ, folder) as server:
        runs = {one["eventName"].lower() for one in _hooks(server, folder, settings, hook) if _runs(one)}
    return [event for event in EVENTS["codex"] if event.lower() not in runs]


def without_trust(text: str, keys: Sequence[str]) -> str:
    """Codex's settings without the hashes that trust these hooks."""
    for key in keys:
        text = re.sub(rf"\n?\[hooks\.state\.{re.escape(json.dumps(key))}\]\ntrusted_hash = [^\n]*(\n|$)", "\n", text)
    return text


def _runs(one: Mapping[str, Any]) -> bool:
    return bool(one["enabled"]) and one["trustStatus"] in ("trusted", "managed")


def _hooks(server: AppServer, folder: Path, settings: Path, hook: Hook) -> list[dict[str, Any]]:
    data = server.ask("hooks/list", cwds=[str(folder)])["data"]
    same = os.path.realpath(settings)
    found = (one for listed in data for one in listed["hooks"])
    return [one for one in found if os.path.realpath(one["sourcePath"]) == same and names(one["command"], hook)]
