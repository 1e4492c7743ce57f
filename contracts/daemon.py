"""The daemon's own life: starts and stops (docs/design.md §11.2)."""

from __future__ import annotations

from typing import Literal

from pmagent.contracts.payload import Payload, event_type


@event_type("daemon.started")
class DaemonStarted(Payload, frozen=True, kw_only=True):
    """An engine went live on this log. ``version`` is pmagent's, ``surface``: daemon, or the command that ran it.
    ``libraries``: those that take part in decisions -> their versions; another version may decide otherwise.
    ``kernel_surfaces``: the accepted setting kernel.surfaces, by which this engine goes; "none": the workspace is meant
    to have no kernel surfaces."""

    version: str
    python: str
    surface: str
    libraries: dict[str, str] = {}
    kernel_surfaces: Literal["required", "none"] = "required"


@event_type("daemon.stopped")
class DaemonStopped(Payload, frozen=True, kw_only=True):
    """Orderly end. ``reason``: done, SIGTERM, SIGINT or error. A log whose last start has none was cut off."""

    reason: str


@event_type("daemon.reloaded")
class DaemonReloaded(Payload, frozen=True, kw_only=True):
    """SIGHUP: the settings were read again. ``changed``: keys with another value; ``restart``: those that differ from
    the start's, and hold only from the next one on. ``refused`` says why the file was not taken ("": it was)."""

    changed: list[str] = []
    restart: list[str] = []
    refused: str = ""
