"""The time of day, from what the host said at hello and the milliseconds since (RFC 3339, UTC)."""

_SHAPE = "dddd-dd-ddTdd:dd:dd"
_DAY_S = 86_400


def is_time(text: str) -> bool:
    """Whether ``text`` is a point in time: date, T, time, up to nine digits of a second, Z or an offset."""
    if not _fits(text[: len(_SHAPE)], _SHAPE):
        return False
    rest = text[len(_SHAPE) :]
    if rest[:1] == ".":
        end = 1
        while end < len(rest) and rest[end] in "0123456789":
            end += 1
        if not 2 <= end <= 10:
            return False
        rest = rest[end:]
    if rest != "Z" and not (rest[:1] in ("+", "-") and _fits(rest[1:], "dd:dd") and _within(rest[1:], 23, 59)):
        return False
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
    if not (year and 1 <= month <= 12 and 1 <= day <= _month_days(year, month)):
        return False
    return _within(text[11:16], 23, 59) and int(text[17:19]) <= 59


def _fits(text: str, shape: str) -> bool:
    if len(text) != len(shape):
        return False
    return all(text[at] in ("0123456789" if kind == "d" else kind) for at, kind in enumerate(shape))


def _within(text: str, hours: int, minutes: int) -> bool:
    return int(text[:2]) <= hours and int(text[3:5]) <= minutes


def _month_days(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


class Clock:
    """A date and a second of its day, moved on by milliseconds. It begins at 1970, with the boot."""

    def __init__(self) -> None:
        self._year, self._month, self._day = 1970, 1, 1
        self._second = 0
        self._ms = 0
        self.uptime = 0
        """Seconds since boot."""

    def set(self, text: str) -> None:
        """Set the time of day. ``text`` ends in Z and is a time; what is behind the second is let go."""
        self._year, self._month, self._day = int(text[:4]), int(text[5:7]), int(text[8:10])
        self._second = int(text[11:13]) * 3600 + int(text[14:16]) * 60 + int(text[17:19])

    def advance(self, ms: int) -> None:
        """So many milliseconds have passed."""
        self._ms += ms
        seconds = self._ms // 1000
        self._ms %= 1000
        self.uptime += seconds
        self._second += seconds
        while self._second >= _DAY_S:
            self._second -= _DAY_S
            self._day += 1
            if self._day > _month_days(self._year, self._month):
                self._day = 1
                self._month += 1
            if self._month > 12:
                self._month = 1
                self._year += 1

    def text(self) -> str:
        """The time, to the second."""
        minutes, second = divmod(self._second, 60)
        hour, minute = divmod(minutes, 60)
        return f"{self._year:04d}-{self._month:02d}-{self._day:02d}T{hour:02d}:{minute:02d}:{second:02d}Z"
