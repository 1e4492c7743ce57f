import os
import smtplib
from email.message import EmailMessage

from .schemas import Decision

TEXTS = {
    "shortlisted": "we would like to get to know you. A colleague will call you this week.",
    "rejected": "thank you for your application. We have decided for other applicants.",
}


def notify(decision: Decision) -> None:
    message = EmailMessage()
    message["From"] = os.environ["SMTP_USER"]
    message["To"] = decision.address
    message["Subject"] = "Your application"
    message.set_content(f"Hello,\n\n{TEXTS[decision.status]}\n\nYour recruiting team")
    with smtplib.SMTP_SSL(os.environ["SMTP_HOST"], timeout=20) as server:
        server.login(os.environ["SMTP_USER"], os.environ["SMTP_PASSWORD"])
        server.send_message(message)
