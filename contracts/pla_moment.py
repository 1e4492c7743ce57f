"""Times and texts in documents: what the pattern of each lets through (docs/design.md §16.1)."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from pmagent.contracts.payload import END

_CLOCK: Final = r"([01][0-9]|2[0-3]):[0-5][0-9]"
_LONG: Final = r"(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])"
_SHORT: Final = r"(0[469]|11)-(0[1-9]|[12][0-9]|30)"
_FEBRUARY: Final = r"02-(0[1-9]|1[0-9]|2[0-8])"
_LEAP_YEAR: Final = r"([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"

MOMENT: Final = (
    rf"^(?!0000)([0-9]{{4}}-({_LONG}|{_SHORT}|{_FEBRUARY})|{_LEAP_YEAR}-02-29)"
    rf"T{_CLOCK}:[0-5][0-9](\.[0-9]{{1,9}})?(Z|[+-]{_CLOCK})" + END
)
"""RFC 3339, of a day that is in the calendar: a JSON Schema's ``format`` promises nothing, a pattern does. There are no
leap seconds, and nothing finer than a nanosecond."""

_BLANKS: Final = r"\x00-\x20\x7f-\xa0\xad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff"
VISIBLE: Final = rf"[^{_BLANKS}]"
"""At least one character that is no blank, control or invisible one; spelled out, for what ``\\s`` means differs from
one language to the next."""

Moment = Annotated[
    str,
    Meta(
        pattern=MOMENT, description="RFC 3339, e.g. 2026-03-02T09:15:00Z",
        extra={"description": "RFC 3339, of a day that is in the calendar, e.g. 2026-03-02T09:15:00Z"},
    ),
]  # fmt: skip
"""``extra``: the description in the PLA's schemas, which are released and must not change."""
Checksum = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}" + END, description="SHA-256 in lower-case hex")]
Version = Annotated[str, Meta(pattern=r"^[0-9]{1,5}\.[0-9]{1,5}\.[0-9]{1,5}" + END)]
FirmwareVersion = Annotated[str, Meta(pattern=r"^v?[0-9]{1,5}\.[0-9]{1,5}\.[0-9]{1,5}" + END)]
COUNT_MAX: Final = 4_294_967_295
Count = Annotated[int, Meta(ge=0, le=COUNT_MAX)]
