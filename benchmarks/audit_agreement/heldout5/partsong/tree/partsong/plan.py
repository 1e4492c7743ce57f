from __future__ import annotations

from datetime import date

from .model import Loan, Need
from .store import Store

SHARED = 2
"""Singers who look into one copy, if it must be."""


def late(store: Store, today: date, days: int) -> list[Loan]:
    return [one for one in store.loans() if one.days(today) > days]


def needs(store: Store, titles: list[str], singers: int, share: bool) -> list[Need]:
    wanted = -(-singers // SHARED) if share else singers
    return [Need(piece.title, wanted, piece.copies) for piece in map(store.piece, titles)]
