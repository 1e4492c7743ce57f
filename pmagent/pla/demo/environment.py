"""Where the demo plays: a fresh workspace, the device to try things with, a daemon, and commands as a person types
them; each a process of its own."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from pmagent.events.errors import PmagentError
from pmagent.events.event import StoredEvent
from pmagent.events.reader import Follower
from pmagent.pla.demo.picture import picture
from pmagent.service.operations import call
from pmagent.workspace.layout import Layout
from pmagent.workspace.trust import accept

WORKSPACE: Final = "workspace"
"""The demo's workspace, in its folder."""

SECONDS: Final = 60.0
"""Nothing in the demo takes so long; what would is a surprise."""

POLL_SECONDS: Final = 0.02

_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Show = Callable[[str], None]


class UnexpectedResult(PmagentError, exit_code=1):
    """The demo saw something else than it expected."""


class Ran(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The JSON document on its stdout. Raises UnexpectedResult."""
        try:
            return json.loads(self.out)
        except ValueError:
            raise UnexpectedResult(f"this is no JSON document: {self.out[:200]}") from None


class Device:
    """The device to try things with, as a process: what it is told, and what it tells."""

    def __init__(self, link: Path, typed: Path, *options: str) -> None:
        self._typed = typed
        self._link = link
        command = [sys.executable, "-I", "-m", "pmagent.pla.device", "--link", str(link), "--typed", str(typed)]
        self._process = subprocess.Popen(
            [*command, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment(), bufsize=0
        )
        self._begun = b""
        self._show_output: list[dict[str, Any]] = []
        self._seen = 0
        self.wait(lambda message: "plugged" in message)

    def do(self, word: str) -> None:
        """Tell it ``word``, and return when it has done that. Raises UnexpectedResult."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n".encode())
        self.wait(lambda message: message.get("did") == word)

    def wait(self, wanted: Callable[[dict[str, Any]], bool]) -> None:
        """Return when it has told what is ``wanted``, since the last wait. Raises UnexpectedResult."""
        deadline = time.monotonic() + SECONDS
        while True:
            while self._seen < len(self._show_output):
                self._seen += 1
                if wanted(self._show_output[self._seen - 1]):
                    return
            self._read(deadline - time.monotonic())

    def pass_over(self) -> None:
        """Do not wait for its earlier messages any more."""
        self._drain()
        self._seen = len(self._show_output)

    def heard(self, op: str) -> int:
        """How many requests ``op`` it has heard so far."""
        self._drain()
        return sum(message.get("heard") == op for message in self._show_output)

    @property
    def told(self) -> list[dict[str, Any]]:
        """All that it has told so far."""
        self._drain()
        return list(self._show_output)

    @property
    def typed(self) -> str:
        """All that it typed so far, as the text that a machine makes of it."""
        return self._typed.read_text("utf-8")

    def close(self) -> None:
        """End it."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(SECONDS)
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()

    def _drain(self) -> None:
        while self._read(0.0):
            pass

    def _read(self, seconds: float) -> bool:
        """Take what it tells within ``seconds``; whether there was anything. Raises UnexpectedResult."""
        stream = self._process.stdout
        assert stream is not None
        ready, _, _ = select.select([stream], [], [], max(0.0, seconds))
        if not ready:
            if seconds > 0:
                raise UnexpectedResult("the device does not tell what was expected of it")
            return False
        data = os.read(stream.fileno(), 65_536)
        if not data:
            raise UnexpectedResult(f"the device has ended, with {self._process.wait(SECONDS)}")
        *lines, self._begun = (self._begun + data).split(b"\n")
        self._show_output += [json.loads(line) for line in lines]
        return True


class DemoEnvironment:
    """The workspace in ``folder``, and who acts in it. ``show`` gets each line that is shown."""

    def __init__(self, folder: Path, show: Show) -> None:
        self.workspace = folder / WORKSPACE
        self.typed = folder / "typed.txt"
        self.link = folder / "device"
        self._errors = folder / "daemon.stderr"
        self._show = show
        self._started: list[subprocess.Popen[str]] = []
        self._settings: dict[str, str] = {
            "device": json.dumps(str(self.link)), "operator": '"ada"', "frames": '"frames"',
        }  # fmt: skip

    def build(self) -> None:
        """Make the workspace: a git repository with green surfaces, settings, and a frame. Raises UnexpectedResult."""
        (self.workspace / "frames").mkdir(parents=True)
        (self.workspace / "frames" / "frame-0001.png").write_bytes(picture())
        named = ["-c", "user.name=demo", "-c", "user.email=demo@localhost"]
        for words in (["init", "--quiet", "--initial-branch=main"], ["add", "."], ["commit", "--quiet", "-m", "Begin"]):
            subprocess.run(["git", "-C", str(self.workspace), *named, *words], check=True, env=_environment())
        self.run("init", quiet=True)
        self.set()

    def set(self, **settings: str) -> None:
        """Write the settings [pla], with ``settings`` (as TOML) over them."""
        lines = [f"{name} = {value}" for name, value in {**self._settings, **settings}.items()]
        (self.workspace / ".pmagent" / "config.toml").write_text("\n".join(["[pla]", *lines, ""]), "utf-8")
        accept(self.workspace)

    def file(self, name: str, content: str) -> str:
        """Write a file beside the workspace; its path."""
        path = self.workspace.parent / name
        path.write_text(content, "utf-8")
        return str(path)

    def say(self, text: str = "") -> None:
        """A line of the demo's own."""
        self._show(text)

    def run(self, *arguments: str, expect: int = 0, quiet: bool = False) -> Ran:
        """Run a command and show it, and its answer unless ``quiet``. Raises UnexpectedResult when it does not
        end with ``expect``."""
        ran = self._ended(self.start(*arguments, quiet=quiet))
        if not quiet:
            self._show_output(ran)
        if ran.code != expect:
            words = " ".join(arguments)
            raise UnexpectedResult(f"pmagent {words} ended with {ran.code}, not {expect}: {ran.out}{ran.err}")
        return ran

    def start(self, *arguments: str, quiet: bool = False) -> subprocess.Popen[str]:
        """Start a command and show it."""
        if not quiet:
            self._show("$ pmagent " + " ".join(_quoted(argument) for argument in arguments))
        return self._launched(arguments, subprocess.PIPE, None if quiet else subprocess.STDOUT)

    def _launched(
        self, arguments: Sequence[str], output: int | BinaryIO, errors: int | None = None
    ) -> subprocess.Popen[str]:
        """A command, started and remembered, whatever signal comes meanwhile; its ``errors`` go where its output goes,
        or where they say."""
        with _undisturbed():
            process = subprocess.Popen(
                [sys.executable, "-I", "-m", "pmagent", "--workspace", str(self.workspace), *arguments],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output if errors is None else errors, text=True,
                env=_environment(),
            )  # fmt: skip
            self._started.append(process)
        return process

    def finish(self, process: subprocess.Popen[str], *, expect: int) -> Ran:
        """Wait for a command that was started, and show its answer. Raises UnexpectedResult."""
        ran = self._ended(process)
        self._show_output(ran)
        if ran.code != expect:
            raise UnexpectedResult(f"the command ended with {ran.code}, not {expect}: {ran.out}{ran.err}")
        return ran

    def ask(self, operation: str, **arguments: object) -> dict[str, Any]:
        """The daemon's answer to a read-only operation; not shown. Raises PmagentError."""
        with _undisturbed():  # imports and event loops lose a Ctrl-C that comes at a bad moment
            return call(self.workspace, operation, arguments).document

    def position(self) -> int:
        """The log's end. Raises PmagentError."""
        with closing(Layout(self.workspace).store.reader()) as log:
            return log.tail().position

    def await_event(self, type: str, after: int, **fields: object) -> None:
        """Return when the log holds an event of this type, with these ``fields``, behind position ``after``. Raises
        UnexpectedResult."""
        deadline = time.monotonic() + SECONDS
        with closing(Layout(self.workspace).store.reader()) as log:
            follower = Follower(log, after + 1)
            while True:
                found = follower.poll()
                if isinstance(found, Sequence):
                    if any(event.type == type and _has(event, fields) for event in found):
                        return
                elif time.monotonic() > deadline:
                    raise UnexpectedResult(f"there was no {type} in {SECONDS:g} s")
                else:
                    log.changes(follower.position - 1, POLL_SECONDS)

    def expect(self, what: str, expected: object, seen: object) -> None:
        """Say what was expected and seen. Raises UnexpectedResult when they differ."""
        equal = expected == seen
        self._show(f"  {'✓' if equal else '✗'} {what}: expected {expected!r}, seen {seen!r}")
        if not equal:
            raise UnexpectedResult(f"{what}: expected {expected!r}, seen {seen!r}")

    @contextmanager
    def daemon(self) -> Iterator[None]:
        """A daemon for the length of the block, which ends in order. Raises UnexpectedResult."""
        self._show("$ pmagent up &")
        try:
            with self._errors.open("wb") as errors:
                process = self._launched(["up"], errors)
            deadline = time.monotonic() + SECONDS
            while not Layout(self.workspace).socket.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    shown = self._errors.read_text("utf-8", "replace")
                    raise UnexpectedResult(f"the daemon did not start: {shown[-2000:]}")
                time.sleep(POLL_SECONDS)
            yield
            process.terminate()
            self.expect("the daemon ended in order, with", 0, process.wait(SECONDS))
        finally:
            for one in self._started:
                _end(one)
            self._started.clear()

    def _ended(self, process: subprocess.Popen[str]) -> Ran:
        try:
            out, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise UnexpectedResult(f"a command did not end in {SECONDS:g} s") from None
        finally:
            _end(process)
            self._started.remove(process)
        return Ran(process.returncode, out, err or "")

    def _show_output(self, ran: Ran) -> None:
        for line in (*ran.out.splitlines(), *ran.err.splitlines()):
            self._show(f"  {line}")


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Signals that end this process, and come within the block, are acted on behind it."""
    came: list[int] = []
    before = {number: signal.signal(number, lambda got, _: came.append(got)) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for one in came:
            signal.raise_signal(one)


def _end(process: subprocess.Popen[str]) -> None:
    """Kill it, unless it has ended."""
    if process.poll() is None:
        process.kill()
        process.wait()


def _quoted(argument: str) -> str:
    plain = argument.replace("-", "").replace("_", "").replace("/", "").replace(".", "").isalnum()
    return argument if plain else f"'{argument}'"


def _environment() -> dict[str, str]:
    """This process's environment without settings of ours; of this daemon nobody looks at a console."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PMAGENT_")}
    return {**kept, "PMAGENT_CONSOLE_ENABLED": "false"}


def _has(event: StoredEvent, fields: dict[str, object]) -> bool:
    """Whether an event's payload has these fields."""
    data = json.loads(bytes(event.data))
    return all(data.get(name) == value for name, value in fields.items())
