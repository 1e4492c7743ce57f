"""Meaning of a program's arguments, and the programs of which a routine of their own reads them
(``pmagent.guests.programs``)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import urlsplit

from pmagent.guests.gathered import ALL, Filter, Word
from pmagent.guests.programs import (
    ANY_TEXT,
    GIT,
    INTERPRETERS,
    ODD,
    PLAIN_READERS,
    SHELLS,
    SPECS,
    WRAPPERS,
    Asked,
    by_spec,
    given,
    interpreter,
    mentions,
    note_address,
    note_patch,
    parted,
    refuse,
    shell,
    start_behind,
    unknown,
    words_known,
)
from pmagent.guests.text_programs import awk, in_place, sed, sed_known

_LOOPBACK: Final = frozenset(("localhost", "127.0.0.1", "::1"))
_REMOTE_GIT: Final = ("clone", "fetch", "pull", "push", "remote", "ls-remote")
_XARGS: Final = (
    "-n", "-P", "-L", "-d", "-E", "-s", "-I", "--max-args", "--max-procs", "--max-lines", "--delimiter", "--replace",
)  # fmt: skip
"""Options of xargs with a value."""
_MESSAGE: Final = ("-m", "-am", "--message")

# -- programs that start others ---------------------------------------------------------------------------------------


def _env(asked: Asked) -> None:
    """``env`` and ``sudo``: options, variables, a program."""
    rest, at, sets, cwd = asked.rest, 0, list(asked.sets), asked.cwd
    if asked.name == "sudo":
        asked.found.outward = True
    while at < len(rest) and (text := rest[at].text) is not None:
        if re.match(r"-\w*[Ssie]|--(?:spl|she|log|edi)", text) and not (asked.name == "env" and text == "-i"):
            asked.why(f"{asked.name} {text[:20]} is not looked into")
        if text.startswith(("-C", "-D", "--chd")):
            cwd = None
        if re.match(r"[A-Za-z_]\w*=", text):
            sets.append(text.split("=")[0])
        elif not text.startswith("-"):
            break
        at += 2 if text in WRAPPERS[asked.name].split() else 1
        if text == "--":
            break
    if inner := rest[at:]:
        asked.start(asked.instead(inner, sets=sets, cwd=cwd))


def _command(asked: Asked) -> None:
    if asked.texts[:1] not in (["-v"], ["-V"]):
        asked.start(asked.instead([word for word in asked.rest if word.text not in ("-p", "--")] or [Word("true")]))


def _xargs(asked: Asked) -> None:
    rest, at, placed = asked.rest, 0, ""
    while at < len(rest) and (text := rest[at].text or "").startswith("-"):
        if text.startswith(("-a", "--arg-f")):
            asked.why("xargs reads a file")
        if text in ("-I", "--replace") and at + 1 < len(rest):
            placed = rest[at + 1].text or ""
        elif text.startswith("-I") or text == "-i":
            placed = text[2:] or "{}"
        at += 2 if text in _XARGS else 1
    _of_files(asked, rest[at:] or [Word("echo")], placed, _producer(asked.words_before))


def _producer(words: Sequence[Word]) -> tuple[list[Word], Filter] | None:
    """The folders whose files the program before in the pipe names, and which of them; None where it is not known."""
    if not words or any(word.shown is None for word in words):
        return None
    name, *rest = (word.text or "" for word in words)
    if name == "find":
        return _find_folders(words[1:]), _find_filter(rest)
    names = any(re.fullmatch(r"-[a-zA-Z]*l[a-zA-Z]*|--files-with-matches|--name-only|--files", text) for text in rest)
    if name == "git" and (rest[:1] == ["ls-files"] or (rest[:1] in (["diff"], ["grep"]) and names)):
        globs = tuple(text.rsplit("/", 1)[-1] for text in rest[1:] if text.startswith("*"))
        return [Word(".")], Filter(globs, ignored=False)
    if name in ("ls", "fd") or (name in ("grep", "rg") and names):
        return [Word(".")], ALL if name in ("grep", "ls") else Filter(hidden=False)
    return None


def _of_files(asked: Asked, inner: Sequence[Word], placed: str, of: tuple[list[Word], Filter] | None) -> None:
    """A program that is started for files of folders: ``placed`` stands for them, or they follow."""
    words = [Word(None) if placed and placed in (word.text or "") else word for word in inner]
    words += [] if placed else [Word(None)]
    one = asked.instead(words, words_before=[], text=None, piped=True)
    name = one.name
    if name in ANY_TEXT:
        asked.found.start(words, asked.sets, asked.cwd)
    elif of is None or name not in PLAIN_READERS or (name == "sed" and not sed_known(one)):
        one.start(one)
        asked.why(f"{name or 'a program'} is started for files that are known only when the line runs")
    else:
        asked.found.start(words, asked.sets, asked.cwd)
        mentions(asked.instead(inner))
        writing = name in ("rm", "touch", "chmod") or (name == "sed" and in_place(one))
        for folder in of[0]:
            if writing:
                asked.found.write(folder, asked.cwd, tree=ALL)
            else:
                asked.found.read(folder, asked.cwd, tree=of[1])


def _find(asked: Asked) -> None:
    rest, found, texts, at = asked.rest, asked.found, asked.texts, 0
    folders = _find_folders(rest)
    if any(word.text is None or (word.glob and word not in folders) for word in rest):
        asked.why("a word is known only when the line runs")
    for word in folders:
        found.read(word, asked.cwd)
    while at < len(rest):
        text = texts[at]
        following = rest[at + 1] if at + 1 < len(rest) else Word(None)
        if text in ("-exec", "-execdir", "-ok", "-okdir"):
            end = next((number for number in range(at + 1, len(rest)) if texts[number] in (";", "+")), len(rest))
            one = asked.instead(asked.words, cwd=asked.cwd if "dir" not in text else None)
            _of_files(one, rest[at + 1 : end] or [Word(None)], "{}", (folders, _find_filter(texts)))
            at = end
        elif text == "-delete":
            for word in folders:
                found.write(word, asked.cwd, tree=ALL)
        elif text.startswith(("-fprint", "-fls")):
            found.write(following, asked.cwd)
        elif text in ("-newer", "-samefile", "-anewer", "-cnewer", "-files0-from"):
            found.read(following, asked.cwd)
        at += 1


def _find_folders(rest: Sequence[Word]) -> list[Word]:
    folders = []
    for word in rest:
        if word.text in ("-H", "-L", "-P"):
            continue
        if re.match(r"-.|[(!]", word.text or ""):
            break
        folders.append(word)
    return folders or [Word(".")]


def _find_filter(texts: Sequence[str]) -> Filter:
    """Which names find takes, where its expression is one ``-name`` and little else."""
    simple = {"-type", "-name", "-maxdepth", "-mindepth", "-print", "-print0", "-mtime", "-size", "-newermt"}
    until = next((number for number, text in enumerate(texts) if text.startswith("-exec")), len(texts))
    shown = {text for text in texts[:until] if re.match(r"-\D|[!(,]", text)}
    names = [texts[number + 1] for number, text in enumerate(texts[: until - 1]) if text == "-name"]
    return Filter((names[0],)) if shown <= simple and len(names) == 1 else ALL


# -- files -----------------------------------------------------------------------------------------------------------


def _copy(asked: Asked) -> None:
    name, found, cwd = asked.name, asked.found, asked.cwd
    words_known(asked)
    operands, options = parted(asked, SPECS[name])
    aimed = any(given(one, ("-t", "--target-directory")) for one in options)
    if name == "install" and any(given(one, ("-d", "--directory")) for one in options):
        aimed, operands = False, [*operands, *operands[-1:]]
    if name == "ln" and len(operands) == 1:
        operands.append(Word(posixpath.basename(operands[0].text or "") or "."))
    if len(operands) < 2 and not aimed:
        asked.why(f"{name} without a target")
    sources, target = operands[:-1], operands[-1] if operands else None
    if aimed:
        sources, target = operands, _aim(asked)
    whole = name == "mv" or any(re.match(r"-[a-zA-Z]*[rRa]|--(?:rec|arch)", one) for one in options)
    linked = name == "ln" and any(re.match(r"-[a-zA-Z]*s|--s", one) for one in options)
    for word in sources:
        if linked and target is not None and word.text is not None:
            at = target.text or ""
            at = at if cwd is not None and found.files.is_folder(posixpath.join(cwd, at)) else posixpath.dirname(at)
            word = Word(posixpath.join(at, word.text), word.glob)  # noqa: PLW2901 - a link leads from where it lies
        found.read(word, cwd, tree=ALL if whole or name == "ln" else None)
        if name == "mv":
            found.write(word, cwd, tree=ALL, link=True)
    if target is not None:
        found.write(target, cwd, tree=ALL if whole or name == "ln" else None, link=True)
        folder = aimed or (cwd is not None and found.files.is_folder(posixpath.join(cwd, target.text or "")))
        if target.shown is None or not folder:
            return
        for word in sources:
            into = posixpath.join(target.text or "", posixpath.basename((word.shown or "").rstrip("/")) or ".")
            found.write(Word(into), cwd, tree=ALL if whole or word.shown is None else None, link=True)


def _aim(asked: Asked) -> Word:
    """The value of ``-t``."""
    texts = asked.texts
    for number, text in enumerate(texts):
        if re.fullmatch(r"-[a-zA-Z]*t|--target-directory", text) and number + 1 < len(texts):
            return asked.rest[number + 1]
        if match := re.match(r"-t(.+)|--t[a-z-]*=(.+)", text):
            return Word(match[1] or match[2])
    return Word(None)


def _dd(asked: Asked) -> None:
    words_known(asked)
    for text in asked.texts:
        key, _, value = text.partition("=")
        if key == "if":
            asked.found.read(Word(value), asked.cwd)
        elif key == "of":
            asked.found.write(Word(value), asked.cwd)


def _tar(asked: Asked) -> None:
    found, texts, cwd = asked.found, asked.texts, asked.cwd
    words_known(asked)
    mentions(asked)
    old = texts[:1] if texts and not texts[0].startswith("-") else []
    flags = "".join([*old, *(text[1:] for text in texts if re.match(r"-[^-]", text))])
    if re.search("[IF]", flags):
        asked.why("tar runs a program")
    for number, text in enumerate(texts):
        if text == "-C" or text.startswith("--dir"):
            folder = text.partition("=")[2] or "".join(texts[number + 1 : number + 2])
            cwd = None if cwd is None or not folder else posixpath.normpath(posixpath.join(cwd, folder))
    names = [word for word in asked.rest[len(old) :] if not re.match("-.", word.text or "")]
    if "f" not in flags and not any(text.startswith("--fi") for text in texts):
        names.insert(0, Word("-"))
    if names[:1] == [Word("-")]:
        names[0] = Word("/dev/stdin")
    if "t" in flags or "--list" in texts:
        found.read(names[0] if names else Word(None), asked.cwd)
    elif "x" in flags or any(text.startswith(("--ext", "--get")) for text in texts):
        found.read(names[0] if names else Word(None), asked.cwd)
        found.write(Word("."), cwd)
        asked.why("which files an archive brings")
    else:
        found.write(names[0] if names else Word(None), asked.cwd)
        for word in names[1:]:
            found.read(word, cwd, tree=ALL)


def _unzip(asked: Asked) -> None:
    words_known(asked)
    operands, options = parted(asked, SPECS["unzip"])
    for word in operands[:1]:
        asked.found.read(word, asked.cwd)
    texts = asked.texts
    if not any(given(one, ("-l", "-p", "-t", "-Z")) for one in options):
        folder = texts[texts.index("-d") + 1] if "-d" in texts[:-1] else "."
        asked.found.write(Word(folder), asked.cwd)
        asked.why("which files an archive brings")


def _apply_patch(asked: Asked) -> None:
    note_patch(asked.text if asked.text is not None else "".join(asked.texts[:1]), asked.found, asked.cwd)


def _set(asked: Asked) -> None:
    known = all(re.fullmatch(r"[-+][euxvo]+|pipefail|errexit|nounset|xtrace", text) for text in asked.texts)
    if not known or not asked.texts:
        asked.why("set prints variables, or changes how the line is read")


# -- the network -----------------------------------------------------------------------------------------------------


def _curl(asked: Asked) -> None:
    name, found, texts = asked.name, asked.found, asked.texts
    words_known(asked)
    operands, options = parted(asked, SPECS[name])
    operands += [asked.rest[number + 1] for number, text in enumerate(texts[:-1]) if text == "--url"]
    operands += [Word(text[6:]) for text in texts if text.startswith("--url=")]
    for text in texts:
        for one in re.findall(r"[@<]([^;@<]+)", text):
            found.read(Word(one), asked.cwd)
    saves = any(given(one, ("-O", "--remote-name", "-J", "--remote-name-all")) for one in options)
    if saves if name == "curl" else not any(given(one, ("-O", "--output-document", "--spider")) for one in options):
        for word in operands:
            found.write(Word(posixpath.basename(urlsplit(word.text or "").path) or "index.html"), asked.cwd)
    for word in operands:
        if word.shown is None or re.search(r"[\[\]{}]", word.text or ""):
            asked.why("an address that is known only when the line runs")
        else:
            whole = re.match(r"[a-z][a-z0-9+.-]*://", word.text or "", re.IGNORECASE)
            note_address(f"{'' if whole else '//'}{word.text}", found)
    if not operands and not {"--version", "-V", "--help"} & set(texts):
        asked.why(f"{name} without an address")
    found.outward = found.outward or not found.hosts or any(host not in _LOOPBACK for host in found.hosts)


def _ssh(asked: Asked) -> None:
    asked.found.outward = True
    words_known(asked)
    mentions(asked)
    named = [text for text in asked.texts if not text.startswith("-") and (":" in text or asked.name == "ssh")]
    for text in named[:1] if asked.name == "ssh" else named:
        asked.found.hosts[text.rsplit("@", maxsplit=1)[-1].split(":")[0].lower()] = None
    if not asked.found.hosts:
        asked.why(f"{asked.name} to a host that is not known")


def _git(asked: Asked) -> None:
    found, rest, cwd, at = asked.found, asked.rest, asked.cwd, 0
    while at < len(rest) and (text := rest[at].text or "").startswith("-"):
        value = rest[at + 1].shown if at + 1 < len(rest) else None
        if text == "-C":
            found.mention(value or "", cwd)
            cwd = None if value is None or cwd is None else posixpath.normpath(posixpath.join(cwd, value))
        elif text == "-c" and not re.fullmatch(GIT["settings"], value or "", re.ASCII):
            asked.why("git gets a setting that may run something")
        elif text != "-c" and text not in GIT["quiet"].split():
            asked.why(f"git {text[:30]} is not looked into")
        at += 2 if text in ("-C", "-c", *GIT["valued"].split()) else 1
    inner = asked.instead([asked.words[0], *rest[at:]], cwd=cwd)
    sub = rest[at].shown if at < len(rest) else "--version"
    words_known(inner)
    if sub is None:
        found.outward = True
        return
    refuse(inner, f"git {sub}")
    if sub in GIT["odd"].split():
        asked.why(f"git {sub} is not looked into")
    found.outward = found.outward or sub not in GIT["local"].split()
    _git_command(inner, sub, inner.texts[1:])


def _git_command(asked: Asked, sub: str, texts: Sequence[str]) -> None:
    found = asked.found
    if sub == "config" and not any(re.match(r"--get|--list$|-l$|get$|list$|--show", text) for text in texts) and \
            len([text for text in texts if not text.startswith("-")]) != 1:  # fmt: skip
        asked.why("git config writes settings")
    if sub == "bisect" and "run" in texts:
        asked.why("git bisect run is not looked into")
    if sub in _REMOTE_GIT:
        _git_address(asked, texts)
    for text in texts:
        if text.startswith("--output"):
            found.write(Word(text.partition("=")[2] or None), asked.cwd)
        elif behind := re.match(r"[^/:]*:(.+)", text):
            found.mention(behind[1], found.root or asked.cwd)
    if sub == "grep":
        found.read(Word("."), asked.cwd, tree=Filter(hidden=True, ignored=False))
    if sub == "clean" and any(re.match(r"-[a-zA-Z]*f|--force", text) for text in texts):
        others = any(re.match(r"-[a-zA-Z]*[xX]", text) for text in texts)
        found.write(Word("."), asked.cwd, tree=ALL if others else Filter(ignored=False))
    if sub in ("rm", "mv"):
        for word in asked.rest[1:]:
            if not (word.text or "").startswith("-"):
                found.write(word, asked.cwd, tree=ALL, link=True)
    words = asked.words
    mentions(asked.instead([word for number, word in enumerate(words) if words[number - 1].text not in _MESSAGE]))


def _git_address(asked: Asked, texts: Sequence[str]) -> None:
    if any("::" in text or text.startswith("ext:") for text in texts):
        asked.why("an address that git hands to a program")
    first = next((text for text in texts if not text.startswith("-")), "")
    if host := re.match(r"(?:[^@/:]+@)?([^/:]+):", first):
        asked.found.hosts[host[1].lower()] = None


ROUTINES: Final[dict[str, Callable[[Asked], None]]] = {
    "env": _env, "sudo": _env, "command": _command, "xargs": _xargs, "find": _find, "sed": sed, "gsed": sed,
    "awk": awk, "gawk": awk, "mawk": awk, "nawk": awk, "cp": _copy, "mv": _copy, "ln": _copy, "install": _copy,
    "dd": _dd, "tar": _tar, "unzip": _unzip, "apply_patch": _apply_patch, "applypatch": _apply_patch, "set": _set,
    "curl": _curl, "wget": _curl, "ssh": _ssh, "scp": _ssh, "sftp": _ssh, "git": _git,
}  # fmt: skip


def understand(asked: Asked) -> None:
    """Note the program, and what its arguments say."""
    found, name = asked.found, asked.name
    found.start(asked.words, asked.sets, asked.cwd)
    if asked.words[0].shown is None:
        asked.why("a program whose name is known only when the line runs")
        found.outward = True
        return
    if "/" in (asked.words[0].text or ""):
        found.mention(asked.words[0].text or "", asked.cwd)
    refuse(asked, name)
    if name in ODD:
        asked.why(f"{name} is not looked into")
        found.outward = True
        mentions(asked)
    elif name in ROUTINES:
        ROUTINES[name](asked)
    elif name in WRAPPERS:
        start_behind(asked, asked.rest, WRAPPERS[name], 1 if name in ("timeout", "taskset", "chrt") else 0)
    elif name in SHELLS:
        shell(asked)
    elif name in INTERPRETERS:
        interpreter(asked)
    elif name in SPECS:
        by_spec(asked, SPECS[name])
    else:
        unknown(asked)
