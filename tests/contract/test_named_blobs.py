"""Every field of a payload that looks like a blob's SHA-256 is declared: as one, or here as something else's digest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import inspect

from pmagent.actors import known
from pmagent.actors.known import blob_check
from pmagent.contracts.blobs import NEEDLES, mark_of
from pmagent.contracts.generate import load_all
from pmagent.contracts.payload import types
from pmagent.events.blobs import BlobStore
from pmagent.events.disk import RealDisk
from pmagent.events.verify import verify_log
from tests.support.cases import each

KNOWN = {name for name, cls in types().items() if not cls.__module__.startswith(("tests.", "pmagent.replay."))}
"""Before all are loaded."""
load_all()

LOOKS_SO = re.compile(r"sha256|checksum|digest|hash")
HISTORIES = Path(__file__).parents[1] / "histories"

DIGESTS = {
    "GuestAnswerRequested.digest", "GuestApprovalAsked.digest", "GuestCallAsked.digest", "GuestChanged.digest",
    "Definition.digest", "GuestPolicyEditAccepted.before", "GuestPolicyEditAccepted.sha256",
    "GuestPolicyEditRequested.before",
    "GuestPolicyEditRequested.found", "GuestPolicyEditRequested.sha256",
    "Layer.sha256", "Policy.digest", "AppliedFile.before", "RunApplyApproved.digest", "RunApplyApproved.head",
    "RunApplyEnded.commit",
    "HidCommitRequested.digest", "HidLinked.contract_hash", "HidPrepareRequested.digest", "HidPrepared.digest",
    "HidTold.digest", "KernelModeDecided.digest", "OaContextAnswered.sha256", "OaContextWritten.sha256",
    "PdfReading.sha256", "PlaApproved.digest", "PlaDecisionRefused.digest", "PlaDecisionRequested.digest",
    "PlaExecutionRequested.digest", "PlaProposalClosed.digest", "PlaProposalRequested.digest",
    "PlaProposed.digest", "PlaRejected.digest", "PlaRevealed.digest", "ReasoningConcluded.envelope_sha256",
    "SurfaceReading.sha256", "ToolCall.digest",
}  # fmt: skip
"""Digests that name no blob: of documents, files of the workspace, actions, and of what is canonical JSON."""


def fields(of: inspect.Type, above: tuple[type, ...] = ()) -> Iterator[tuple[str, inspect.Field]]:
    """Every field of the structs that a payload consists of, as ``Struct.field``."""
    match of:
        case inspect.Metadata(type=inner):
            yield from fields(inner, above)
        case inspect.StructType(cls=cls, fields=parts) if cls not in above:
            for part in parts:
                yield f"{cls.__name__}.{part.name}", part
                yield from fields(part.type, (*above, cls))
        case inspect.CollectionType(item_type=item) | inspect.VarTupleType(item_type=item):
            yield from fields(item, above)
        case inspect.DictType(value_type=item):
            yield from fields(item, above)
        case inspect.UnionType(types=members):
            for member in members:
                yield from fields(member, above)


def _is_digest(field: inspect.Field) -> bool:
    of: inspect.Type = field.type
    while isinstance(of, inspect.Metadata):
        of = of.type
    return isinstance(of, inspect.StrType) and bool(LOOKS_SO.search(field.name) or "{64}" in (of.pattern or ""))


FIELDS = {
    name: field
    for cls in types().values()
    if cls.__module__.startswith("pmagent.")
    for name, field in fields(inspect.type_info(cls))
}
"""Those of the product; other tests may have types of their own."""


def test_a_field_that_looks_like_a_blobs_name_is_declared() -> None:
    found = {name for name, field in FIELDS.items() if _is_digest(field)}
    named = {name for name, field in FIELDS.items() if mark_of(field.type) is not None}
    assert named == {
        "Artifact.checksum",
        "Captured.sha256",
        "ModelImage.sha256",
        "Picture.sha256",
        "PlaFrameObserved.sha256",
        "GuestCallAsked.input_sha256",
        "GuestCallEnded.output_sha256",
    }
    assert found - named == DIGESTS


def test_what_stands_beside_a_blobs_name_is_there() -> None:
    for name, field in FIELDS.items():
        for beside in filter(None, mark_of(field.type) or ()):
            assert f"{name.split('.')[0]}.{beside}" in FIELDS


def test_every_line_that_names_a_blob_is_found_by_the_name_of_its_field() -> None:
    named = [field for field in FIELDS.values() if mark_of(field.type) is not None]
    for field in named:
        assert any(needle in b'"%b":"' % field.encode_name.encode() for needle in NEEDLES)


def test_the_check_knows_every_type() -> None:
    ours = {name for name, cls in types().items() if not cls.__module__.startswith(("tests.", "pmagent.replay."))}
    assert ours == KNOWN, f"an area does not name all its modules: {known.__name__}"


@each("history", sorted(path.parent.name for path in HISTORIES.glob("*/log")))
def test_recorded_histories_have_all_their_blobs(history: str) -> None:
    folder = HISTORIES / history
    found = verify_log(str(folder / "log"), decode=True, blobs=blob_check(BlobStore(RealDisk(), str(folder / "blobs"))))
    assert found.ok, found.finding
    assert found.blobs is not None
    assert (found.blobs.checked > 0) == (folder / "blobs").exists()
