from __future__ import annotations

import re
from datetime import date
from decimal import Decimal

from .model import Invoice

AMOUNT = r"(-?\d{1,3}(?:[ \u00a0\u202f.]?\d{3})*,\d{2})\s*€?"
NUMBER = re.compile(r"(?i)facture\s*(?:n°|no|numéro)?\s*:?\s*([A-Z0-9][A-Z0-9/-]{2,19})\b")
ISSUED = re.compile(r"(?i)(?:date|émise le|du)\s*:?\s*(\d{2})[/.](\d{2})[/.](\d{4})")
NET = re.compile(r"(?i)total\s+h\.?t\.?\s*:?\s*" + AMOUNT)
VAT = re.compile(r"(?i)t\.?v\.?a\.?(?:\s+\d+(?:,\d+)?\s*%)?\s*:?\s*" + AMOUNT)
TOTAL = re.compile(r"(?i)total\s+t\.?t\.?c\.?\s*:?\s*" + AMOUNT)
IBAN = re.compile(r"\b([A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?)\b")


class NoInvoice(Exception):
    """A field is not in the text; the message names it."""


def amount(text: str) -> Decimal:
    return Decimal(re.sub(r"[ \u00a0\u202f.]", "", text).replace(",", "."))


def one(pattern: re.Pattern[str], text: str, name: str) -> re.Match[str]:
    found = pattern.search(text)
    if found is None:
        raise NoInvoice(f"no {name}")
    return found


def read(text: str, file: str) -> Invoice:
    day, month, year = one(ISSUED, text, "date").groups()
    try:
        issued = date(int(year), int(month), int(day))
    except ValueError as error:
        raise NoInvoice(f"no valid date: {error}") from error
    return Invoice(
        number=one(NUMBER, text, "number")[1],
        issued=issued,
        net=amount(one(NET, text, "net amount")[1]),
        vat=amount(one(VAT, text, "VAT")[1]),
        total=amount(one(TOTAL, text, "total")[1]),
        iban=one(IBAN, text, "IBAN")[1].replace(" ", ""),
        file=file,
    )
