"""A process that gives way says so to the kernel."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

ASK = """
import ctypes, os, struct
from pmagent.console.giving_way import SLICE_NS, give_way
give_way(7)
told = ctypes.create_string_buffer(56)
ctypes.CDLL(None).syscall(315 if os.uname().machine == "x86_64" else 275, 0, told, 56, 0)
size, policy, flags, nice, priority, runtime, *_ = struct.unpack("IIQiIQQQII", told.raw)
print(os.getpriority(os.PRIO_PROCESS, 0), nice, policy, runtime == SLICE_NS)
"""


@pytest.mark.skipif(platform.machine() not in {"x86_64", "aarch64"}, reason="another number of the call")
def test_it_is_nice_and_its_slices_are_long() -> None:
    kernel = tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2])
    done = subprocess.run([sys.executable, "-I", "-c", ASK], capture_output=True, text=True, check=True)
    nice, told, policy, long = done.stdout.split()
    assert (nice, told, policy) == ("7", "7", "0")
    assert long == "True" or kernel < (6, 12), "older kernels take no notice"
