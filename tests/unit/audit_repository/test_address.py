"""Which addresses are let through to git."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.sources.repository.address import address
from tests.support.cases import each


@each("given_url, protocol, location", [
    ("https://github.com/a/b", "https", "https://github.com/a/b"),
    ("https://[::1]:8443/a/b.git", "https", "https://[::1]:8443/a/b.git"),
    ("HTTPS://Host/A", "https", "https://Host/A"),
    ("ssh://git@host/a", "ssh", "ssh://git@host/a"),
    ("ssh://host:2222/~/a", "ssh", "ssh://host:2222/~/a"),
    ("git@github.com:a/b.git", "ssh", "git@github.com:a/b.git"),
    ("host.example:a", "ssh", "host.example:a"),
    ("http://localhost:8000/a", "http", "http://localhost:8000/a"),
    ("file:///srv/a%20b", "file", "/srv/a b"),
    ("file://localhost/srv/a", "file", "/srv/a"),
    ("/srv/a b", "file", "/srv/a b"),
    ("./a:b", "file", "./a:b"),
    ("../a", "file", "../a"),
    ("a/b:c", "file", "a/b:c"),
    ("a", "file", "a"),
])
def test_these_are_fetched(given_url: str, protocol: str, location: str) -> None:
    found = address(given_url)
    assert (found.protocol, found.location) == (protocol, location)


@each("given_url", [
    "", "-", "--upload-pack=touch x", "-oProxyCommand=x", "ext::sh -c x", "fd::3", "http::https://x/y", "git://host/a",
    "ftp://host/a", "http://host/a", "HTTPS://", "https:///a", "https://-host/a", "https://ho st/a",
    "https://host/a\nb", "https://host/a?token=x", "https://host/a#x", "https://host:99999/a", "https://host:0/a",
    "https://token@host/a", "https://u:p@host/a", "ssh://u:p@host/a", "ssh://-oProxyCommand=x/a", "ssh://-x@host/a",
    "u:p@host:a", "-u@host:a", "host:-a", "git@-host:a", "a b:c", "file://host/a", "file:a", "https:/a", "file:///a?b",
    "https://github.com/x", "git@GitHub.com:x", "https://host/", "git@host:/", r"C:\repo", "c:/repo", "file:///%ff",
    "file:///%00", "/a\x00b", "/a\nb", "https://[::1/a", "x" * 5000,
])  # fmt: skip
def test_these_are_refused(given_url: str) -> None:
    with pytest.raises(SourceFailed) as raised:
        address(given_url)
    assert raised.value.code == "bad_url"
    assert raised.value.hint


@each("given_url", ["https://u:hunter2@h/x", "https://hunter2@h/x", "u:hunter2@h:x", "ssh://u:hunter2@h/x"])
def test_a_password_is_not_repeated(given_url: str) -> None:
    with pytest.raises(SourceFailed) as raised:
        address(given_url)
    assert "hunter2" not in raised.value.message + raised.value.hint


@given(st.text())
def test_whatever_is_given_is_an_address_or_refused(text: str) -> None:
    try:
        found = address(text)
    except SourceFailed:
        return
    assert not found.location.startswith("-")
    assert "::" not in found.location.partition("/")[0] or found.protocol in {"ssh", "file"}
    assert not any(ord(character) < 0x20 for character in found.location)


@given(st.from_regex(r"(https|ssh|http|git|ext|file)(://|::)[a-z@:/%0-9 .\[\]-]*", fullmatch=True))
def test_no_password_gets_through(text: str) -> None:
    try:
        found = address(text)
    except SourceFailed:
        return
    if found.protocol != "file":
        authority = found.location.partition("://")[2].partition("/")[0]
        assert ":" not in authority.rpartition("@")[0]
        assert "@" not in authority or found.protocol == "ssh"
