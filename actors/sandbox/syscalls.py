"""Which system calls a sandbox allows, and the numbers of all that are named here; pure.

The sandbox is bubblewrap's namespaces; this list is the second wall. A call that stands in no table is answered with
ENOSYS, as by a kernel that lacks it, so that programs fall back to an older one: obsolete calls, calls of kernels newer
than this list, and these on purpose: clone3 and openat2, whose arguments lie in memory, where no filter can look
(callers fall back to ``clone`` and ``openat``); io_setup and mq_open, whose memory the machine counts for all its users
together; landlock, statmount and listmount, which no program here needs.
Numbers: Linux arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h; they never change.
"""

from __future__ import annotations

from typing import Final

MACHINES: Final = ("x86_64", "aarch64")
"""``uname -m`` of the machines whose numbers are known; the columns of the tables below."""

_Table = dict[str, tuple[int | None, int | None]]
"""Name of a call -> its number on each machine. None: the machine has no such call."""

ALLOWED: Final[_Table] = {
    # Reading and writing.
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67),
    "pwrite64": (18, 68), "preadv": (295, 69), "pwritev": (296, 70), "preadv2": (327, 286), "pwritev2": (328, 287),
    "lseek": (8, 62), "close": (3, 57), "close_range": (436, 436), "dup": (32, 23), "dup2": (33, None),
    "dup3": (292, 24), "fcntl": (72, 25), "flock": (73, 32), "fsync": (74, 82), "fdatasync": (75, 83),
    "sync": (162, 81), "syncfs": (306, 267), "sync_file_range": (277, 84), "fallocate": (285, 47),
    "fadvise64": (221, 223), "readahead": (187, 213), "sendfile": (40, 71), "splice": (275, 76), "tee": (276, 77),
    "vmsplice": (278, 75), "copy_file_range": (326, 285), "pipe": (22, None), "pipe2": (293, 59),
    # Files and folders by name.
    "stat": (4, None), "fstat": (5, 80), "lstat": (6, None), "newfstatat": (262, 79), "statx": (332, 291),
    "statfs": (137, 43), "fstatfs": (138, 44), "access": (21, None), "faccessat": (269, 48), "faccessat2": (439, 439),
    "getdents": (78, None), "getdents64": (217, 61), "getcwd": (79, 17), "chdir": (80, 49), "fchdir": (81, 50),
    "mkdir": (83, None), "mkdirat": (258, 34), "rmdir": (84, None), "rename": (82, None), "renameat": (264, 38),
    "renameat2": (316, 276), "link": (86, None), "linkat": (265, 37), "unlink": (87, None), "unlinkat": (263, 35),
    "symlink": (88, None), "symlinkat": (266, 36), "readlink": (89, None), "readlinkat": (267, 78),
    "truncate": (76, 45), "ftruncate": (77, 46), "umask": (95, 166), "chown": (92, None), "fchown": (93, 55),
    "lchown": (94, None), "fchownat": (260, 54), "utime": (132, None), "utimes": (235, None),
    "futimesat": (261, None), "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "getxattr": (191, 8), "lgetxattr": (192, 9), "fgetxattr": (193, 10),
    "listxattr": (194, 11), "llistxattr": (195, 12), "flistxattr": (196, 13), "removexattr": (197, 14),
    "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    # Waiting for what happens.
    "poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72), "epoll_create": (213, None),
    "epoll_create1": (291, 20), "epoll_ctl": (233, 21), "epoll_wait": (232, None), "epoll_pwait": (281, 22),
    "epoll_pwait2": (441, 441), "eventfd": (284, None), "eventfd2": (290, 19), "signalfd": (282, None),
    "signalfd4": (289, 74), "timerfd_create": (283, 85), "timerfd_settime": (286, 86), "timerfd_gettime": (287, 87),
    "inotify_init": (253, None), "inotify_init1": (294, 26), "inotify_add_watch": (254, 27),
    "inotify_rm_watch": (255, 28),
    # Connections, of the families that ``socket`` lets.
    "connect": (42, 203), "accept": (43, 202), "accept4": (288, 242), "bind": (49, 200), "listen": (50, 201),
    "shutdown": (48, 210), "sendto": (44, 206), "recvfrom": (45, 207), "sendmsg": (46, 211), "recvmsg": (47, 212),
    "sendmmsg": (307, 269), "recvmmsg": (299, 243), "getsockname": (51, 204), "getpeername": (52, 205),
    "setsockopt": (54, 208), "getsockopt": (55, 209),
    # Memory of its own.
    "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215), "mremap": (25, 216), "msync": (26, 227),
    "mincore": (27, 232), "madvise": (28, 233), "brk": (12, 214), "mlock": (149, 228), "mlock2": (325, 284),
    "munlock": (150, 229), "mlockall": (151, 230), "munlockall": (152, 231), "membarrier": (324, 283),
    "pkey_mprotect": (329, 288), "pkey_alloc": (330, 289), "pkey_free": (331, 290),
    # Processes and threads of its own.
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281), "exit": (60, 93),
    "exit_group": (231, 94), "wait4": (61, 260), "waitid": (247, 95), "kill": (62, 129), "tkill": (200, 130),
    "tgkill": (234, 131), "getpid": (39, 172), "getppid": (110, 173), "gettid": (186, 178), "getpgid": (121, 155),
    "setpgid": (109, 154), "getpgrp": (111, None), "getsid": (124, 156), "setsid": (112, 157),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "prctl": (157, 167), "arch_prctl": (158, None),
    "personality": (135, 92), "seccomp": (317, 277), "set_tid_address": (218, 96), "set_robust_list": (273, 99),
    "get_robust_list": (274, 100), "rseq": (334, 293), "futex": (202, 98), "futex_waitv": (449, 449),
    "getrusage": (98, 165), "getrlimit": (97, 163), "getpriority": (140, 141), "setpriority": (141, 140),
    "ioprio_get": (252, 31), "ioprio_set": (251, 30), "sched_yield": (24, 124), "sched_getaffinity": (204, 123),
    "sched_setaffinity": (203, 122), "sched_getparam": (143, 121), "sched_setparam": (142, 118),
    "sched_getscheduler": (145, 120), "sched_setscheduler": (144, 119), "sched_getattr": (315, 275),
    "sched_setattr": (314, 274), "sched_get_priority_max": (146, 125), "sched_get_priority_min": (147, 126),
    "sched_rr_get_interval": (148, 127), "getcpu": (309, 168), "restart_syscall": (219, 128),
    # Signals.
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "rt_sigpending": (127, 136),
    "rt_sigtimedwait": (128, 137), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "rt_sigsuspend": (130, 133), "sigaltstack": (131, 132), "pause": (34, None),
    # Its identity: it is one user, and can become no other.
    "getuid": (102, 174), "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177), "getresuid": (118, 148),
    "getresgid": (120, 150), "getgroups": (115, 158), "setuid": (105, 146), "setgid": (106, 144),
    "setreuid": (113, 145), "setregid": (114, 143), "setresuid": (117, 147), "setresgid": (119, 149),
    "setgroups": (116, 159), "setfsuid": (122, 151), "setfsgid": (123, 152), "capget": (125, 90), "capset": (126, 91),
    # Time, chance and the machine.
    "time": (201, None), "times": (100, 153), "gettimeofday": (96, 169), "clock_gettime": (228, 113),
    "clock_getres": (229, 114), "clock_nanosleep": (230, 115), "nanosleep": (35, 101), "alarm": (37, None),
    "getitimer": (36, 102), "setitimer": (38, 103), "timer_create": (222, 107), "timer_settime": (223, 110),
    "timer_gettime": (224, 108), "timer_getoverrun": (225, 109), "timer_delete": (226, 111), "getrandom": (318, 278),
    "uname": (63, 160), "sysinfo": (99, 179),
}  # fmt: skip
"""Allowed whatever their arguments."""

NEVER: Final[_Table] = {
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
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
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
"""Refused with EPERM whatever their arguments: known to be dangerous, so a program should hear that it may not."""

JUDGED: Final[_Table] = {
    "clone": (56, 220),
    "socket": (41, 198),
    "socketpair": (53, 199),
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
"""Refused for some arguments; which and how, ``pmagent.actors.sandbox.seccomp`` says."""


def number(name: str, machine: str) -> int | None:
    """The number of a call named in this module on a machine of ``MACHINES``; None: it has no such call."""
    return (ALLOWED.get(name) or NEVER.get(name) or JUDGED[name])[MACHINES.index(machine)]
