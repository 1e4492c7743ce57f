"""The gateway to the subscribers' telephones."""

from __future__ import annotations

import os

import httpx

from .model import Draft


class SmsError(Exception):
    """The gateway did not take the message."""


def send(draft: Draft, number: str) -> int:
    """Sends to the list "flood" and returns how many telephones it has. The gateway sends a reference only once."""
    try:
        reply = httpx.post(
            f"{os.environ['FLOODPOST_SMS']}/lists/flood/messages",
            json={"text": f"{draft.headline}\n{draft.body}", "reference": number},
            headers={"Authorization": f"Bearer {os.environ['FLOODPOST_SMS_TOKEN']}"},
            timeout=20,
        )
        reply.raise_for_status()
        return int(reply.json()["recipients"])
    except (httpx.HTTPError, KeyError, ValueError) as error:
        raise SmsError(f"not sent: {error}") from error
