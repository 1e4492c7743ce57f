"""Program, started by root: maps the ids of root's folders to another user, for the program that it becomes and no
other.

``python -I -S idmap.py UID GID PATH... -- PROGRAM ARGUMENT...`` makes a mount namespace of its own in which each PATH
is mounted over itself with ids mapped (mount_setattr(2), Linux 5.12; ext4, xfs and btrfs can, overlayfs cannot): what
belongs to root on the disk belongs to UID and GID there, and what they make belongs to root on the disk; and the other
way round. Files of other users belong to nobody, and stay theirs. Then it becomes PROGRAM. Where that cannot be, it
says why and ends with 1.

It imports nothing of ours: it is started by its path, without a search path, before there is any wall.
"""

import ctypes
import os
import stat
import struct
import sys

_AT_EMPTY_PATH = 0x1000
_AT_RECURSIVE = 0x8000
_CLONE_NEWNS = 0x20000
_CLONE_NEWUSER = 0x10000000
_MS_REC = 1 << 14
_MS_PRIVATE = 1 << 18
_MOUNT_ATTR_IDMAP = 0x100000
_MOVE_MOUNT_EMPTY_PATHS = 0x4 | 0x40
_OPEN_TREE_CLONE = 1
_NAMED = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC

_NUMBERS = {"open_tree": 428, "move_mount": 429, "mount_setattr": 442}  # the same on every machine
_libc = ctypes.CDLL(None, use_errno=True)


def main(uid: str, gid: str, *words: str) -> None:
    """Map the ids, and become the program."""
    end = words.index("--")
    paths, command = sorted(words[:end]), words[end + 1 :]
    mapping = _mapping(uid, gid)
    trees = [_idmapped_tree(path, mapping) for path in paths]
    _done(_libc.unshare(_CLONE_NEWNS), "unshare")
    _done(_libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None), "mount")
    for path, tree in zip(paths, trees, strict=True):
        over = _named(path)
        if not os.path.samestat(os.fstat(over), os.fstat(tree)):
            sys.exit(f"{path} changed while it was lent")
        _done(_call("move_mount", tree, b"", over, b"", ctypes.c_uint(_MOVE_MOUNT_EMPTY_PATHS)), "move_mount")
        os.close(over)
        os.close(tree)
    os.execv(command[0], command)  # noqa: S606  (bubblewrap, whose arguments are a list)


def _mapping(uid: str, gid: str) -> int:
    """A user namespace in which root is ``uid`` and ``gid``, and they are root; a child makes it, and ends."""
    made, make = os.pipe()
    go, wait = os.pipe()
    child = os.fork()
    if not child:
        os.write(make, b"x" if _libc.unshare(_CLONE_NEWUSER) == 0 else b"-")
        os.close(wait)
        os.read(go, 1)  # until the parent has what it needs, or has ended
        os._exit(0)
    os.close(go)
    if os.read(made, 1) != b"x":
        sys.exit("root's folders cannot be lent to a tool here: no user namespaces")
    for kind, inner in (("uid", uid), ("gid", gid)):
        with open(f"/proc/{child}/{kind}_map", "w", encoding="ascii") as file:
            file.write(f"0 {inner} 1\n{inner} 0 1\n")  # and back: bubblewrap, still root, makes the stand-ins
    mapping = os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    for descriptor in (wait, made, make):
        os.close(descriptor)
    os.waitpid(child, 0)
    return mapping


def _idmapped_tree(path: str, mapping: int) -> int:
    """A second mount of ``path`` with ids mapped; attached nowhere yet."""
    place = _named(path)
    flags = ctypes.c_uint(_OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_EMPTY_PATH | _AT_RECURSIVE)
    tree = _done(_call("open_tree", place, b"", flags), "open_tree")
    attributes = struct.pack("QQQQ", _MOUNT_ATTR_IDMAP, 0, 0, mapping)
    flags = ctypes.c_uint(_AT_EMPTY_PATH | _AT_RECURSIVE)
    _done(_call("mount_setattr", tree, b"", flags, attributes, ctypes.c_size_t(len(attributes))), "mount_setattr")
    os.close(place)
    return tree


def _named(path: str) -> int:
    """A descriptor of ``path`` itself; no link is followed."""
    descriptor = os.open(path, _NAMED)
    if os.readlink(f"/proc/self/fd/{descriptor}") != path or stat.S_ISLNK(os.fstat(descriptor).st_mode):
        sys.exit(f"{path} became a link while it was lent")
    return descriptor


def _call(name: str, *arguments: object) -> int:
    return int(_libc.syscall(ctypes.c_long(_NUMBERS[name]), *arguments))


def _done(answer: int, name: str) -> int:
    if answer == -1:
        reason = os.strerror(ctypes.get_errno())
        sys.exit(
            f"root's folders cannot be lent to a tool here ({name}: {reason}): chown them to one other user and group, "
            "or start pmagent as an ordinary user"
        )
    return answer


if __name__ == "__main__":
    main(*sys.argv[1:])
