"""Derived ids are UUIDs version 5."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.orchestra.running.ids import derived
from tests.support.cases import each


@given(st.uuids(), st.text(st.characters(exclude_categories=["Cs"])))
def test_an_id_is_the_uuid_version_5_of_run_and_name(run: uuid.UUID, name: str) -> None:
    assert derived(str(run), name) == str(uuid.uuid5(run, name))


def test_the_standards_own_example() -> None:
    """RFC 9562, appendix A.4: www.example.com in the namespace of domain names."""
    assert derived("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "www.example.com") == "2ed6657d-e927-568b-95e1-2665a8aea6a2"


@each("run", ["", "run-1", "6ba7b810-9dad-11d1-80b4"])
def test_a_run_without_a_uuid_has_no_ids(run: str) -> None:
    with pytest.raises(ValueError, match=r"non-hexadecimal|not a UUID"):
        derived(run, "a")
