"""Channels of notifications: what is sent where, and settings that must not be used."""

from __future__ import annotations

import hmac
import json
from email import message_from_string
from pathlib import Path
from typing import Any

import pytest

from pmagent.actors.pla.alerts import REQUEST
from pmagent.alerts.channels import BadChannel, Notice, channel_of, wants
from pmagent.workspace.settings import NotificationSettings, resolve
from pmagent.workspace.trust import offer, wider
from tests.support.cases import each

SECRET = "not-to-be-told-4711"
ENVIRON = {"KEY": SECRET, "HOOK": f"https://hooks.example/{SECRET}"}
NOTICE = Notice(
    id="abc-7", kind=REQUEST, severity="request", title="Typing waits", detail="<rm & co>", workspace="labor-ä",
    link="http://127.0.0.1:9/approvals/p", time="2026-11-26T12:00:00.000000Z",
)  # fmt: skip


def made(name: str, **settings: Any) -> Any:
    """The delivery of ``NOTICE`` over a channel with these settings."""
    channel = channel_of(name, NotificationSettings(**settings), ENVIRON)
    assert channel is not None
    return channel(NOTICE)


def test_a_webhook_gets_json_whose_signature_is_over_its_bytes() -> None:
    sent = made("webhook", webhook="https://ops.example/x?y=1", webhook_secret_env="KEY")
    body = json.loads(sent.body)
    assert (body["id"], body["severity"], body["link"]) == ("abc-7", "request", NOTICE.link)
    digest = hmac.new(SECRET.encode(), sent.body.encode(), "sha256").hexdigest()
    assert sent.headers["X-Pmagent-Signature"] == f"sha256={digest}"
    assert SECRET not in repr(sent)


def test_ntfy_slack_and_mail_get_the_shape_that_each_wants() -> None:
    ntfy = made("ntfy", ntfy="https://ntfy.example/topic", ntfy_token_env="KEY")
    assert {"Title": "Typing waits", "Priority": "4", "Click": NOTICE.link}.items() <= ntfy.headers.items()
    assert ntfy.headers["Authorization"] == f"Bearer {SECRET}"
    slack = made("slack", slack_env="HOOK")
    assert slack.url == ENVIRON["HOOK"]
    assert json.loads(slack.body)["text"].splitlines()[1] == "&lt;rm &amp; co&gt;"
    mail = made("email", email_to="ada@example.org, bert@example.org", smtp="mail.example:587")
    message = message_from_string(mail.body)
    assert (mail.host, mail.port, mail.tls) == ("mail.example", 587, "starttls")
    assert mail.to == ["ada@example.org", "bert@example.org"]
    assert mail.sender == "ada@example.org"
    assert (message["Message-ID"], message["Subject"]) == ("<abc-7@pmagent.invalid>", "[pmagent request] Typing waits")
    assert mail.body.isascii()


@each("name, settings", [
    ("webhook", {"webhook": "http://ops.example/"}),
    ("webhook", {"webhook": f"https://ada:{SECRET}@ops.example/"}),
    ("webhook", {"webhook": "https:///path"}),
    ("webhook", {"webhook": "https://ops.example/\r\nX: y"}),
    ("webhook", {"webhook": "https://ops.example:port/"}),
    ("webhook", {"webhook": "file:///etc/passwd"}),
    ("webhook", {"webhook": "https://ops.example/", "webhook_secret_env": "UNSET"}),
    ("ntfy", {"ntfy": "ntfy.example/topic"}),
    ("slack", {"slack_env": "UNSET"}),
    ("slack", {"slack_env": "KEY"}),
    ("email", {"email_to": "ada@example.org"}),
    ("email", {"email_to": "ada@example.org", "smtp": "mail.example:0"}),
    ("email", {"email_to": "ada", "smtp": "mail.example:25"}),
    ("email", {"email_to": "a@b.example\nBcc: x@y.example", "smtp": "mail.example:25"}),
    ("email", {"email_to": "a@b.example", "smtp": "mail.example:25", "smtp_tls": "none", "smtp_user": "ada"}),
])
def test_a_forbidden_channel_is_refused_and_its_secret_is_not_told(name: str, settings: dict[str, Any]) -> None:
    with pytest.raises(BadChannel) as refused:
        channel_of(name, NotificationSettings(**settings), ENVIRON)
    assert SECRET not in f"{refused.value.message} {refused.value.hint}"


def test_severities_are_sent_from_the_least_on_and_requests_by_their_own_setting() -> None:
    usual = NotificationSettings()
    assert [one for one in ("urgent", "request", "bad", "warn") if wants(usual, one)] == ["urgent", "request", "bad"]
    assert not wants(NotificationSettings(requests=False), "request")
    assert wants(NotificationSettings(least="warn"), "warn")


def test_an_address_is_a_power_that_has_to_be_accepted_and_the_file_holds_no_secret(tmp_path: Path) -> None:
    (tmp_path / ".pmagent").mkdir()
    file = tmp_path / ".pmagent" / "config.toml"
    file.write_text("[notifications]\n")
    before = offer(tmp_path).powers
    for line in ('webhook = "https://a.example/"', 'ntfy = "https://b.example/t"', 'slack_env = "HOOK"',
                 'email_to = "a@b.example"', "details = true", 'link = "https://c.example"'):  # fmt: skip
        file.write_text(f"[notifications]\n{line}\n")
        assert len(wider(before, offer(tmp_path).powers).items) == 1, line
    file.write_text('[notifications]\nleast = "warn"\nrequests = false\n')
    assert not wider(before, offer(tmp_path).powers).items
    file.write_text(f'[notifications]\nslack_env = "https://hooks.example/{SECRET}"\n')
    with pytest.raises(Exception, match="slack_env"):
        resolve(str(tmp_path), {})
