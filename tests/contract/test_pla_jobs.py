"""Every job that there is, a run's, an audit's or a session's, is told in the one shape (docs/design.md §17)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import fastjsonschema
import msgspec
import pytest

from pmagent.contracts.checking import check, check_bytes
from pmagent.contracts.generate import FOLDER as SCHEMAS
from tests.support.histories import ABOUT, FOLDER, History
from tests.support.rebuilt import documents_of
from tests.support.single_changes import single_changes

FIXTURES = Path(__file__).parent / "fixtures" / "pla" / "job_status" / "valid"


@pytest.mark.parametrize("name", ["runs", "audits"])
def test_jobs_of_recorded_histories_keep_their_contract_from_the_beginning_to_the_end(
    name: str, tmp_path: Path
) -> None:
    shutil.copytree(FOLDER / name, tmp_path / ".pmagent")
    seen: dict[str, list[str]] = {}
    count = msgspec.json.decode((FOLDER / name / ABOUT).read_bytes(), type=History).events
    for until in (*range(20, count, 25), count):
        for path, content in documents_of(tmp_path, until).items():
            if path.startswith("jobs/"):
                assert check_bytes("job_status", content) == [], path
                seen.setdefault(path, []).append(json.loads(content)["status"])
    assert {states[-1] for states in seen.values()} == {"complete", "failed"}
    assert any(len(set(states)) > 1 for states in seen.values())
    order = ["queued", "running", "complete", "failed"]
    for states in seen.values():
        assert states == sorted(states, key=order.index), "never backwards"


def test_the_older_schema_of_the_same_documents_says_the_same() -> None:
    older: Any = fastjsonschema.compile(json.loads((SCHEMAS / "job" / "v1" / "job_status.json").read_bytes()))
    for file in sorted(FIXTURES.iterdir()):
        for changed in single_changes(json.loads(file.read_bytes())):
            try:
                older(changed)
            except fastjsonschema.JsonSchemaException:
                assert check("job_status", changed) != [], changed
            else:
                assert check("job_status", changed) == [], changed
