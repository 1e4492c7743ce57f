#!/bin/sh
# Make .venv with the pinned dependencies and this project in it. Safe to run again: does nothing when nothing changed.
# Usage: scripts/setup.sh [REQUIREMENTS_FILE]     (default: requirements-dev.txt)
# $PYTHON chooses the interpreter; otherwise the first 3.11 or newer on PATH.
set -eu
cd -- "$(dirname -- "$0")/.."

requirements=${1:-requirements-dev.txt}
stamp=.venv/stamp-$requirements
SYSTEM_PACKAGES=${SYSTEM_PACKAGES-} # Debian packages that tools and tests use

fail() {
    echo "setup: $*" >&2
    exit 1
}

install_packages() { # as root on a system with apt-get; false when that is not so or does not work
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    echo "setup: installing $*" >&2
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086 # a list of packages
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends $*; } >&2
}

find_python() {
    for candidate in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11 python3.14; do
        if command -v "$candidate" >/dev/null &&
            "$candidate" -I -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

wanted_state() { # what the stamp must say: changes when the inputs, the place or the interpreter change
    pwd -P
    cat .venv/pyvenv.cfg pyproject.toml "$requirements" requirements-board.txt scripts/setup.sh | sha256sum
}

if [ -f "$stamp" ] && [ -x .venv/bin/pmagent ] && .venv/bin/python -I -c '' 2>/dev/null &&
    [ "$(wanted_state)" = "$(cat "$stamp")" ]; then
    exit 0
fi

missing=
for package in $SYSTEM_PACKAGES; do
    command=$package # most have the name of their command
    case $package in
    bubblewrap) command=bwrap ;;
    xvfb) command=Xvfb ;;
    x11-xkb-utils) command=setxkbmap ;;
    pgbouncer) command=/usr/sbin/pgbouncer ;;
    etcd-server) command=etcd ;;
    postgresql) command=$(ls -d /usr/lib/postgresql/*/bin/postgres 2>/dev/null | tail -n 1) ;; # it is not on PATH
    esac
    command -v "$command" >/dev/null || missing="$missing $package"
done
if [ -n "$missing" ]; then
    # shellcheck disable=SC2086
    install_packages $missing ||
        echo "setup: not found:$missing; some tests need them: apt-get install$missing" >&2
fi

python=$(find_python) || {
    install_packages python3 python3-venv && python=$(find_python)
} || fail "Python 3.11 or newer is needed: apt-get install python3 python3-venv (or set PYTHON)"

# What pip is told in the environment about indexes, certificates and proxies is kept; what would install elsewhere,
# from source, or something other than the pinned set is not.
for name in TARGET PREFIX ROOT PYTHON REQUIREMENT CONSTRAINT BUILD_CONSTRAINT NO_BINARY ONLY_BINARY REQUIRE_HASHES \
    REQUIRE_VIRTUALENV EDITABLE NO_DEPS IGNORE_INSTALLED DRY_RUN PLATFORM PYTHON_VERSION ABI IMPLEMENTATION SRC LOG \
    REPORT UPGRADE FORCE_REINSTALL PRE CONFIG_SETTINGS NO_BUILD_ISOLATION QUIET VERBOSE; do
    unset "PIP_$name"
done
unset PYTHONPATH PYTHONHOME PYTHONSTARTUP
export PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore

# A .venv that was copied, moved or left by a removed interpreter still names its old place.
made_here() {
    .venv/bin/python -I -m pip --version >/dev/null 2>&1 &&
        head -n 3 .venv/bin/pip | grep -qF -- "$(pwd -P)/.venv/bin/python"
}
if ! made_here; then
    "$python" -I -c 'import ensurepip, venv' 2>/dev/null || {
        version=$("$python" -I -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
        install_packages python3-venv "$version" && "$python" -I -c 'import ensurepip, venv' 2>/dev/null ||
            fail "$python cannot make virtual environments: apt-get install $version"
    }
    "$python" -I -m venv --clear .venv
fi

pip() {
    .venv/bin/python -I -m pip "$@"
}
# The pinned set is whole, so nothing is left to be resolved.
pip install --quiet --require-hashes --only-binary=:all: --no-deps -r "$requirements"
if [ "$requirements" = requirements-dev.txt ]; then
    pip install --quiet --require-hashes --only-binary=:all: --no-deps -r requirements-board.txt
fi
pip install --quiet --no-build-isolation --no-deps --editable .
wanted_state >"$stamp"
