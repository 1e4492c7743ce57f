"""From a PDF to an invoice. The model reads, it decides nothing."""
from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field, model_validator
from pypdf import PdfReader

MAX_PAGES = 12


class ReadLine(BaseModel):
    article: str = Field(pattern=r"^[A-Z0-9-]{3,20}$")
    quantity: Decimal = Field(gt=0)
    price: Decimal = Field(ge=0)


class Invoice(BaseModel):
    """An invoice as printed."""

    number: str
    supplier: str
    order_number: str
    total: Decimal
    lines: list[ReadLine] = Field(min_length=1)

    @model_validator(mode="after")
    def sums_up(self) -> "Invoice":
        total = sum(line.quantity * line.price for line in self.lines)
        if abs(total - self.total) > Decimal("0.05"):
            raise ValueError(f"lines sum up to {total}, the invoice says {self.total}")
        return self


class Unreadable(Exception):
    pass


def text_of(path: Path) -> str:
    if path.suffix.lower() != ".pdf" or path.stat().st_size > 10_000_000:
        raise Unreadable(f"{path.name}: not a PDF below 10 MB")
    text = "\n".join(page.extract_text() for page in PdfReader(path).pages[:MAX_PAGES])
    if len(text) < 40:
        raise Unreadable(f"{path.name}: no text, probably a scan")
    return text


def read(text: str) -> Invoice:
    model = ChatOpenAI(model="gpt-4o", temperature=0, timeout=60, max_tokens=2000)
    answer = model.with_structured_output(Invoice).invoke(
        [("system", "Copy the invoice into the form. Copy numbers as printed, net of tax. Do not correct them."), ("user", text)]
    )
    if not isinstance(answer, Invoice):
        raise ValueError("the model gave no invoice")
    return answer
