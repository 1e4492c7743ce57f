from __future__ import annotations

import re

FORM = re.compile(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}")


def valid(iban: str) -> bool:
    """Form and check digits (ISO 13616)."""
    if not FORM.fullmatch(iban):
        return False
    turned = iban[4:] + iban[:4]
    return int("".join(str(int(sign, 36)) for sign in turned)) % 97 == 1
