from __future__ import annotations

from datetime import date
from decimal import Decimal

from . import iban
from .model import Checked, Invoice

CENT = Decimal("0.01")
RATES = (Decimal("0"), Decimal("0.055"), Decimal("0.10"), Decimal("0.20"))


def check(invoice: Invoice, suppliers: dict[str, str], known: bool, today: date) -> Checked:
    """All doubts at once, so that a person looks at an invoice only once."""
    doubts = []
    if abs(invoice.net + invoice.vat - invoice.total) > CENT:
        doubts.append(f"{invoice.net} + {invoice.vat} is not {invoice.total}")
    if not any(abs(invoice.net * rate - invoice.vat) <= 2 * CENT for rate in RATES):
        doubts.append(f"VAT of {invoice.vat} on {invoice.net} is of no usual rate")
    if not iban.valid(invoice.iban):
        doubts.append(f"IBAN {invoice.iban} is wrong")
    elif invoice.iban not in suppliers:
        doubts.append(f"IBAN {invoice.iban} is of no known supplier")
    if known:
        doubts.append("seen before")
    if invoice.issued > today:
        doubts.append(f"issued in the future: {invoice.issued}")
    return Checked(invoice, suppliers.get(invoice.iban, "?"), tuple(doubts))
