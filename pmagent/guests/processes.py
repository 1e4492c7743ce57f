"""Which processes are a guest's: an answer that one of them gives does not count.

It is a fence, not a wall: a process that leaves its parents behind is not found. A proof of who asks, or the wall,
holds there (docs/threat-model.md).
"""

from __future__ import annotations

from typing import Final

_SHELLS: Final = ("sh", "bash", "dash", "zsh")
DEPTH_MAX: Final = 64
SESSIONS_MAX: Final = 1000


class Processes:
    """The processes that started the hooks of each session: number and start, so that a number used again is none."""

    def __init__(self) -> None:
        self._starters: dict[str, set[tuple[int, int]]] = {}

    def note(self, session: str, hook: int, *, fresh: bool, itself: bool) -> None:
        """A hook of the session asks: whoever started it is the guest, or the process ``itself`` is. Looked at once a
        session, and when it starts again."""
        if (session in self._starters and not fresh) or hook <= 0:
            return
        found = self._starters.setdefault(session, set())
        for number, name, start in above(hook)[not itself :]:
            found.add((number, start))
            if itself or name not in _SHELLS:
                break
        while len(self._starters) > SESSIONS_MAX:
            del self._starters[next(iter(self._starters))]

    def session_of(self, pid: int) -> str:
        """The session among whose processes this one is; "": none is known."""
        chain = {(number, start) for number, _, start in above(pid)} if pid > 0 else set()
        return next((name for name, starters in self._starters.items() if starters & chain), "")


def started_headless(hook: int) -> bool:
    """Whether the process that started the hook is a Claude Code that answers one prompt and ends (``claude -p``): what
    its command line says, which nothing that it runs can change. Its environment may be that of another one."""
    chain = above(hook)
    try:
        with open(f"/proc/{chain[1][0]}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
    except (IndexError, OSError):
        return False
    options = words[1 : words.index(b"--")] if b"--" in words else words[1:]
    return b"-p" in options or b"--print" in options


def above(pid: int) -> list[tuple[int, str, int]]:
    """A process and those above it: number, name, start."""
    found: list[tuple[int, str, int]] = []
    while pid > 1 and len(found) < DEPTH_MAX:
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                before, _, rest = file.read().rpartition(")")
        except OSError:
            break
        fields = rest.split()
        found.append((pid, before.partition("(")[2], int(fields[19])))
        pid = int(fields[1])
    return found
