"""Which system calls a tool is refused, and their numbers; pure.

The sandbox is bubblewrap's namespaces; this list is the second wall: it takes away what namespaces leave (keyrings,
unix sockets, terminal injection, setuid bits) and kernel interfaces that no tool needs and that broke sandboxes before.
Numbers: Linux arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h; they never change.
"""

from __future__ import annotations

from typing import Final

MACHINES: Final = ("x86_64", "aarch64")
"""``uname -m`` of the machines whose numbers are known; the columns of the tables below."""

NEVER: Final[dict[str, tuple[int | None, int | None]]] = {
    # Other processes, and the kernel's view of them.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "bpf": (321, 280),
    # Keyrings are not in any namespace.
    "add_key": (248, 217),
    "keyctl": (250, 219),
    "request_key": (249, 218),
    # io_uring makes calls, sockets among them, that no filter sees.
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    # New namespaces and mounts, each a large part of the kernel to reach.
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    # Memory that belongs to no process and to no folder, where no limit counts it.
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    # Nodes: FIFOs and devices left behind would catch whoever opens them later.
    "mknod": (133, None),
    "mknodat": (259, 33),
    # The machine as a whole.
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "syslog": (103, 116),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "iopl": (172, None),
    "ioperm": (173, None),
    "vhangup": (153, 58),
    "lookup_dcookie": (212, 18),
    "nfsservctl": (180, 42),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "get_mempolicy": (239, 236),
    "set_mempolicy_home_node": (450, 450),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
}
"""Refused with EPERM whatever their arguments. None: the machine has no such call."""

UNKNOWN: Final[dict[str, tuple[int | None, int | None]]] = {
    "clone3": (435, 435),
    "openat2": (437, 437),
}
"""Answered with ENOSYS, as by an older kernel: their arguments lie in memory, where a filter cannot look; callers
fall back to ``clone`` and ``openat``."""

JUDGED: Final[dict[str, tuple[int | None, int | None]]] = {
    "clone": (56, 220),
    "socket": (41, 198),
    "ioctl": (16, 29),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "open": (2, None),
    "openat": (257, 56),
    "creat": (85, None),
    "setrlimit": (160, 164),
    "prlimit64": (302, 261),
}
"""Refused for some arguments; which and how, ``actors.orchestra.seccomp`` says."""


def number(name: str, machine: str) -> int | None:
    """The number of a call named in this module on a machine of ``MACHINES``; None: it has no such call."""
    return (NEVER.get(name) or UNKNOWN.get(name) or JUDGED[name])[MACHINES.index(machine)]
