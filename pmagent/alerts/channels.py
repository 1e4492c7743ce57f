"""Channels: a notification as each receiver wants it; computed from settings and environment (docs/running.md).

An address stands in the settings; a secret stands in the daemon's environment, and the settings name its variable.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from pmagent.events.errors import PmagentError
from pmagent.events.event import parse_time
from pmagent.workspace.settings import NotificationSettings

_MAIL: Final = SMTP.clone(cte_type="7bit")  # whatever the server takes
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_PRIORITIES: Final = {"urgent": "5", "request": "4", "bad": "4", "warn": "2"}


class BadChannel(PmagentError, exit_code=2):
    """The settings of a channel cannot be used; nothing is sent over it."""


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """One notification. ``id`` is the same each time that it is sent; ``detail`` is "" unless the settings want it;
    ``link``: the console's page, "" where the console has no address."""

    id: str
    kind: str
    severity: str
    title: str
    detail: str
    link: str
    time: str
    workspace: str

    @property
    def lines(self) -> list[str]:
        """For people."""
        return [line for line in (f"{self.title} ({self.workspace})", self.detail, self.link) if line]


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """The order to the sending process: an HTTP POST to ``url``, or, with ``to``, an e-mail through ``host``."""

    url: str = ""
    headers: dict[str, str] = {}
    body: str = ""
    host: str = ""
    port: int = 0
    tls: str = ""
    user: str = ""
    password: str = ""
    sender: str = ""
    to: list[str] = []


Channel = Callable[[Notice], Delivery]


def channel_of(name: str, settings: NotificationSettings, environ: Mapping[str, str]) -> Channel | None:
    """The channel ``name``; None where it has no address. Raises BadChannel."""
    return CHANNELS[name](settings, environ)


def _webhook(settings: NotificationSettings, environ: Mapping[str, str]) -> Channel | None:
    if not settings.webhook:
        return None
    url = _checked_url("webhook", settings.webhook)
    key = _secret("webhook_secret_env", settings.webhook_secret_env, environ)

    def made(notice: Notice) -> Delivery:
        fields = {name: value for name, value in msgspec.structs.asdict(notice).items() if value or name != "detail"}
        body = msgspec.json.encode(fields)
        headers = {"Content-Type": "application/json", "X-Pmagent-Id": notice.id}
        if key:
            headers["X-Pmagent-Signature"] = f"sha256={hmac.digest(key.encode(), body, 'sha256').hex()}"
        return Delivery(url=url, headers=headers, body=body.decode())

    return made


def _ntfy(settings: NotificationSettings, environ: Mapping[str, str]) -> Channel | None:
    if not settings.ntfy:
        return None
    url = _checked_url("ntfy", settings.ntfy)
    token = _secret("ntfy_token_env", settings.ntfy_token_env, environ)

    def made(notice: Notice) -> Delivery:
        headers = {"Title": notice.title, "Priority": _PRIORITIES.get(notice.severity, "3"), "X-Pmagent-Id": notice.id}
        headers |= {"Click": notice.link} if notice.link else {}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        return Delivery(url=url, headers=headers, body="\n".join(notice.lines))

    return made


def _slack(settings: NotificationSettings, environ: Mapping[str, str]) -> Channel | None:
    """An incoming webhook of Slack, or of anything that takes its messages; its address is the secret."""
    if not settings.slack_env:
        return None
    url = _checked_url("slack_env", _secret("slack_env", settings.slack_env, environ))

    def made(notice: Notice) -> Delivery:
        text = "\n".join(notice.lines).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        body = msgspec.json.encode({"text": text}).decode()
        return Delivery(url=url, headers={"Content-Type": "application/json", "X-Pmagent-Id": notice.id}, body=body)

    return made


def _email(settings: NotificationSettings, environ: Mapping[str, str]) -> Channel | None:
    if not settings.email_to:
        return None
    host, port = _server(settings)
    password = _secret("smtp_password_env", settings.smtp_password_env, environ)
    if settings.smtp_tls == "none" and settings.smtp_user and host not in _LOOPBACK:
        raise BadChannel("email: a password must not be sent unencrypted", 'smtp_tls = "starttls", or "tls"')
    to = [_address("email_to", one.strip()) for one in settings.email_to.split(",") if one.strip()]
    sender = _address("email_from", settings.email_from or to[0])

    def made(notice: Notice) -> Delivery:
        message = EmailMessage(policy=_MAIL)
        message["Subject"] = f"[pmagent {notice.severity}] {notice.title}"
        message["From"], message["To"] = sender, ", ".join(to)
        message["Date"] = format_datetime(parse_time(notice.time))
        message["Message-ID"] = f"<{notice.id}@pmagent.invalid>"
        message.set_content("\n".join(notice.lines) + "\n")
        return Delivery(
            host=host, port=port, tls=settings.smtp_tls, user=settings.smtp_user, password=password, sender=sender,
            to=to, body=message.as_bytes().decode("ascii"),
        )  # fmt: skip

    return made


CHANNELS: Final[dict[str, Callable[[NotificationSettings, Mapping[str, str]], Channel | None]]] = {
    "webhook": _webhook, "ntfy": _ntfy, "slack": _slack, "email": _email,
}  # fmt: skip


def wants(settings: NotificationSettings, severity: str) -> bool:
    """Whether an alert of this severity is sent."""
    if severity == "request":
        return settings.requests
    return _GRADES.index(severity) <= _GRADES.index(settings.least)


_GRADES: Final = ("urgent", "bad", "warn")


def _secret(setting: str, variable: str, environ: Mapping[str, str]) -> str:
    """The value of the variable that a setting names; "" where it names none. Raises BadChannel."""
    value = environ.get(variable, "") if variable else ""
    if variable and not value:
        what = f"{setting} names the variable {variable}, which is not set"
        raise BadChannel(what, f"start the daemon with {variable}")
    return value


def _checked_url(setting: str, url: str) -> str:
    """``url``, if something may be posted to it: over TLS, or to this machine. Raises BadChannel, which does not name
    the address: it may be a secret."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if not host or parts.scheme not in ("http", "https") or not url.isascii() or not url.isprintable() or " " in url:
        raise BadChannel(f"{setting} holds no http or https address", "give a whole address, e.g. https://host/path")
    if parts.username is not None or parts.password is not None:
        raise BadChannel(f"{setting} must not hold a name or password", "name a variable with the secret instead")
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise BadChannel(f"{setting} must begin with https://, except for this machine's own addresses", "use https")
    return url


def _server(settings: NotificationSettings) -> tuple[str, int]:
    host, colon, port = settings.smtp.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
        raise BadChannel("email needs a mail server", 'smtp = "host:587"')
    return host, int(port)


def _address(setting: str, text: str) -> str:
    try:
        address = Address(addr_spec=text)
    except Exception as error:  # what it raises depends on what is wrong
        raise BadChannel(f"{setting} holds no e-mail address", f'{setting} = "name@host"') from error
    if not (address.username and address.domain and text.isascii()):
        raise BadChannel(f"{setting} holds no e-mail address", f'{setting} = "name@host"')
    return text


def plain(delivery: Delivery) -> dict[str, Any]:
    """For the sending process."""
    return msgspec.structs.asdict(delivery)
