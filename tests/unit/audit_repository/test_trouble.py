"""The meaning of git's complaints, and how much of them is shown."""

from __future__ import annotations

from pmagent.actors.audit.sources.repository.trouble import failed, last_line
from tests.support.cases import each


@each("said, code", [
    ("fatal: could not read Username for 'https://github.com': terminal prompts disabled", "auth"),
    ("remote: Invalid username or password.\nfatal: Authentication failed for 'https://github.com/a/b/'", "auth"),
    ("fatal: unable to access 'https://h/a/': The requested URL returned error: 403", "auth"),
    ("remote: Repository not found.\nfatal: repository 'https://github.com/a/b/' not found", "not_found"),
    ("fatal: '/x' does not appear to be a git repository", "not_found"),
    ("fatal: unable to access 'https://h/a/': Could not resolve host: h", "network"),
    ("fatal: unable to access 'https://h/': SSL certificate problem: self-signed certificate", "network"),
    ("error: RPC failed; curl 92 HTTP/2 stream 5 was not closed cleanly\nfatal: early EOF", "network"),
    ("fatal: unable to access 'https://h/a/': The requested URL returned error: 502", "network"),
    ("fatal: write error: No space left on device", "too_large"),
    ("fatal: bad object 1234", "git"),
    ("remote: fatal: unable to read 2bd5a0a9\nfatal: early EOF\nfatal: the remote end hung up unexpectedly", "git"),
    ("", "git"),
])
def test_causes_are_known_by_their_words(said: str, code: str) -> None:
    assert failed(said.encode()).code == code


def test_only_the_last_line_is_shown_and_it_is_harmless() -> None:
    line = last_line(
        "fatal: first\n\x1b[31mfatal: in /tmp/secret \u202e gone\r\nremote: lies\nwarning: words\n", ("/tmp/secret",)
    )
    assert " ".join(line.split()) == "[31mfatal: in gone"
    assert line.isascii()
    assert len(last_line("x" * 10_000)) == 200


def test_bytes_that_are_no_text_are_borne() -> None:
    assert failed(b"\xff\xfe\x00fatal: odd").code == "git"
