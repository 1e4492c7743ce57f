"""Read, look up, compare, ask, post."""
from __future__ import annotations

import os
from pathlib import Path

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.func import entrypoint, task
from langgraph.types import RetryPolicy, interrupt
from pydantic import ValidationError

from . import erp
from .domain import Difference, Line, Order, Outcome, compare
from .reading import Invoice, Unreadable, read, text_of


@task
def load_text(path: str) -> str:
    return text_of(Path(path))


@task(retry_policy=RetryPolicy(max_attempts=3, retry_on=(ValidationError, ValueError, TimeoutError)))
def read_invoice(text: str) -> Invoice:
    return read(text)


@task
def find_order(number: str) -> Order | None:
    return erp.order(number)


@task
def post(invoice: Invoice, why: str) -> None:
    erp.post(invoice.number, invoice.supplier, invoice.total, why)


def tolerance() -> int:
    return int(os.environ.get("TOLERANCE_CENTS", "200"))


def described(differences: tuple[Difference, ...]) -> list[str]:
    return [f"{d.article}: {d.kind}, {d.cents / 100:.2f}" for d in differences]


def workflow(saver: BaseCheckpointSaver):  # type: ignore[no-untyped-def]
    @entrypoint(checkpointer=saver)
    def match(path: str) -> Outcome:
        try:
            invoice = read_invoice(load_text(path).result()).result()
        except (Unreadable, ValueError) as error:
            return Outcome(Path(path).stem, "rejected", str(error))
        order = find_order(invoice.order_number).result()
        if order is None or order.supplier != invoice.supplier:
            return Outcome(invoice.number, "rejected", f"no order {invoice.order_number} of {invoice.supplier}")
        lines = [Line(line.article, line.quantity, line.price) for line in invoice.lines]
        differences = compare(lines, order)
        why = "matched"
        if sum(d.cents for d in differences) > tolerance():
            decision = interrupt({"invoice": invoice.number, "differences": described(differences)})
            if decision != "approve":
                return Outcome(invoice.number, "rejected", "rejected by a clerk", differences)
            why = "approved by a clerk"
        try:
            post(invoice, why).result()
        except erp.AlreadyPosted as error:
            return Outcome(invoice.number, "rejected", str(error), differences)
        return Outcome(invoice.number, "posted", why, differences)

    return match
