"""The artifacts of a task lie beside each other as files, also when their names have been masked."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.orchestra.running.artifact_paths import NAME_BYTES_MAX, without_clashes
from pmagent.contracts.orchestra import PATH_CHARS_MAX, Artifact
from tests.support.cases import each

TASK = "6b0c7a52-3f7e-4c1d-9a55-000000000001"


def in_the_way(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def _artifact(path: str) -> Artifact:
    return Artifact(path=path, size_bytes=0, checksum="0" * 64)


_PATHS = st.lists(st.sampled_from([TASK, "a", "b", "stdout"]), min_size=1, max_size=4).map("/".join)


@given(st.lists(_PATHS, max_size=8))
def test_artifacts_lie_in_their_tasks_folder_and_in_no_others_way(paths: list[str]) -> None:
    kept, lost = without_clashes(TASK, map(_artifact, paths))
    assert len(kept) + len(lost) == len(paths)
    assert all(one.path.startswith(f"{TASK}/") for one in kept)
    for one, other in itertools.combinations(kept, 2):
        assert not in_the_way(one.path, other.path)
    if paths:
        assert kept[0].path in (paths[0], f"{TASK}/{paths[0]}")


def test_an_artifact_whose_path_gets_too_long_is_left_out() -> None:
    kept, lost = without_clashes(TASK, [_artifact("x" * (PATH_CHARS_MAX - 36)), _artifact("y" * (PATH_CHARS_MAX - 37))])
    assert [one.path for one in kept] == [f"{TASK}/{'y' * (PATH_CHARS_MAX - 37)}"]
    assert lost == ["x" * (PATH_CHARS_MAX - 36)]


@each("folder", ["", TASK])
def test_a_name_that_no_file_system_takes_is_left_out(folder: str) -> None:
    largest = "\u00e9" * (NAME_BYTES_MAX // 2) + "x"
    kept, lost = without_clashes(folder, map(_artifact, [f"a/{largest}", f"{largest}x", f"{largest}x/a"]))
    assert [one.path.removeprefix(f"{TASK}/") for one in kept] == [f"a/{largest}"]
    assert lost == [f"{largest}x", f"{largest}x/a"]


def test_what_cannot_lie_beside_others_is_left_out_without_a_folder_too() -> None:
    kept, lost = without_clashes("", map(_artifact, ["stdout", "***", "***", "***/x", "y/***", "y"]))
    assert [one.path for one in kept] == ["stdout", "***", "y/***"]
    assert lost == ["***", "***/x", "y"]
