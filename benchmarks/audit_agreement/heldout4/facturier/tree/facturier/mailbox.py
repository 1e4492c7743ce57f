from __future__ import annotations

import email
import email.policy
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

from .model import Attachment

LARGEST = 10_000_000


def attachments(mail: Path) -> Iterator[Attachment]:
    """The PDF attachments of one mail."""
    message = email.message_from_bytes(mail.read_bytes(), policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    for part in message.iter_attachments():
        name = part.get_filename() or "invoice.pdf"
        content = part.get_payload(decode=True)
        if name.lower().endswith(".pdf") and isinstance(content, bytes) and len(content) <= LARGEST:
            yield Attachment(str(message["from"]), name, content)


def set_aside(mail: Path) -> None:
    """A mail that has been dealt with is kept, but not read again."""
    done = mail.parent / "done"
    done.mkdir(exist_ok=True)
    mail.rename(done / mail.name)
