"""The files of a commit as git lists them, and how their names are shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.sources.repository.tree import named, shown, tree

BLOB = b"1" * 40


def listed(*entries: tuple[bytes, bytes, bytes, bytes]) -> bytes:
    return b"".join(
        b"%s %s %s %7s\t%s\0" % (mode, kind, BLOB, size, name) for mode, kind, size, name in entries
    )  # fmt: skip


class Lists:
    """git, with this listing."""

    def __init__(self, said: bytes) -> None:
        self.said = said

    def __call__(self, *_: str, output_bytes: int = 0, stdin: bytes = b"") -> bytes:
        """Answer."""
        assert output_bytes
        assert not stdin
        return self.said


def test_files_links_and_submodules_are_told_apart() -> None:
    said = listed(
        (b"100755", b"blob", b"12", b"run"), (b"100644", b"blob", b"30", b"a/b c"), (b"120000", b"blob", b"5", b"link"),
        (b"160000", b"commit", b"-", b"module"),
    )
    found = tree(Lists(said), "HEAD", 100)
    assert [(one.path, one.size, one.executable, one.link) for one in found.files] == [
        ("a/b c", 30, False, False),
        ("link", 5, False, True),
        ("run", 12, True, False),
    ]
    assert found.size == 47
    assert found.notes == ["1 symbolic link, not followed: link", "1 submodule, not fetched: module"]


def test_a_size_that_is_not_told_counts_as_none() -> None:
    assert tree(Lists(listed((b"100644", b"blob", b"BAD", b"a"))), "HEAD", 100).files[0].size == 0


def test_what_is_too_large_is_refused() -> None:
    with pytest.raises(SourceFailed) as raised:
        tree(Lists(listed((b"100644", b"blob", b"101", b"a"))), "HEAD", 100)
    assert raised.value.code == "too_large"


def test_a_path_that_is_too_long_is_left_out() -> None:
    assert tree(Lists(listed((b"100644", b"blob", b"1", b"a" * 5_000))), "HEAD", 100).files == []


def test_an_empty_commit_has_no_files() -> None:
    found = tree(Lists(b""), "HEAD", 100)
    assert (found.files, found.size, found.notes) == ([], 0, [])


@given(st.binary(max_size=40))
def test_a_shown_name_can_be_encoded_and_controls_nothing(name: bytes) -> None:
    text = shown(name)
    assert text.encode().decode() == text
    assert not any(ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 for character in text)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=40))
def test_an_ordinary_name_is_shown_as_it_is(name: str) -> None:
    assert shown(name.encode()) == name


def test_of_many_paths_some_are_named() -> None:
    assert named(["a", "b"]) == "a, b"
    assert named([str(number) for number in range(12)]) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"
