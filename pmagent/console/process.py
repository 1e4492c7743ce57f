"""The console's process: ``python -I -m pmagent.console.process WORKSPACE``, started and kept by the daemon.

It reports in JSON, a line each, on stdout, which the daemon reads; it ends when its stdin ends, which is the daemon's
pipe: so no console outlives its daemon, however that ends.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread
import structlog

from pmagent.actors.core.integrity import describe_failure
from pmagent.clean import json_bytes
from pmagent.console.address import Address
from pmagent.console.priority import lower_priority
from pmagent.events.errors import PmagentError
from pmagent.exitcodes import Exit

NICENESS: Final = 10
"""Pages wait for the log, never the log for pages."""


def main(arguments: list[str]) -> int:
    """Serve the workspace's console; the exit code. Every error ends here, and is told to the daemon."""
    os.setpgrp()  # no signal of the terminal reaches us; a session of our own would rank with the daemon's
    lower_priority(NICENESS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C at the daemon's terminal is for the daemon, which ends us
    _log_as_json()
    try:
        _serve(Path(arguments[0]))
    except PmagentError as error:
        report("error", error.message, mend=error.hint)
        return error.exit_code
    except OSError as error:
        report("error", f"the console cannot be served: {error!r}"[:500])
        return Exit.NO
    except Exception as error:  # noqa: BLE001 - the last stop: whatever it is, the daemon's screen says where
        kind, place = describe_failure(error)
        report("error", f"a bug in the console: {kind} in {place}", mend="report it; the daemon goes on")
        return Exit.BUG
    return Exit.DONE


def _serve(workspace: Path) -> None:
    from pmagent.console.serving import serve
    from pmagent.flat import flat_errors

    async def run() -> None:
        ended = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_until_orphaned, ended)
            await serve(workspace, ended, _ready)
            tasks.cancel_scope.cancel()

    with flat_errors():
        anyio.run(run)


async def _until_orphaned(ended: anyio.Event) -> None:
    """The daemon writes nothing: the only news on its pipe is its end."""
    await anyio.wait_readable(0)
    ended.set()


def _ready(address: Address) -> None:
    report("ready", address.url, socket=address.path)


def report(level: str, event: str, **more: Any) -> None:
    """Tell the daemon."""
    line = json_bytes({"level": level, "event": event, **{name: str(value) for name, value in more.items()}})
    try:
        os.write(1, line[:4000].replace(b"\n", b" ") + b"\n")
    except OSError:
        return  # it has gone away, and so shall we


def _log_as_json() -> None:
    """Messages logged here go to the daemon's screen, through the daemon."""

    class LineLogger:
        def msg(self, level: str, event: str, more: dict[str, Any]) -> None:
            report(level, event, **more)

        debug = info = warning = error = critical = exception = msg

    def rendered(_logger: Any, level: str, event: MutableMapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        what = str(event.pop("event", ""))
        return (level, what, dict(event)), {}

    structlog.configure(
        processors=[rendered], wrapper_class=structlog.make_filtering_bound_logger(20),
        logger_factory=lambda *_: LineLogger(), cache_logger_on_first_use=False,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
