"""Bytes that wait to be written to the line. It is bounded: a host that does not read loses the oldest, and holds up
nothing."""

LINES_MAX = 8


class Outbox:
    """Lines that wait, and how much of the first is written."""

    def __init__(self) -> None:
        self._lines: list[tuple[bytes, bool]] = []  # a line, and whether it is a report that nobody asked for
        self._written = 0

    def clear(self) -> None:
        """Forget everything; an empty line ends what was written of one."""
        self._lines = [(b"\n", False)]
        self._written = 0

    def put(self, line: bytes, *, unasked: bool = False) -> None:
        """Add a line. When there are too many, the oldest report goes, else the oldest line that was not begun."""
        self._lines.append((line, unasked))
        if len(self._lines) <= LINES_MAX:
            return
        first = 1 if self._written else 0
        drop = first
        for at in range(first, len(self._lines) - 1):
            if self._lines[at][1]:
                drop = at
                break
        del self._lines[drop]

    def drop_reports(self) -> None:
        """Forget the reports that were not begun: a newer one comes."""
        first = self._lines[:1] if self._written else []
        self._lines = first + [entry for entry in self._lines[len(first) :] if not entry[1]]

    def take(self, room: int) -> bytes:
        """At most ``room`` bytes to write now."""
        taken: list[bytes] = []
        while room > 0 and self._lines:
            piece = self._lines[0][0][self._written : self._written + room]
            taken.append(piece)
            room -= len(piece)
            self._written += len(piece)
            if self._written == len(self._lines[0][0]):
                del self._lines[0]
                self._written = 0
        return b"".join(taken)
