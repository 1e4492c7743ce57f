"""Amounts with units. Kept as whole nanograms or nanolitres, so that nothing is lost by rounding."""

import re
from dataclasses import dataclass
from decimal import Decimal

UNITS = {
    "ng": ("g", 1), "ug": ("g", 10**3), "mg": ("g", 10**6), "g": ("g", 10**9), "kg": ("g", 10**12),
    "nL": ("L", 1), "uL": ("L", 10**3), "mL": ("L", 10**6), "L": ("L", 10**9),
}
FORM = re.compile(r"\s*(\d{1,9}(?:[.,]\d{1,6})?)\s*([a-zA-Zµ]{1,2})\s*")


class BadAmount(ValueError):
    pass


@dataclass(frozen=True, order=True)
class Amount:
    kind: str
    nanos: int

    @classmethod
    def parse(cls, text: str) -> "Amount":
        match = FORM.fullmatch(text.replace("µ", "u"))
        if not match or match[2] not in UNITS:
            raise BadAmount(f"not an amount: {text!r} (for example 250mL)")
        kind, factor = UNITS[match[2]]
        nanos = Decimal(match[1].replace(",", ".")) * factor
        if nanos != int(nanos):
            raise BadAmount(f"finer than a nano: {text!r}")
        return cls(kind, int(nanos))

    def __sub__(self, other: "Amount") -> "Amount":
        if self.kind != other.kind:
            raise BadAmount(f"{self} and {other} are of different kinds")
        if other.nanos > self.nanos:
            raise BadAmount(f"only {self} left")
        return Amount(self.kind, self.nanos - other.nanos)

    def __str__(self) -> str:
        for unit, (kind, factor) in reversed(UNITS.items()):
            if kind == self.kind and (self.nanos >= factor or factor == 1):
                return f"{(Decimal(self.nanos) / factor).normalize():f}{unit}"
        raise AssertionError(self.kind)
