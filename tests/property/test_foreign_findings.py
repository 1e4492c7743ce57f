"""SARIF of other tools, and appeals: whatever a file holds, it is read or refused, and what is read can be recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.audit.appeals import appeals_in
from pmagent.audit.sarif import reported_by
from pmagent.contracts.audit_events import Appeal, Reported
from pmagent.events.errors import PmagentError
from pmagent.jobs.kinds import Source
from tests.support.effort import examples

ROOT = Path("/work/repository")
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(
    ["", "a.py", "../up.py", "/etc/passwd", f"file://{ROOT}/b.py", "http://[", "error", "none", "fail", "x" * 5_000]
)  # fmt: skip
NAMES = st.sampled_from([
    "ruleId", "ruleIndex", "level", "kind", "message", "text", "locations", "physicalLocation", "artifactLocation",
    "uri", "region", "startLine", "suppressions", "baselineState", "tool", "driver", "name", "rules", "id", "results",
    "defaultConfiguration", "appeals", "evidence", "because", "at",
])  # fmt: skip
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5), max_leaves=20
)
PLACES = st.fixed_dictionaries({"physicalLocation": st.fixed_dictionaries(
    {"artifactLocation": st.fixed_dictionaries({"uri": SCALARS}), "region": VALUES}
)})  # fmt: skip
RESULTS = st.lists(st.fixed_dictionaries(
    {"locations": st.lists(PLACES, max_size=2)}, optional={"level": VALUES, "ruleId": VALUES, "message": VALUES}
), max_size=4)  # fmt: skip
RUNS = st.lists(st.fixed_dictionaries({"results": RESULTS | VALUES}, optional={"tool": VALUES}) | VALUES, max_size=3)


@settings(max_examples=examples(150), deadline=None)
@given(st.fixed_dictionaries({"version": st.just("2.1.0"), "runs": RUNS}))
def test_findings_are_of_files_in_the_repository_and_can_be_recorded(log: Any) -> None:
    found = reported_by([Source("x.sarif", msgspec.json.encode(log))], ROOT)
    assert msgspec.convert(msgspec.to_builtins(found), list[Reported]) == found
    assert {one.path for one in found} <= {"a.py", "b.py", "error", "none", "fail", "True", "False", "1", "2", "3",
                                           "-1", "-2", "-3"}  # fmt: skip
    assert [one.level for one in found] == sorted(one.level for one in found)


@settings(max_examples=examples(150), deadline=None)
@given(st.binary(max_size=60) | VALUES.map(msgspec.json.encode))
def test_any_other_content_is_read_or_refused_with_exit_2(content: bytes) -> None:
    for read, kind in ((lambda source: reported_by([source], None), list[Reported]), (appeals_in, list[Appeal])):
        found = outcome(read, Source("x", content))
        if isinstance(found, PmagentError):
            assert found.exit_code == 2
        else:
            assert msgspec.convert(msgspec.to_builtins(found), kind) == found


def outcome(read: Callable[[Source], Any], source: Source) -> Any:
    """The result of reading, or the error."""
    try:
        return read(source)
    except PmagentError as error:
        return error
