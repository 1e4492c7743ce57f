"""Simulated kernel surfaces: files that are written, half-written, broken and mended while somebody reads them."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any, Final

import msgspec

from pmagent.actors.kernel.reader import Look
from pmagent.actors.kernel.surfaces import BOOTSTRAP, CONTEXT, HANDOFF, PATHS, REALITY, REQUIRED, SSOT
from pmagent.replay.simulation.world import World

WORKSPACE: Final = Path("/workspace")
LARGE: Final = 1_200_000
_MISSING: Final = Look("missing")
_STATES: Final = ("green", "green", "red", "incoherent", "declared degraded", "declared blocked")


_NAMED: Final[dict[int, tuple[Path, str]]] = {}
"""By their identity, as a path that is hashed runs Python code: each is looked at many times in a run."""
_NAMED_MAX: Final = 256


def _name(path: Path) -> str:
    """A path below the workspace, without it (``relative_to`` takes a good part of a run's time)."""
    known = _NAMED.get(id(path))
    if known is None:
        if len(_NAMED) >= _NAMED_MAX:
            _NAMED.clear()
        known = _NAMED[id(path)] = path, str(path).removeprefix(f"{WORKSPACE}/")
    return known[1]


class SimFiles:
    """The ``Files`` protocol of the kernel's reader over a dictionary."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = world.chance.stream("surfaces")
        self._contents: dict[str, bytes | None] = {}
        self._versions: dict[str, int] = {}
        self._changed_at: dict[str, float] = {}
        self._looks: dict[str, Look] = {}
        """Of files that have not changed since they were looked at."""
        self._listed: dict[str, list[str]] = {}
        """The names in folders to which no file was added, and from which none was taken, since."""
        self._slept = 0.0
        self._changes = 0
        self.write_state("green", 1)

    # --- what happens to them ----------------------------------------------------------------------------------------

    def change(self) -> None:
        """Something is written, well or badly."""
        world = self._world
        path = PATHS[self._random.choice(sorted(PATHS))]
        if world.faults.strike("surface: missing"):
            self._contents.pop(path, None)
            self._listed.clear()
            self._looks.pop(path, None)
            self._versions[path] = self._versions.get(path, 0) + 1
        elif world.faults.strike("surface: half written"):
            content = self._contents.get(path) or b"{}"
            self._put(path, content[: int(world.chance.uniform("surface: cut where") * len(content))])
        elif world.faults.strike("surface: not UTF-8"):
            self._put(path, b'{"branch":"\xff\xfe"}')
        elif world.faults.strike("surface: another shape"):
            self._put(path, self._random.choice((b"[]", b"null", b'{"branch":7}', b'{"a":1,"a":2}', b"[" * 300)))
        elif world.faults.strike("surface: unreadable"):
            self._put(path, None)
        elif world.faults.strike("surface: large"):
            self._put(PATHS[CONTEXT], msgspec.json.encode({"context": {"note": "x" * LARGE}}))
        else:
            self.write_state(self._random.choice(_STATES), self._random.randrange(1, 4))

    def write_state(self, state: str, phase: int) -> None:
        """Write all surfaces anew."""
        green = state != "red"
        checks = [{"name": "AGENTS.md Sync", "passed": green, "message": "checked"}]
        handoff: dict[str, Any] = {"version": 1, "required_surfaces": []}
        if state.startswith("declared"):
            handoff["mode"] = state.split()[1].upper()
        contents: dict[str, dict[str, Any]] = {
            BOOTSTRAP: {
                "branch": "main", "meta": {"current_phase": str(phase)},
                "health": {"reality_green": green != (state == "incoherent")},
            },
            SSOT: {"current_phase": str(phase)},
            REALITY: {"reality_green": green, "checks": checks},
            HANDOFF: handoff,
            CONTEXT: {"context": {"active_goal": f"goal {phase}"}},
        }
        for name, content in contents.items():
            self._put(PATHS[name], msgspec.json.encode(content))

    def content(self, name: str) -> bytes | None:
        """The content of a surface's file; None if it is missing or unreadable."""
        return self._contents.get(PATHS[name])

    def write(self, name: str, content: bytes) -> None:
        """Replace the file of a surface."""
        self._put(PATHS[name], content)

    def _put(self, path: str, content: bytes | None) -> None:
        self._looks.pop(path, None)
        if path not in self._contents:
            self._listed.clear()
        self._contents[path] = content
        self._versions[path] = self._versions.get(path, 0) + 1
        self._changed_at[path] = self.now()

    # --- the Files protocol -----------------------------------------------------------------------------------------

    def look(self, path: Path) -> Look:
        """See Files."""
        name = _name(path)
        look = self._looks.get(name)
        if look is None:
            if name not in self._contents:
                return _MISSING
            look = self._looks[name] = Look("file", (self._versions[name],), self._changed_at[name])
        return look

    def read(self, path: Path, limit: int) -> bytes:
        """See Files."""
        content = self._contents.get(_name(path), b"")
        if content is None:
            raise OSError(errno.EACCES, "Permission denied")
        return content[:limit]

    def names(self, folder: Path) -> list[str]:
        """See Files."""
        start = _name(folder) + "/"
        names = self._listed.get(start)
        if names is None:
            names = sorted(path[len(start) :] for path in self._contents if path.startswith(start))
            self._listed[start] = names
        return names

    def now(self) -> float:
        """See Files."""
        return self._world.seconds + self._slept

    def elapsed(self) -> float:
        """See Files."""
        return self.now()

    def sleep(self, seconds: float) -> None:
        """See Files. Meanwhile others may write."""
        self._slept += max(seconds, 0.000_001)  # no clock stands still, however short the sleep
        if self._world.faults.strike("surface: changes while read"):
            self._changes += 1
            self._put(PATHS[sorted(REQUIRED)[self._changes % len(REQUIRED)]], b'{"written":')
