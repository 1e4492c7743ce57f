"""Where a run's documents lie: apart from each other's, and from those of every other run."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pmagent.contracts.orchestra_config import PathSettings
from pmagent.projections.runs.paths import FORBIDDEN, RunPaths, run_paths
from tests.support.cases import each

ONE = "5b0c7a52-3f7e-4c1d-9a55-000000000001"
TWO = "5b0c7a52-3f7e-4c1d-9a55-000000000002"
TASK = "6b0c7a52-3f7e-4c1d-9a55-000000000001"


def files(found: RunPaths) -> list[str]:
    """The paths of a run's documents; of its artifacts, their folder."""
    return [found.config, found.plan, found.metrics, found.log, found.report, found.artifacts, found.job]


def in_the_way(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def test_the_specifications_places() -> None:
    assert run_paths(PathSettings(), ONE) == RunPaths(
        folder=f"runs/{ONE}", config=f"runs/{ONE}/config.yaml", plan=f"runs/{ONE}/plan.json",
        metrics=f"runs/{ONE}/metrics.json", log=f"runs/{ONE}/tasks.jsonl", report=f"runs/{ONE}/report.md",
        artifacts=f"runs/{ONE}/artifacts", job=f"jobs/{ONE}.json",
    )  # fmt: skip


@each("paths", [
    {"runs": "/tmp"},
    {"runs": "../runs"},
    {"runs": "a/../../b"},
    {"runs": ".pmagent/x"},
    {"runs": "./.git"},
    {"runs": "SHARE"},
    {"runs": "jobs"},
    {"runs": "Sessions/x"},
    {"runs": f"x/{TWO}"},
    {"runs": "x" * 201},
    {"runs": "/".join(["x" * 200] * 6)},
    {"runs": "runs/{run}"},
    {"report": "report.md"},
    {"report": "{run_id}/{run_id}.md"},
    {"report": f"{{run_id}}/{TWO.upper()}"},
    {"report": "./runs/{run_id}/tasks.jsonl"},
    {"report": "./runs/{run_id}/plan.json"},
    {"report": "./runs/{run_id}/config.yaml/x"},
    {"report": "./runs/{run_id}/artifacts/report.md"},
    {"report": "./runs/{run_id}"},
    {"artifacts": "./runs/{run_id}"},
    {"artifacts": "./runs/{run_id}/report.md/x"},
    {"logs": "share/{run_id}"},
    {"logs": "jobs/{run_id}.json"},
])
def test_what_cannot_be_used_leaves_all_where_the_specification_has_it(paths: dict[str, Any]) -> None:
    found = run_paths(PathSettings(**paths), ONE)
    assert found == msgspec.structs.replace(run_paths(PathSettings(), ONE), moved=True)


_TEXTS = st.lists(
    st.sampled_from(["runs", "x", ".", "..", "", "{run_id}", ONE, TWO, "a{run_id}b", "artifacts", *sorted(FORBIDDEN)]),
    min_size=1, max_size=4,
).map("/".join).filter(lambda text: text != "" and not text.isspace())  # fmt: skip
_SETTINGS = st.builds(PathSettings, runs=_TEXTS, logs=_TEXTS, artifacts=_TEXTS, report=_TEXTS)


@given(_SETTINGS, _SETTINGS)
def test_no_document_is_in_anothers_way_however_two_runs_are_configured(one: PathSettings, other: PathSettings) -> None:
    first, second = run_paths(one, ONE), run_paths(other, TWO)
    for path, another in itertools.combinations([*files(first), *files(second)], 2):
        assert not in_the_way(path, another)
    for path in files(first):
        parts = path.split("/")
        assert not path.startswith("/")
        assert not {"", ".", ".."} & set(parts)
        assert ONE in path
        assert parts[0] not in FORBIDDEN or path == first.job
