"""Guards on the log: log_integrity, and projections (what is on disk is what the log says)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pmagent.actors.known import blob_check
from pmagent.contracts.oa_documents import OADiagnostic
from pmagent.events.errors import CorruptLog, NotFound
from pmagent.events.evidence import evidence, log_of
from pmagent.oa.guards.reading import Given
from pmagent.oa.guards.report import Findings
from pmagent.projections.core.disk import Difference
from pmagent.service.comparing import compare_documents

REBUILD = "pmagent rebuild"


def log_integrity(given: Given) -> Findings:
    """Every line of the log up to its durable end is as it was written, and so is every blob that it names."""
    found = Findings()
    with _log_of(given, found):
        store = log_of(given.workspace)
        result = store.verify(blobs=blob_check(store.blobs()))
        found.failed = not result.ok
        found.details = {"log_id": result.log_id, "events": result.events, "segments": result.segments}
        if result.blobs is not None:
            found.details |= {"blobs": result.blobs.checked, "bad_blobs": result.blobs.bad}
        if result.finding is not None:
            where = {"file": result.finding.file, "offset": result.finding.offset, "position": result.finding.position}
            found.diagnostics.append(_corrupt(result.finding.reason, where))
    return found


def projections(given: Given) -> Findings:
    """Every document on disk is, byte for byte, what the log says, or differs as a later release lists."""
    found = Findings()
    with _log_of(given, found):
        compared = compare_documents(given.workspace, blobs=False)
        differences = compared.differences
        for difference in differences:
            if difference.state == "missing":
                found.lacks(difference.path, "missing", REBUILD)
            else:
                found.failed = True
                found.diagnostics.append(_drifted(difference))
        found.details = {"differing": [difference.path for difference in differences]}
        if compared.listed:
            found.details["otherwise"] = [one.line() for one in compared.listed]
    return found


@contextmanager
def _log_of(given: Given, found: Findings) -> Iterator[None]:
    """A log that is not there, or cannot be read, is a finding."""
    try:
        yield
    except NotFound:
        kept = evidence(given.workspace)
        log = kept.log
        name = str(log.relative_to(given.workspace) if log.is_relative_to(given.workspace) else log)
        if kept.database:
            name = log_of(given.workspace, kept).place
        found.lacks(name, "missing", "pmagent up")
    except (CorruptLog, OSError) as error:
        found.failed = True
        found.diagnostics.append(_corrupt(type(error).__name__, {}))


def _drifted(difference: Difference) -> OADiagnostic:
    how = f"is not what the log says, from byte {difference.offset} on"
    if difference.state == "halted":
        how = f"is a halted projection: its documents are stale since position {difference.offset} ({difference.found})"
    if difference.state == "unreadable":
        how = f"cannot be read ({difference.found})"
    return OADiagnostic(
        type="issue", category="config_drift", severity="error", message=f"{difference.path} {how}",
        details={"expected": difference.expected, "found": difference.found}, remediation=REBUILD,
    )


def _corrupt(what: str, where: dict[str, object]) -> OADiagnostic:
    return OADiagnostic(
        type="blocker", category="schema_violation", severity="block", message=f"the log is damaged: {what}",
        details=dict(where), remediation="pmagent log verify",
    )
