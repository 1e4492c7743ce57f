from __future__ import annotations

import os
import re
import smtplib
from email.message import EmailMessage

ADDRESS = re.compile(r"[^@\s,;<>]+@[^@\s,;<>]+\.[a-z]{2,}", re.I)


class NotSent(Exception):
    pass


def send(to: str, subject: str, text: str) -> None:
    if not ADDRESS.fullmatch(to):
        raise NotSent(f"not an address: {to}")
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = os.environ["MANDATE_FROM"], to, subject
    message.set_content(text)
    try:
        with smtplib.SMTP(os.environ["MANDATE_SMTP"], 587, timeout=30) as server:
            server.starttls()
            server.send_message(message)
    except (OSError, smtplib.SMTPException) as error:
        raise NotSent(str(error)) from error
