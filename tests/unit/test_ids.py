"""Ids as people see and type them."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from pmagent.ids import SHORT, beginnings, is_meant, short_id
from tests.support.cases import each

RUN = "5b0c7a52-0000-4000-8000-000000000001"


@each(
    "text, shown",
    [(RUN, "5b0c7a52"), (f"oa.permit-{RUN}", "5b0c7a52"), ("mine-request", "mine-req"), ("run-1", "run-1"), ("", "")],
)
def test_an_id_is_shown_by_its_beginning(text: str, shown: str) -> None:
    assert short_id(text) == shown
    assert is_meant(shown, text)


def test_only_as_much_of_an_id_as_is_shown_means_it() -> None:
    assert is_meant(RUN[:8], RUN)
    assert not is_meant(RUN[:7], RUN)
    assert not is_meant("run-1", "run-10")
    assert not is_meant("", RUN)
    assert not is_meant(RUN, f"{RUN}0")


@given(st.lists(st.one_of(st.uuids().map(str), st.text(max_size=12)), max_size=20))
def test_of_several_ids_each_beginning_is_of_one(ids: list[str]) -> None:
    shown = beginnings(ids)
    assert shown.keys() == set(ids)
    for one, start in shown.items():
        assert one.startswith(start)
        assert len(start) >= min(len(one), SHORT)
        assert start == one or sum(other.startswith(start) for other in shown) == 1


def test_a_beginning_is_no_longer_than_it_must_be() -> None:
    alike = ["aaaaaaaa-1" + str(uuid.UUID(int=n))[10:] for n in (1, 2)]
    assert {len(each) for each in beginnings([*alike, RUN]).values()} == {8, 36}
