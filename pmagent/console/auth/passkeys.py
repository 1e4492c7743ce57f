"""Passkeys (WebAuthn level 3): the challenges that the console gives out, and the answers to them. This module alone
knows the library; the extra ``webauthn`` installs it.

A challenge is drawn for one purpose and one session, and good for one answer within five minutes. An answer counts only
from ``http://localhost`` with the port at which the browser called us, for the relying party ``localhost``, with the
person verified (PIN, finger, face), and with a counter that went on.
"""

from __future__ import annotations

import json
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

from pmagent.actors.core.extras import install
from pmagent.console.auth.operators import Operator, Passkey
from pmagent.events.errors import PmagentError

RELYING: Final = "localhost"
"""Passkeys belong to a name; a number, as in 127.0.0.1, is none."""
SECONDS: Final = 300.0
CHALLENGES_MAX: Final = 256
"""So many challenges are out at once; beyond that the oldest is worth nothing."""

Purpose = Literal["add", "enter", "confirm"]
Wanted = Literal["off", "offered", "required"]


def at_relying(host: str) -> str:
    """The console's address at ``RELYING``, for a browser that reached it at ``host``."""
    return f"http://{RELYING}:{host.rpartition(':')[2]}"


class NoPasskeys(PmagentError, exit_code=2):
    """There are no passkeys here: the setting is off, the extra is missing, or the address is no name."""


class BadPasskey(PmagentError, exit_code=1):
    """The answer to a challenge does not count."""


class Challenges:
    """The challenges that are out, the oldest first."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._out: dict[tuple[Purpose, str, str], float] = {}

    def draw(self, purpose: Purpose, session: str) -> str:
        """A new one, for a session ("": of nobody yet)."""
        challenge = _text(secrets.token_bytes(32))
        self._out[purpose, session, challenge] = self._clock() + SECONDS
        while len(self._out) > CHALLENGES_MAX:
            del self._out[next(iter(self._out))]
        return challenge

    def take(self, purpose: Purpose, session: str, challenge: str) -> bytes:
        """One that was drawn for this, and is used up now. Raises BadPasskey."""
        until = self._out.pop((purpose, session, challenge), 0.0)
        if until < self._clock():
            raise BadPasskey("this page was used already, or is older than five minutes", "load it again")
        return _bytes(challenge)


class Passkeys:
    """Those of one console. ``clock``: seconds that never go back."""

    def __init__(self, wanted: Wanted, clock: Callable[[], float] = time.monotonic) -> None:
        self.wanted = wanted
        self._challenges = Challenges(clock)

    def lack(self, host: str) -> str:
        """Why a browser that called us ``host`` has no use of passkeys; "": it has."""
        if self.wanted == "off":
            return 'the setting [console] passkeys is "off"'
        try:
            import webauthn  # noqa: F401 - an extra
        except ImportError:
            return f"the extra webauthn is missing: {install('webauthn')}"
        if host.partition(":")[0] != RELYING:
            return "a passkey belongs to a name: open this page at localhost"
        return ""

    def options(self, purpose: Purpose, session: str, host: str, operator: Operator | None = None) -> str:
        """The options of the browser's call, as JSON, with a fresh challenge. Raises NoPasskeys."""
        self._require(host)
        challenge = self._challenges.draw(purpose, session)
        known = [{"type": "public-key", "id": one.id} for one in (operator.passkeys if operator is not None else ())]
        found: dict[str, Any] = {"challenge": challenge, "timeout": int(SECONDS * 1000)}
        if purpose == "add":
            assert operator is not None, "somebody is signed in"
            found |= {
                "rp": {"id": RELYING, "name": "pmagent"}, "excludeCredentials": known, "attestation": "none",
                "user": {"id": _text(operator.name.encode()), "name": operator.name, "displayName": operator.name},
                "pubKeyCredParams": [{"type": "public-key", "alg": alg} for alg in (-8, -7, -257)],
                "authenticatorSelection": {"residentKey": "required", "userVerification": "required"},
            }  # fmt: skip
        else:
            found |= {"rpId": RELYING, "userVerification": "required", "allowCredentials": known}
        return json.dumps(found)

    def added(self, session: str, host: str, challenge: str, answer: str, name: str, now: str) -> Passkey:
        """The passkey that a browser has made. Raises NoPasskeys, BadPasskey."""
        self._require(host)
        expected = self._challenges.take("add", session, challenge)
        from webauthn import verify_registration_response
        from webauthn.helpers.exceptions import WebAuthnException

        try:
            made = verify_registration_response(
                credential=answer, expected_challenge=expected, expected_rp_id=RELYING, expected_origin=_origin(host),
                require_user_verification=True,
            )  # fmt: skip
        except (WebAuthnException, ValueError, KeyError, TypeError) as error:
            raise BadPasskey(f"the browser's answer does not count: {error}", "load the page and try again") from error
        id, key = _text(made.credential_id), _text(made.credential_public_key)
        return Passkey(id=id, key=key, count=made.sign_count, name=name, added=now)

    def answered(
        self, purpose: Purpose, session: str, host: str, challenge: str, answer: str, operators: Iterable[Operator]
    ) -> tuple[Operator, Passkey, int]:
        """The operator among ``operators`` who has answered, with which passkey, and its counter now. Raises
        NoPasskeys, BadPasskey."""
        self._require(host)
        expected = self._challenges.take(purpose, session, challenge)
        from webauthn import verify_authentication_response
        from webauthn.helpers.exceptions import WebAuthnException

        try:
            id = json.loads(answer)["id"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise BadPasskey("the browser's answer is none", "load the page and try again") from error
        found = [(operator, key) for operator in operators for key in operator.passkeys if key.id == id]
        if not found:
            raise BadPasskey("no operator has this passkey", "sign in by another way, and add it on the page Passkeys")
        ((operator, key),) = found
        try:
            verified = verify_authentication_response(
                credential=answer, expected_challenge=expected, expected_rp_id=RELYING, expected_origin=_origin(host),
                credential_public_key=_bytes(key.key), credential_current_sign_count=key.count,
                require_user_verification=True,
            )  # fmt: skip
        except (WebAuthnException, ValueError, KeyError, TypeError) as error:
            raise BadPasskey(f"the passkey's answer does not count: {error}", "load the page and try again") from error
        return operator, key, verified.new_sign_count

    def _require(self, host: str) -> None:
        if lack := self.lack(host):
            raise NoPasskeys(lack, "docs/console.md tells how")


def _origin(host: str) -> str:
    """How a browser names the origin of a page at ``host``, which the guard has found to be ours."""
    return f"http://{host.removesuffix(':80')}"


def _text(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode("ascii")


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
