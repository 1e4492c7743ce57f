"""Where a repository is: which addresses are let through to git, and what git is told; pure (docs/design.md §15.4).

    https://host/path           https
    ssh://[user@]host[:port]/…  ssh
    [user@]host:path            ssh
    file:///path, /path, path   local
    http://localhost/…          http, to this machine only

Everything else is refused before git sees it: options, ``ext::`` and other helpers, control characters, and addresses
that hold a password or token, because they would end in the log, in reports, and on git's command line.
"""

from __future__ import annotations

import re
from typing import Final, Literal
from urllib.parse import unquote_to_bytes, urlsplit

import msgspec

from pmagent.actors.audit.failures import SourceFailed
from pmagent.contracts.audit_events import PATH_CHARS_MAX

Protocol = Literal["https", "http", "ssh", "file"]

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_BLANK: Final = re.compile(r"\s")
_SCP: Final = re.compile(r"(?:[A-Za-z0-9_][\w.+-]*@)?(?:[A-Za-z0-9_][\w.-]*|\[[0-9A-Fa-f:.]+\]):[^-].*", re.ASCII)
_HOST: Final = re.compile(r"[A-Za-z0-9_](?:[\w.-]*\w)?\.?|[0-9A-Fa-f:.]+", re.ASCII)
_USER: Final = re.compile(r"[A-Za-z0-9_][\w.+-]*", re.ASCII)
_HELPER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.-]*::")
_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]", re.ASCII)
_OWNED: Final = frozenset(("github.com", "www.github.com", "gitlab.com", "bitbucket.org", "codeberg.org"))
"""Hosts on which the path of every repository has at least two parts."""
_LOOPBACK: Final = frozenset(("localhost", "127.0.0.1", "::1"))
_SCHEMES: Final = frozenset(("https", "http", "ssh", "file", "git", "ftp"))
_FORMS: Final = "give https://…, ssh://…, user@host:path, file:///… or a path"


class Address(msgspec.Struct, frozen=True):
    """``location`` is for git: a URL, or of a local repository its path as it was given (``protocol`` "file")."""

    protocol: Protocol
    location: str


def address(repo_url: str) -> Address:
    """Read an address. Raises SourceFailed("bad_url"); its text never shows the address, which may hold a secret."""
    if not repo_url or len(repo_url) > PATH_CHARS_MAX:
        raise _bad(f"the repository's address has {len(repo_url)} characters, not 1 to {PATH_CHARS_MAX}")
    if _CONTROL.search(repo_url):
        raise _bad("the repository's address holds control characters")
    if repo_url.startswith("-"):
        raise _bad("the repository's address begins with a dash, as an option does", "put ./ before it if it is a path")
    if _HELPER.match(repo_url):
        raise _bad("the repository's address names a transport helper of git")
    if _DRIVE.match(repo_url):
        raise _bad(
            "the repository's address is a path of Windows",
            "give the path as this machine has it; a host of one letter is written ssh://h/path",
        )
    if "://" in repo_url:
        return _url(repo_url)
    if repo_url.startswith(("/", ".", "~")) or ":" not in repo_url or "/" in repo_url.partition(":")[0]:
        return Address("file", repo_url)
    return _scp(repo_url)


def _scp(repo_url: str) -> Address:
    if "@" in repo_url and ":" in repo_url.partition("@")[0]:
        raise _secret()
    if repo_url.partition(":")[0].lower() in _SCHEMES or _BLANK.search(repo_url) or not _SCP.fullmatch(repo_url):
        raise _bad("the repository's address is neither a URL nor host:path nor a path")
    host, _, path = repo_url.rpartition("@")[2].partition(":")
    _check_path(host, path)
    return Address("ssh", repo_url)


def _url(repo_url: str) -> Address:
    try:
        parts = urlsplit(repo_url)
        user, password, host, port = parts.username, parts.password, parts.hostname or "", parts.port
    except ValueError:
        raise _bad("the repository's address is no URL") from None
    if parts.scheme == "file":
        return _file(parts.netloc, parts.path, bool(parts.query or parts.fragment))
    if parts.scheme not in {"https", "http", "ssh"}:
        raise _bad("the repository's address has a scheme that is not fetched")
    if _BLANK.search(repo_url):
        raise _bad("the repository's address holds blanks", "write %20 for a blank")
    if password is not None or (user is not None and parts.scheme != "ssh"):
        raise _secret()
    if user is not None and not _USER.fullmatch(user):
        raise _bad("the user in the repository's address is no user name")
    if not _HOST.fullmatch(host) or port == 0:
        raise _bad("the host in the repository's address is no host name")
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise _bad("the repository's address is http, which anybody on the way can change", "give the https address")
    if parts.query or parts.fragment:
        raise _bad("the repository's address has a query or a fragment; tokens stand there")
    _check_path(host, parts.path)
    protocol: Protocol = "https" if parts.scheme == "https" else "http" if parts.scheme == "http" else "ssh"
    return Address(protocol, parts.scheme + repo_url[len(parts.scheme) :])  # git knows schemes in small letters only


def _check_path(host: str, path: str) -> None:
    """See that the path on the host can be a repository's. Raises SourceFailed."""
    named = [part for part in path.split("/") if part]
    if not named and host.lower() not in _LOOPBACK:  # a server of one's own may have a repository at its root
        raise _bad("the repository's address names a host and no repository on it")
    if len(named) < 2 and host.lower() in _OWNED:
        raise _bad(f"the repository's address names an owner on {host.lower()}, and no repository", "add its name")


def _file(netloc: str, path: str, more: bool) -> Address:
    if netloc not in {"", "localhost"} or not path.startswith("/") or more:
        raise _bad("a file:// address names a path of this machine and nothing else", "give file:///path")
    try:
        location = unquote_to_bytes(path).decode()
    except UnicodeDecodeError:
        raise _bad("the path of the file:// address is not UTF-8") from None
    if _CONTROL.search(location):
        raise _bad("the repository's address holds control characters")
    return Address("file", location)


def _secret() -> SourceFailed:
    return _bad(
        "the repository's address holds a user or password; it would stand in the log and in reports",
        "give the address without it, and the password to ~/.netrc; or use ssh with a key",
    )


def _bad(message: str, hint: str = _FORMS) -> SourceFailed:
    return SourceFailed("bad_url", message, hint)
