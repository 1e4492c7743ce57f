from __future__ import annotations

import os
import smtplib
import ssl
from email.message import EmailMessage

from .models import Diary


def send(diary: Diary) -> None:
    message = EmailMessage()
    message["Subject"] = f"Site diary {diary.site} {diary.day}"
    message["From"] = f"{os.environ['SMTP_USER']}@{os.environ['SMTP_HOST']}"
    message["To"] = os.environ["CLIENT_MAIL"]
    message.set_content(diary.text)
    with smtplib.SMTP(os.environ["SMTP_HOST"], 587, timeout=30) as server:
        server.starttls(context=ssl.create_default_context())
        server.login(os.environ["SMTP_USER"], os.environ["SMTP_PASSWORD"])
        server.send_message(message)
