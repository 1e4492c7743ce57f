"""All shapes are known before there are threads."""

from __future__ import annotations

import sys
from types import ModuleType

import msgspec
import pytest

from pmagent.service.shapes import work_out_shapes

PLANTED = """
from __future__ import annotations
import msgspec

class Inner(msgspec.Struct):
    n: int

class Outer(msgspec.Struct):
    inner: Inner

class Never(msgspec.Struct):
    odd: Nowhere
"""


def test_every_struct_of_ours_that_can_be_decoded_is_known_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("pmagent._planted")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    before = work_out_shapes()
    exec(PLANTED, module.__dict__)
    assert work_out_shapes() == before + 2, "Never cannot be decoded into, and is passed over"
    outer = module.Outer
    del module.Inner  # whoever worked the shape out only now would not find it
    assert msgspec.json.decode(b'{"inner":{"n":7}}', type=outer).inner.n == 7
