from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    inbox: Path
    work: Path
    ledger: Path
    suppliers: dict[str, str]


@dataclass(frozen=True)
class Attachment:
    sender: str
    name: str
    content: bytes


@dataclass(frozen=True)
class Invoice:
    number: str
    issued: date
    net: Decimal
    vat: Decimal
    total: Decimal
    iban: str
    file: str


@dataclass(frozen=True)
class Checked:
    invoice: Invoice
    supplier: str
    doubts: tuple[str, ...] = ()

    @property
    def clear(self) -> bool:
        return not self.doubts


@dataclass
class Outcome:
    """What a run did; `unread` are attachments from which no invoice could be taken."""

    booked: list[Checked] = field(default_factory=list)
    doubtful: list[Checked] = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)
