"""Checks that somebody asks for on the page Integrity: each in a process of its own, one at a time.

The answers are kept in the console's folder, so that they outlive it; nothing is decided by them.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from pmagent.events.atomic import write_atomic
from pmagent.events.errors import PmagentError
from pmagent.events.log import now
from pmagent.exitcodes import Exit

Kind = Literal["log", "documents", "replay"]
State = Literal["running", "done", "failed"]

KINDS: Final[tuple[Kind, ...]] = ("log", "documents", "replay")
LINE_BYTES_MAX: Final = 1 << 20
COMMAND: Final = ("-m", "pmagent.console.pages.reading.checking_child")


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A check: who asked for it when, how far it is (bytes), what came of it. ``result``: the document of ``pmagent log
    verify``, the differences of ``pmagent rebuild --check``, or those of ``pmagent replay --what-if``; ``exit_code``:
    what the command would have ended with. Failed: it came to no answer, ``text`` and ``hint`` say why."""

    kind: Kind
    operator: str
    asked_at: str
    state: State = "running"
    done: int = 0
    of: int = 0
    ended_at: str = ""
    seconds: float = 0.0
    exit_code: int = 0
    result: dict[str, Any] = {}
    text: str = ""
    hint: str = ""


_decoder: Final = msgspec.json.Decoder(Check)  # made where there is one thread: see config.resolve


class Busy(PmagentError, exit_code=1):
    """A check is going on already."""


class Unstarted(PmagentError):
    """A check cannot be begun."""


class Checks:
    """The checks of one workspace, kept in ``folder``. Safe to use from several threads. ``record`` is called with each
    that has come to an answer, in a thread of its own, to have it in the log."""

    def __init__(self, workspace: Path, folder: Path, record: Callable[[Check], None] | None = None) -> None:
        self._workspace = workspace
        self._folder = folder
        self._record = record
        self._lock = threading.Lock()
        self._latest: dict[Kind, Check] = {}
        self._ended = threading.Event()
        self._ended.set()
        self._news = threading.Event()

    def latest(self, kind: Kind) -> Check | None:
        """The running check, or the last one; None: there was none. Unreadable parts of it count for nothing."""
        with self._lock:
            known = self._latest.get(kind)
        if known is not None:
            return known
        try:
            return _decoder.decode((self._folder / _name(kind)).read_bytes())
        except (OSError, msgspec.DecodeError):  # mostly: there was none
            return None

    @property
    def running(self) -> Check | None:
        """The one that is going on."""
        with self._lock:
            return next((check for check in self._latest.values() if check.state == "running"), None)

    def begin(self, kind: Kind, operator: str) -> Check:
        """Begin a check. Raises Busy while there is another; Unstarted."""
        with self._lock:
            going = next((check for check in self._latest.values() if check.state == "running"), None)
            if going is not None:
                what = f"the {going.kind} {_verb(going.kind)} being checked already, for {going.operator}"
                raise Busy(f"{what}, since {going.asked_at}", "wait for its answer; one check goes on at a time")
            process = self._started(kind)
            check = Check(kind=kind, operator=operator, asked_at=now())
            self._latest[kind] = check
            self._ended.clear()
            self._news.clear()
        threading.Thread(target=self._attend, args=(check, process), daemon=True, name=f"check-{kind}").start()
        return check

    def _started(self, kind: Kind) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                [sys.executable, "-I", *COMMAND, kind, str(self._workspace)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/", env={},
                process_group=0,
            )  # fmt: skip
        except OSError as error:
            what = f"no process can be started that checks: {error.strerror or type(error).__name__}"
            raise Unstarted(what, "mend that, and ask again") from error

    def wait(self, seconds: float) -> bool:
        """Wait until no check goes on; whether that came about in time."""
        return self._ended.wait(seconds)

    def wait_for_news(self, seconds: float) -> bool:
        """Wait until the check that was begun last has said something; whether that came about in time."""
        return self._news.wait(seconds)

    def _attend(self, check: Check, process: subprocess.Popen[bytes]) -> None:
        begun = time.monotonic()
        assert process.stdout is not None, "made with a pipe"
        message: dict[str, Any] = {}
        with process:
            while line := process.stdout.readline(LINE_BYTES_MAX):
                message = _message(line)
                if "done" in message:
                    check = msgspec.structs.replace(check, done=message["done"], of=message["of"])
                    self._note(check)
            assert process.stdin is not None, "made with a pipe"
            process.stdin.close()
        ended = {"ended_at": now(), "seconds": round(time.monotonic() - begun, 3)}
        check = self._kept(msgspec.structs.replace(check, **ended, **_end(check.kind, message)))
        self._note(check)
        if check.state == "done" and self._record is not None:
            try:
                self._record(check)
            except PmagentError as error:
                self._note(msgspec.structs.replace(check, hint=f"it is not in the log: {error.message}"))
        self._ended.set()

    def _kept(self, check: Check) -> Check:
        try:
            write_atomic(self._folder / _name(check.kind), msgspec.json.encode(check), 0o600)
        except OSError:
            hint = "it could not be kept, and is forgotten when the console ends"
            check = msgspec.structs.replace(check, hint=hint)
        return check

    def _note(self, check: Check) -> None:
        with self._lock:
            self._latest[check.kind] = check
        self._news.set()


def _message(line: bytes) -> dict[str, Any]:
    """The process's message in a line; nothing where it was cut off in it."""
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except msgspec.DecodeError:
        return {}


def _end(kind: Kind, message: dict[str, Any]) -> dict[str, Any]:
    """How a check ended, from the last thing that its process said."""
    if "result" in message:
        ok = message["result"]["ok"]
        if kind == "replay":
            unlike = Exit.USAGE if message["result"]["undecided"] and not message["result"]["count"] else Exit.DIVERGED
            return {"state": "done", "result": message["result"], "exit_code": int(Exit.DONE if ok else unlike)}
        lost = (message["result"].get("blobs") or {}).get("bad", 0)
        code = Exit.DONE if ok else Exit.CORRUPT if kind == "log" or lost else Exit.NO
        return {"state": "done", "result": message["result"], "exit_code": int(code)}
    text = message.get("error", "its process ended without an answer")
    code = message.get("exit_code", int(Exit.BUG))
    return {"state": "failed", "text": text, "hint": message.get("hint", "ask again"), "exit_code": code}


def _name(kind: Kind) -> str:
    return f"check-{kind}.json"


def _verb(kind: Kind) -> str:
    return {"documents": "are", "log": "is", "replay": "of the log is"}[kind]
