"""Notifications to real receivers: delivered once, tried again, given up, and never in the daemon's way."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import pytest

from pmagent.alerts import ledger, notifying
from pmagent.alerts.channels import Delivery
from pmagent.alerts.ledger import Ledger, Told, troubles
from pmagent.alerts.notifying import deliver, notify
from pmagent.contracts.control import SignInRefused
from pmagent.contracts.hid import HidOutcomeUnknown
from pmagent.workspace.layout import Layout
from pmagent.workspace.trust import accept
from tests.conftest import fresh_example
from tests.support.approving import ASKING, SECONDS, configure, proposed
from tests.support.cases import each
from tests.support.commands import pmagent
from tests.support.consoles import LiveHost, live_host
from tests.support.receivers import mails, posts

SECRET = "not-to-be-told-4711"


def unknown(host: LiveHost, name: str) -> int:
    """Nobody knows how much of this proposal was typed; the event's position."""
    made = HidOutcomeUnknown(
        session_id="pla-1", proposal_id=name, execution_id=name, action_type="TYPE_TEXT", of=4, why="a detail"
    )
    return host.run(host.host.tell_draft, host.host.drafted(made, f"pla.test-{name}"))


@contextmanager
def notified(host: LiveHost) -> Iterator[None]:
    """The service runs, as in a daemon."""
    scopes: list[anyio.CancelScope] = []

    async def run() -> None:
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            await notify(host.host)

    task = host.portal.start_task_soon(run)
    try:
        yield
    finally:
        host.portal.call(scopes[0].cancel)
        task.result(SECONDS)


@contextmanager
def lab(folder: Path, *lines: str) -> Iterator[LiveHost]:
    """A live workspace with these lines under [notifications]."""
    with live_host(configure(fresh_example(folder / "workspace"), "[notifications]", *lines)) as host:
        yield host


def told(host: LiveHost, name: str) -> Told:
    """The ledger's part of a channel."""
    return ledger.read(host.host.layout).channels[name]


NOTED = threading.Condition()
"""Told whenever the ledger has been written, or should have been."""


def noted(condition: Callable[[], object]) -> None:
    """Wait until ``condition`` holds of the ledger."""
    with NOTED:
        assert NOTED.wait_for(condition, SECONDS)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is waited for between tries."""
    real = ledger.write

    def write(layout: Layout, content: Ledger) -> None:
        try:
            real(layout, content)
        finally:
            with NOTED:
                NOTED.notify_all()

    monkeypatch.setattr(notifying, "WAITS", (0.0, 0.0, 0.0))
    monkeypatch.setattr(ledger, "write", write)


def test_a_request_and_an_unknown_outcome_are_told_once_also_after_a_restart(tmp_path: Path) -> None:
    with posts() as posted, lab(tmp_path, f'webhook = "http://127.0.0.1:{posted.port}/x"') as host:
        unknown(host, "before")
        with notified(host):
            noted(lambda: ledger.path_of(host.host.layout).exists())
            made = proposed(host)
            at = unknown(host, "prop-1")
            host.run(host.host.tell_draft, host.host.drafted(SignInRefused(operator_id="eve"), "console.test-1"))
            got = [json.loads(body) for _, _, body in posted.wait(2)]
            noted(lambda: told(host, "webhook").sent == 2)
        assert [one["kind"] for one in got] == ["typing_requested", "outcome_unknown"]
        assert got[1]["id"].endswith(f"-{at}")
        assert made["proposal_id"] not in json.dumps({**got[0], "link": ""}), "the title says it, and no more"
        assert "a detail" not in json.dumps(got)
        unknown(host, "prop-2")  # while nobody notifies
        with notified(host):
            assert json.loads(posted.wait(3)[2][2])["id"] != got[1]["id"]
            noted(lambda: told(host, "webhook").sent == 3)
        assert len(posted.got) == 3


def test_what_was_delivered_and_not_noted_comes_again_with_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with posts() as posted, lab(tmp_path, f'webhook = "http://127.0.0.1:{posted.port}/"') as host:
        real, failures = ledger.write, [OSError(28, "No space left on device")]

        def write(layout: Layout, content: Ledger) -> None:
            if posted.got and failures:
                with NOTED:
                    NOTED.notify_all()
                raise failures.pop()
            real(layout, content)

        monkeypatch.setattr(ledger, "write", write)
        with notified(host):
            noted(lambda: ledger.path_of(host.host.layout).exists())
            unknown(host, "prop-1")
            posted.wait(1)
            noted(lambda: not failures)
        with notified(host):
            first, second = (headers["x-pmagent-id"] for _, headers, _ in posted.wait(2))
        assert first == second


def test_a_receiver_in_trouble_is_tried_again_and_one_that_refuses_is_given_up(tmp_path: Path) -> None:
    with posts() as posted, lab(tmp_path, f'ntfy = "http://127.0.0.1:{posted.port}/topic"') as host:
        posted.answers += [500, 302, 200, 503, 503, 503, 503, 404]
        layout = host.host.layout
        with notified(host):
            noted(lambda: ledger.path_of(layout).exists())
            unknown(host, "a")
            noted(lambda: told(host, "ntfy").given_up == 1)  # after a redirection, which is not followed
            assert [path for path, _, _ in posted.got] == ["/topic", "/topic"]
            unknown(host, "b")
            noted(lambda: told(host, "ntfy").sent == 1)
            assert troubles(layout) == ["ntfy: 1 not delivered"]
            unknown(host, "c")
            noted(lambda: told(host, "ntfy").given_up == 2)
            unknown(host, "d")
            noted(lambda: told(host, "ntfy").given_up == 3)
        assert len(posted.got) == 8
        assert "HTTP 404" in troubles(layout)[0]
        shown = pmagent(host.workspace, "doctor", "--format", "json").document
        assert any(one["name"] == "notifications" and "HTTP 404" in one["text"] for one in shown["checks"])
        assert "HTTP 404" in pmagent(host.workspace, "status").text


def test_a_receiver_that_hangs_delays_neither_the_daemon_nor_another_channel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifying, "DELIVERY_SECONDS", 3.0)
    with posts() as hanging, posts() as fine, lab(
        tmp_path, f'webhook = "http://127.0.0.1:{hanging.port}/"', f'ntfy = "http://127.0.0.1:{fine.port}/t"'
    ) as host:
        hanging.hang.set()
        with notified(host):
            noted(lambda: len(ledger.read(host.host.layout).channels) == 2)
            unknown(host, "prop-1")
            hanging.wait(1)
            assert host.perform("status").document["alerts"]["urgent"] == 1
            fine.wait(1)
            noted(lambda: told(host, "webhook").error != "")
        assert "no answer" in told(host, "webhook").error


def test_settings_that_are_not_accepted_give_nothing_up_and_send_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifying, "SETTINGS_SECONDS", 0.0)
    with posts() as posted, posts() as stranger, lab(tmp_path, f'webhook = "http://127.0.0.1:{posted.port}/"') as host:
        with notified(host):
            noted(lambda: ledger.path_of(host.host.layout).exists())
            settings = host.workspace / ".pmagent" / "config.toml"
            settings.write_text(f'{settings.read_text()}ntfy = "http://127.0.0.1:{stranger.port}/"\n')
            at = unknown(host, "prop-1")
            noted(lambda: "accepted" in told(host, "webhook").error)
            assert (posted.got, stranger.got) == ([], [])
            assert list(ledger.read(host.host.layout).channels) == ["webhook"], "others are nobody's trouble"
            accept(host.workspace)
            (_, headers, _), *_ = posted.wait(1)
            stranger.wait(1)
            noted(lambda: told(host, "webhook").sent == 1)
        assert headers["x-pmagent-id"].endswith(f"-{at}")
        assert (told(host, "webhook").given_up, told(host, "webhook").error) == (0, "")


def test_a_mail_server_that_never_stops_talking_costs_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifying, "DELIVERY_SECONDS", SECONDS)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def talk() -> None:
            connection, _ = listening.accept()
            with connection, suppress(OSError):
                while True:
                    connection.sendall((b"220-" + b"x" * 8000 + b"\r\n") * 100)

        threading.Thread(target=talk, daemon=True).start()
        port = listening.getsockname()[1]
        outcome = anyio.run(deliver, Delivery(host="127.0.0.1", port=port, tls="none", sender="a@b", to=["a@b"]))
    assert (outcome.ok, outcome.again, "MemoryError" in outcome.error) == (False, True, True)


@each("delivery", [
    Delivery(url="http://127.0.0.1:1/", headers={"Authorization": f"Bearer {SECRET}\r\nX: y"}),
    Delivery(url="http://127.0.0.1:1/", headers={"Click": "https://laboratório—1/"}),
    Delivery(url=f"https://{'a' * 70}.example/"),
])  # fmt: skip
def test_what_cannot_be_sent_is_not_tried_again_and_not_repeated(delivery: Delivery) -> None:
    outcome = anyio.run(deliver, delivery)
    assert (outcome.ok, outcome.again) == (False, False)
    assert SECRET not in outcome.error


def test_what_was_acknowledged_or_decided_meanwhile_is_not_told(tmp_path: Path) -> None:
    with posts() as posted, lab(tmp_path, f'webhook = "http://127.0.0.1:{posted.port}/"') as host:
        with notified(host):
            noted(lambda: ledger.path_of(host.host.layout).exists())
        at = unknown(host, "prop-1")
        done = host.perform("alerts.acknowledge", operator=ASKING, channel="cli", alert=at, note="seen")
        assert done.exit_code == 0
        unknown(host, "prop-2")
        with notified(host):
            (_, headers, _), *_ = posted.wait(1)
            noted(lambda: told(host, "webhook").sent == 1)
        assert not headers["x-pmagent-id"].endswith(f"-{at}")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate of 127.0.0.1, and its key."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [program, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
         "subjectAltName=IP:127.0.0.1", "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")],
        check=True, capture_output=True,
    )  # fmt: skip
    return folder


def test_mail_goes_over_tls_with_the_password_of_the_environment_or_not_at_all(
    tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", SECRET)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    with mails(context) as (mailed, port), mails() as (plain, plain_port):
        lines = ('email_to = "ada@example.org"', 'smtp_user = "pmagent"', 'smtp_password_env = "MAIL_PASSWORD"')
        with lab(tmp_path, *lines, f'smtp = "127.0.0.1:{port}"') as host:
            refused = host.perform("notify.test")
            assert refused.exit_code == 1, "the certificate is nobody's"
            assert "TLS" in refused.document["channels"]["email"]["error"]
            monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
            with notified(host):
                noted(lambda: ledger.path_of(host.host.layout).exists())
                at = unknown(host, "prop-1")
                (message,) = mailed.wait(1)
                noted(lambda: told(host, "email").sent == 1)
            assert message["Message-ID"].endswith(f"-{at}@pmagent.invalid>")
            assert mailed.signed_in == [("pmagent", SECRET)]
            written = [path.read_bytes() for path in host.workspace.rglob("*") if path.is_file()]
            assert not any(SECRET.encode() in content for content in written)
            configure(host.workspace, "[notifications]", *lines, f'smtp = "127.0.0.1:{plain_port}"')
            downgraded = host.perform("notify.test")
            assert (downgraded.exit_code, plain.got, plain.signed_in) == (1, [], [])


def test_the_trial_message_says_which_channel_failed(tmp_path: Path) -> None:
    workspace = configure(fresh_example(tmp_path / "workspace"))
    nothing = pmagent(workspace, "notify", "test")
    assert (nothing.code, "no channel is configured" in nothing.text) == (1, True), nothing.errors
    with posts() as posted:
        configure(workspace, "[notifications]", f'webhook = "http://127.0.0.1:{posted.port}/"',
                  'ntfy = "http://127.0.0.1:1/t"')  # fmt: skip
        tried = pmagent(workspace, "notify", "test", "--format", "json")
        assert tried.code == 1
        channels = tried.document["channels"]
        assert (channels["webhook"]["ok"], channels["ntfy"]["ok"]) == (True, False)
        assert json.loads(posted.got[0][2])["severity"] == "request"
