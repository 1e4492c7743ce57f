"""A projection that raises is halted alone, by name, wherever it raises; its documents on disk stay as they are."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pmagent.contracts.content import Content
from pmagent.contracts.payload import encode, type_of
from pmagent.events.event import Event
from pmagent.projections.core.disk import (
    HALTS,
    DocumentStore,
    DocumentUnwritable,
    note_halts,
    noted_halts,
    require_current,
)
from pmagent.projections.core.documents import Documents, computed
from pmagent.projections.core.projection import Halt, Part, ProjectionHalted
from tests.support.cases import each
from tests.support.toys import START, Poked


class Count(msgspec.Struct, frozen=True):
    """So many events."""

    n: int = 0


class Counter:
    """Counts; raises ``at`` that number, in the method ``where``."""

    hears: frozenset[type[msgspec.Struct]] = frozenset((Poked,))

    def __init__(self, name: str, where: str = "", at: int = 0) -> None:
        self.name = name
        self._where = where
        self._at = at

    def _raise(self, where: str, n: int) -> None:
        if where == self._where and n >= self._at:
            raise KeyError("a secret")

    def initial(self) -> Count:
        """None."""
        return Count()

    def evolve(self, state: Count, event: Event, sum: str) -> Count:
        """One more."""
        del event, sum
        self._raise("evolve", state.n + 1)
        return Count(state.n + 1)

    def retire(self, state: Count) -> Count:
        """Nothing."""
        self._raise("retire", state.n)
        return state

    def documents(self, state: Count, since: Count | None) -> dict[str, Part]:
        """One."""
        del since
        self._raise("documents", state.n)
        return {f"{self.name}.txt": Part(self._render, (state.n,))}

    def _render(self, n: int) -> Content:
        self._raise("render", n)
        return str(n).encode()


def poked(position: int) -> Event:
    data = Poked(n=position)
    return Event(position, START, str(position), "fact", "t", type_of(data), "", 0, data, encode(data))


class NoBlobs:
    """None."""

    def get(self, sha256: str) -> bytes:
        """See BlobSource."""
        raise AssertionError(sha256)


def follow(documents: Documents, store: DocumentStore, first: int, last: int) -> None:
    """Fold events one by one, each written."""
    for position in range(first, last + 1):
        documents.fold([poked(position)], ["0" * 64])
        store.write(documents.take())
        documents.settle()


@each("where", ["evolve", "retire", "documents", "render"])
@each("at", [1, 5])
def test_it_is_halted_by_name_and_all_others_go_on(tmp_path: Path, where: str, at: int) -> None:
    documents = Documents([Counter("before"), Counter("bad", where, at), Counter("behind")])
    told: list[Halt] = []
    documents.on_halt = told.append
    follow(documents, DocumentStore(tmp_path, NoBlobs()), 1, 8)
    assert (tmp_path / "before.txt").read_bytes() == (tmp_path / "behind.txt").read_bytes() == b"8"
    bad = tmp_path / "bad.txt"
    assert (bad.read_bytes() if bad.exists() else b"0") == str(at - 1).encode(), "its last document stays"
    (halt,) = documents.halted.values()
    assert told == [halt]
    assert (halt.projection, halt.since, halt.error) == ("bad", at, "KeyError")
    assert halt.place.startswith("projections."), "of our own code, the innermost place"
    assert "secret" not in str(halt)
    assert "bad.txt" not in computed(documents.every())
    with pytest.raises(ProjectionHalted) as refused:
        documents.export()
    assert refused.value.halt == halt
    assert refused.value.exit_code == 70


def test_a_state_that_cannot_be_kept_halts_its_projection_too() -> None:
    class Strange(Counter):
        """Its state is nothing that a cache holds."""

        def initial(self) -> Count:
            return Count(n=object())  # type: ignore[arg-type]

    documents = Documents([Counter("good"), Strange("bad")])
    with pytest.raises(ProjectionHalted):
        documents.export()
    assert list(documents.halted) == ["bad"]


def test_a_halt_is_a_change_to_be_told_on_disk() -> None:
    assert Documents([Counter("bad", "evolve")]).fold([poked(1)], ["0" * 64])


def test_after_a_start_from_the_cache_every_document_is_owed() -> None:
    """Any file on disk may have been changed since."""
    before, after = Documents([Counter("good")]), Documents([Counter("good")])
    before.fold([poked(1), poked(2)], ["0" * 64] * 2)
    after.restore(after.decoded(before.export()), 2)
    assert after.take_changed() == {"good.txt": b"2"}


def test_from_the_log_alone_it_is_folded_anew_by_a_version_that_does_not_fail(tmp_path: Path) -> None:
    store = DocumentStore(tmp_path, NoBlobs())
    follow(Documents([Counter("bad", "evolve", 3)]), store, 1, 6)
    assert (tmp_path / "bad.txt").read_bytes() == b"2"
    mended = Documents([Counter("bad")])
    mended.fold([poked(position) for position in range(1, 7)], ["0" * 64] * 6)
    assert store.write(mended.take()) == ["bad.txt"]
    assert (tmp_path / "bad.txt").read_bytes() == b"6"


# --- what is left for whoever reads documents -------------------------------------------------------------------------


def test_readers_of_stale_documents_are_refused_until_it_is_mended(tmp_path: Path) -> None:
    (tmp_path / ".pmagent").mkdir()
    halt = Halt("oa_state", 7, "KeyError", "here")
    note_halts(tmp_path, [halt])
    assert noted_halts(tmp_path) == [halt]
    require_current(tmp_path, "run_folders")
    with pytest.raises(ProjectionHalted, match="oa_state"):
        require_current(tmp_path, "oa_state")
    note_halts(tmp_path, [])
    assert not (tmp_path / HALTS).exists()
    require_current(tmp_path, "oa_state")


@each("content", [b"", b"{}", b'[{"projection": "oa_state"}]', b"\xff"])
def test_where_nobody_can_tell_what_is_stale_nothing_is_read(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".pmagent").mkdir()
    (tmp_path / HALTS).write_bytes(content)
    with pytest.raises(DocumentUnwritable):
        require_current(tmp_path, "oa_state")


def test_that_it_cannot_be_noted_is_told(tmp_path: Path) -> None:
    with pytest.raises(DocumentUnwritable):
        note_halts(tmp_path / "nowhere", [Halt("oa_state", 7, "KeyError", "here")])
