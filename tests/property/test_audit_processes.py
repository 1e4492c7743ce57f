"""A repository is read alike by however many processes share it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from unittest.mock import patch

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.actors.audit.sources.repository.clone import REF, fetch
from pmagent.actors.audit.sources.repository.history import history
from pmagent.actors.audit.sources.repository.survey import read_files
from pmagent.actors.audit.sources.repository.tree import tree
from pmagent.contracts.audit_events import AuditLimits
from tests.support.effort import rounds
from tests.support.repositories import Made

LIMITS = AuditLimits()
PADDED = b"\n" + b"#" * 200_000
"""So long a comment stands behind each file that two of them are a part of their own."""
TEXTS = sorted(path.read_bytes() for path in Path("examples/audited/project").rglob("*.py"))
FILES = st.lists(st.sampled_from([*TEXTS, b"print 'x'", b"import os\nos.system(x)\n", b""]), min_size=3, max_size=9)


@settings(max_examples=rounds(20, 3))
@given(FILES, st.integers(2, 8))
def test_however_many_processes_read_their_answer_is_the_same(texts: list[bytes], processes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = Made(Path(folder, "source"))
        made.commit("Add all", {f"part{number}/module.py": text + PADDED for number, text in enumerate(texts)})
        at = Path(folder, "clone")
        at.mkdir()
        clone = fetch(str(made.path), LIMITS, str(at))
        past, listed = history(clone.ask, REF), tree(clone.ask, REF, LIMITS.clone_bytes)

        def answer(count: int) -> bytes:
            with patch.object(os, "sched_getaffinity", return_value=set(range(count))):
                return msgspec.json.encode(read_files(clone, past, listed, LIMITS, str(at), None, 50_000))

        assert answer(processes) == answer(1)
