"""The operators: who may enter the console, and as what (``.pmagent/data/operators.json``, mode 0600).

The file is the whole truth: an operator who is taken out of it is none from then on. A file that cannot be trusted or
understood lets nobody in. Only the file that this user's commands left, or that ``pmagent trust`` accepted, is trusted:
one that came with a clone or an archive may name a stranger with a secret that the stranger knows.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from pmagent.console.auth.passwords import is_kept, kept
from pmagent.console.auth.private import NotPrivate, read_private
from pmagent.events.atomic import write_atomic
from pmagent.events.errors import PmagentError
from pmagent.pla.operators import BadOperator, checked
from pmagent.service.log_files import shown
from pmagent.workspace.user_registry import OPERATORS, KnownFile, Registry

Role = Literal["view", "approve"]
"""``view`` sees everything, may stop, and changes nothing else; ``approve`` may do all that the pages offer."""

OPERATORS_MAX: Final = 256
PASSKEYS_MAX: Final = 10
"""So many has an operator at most."""
PASSKEY_NAME_MAX: Final = 32


class BadOperators(PmagentError, exit_code=7):
    """The file of the operators cannot be trusted or understood: nobody is let in."""


class NoSuchOperator(PmagentError, exit_code=1):
    """There is nobody of that name, or, for a new one, somebody already."""


class Passkey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A passkey's public half: ``id`` and ``key`` as base64url; ``count``: the authenticator's counter when it was used
    last; ``name`` for people, ``added`` when (RFC 3339, UTC)."""

    id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,1400}(?![\s\S])")]
    key: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,4000}(?![\s\S])")]
    count: Annotated[int, Meta(ge=0)]
    name: Annotated[str, Meta(max_length=PASSKEY_NAME_MAX)]
    added: str


class Operator(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One operator. ``secret`` is what is kept of it (``passwords``), None: enters by one-time addresses, or
    ``passkeys``.
    ``issue`` is drawn anew whenever the operator is added or gets another secret: what was given out for an issue
    before lets nobody in."""

    name: str
    role: Role
    secret: str | None = None
    issue: str = ""
    passkeys: list[Passkey] = []


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: Literal[1]
    operators: list[Operator]


def read(path: Path) -> dict[str, Operator]:
    """The operators by name; none without a file. Raises BadOperators, RegistryUnusable, OSError."""
    content = _content(path)
    if content is None:
        return {}
    found = parsed(content, path)
    known = Registry().read(OPERATORS, path, KnownFile)
    if known is None or known.sha256 != sha256(content).hexdigest():
        what = f"{path} is not as this user's commands left it: it came from elsewhere, or was changed by hand"
        raise BadOperators(what, "pmagent trust shows whom it names, and accepts it; or remove it, and add them again")
    return found


def untrusted(path: Path) -> tuple[list[str], bytes] | None:
    """The operators that a file names which is not trusted, for people, and its content; None where it is trusted, or
    there is none. Raises BadOperators where it cannot be understood, RegistryUnusable, OSError."""
    content = _content(path)
    if content is None:
        return None
    found = parsed(content, path)
    known = Registry().read(OPERATORS, path, KnownFile)
    if known is not None and known.sha256 == sha256(content).hexdigest():
        return None
    return [f"{operator.name} ({operator.role})" for operator in found.values()], content


def accept(path: Path, content: bytes) -> None:
    """Trust the file with this content. Raises RegistryUnusable, OSError."""
    Registry().write(OPERATORS, path, KnownFile(path=shown(str(path)), sha256=sha256(content).hexdigest()))


def _content(path: Path) -> bytes | None:
    try:
        return read_private(path)
    except FileNotFoundError:
        return None
    except NotPrivate as error:
        raise BadOperators(str(error), error.hint) from error


def parsed(content: bytes, path: Path) -> dict[str, Operator]:
    """The operators of the file's ``content``. Raises BadOperators."""
    try:
        file = msgspec.json.decode(content, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        what = str(error) if isinstance(error, msgspec.ValidationError) else "it is no JSON"
        raise _bad(path, what) from error
    found: dict[str, Operator] = {}
    for operator in file.operators:
        try:
            checked(operator.name, "a name")
        except BadOperator as error:
            raise _bad(path, error.message) from error
        if operator.name in found:
            raise _bad(path, f"{operator.name} stands in it twice")
        if operator.secret is not None and not is_kept(operator.secret):
            raise _bad(path, f"the secret of {operator.name} is not as it is kept")
        found[operator.name] = operator
    keys = [key.id for operator in found.values() for key in operator.passkeys]
    if len(set(keys)) < len(keys):
        raise _bad(path, "a passkey stands in it twice")
    return found


def named(path: Path, name: str) -> Operator:
    """The operator of that name. Raises NoSuchOperator, BadOperators, OSError."""
    return _named(read(path), name)


def free(path: Path, name: str) -> dict[str, Operator]:
    """Look whether ``name`` can be added; the operators that there are.

    Raises BadOperator, NoSuchOperator where there is one of that name, or one that differs in capitals alone and would
    be taken for it; BadOperators, OSError.
    """
    checked(name, "the name")
    known = read(path)
    near = next((one for one in known if one.casefold() == name.casefold()), None)
    if near is not None:
        raise NoSuchOperator(f"there is an operator {near} already", f"pmagent operators role {near} view|approve")
    if len(known) >= OPERATORS_MAX:
        raise NoSuchOperator(f"there are {OPERATORS_MAX} operators already", "pmagent operators remove NAME")
    return known


def add(path: Path, name: str, role: Role, secret: str | None) -> Operator:
    """Add an operator; of the ``secret`` what cannot be turned back is kept. Raises as ``free``."""
    made = Operator(name, role, None if secret is None else kept(secret), _issue())
    with _locked(path):
        _write(path, {**free(path, name), name: made})
    return made


def remove(path: Path, name: str) -> Operator:
    """Take an operator out; who that was. Raises NoSuchOperator, BadOperators, OSError."""
    with _locked(path):
        known = read(path)
        gone = _named(known, name)
        _write(path, {other: operator for other, operator in known.items() if other != name})
    return gone


def set_role(path: Path, name: str, role: Role) -> Operator:
    """Give an operator another role, at once. Raises NoSuchOperator, BadOperators, OSError."""
    with _locked(path):
        known = read(path)
        changed = msgspec.structs.replace(_named(known, name), role=role)
        _write(path, {**known, name: changed})
    return changed


def set_secret(path: Path, name: str, secret: str | None) -> Operator:
    """Give an operator another secret, or none; whoever is signed in under this name is not any more.

    Raises NoSuchOperator, BadOperators, OSError.
    """
    stored = None if secret is None else kept(secret)
    with _locked(path):
        known = read(path)
        changed = msgspec.structs.replace(_named(known, name), secret=stored, issue=_issue())
        _write(path, {**known, name: changed})
    return changed


def may_have(path: Path, name: str, passkey: Passkey) -> dict[str, Operator]:
    """Look whether the operator ``name`` can be given this passkey; the operators that there are. Raises
    NoSuchOperator, BadOperators, OSError."""
    known = read(path)
    if len(_named(known, name).passkeys) >= PASSKEYS_MAX:
        what = f"{name} has {PASSKEYS_MAX} passkeys already"
        raise NoSuchOperator(what, f"pmagent operators passkeys {name} --remove ID")
    if any(one.id == passkey.id for other in known.values() for one in other.passkeys):
        raise NoSuchOperator("an operator has this passkey already", f"pmagent operators passkeys {name}")
    return known


def add_passkey(path: Path, name: str, passkey: Passkey) -> None:
    """Give an operator one more passkey. Raises as ``may_have``."""
    with _locked(path):
        known = may_have(path, name, passkey)
        changed = msgspec.structs.replace(known[name], passkeys=[*known[name].passkeys, passkey])
        _write(path, {**known, name: changed})


def count_passkey(path: Path, name: str, id: str, count: int) -> None:
    """Keep the counter of a passkey that was used. Raises NoSuchOperator where that was used meanwhile with as high a
    counter, or is gone; BadOperators, OSError."""
    with _locked(path):
        known = read(path)
        operator = _named(known, name)
        found = next((one for one in operator.passkeys if one.id == id), None)
        if found is None or ((count or found.count) and count <= found.count):
            what = "this passkey is gone, or its counter went back: another device may have a copy"
            raise NoSuchOperator(what, f"pmagent operators passkeys {name}")
        if count:
            passkeys = [msgspec.structs.replace(one, count=count) if one.id == id else one for one in operator.passkeys]
            _write(path, {**known, name: msgspec.structs.replace(operator, passkeys=passkeys)})


def remove_passkey(path: Path, name: str, id: str) -> Passkey:
    """Take the passkey whose id begins with ``id`` away, and put the operator out: which that was. Raises
    NoSuchOperator, BadOperators, OSError."""
    with _locked(path):
        known = read(path)
        operator = _named(known, name)
        found = [one for one in operator.passkeys if one.id.startswith(id)]
        if len(found) != 1:
            what = f"{len(found)} passkeys of {name} have an id that begins so"
            raise NoSuchOperator(what, f"pmagent operators passkeys {name} lists them")
        left = [one for one in operator.passkeys if one != found[0]]
        _write(path, {**known, name: msgspec.structs.replace(operator, passkeys=left, issue=_issue())})
    return found[0]


def _named(known: Mapping[str, Operator], name: str) -> Operator:
    try:
        return known[name]
    except KeyError:
        hint = f"there are: {', '.join(known)}" if known else f"pmagent operators add {name}"
        raise NoSuchOperator(f"there is no operator {name}", hint) from None


def _issue() -> str:
    return secrets.token_hex(8)


def _write(path: Path, operators: Mapping[str, Operator]) -> None:
    content = msgspec.json.format(msgspec.json.encode(_File(1, list(operators.values()))), indent=2) + b"\n"
    write_atomic(path, content, mode=0o600)
    accept(path, content)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keeps out whoever else changes the file, for the moment that it takes."""
    lock = path.with_name(f".{path.name}.lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _bad(path: Path, what: str) -> BadOperators:
    hint = "mend it, or remove it and add them again: pmagent operators add NAME"
    return BadOperators(f"{path} is no list of operators: {what}", hint)
