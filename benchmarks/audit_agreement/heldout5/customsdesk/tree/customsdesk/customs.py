from __future__ import annotations

import os

import httpx

from .records import Invoice, Line


class CustomsError(Exception):
    pass


def submit(invoice: Invoice, lines: list[Line]) -> str:
    body = {
        "invoice": invoice.number,
        "seller": invoice.seller,
        "currency": invoice.currency,
        "items": [
            {"item": one.position.number, "code": one.code, "origin": one.position.origin,
             "value": str(one.position.value), "mass": str(one.position.kilograms)}
            for one in lines
        ],
    }
    try:
        reply = httpx.post(
            f"{os.environ['CUSTOMS_API']}/declarations",
            json=body,
            headers={"Authorization": f"Bearer {os.environ['CUSTOMS_TOKEN']}", "Idempotency-Key": invoice.number},
            timeout=httpx.Timeout(60, connect=10),
        )
        reply.raise_for_status()
        return str(reply.json()["mrn"])
    except (httpx.HTTPError, KeyError, ValueError) as error:
        raise CustomsError(f"declaration {invoice.number} was not accepted: {error}") from error
