"""A process that lowers its priority tells the kernel so."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

ASK = """
import ctypes, os, struct
from pmagent.console.priority import SLICE_NS, lower_priority
inherited = os.getpriority(os.PRIO_PROCESS, 0)
lower_priority(7)
found = ctypes.create_string_buffer(56)
done = ctypes.CDLL(None).syscall(315 if os.uname().machine == "x86_64" else 275, 0, found, 56, 0)
size, policy, flags, nice, priority, runtime, *_ = struct.unpack("IIQiIQQQII", found.raw)
print(inherited, os.getpriority(os.PRIO_PROCESS, 0), done, nice, policy, runtime == SLICE_NS)
"""


@pytest.mark.skipif(platform.machine() not in {"x86_64", "aarch64"}, reason="another number of the call")
def test_it_is_nicer_than_its_parent_and_its_slices_are_long() -> None:
    kernel = tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2])
    done = subprocess.run([sys.executable, "-I", "-c", ASK], capture_output=True, text=True, check=True)
    inherited, nice, refused, attribute, policy, long = done.stdout.split()
    assert int(nice) == min(19, int(inherited) + 7), "relative to the process that started it"
    if refused != "0":
        pytest.skip("this kernel, or its filter, refuses sched_getattr")
    assert (attribute, policy) == (nice, "0")
    assert long == "True" or kernel < (6, 12), "older kernels ignore it"
