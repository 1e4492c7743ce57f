#!/bin/sh
# Install Patroni for the tests of logs in PostgreSQL, at the pinned versions and hashes of
# scripts/machines/requirements.txt, into the user's cache. Safe to run again: does nothing when nothing changed.
# $PMAGENT_MACHINES names another folder.
set -eu
cd -- "$(dirname -- "$0")/machines"

target=${PMAGENT_MACHINES:-${XDG_CACHE_HOME:-$HOME/.cache}/pmagent/machines}
wanted=$(sha256sum requirements.txt)
[ "$(cat "$target/stamp" 2>/dev/null)" != "$wanted" ] || exit 0

if [ -e "$target" ] && [ ! -e "$target/pyvenv.cfg" ]; then
    echo "machines: $target holds something else; remove it, or name another folder with PMAGENT_MACHINES" >&2
    exit 1
fi
"${PYTHON:-python3}" -I -m venv --clear "$target"
pip() {
    "$target/bin/python" -I -m pip --disable-pip-version-check --no-input "$@"
}
# Two packages are published as source alone: what builds it is pinned as well, and installed first.
sed -n '/^setuptools==/,$p' requirements.txt >"$target/build.txt"
pip install --quiet --require-hashes --only-binary=:all: -r "$target/build.txt"
pip install --quiet --require-hashes --only-binary=:all: --no-binary=python-etcd,ydiff --no-build-isolation -r requirements.txt
"$target/bin/patroni" --version
printf '%s\n' "$wanted" >"$target/stamp"
