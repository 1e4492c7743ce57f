"""Any configuration with any one value changed: it is read, or refused with one error that names the place."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.orchestra.planning.config import BadConfig, read_config
from pmagent.actors.orchestra.planning.render import rendered

WHOLE: dict[str, Any] = msgspec.to_builtins(read_config('version: "1.0"'))


def places(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The path of every section and value."""
    inner = value.items() if isinstance(value, dict) else ()
    return [path, *(one for name, part in inner for one in places(part, (*path, name)))]


PLACES = [path for path in places(WHOLE) if path]

junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=5,
)


def changed(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """The whole configuration with ``value`` at the path."""
    made: dict[str, Any] = json.loads(json.dumps(WHOLE))
    section = made
    for name in path[:-1]:
        section = section[name]
    section[path[-1]] = value
    return made


@given(st.sampled_from(PLACES), junk)
def test_a_value_is_kept_or_refused_at_its_place(path: tuple[str, ...], value: Any) -> None:
    try:
        config = read_config(json.dumps(changed(path, value)))
    except BadConfig as error:
        message, hint = error.message, error.hint
    else:
        assert read_config(rendered(config)) == config
        return
    assert message.startswith("orchestra.config.yaml: ")
    assert ".".join(path) in message
    assert hint


@given(st.sampled_from(PLACES), st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=12))
def test_a_key_that_does_not_exist_is_refused_wherever_it_stands(path: tuple[str, ...], name: str) -> None:
    beside = WHOLE
    for part in path[:-1]:
        beside = beside[part]
    if name in beside:
        return
    try:
        read_config(json.dumps(changed((*path[:-1], name), 1)))
    except BadConfig as error:
        said = error.message
    else:
        said = "nothing"
    assert said == f"orchestra.config.yaml: there is no {'.'.join((*path[:-1], name))}"
