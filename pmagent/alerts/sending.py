"""The sending process: ``python -I -m pmagent.alerts.sending``. It reads a delivery and writes its outcome, in JSON.

The daemon ends it when it takes too long, so a receiver that hangs costs a process and nothing else. It follows no
redirection, and tells nothing of address or answer but codes and the system's own words.
"""

from __future__ import annotations

import json
import os
import resource
import smtplib
import ssl
import sys
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlsplit

SECONDS: Final = 10.0
"""For each step of a connection."""
MEMORY_BYTES: Final = 256 << 20
"""Address space: smtplib keeps every line of an answer, however many there are."""
_LATER: Final = (408, 425, 429)
"""Answers that ask to try again, of those that say that the request is wrong."""


def main() -> int:
    """Deliver; always exit code 0 with an outcome."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    delivery = json.load(sys.stdin)
    try:
        outcome = _mail(delivery) if delivery["to"] else _post(delivery)
    except ssl.SSLError as error:
        outcome = {"ok": False, "again": True, "error": f"TLS: {error.reason or 'failed'}"}
    except OSError as error:
        outcome = {"ok": False, "again": True, "error": error.strerror or type(error).__name__}
    except (HTTPException, smtplib.SMTPException, MemoryError) as error:
        outcome = {"ok": False, "again": True, "error": f"no answer that is understood ({type(error).__name__})"}
    except ValueError:  # what it says holds the address or the secret
        text = "address, secret or link hold what cannot be sent: a line break, or no plain letter"
        outcome = {"ok": False, "again": False, "error": text}
    os.write(1, json.dumps(outcome).encode())
    return 0


def _post(delivery: dict[str, Any]) -> dict[str, Any]:
    url = urlsplit(delivery["url"])
    made = HTTPSConnection if url.scheme == "https" else HTTPConnection
    connection = made(url.hostname or "", url.port, timeout=SECONDS)
    try:
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        connection.request("POST", path, delivery["body"].encode(), delivery["headers"])
        status = connection.getresponse().status
    finally:
        connection.close()
    again = status >= 500 or status in _LATER
    return {"ok": 200 <= status < 300, "again": again, "error": "" if status < 300 else f"HTTP {status}"}


def _mail(delivery: dict[str, Any]) -> dict[str, Any]:
    host, port, context = delivery["host"], delivery["port"], ssl.create_default_context()
    if delivery["tls"] == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(host, port, timeout=SECONDS, context=context)
    else:
        server = smtplib.SMTP(host, port, timeout=SECONDS)
    try:
        with server:
            if delivery["tls"] == "starttls":
                server.starttls(context=context)
            if delivery["user"]:
                server.login(delivery["user"], delivery["password"])
            refused = server.sendmail(delivery["sender"], delivery["to"], delivery["body"])
    except smtplib.SMTPNotSupportedError:
        return {"ok": False, "again": False, "error": "SMTP: the server offers no TLS or no sign-in"}
    except smtplib.SMTPRecipientsRefused as error:
        codes = sorted({code for code, _ in error.recipients.values()})
        return {"ok": False, "again": max(codes) < 500, "error": f"SMTP {codes[0]}: recipients refused"}
    except smtplib.SMTPResponseException as error:
        return {"ok": False, "again": error.smtp_code < 500, "error": f"SMTP {error.smtp_code}"}
    return {"ok": True, "again": False, "error": f"{len(refused)} recipient(s) refused" if refused else ""}


if __name__ == "__main__":
    sys.exit(main())
