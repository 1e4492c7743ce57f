"""The log page's address, read and written; and its command, which means the same to the command line."""

from __future__ import annotations

import shlex
from typing import Any
from urllib.parse import urlsplit

from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

from pmagent.cli.log.tail import tail
from pmagent.console.pages.reading.log_address import COUNT_MAX, LogPageQuery, read
from pmagent.log.query import ENVELOPE, Query
from pmagent.log.ranges import POSITION_MAX

WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
NAMES = st.sampled_from([*ENVELOPE, "data", "data.mode", "data.a.0"])
FIELDS = st.builds("{}={}".format, NAMES, st.text(st.characters(codec="utf-8"), max_size=8))
TIMES = st.sampled_from(["10m", "14:30", "yesterday", "now", "2026-11-21T14:30", "pos:1", f"pos:{POSITION_MAX}"])
GREPS = st.one_of(st.just(""), st.sampled_from([r"a+\b", "-x", "--n", "(é|ü)", "a b", "'", '"', "$(x)", "%s", "&"]))
POSITIONS = st.integers(2, POSITION_MAX)


def several(one: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, ...]]:
    """Some different ones."""
    return st.lists(one, max_size=3, unique=True).map(tuple)


QUERIES = st.builds(
    Query, types=several(WORDS), excluded=several(WORDS), actors=several(WORDS), correlations=several(WORDS),
    fields=several(FIELDS), grep=GREPS,
)  # fmt: skip
ASKED = st.builds(
    LogPageQuery, query=QUERIES, since=st.none() | TIMES, until=st.none() | TIMES,
    after=st.none() | st.integers(0, POSITION_MAX), before=st.just(0) | POSITIONS, count=st.integers(1, COUNT_MAX),
    newest=st.sampled_from(["first", "last"]),
)  # fmt: skip


@given(ASKED)
def test_an_address_is_read_as_it_was_written(asked: LogPageQuery) -> None:
    address = asked.address()
    found, wrong = read(QueryParams(urlsplit(address).query))
    assert not wrong
    assert found == asked
    assert found.address() == address


@given(ASKED)
def test_the_command_means_the_same_to_the_command_line(asked: LogPageQuery) -> None:
    line = shlex.join(asked.command())
    words = shlex.split(line)
    assert words[:3] == ["pmagent", "log", "tail"]
    given = _parsed(words[3:])
    query = Query(
        types=given["types"], excluded=given["exclude"], actors=given["actors"], correlations=given["correlations"],
        fields=given["match"], grep=given["grep"] or "",
    )  # fmt: skip
    assert query == asked.query
    assert (given["since"], given["after"]) == (asked.since, asked.after)
    assert given["until"] == (f"pos:{asked.before - 1}" if asked.before else asked.until)
    assert given["lines"] == (str(asked.count) if asked.after is None else None)
    assert not given["follow"]


@given(st.lists(st.tuples(st.sampled_from(["type", "grep", "since", "n", "after", "newest", "field", "x"]), WORDS)))
def test_whatever_stands_in_an_address_is_read_or_told(pairs: list[tuple[str, str]]) -> None:
    asked, wrong = read(QueryParams(pairs))
    assert set(wrong) <= {name for name, _ in pairs}
    again, still = read(QueryParams(urlsplit(asked.address()).query))
    assert (again, still) == (asked, {}), "what is understood is understood again"


def _parsed(words: list[str]) -> dict[str, Any]:
    return tail.make_context("tail", list(words)).params
