"""The carrier gateway over HTTP. Every failure becomes a GatewayError with a sentence for dispatch."""
from __future__ import annotations

import re
from urllib.parse import quote

import httpx

from .model import ParcelException
from .settings import settings

ID = re.compile(r"EX-\d{4,8}")


class GatewayError(Exception):
    pass


def _call(method: str, path: str, body: dict | None = None, key: str | None = None) -> dict:
    headers = {"Authorization": f"Bearer {settings().token.get_secret_value()}"}
    if key:
        headers["Idempotency-Key"] = key
    try:
        response = httpx.request(
            method, f"{str(settings().gateway).rstrip('/')}{path}", json=body, headers=headers,
            timeout=settings().seconds, follow_redirects=False,
        )
        response.raise_for_status()
        return response.json() if response.content else {}
    except httpx.TimeoutException as error:
        raise GatewayError(f"the gateway did not answer {method} {path} in time") from error
    except httpx.HTTPStatusError as error:
        raise GatewayError(f"the gateway answered {error.response.status_code} to {method} {path}") from error
    except (httpx.HTTPError, ValueError) as error:
        raise GatewayError(f"{method} {path}: {error}") from error


def fetch(identity: str) -> ParcelException:
    if not ID.fullmatch(identity):
        raise GatewayError(f"{identity!r} is no number of an exception (EX-1234)")
    return ParcelException.model_validate(_call("GET", f"/exceptions/{identity}"))


def act(action: str, exception: ParcelException, reason: str) -> None:
    """Safe to repeat: the gateway drops a second call with the same key."""
    _call(
        "POST", f"/parcels/{quote(exception.parcel, safe='')}/{action}",
        {"exception": exception.id, "reason": reason}, key=f"{exception.id}-{action}-{exception.attempts}",
    )


def ask_customer(exception: ParcelException) -> None:
    _call("POST", "/mails", {
        "to": exception.email, "template": "better-address", "parcel": exception.parcel,
    }, key=f"{exception.id}-mail-{exception.attempts}")
