#!/bin/sh
# Write requirements*.txt from pyproject.toml: every version pinned, every wheel's hash. Needs the package index.
# With arguments (for example --upgrade, or --upgrade-package ruff) they are handed to pip-compile.
set -eu
cd -- "$(dirname -- "$0")/.."
tools=$(mktemp -d)
trap 'rm -rf -- "$tools"' EXIT
"${PYTHON:-python3}" -I -m venv "$tools/venv"
"$tools/venv/bin/pip" install --quiet --disable-pip-version-check 'pip-tools==7.6.2' 'hatchling==1.33.0'

compile() { # OUTPUT SOURCE ARGUMENTS...: no header, and no index lines, which name hosts and paths
    output=$1 source=$2
    shift 2
    "$tools/venv/bin/pip-compile" --quiet --no-header --generate-hashes --strip-extras --no-build-isolation \
        --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options --allow-unsafe \
        --output-file="$output" "$@" "$source"
    {
        echo "# Pinned from $source by \`make lock\`; do not edit."
        cat "$output"
    } >"$tools/text"
    cat "$tools/text" >"$output"
}

compile requirements-dev.txt pyproject.toml --extra=dev "$@"
compile requirements.txt pyproject.toml --constraint=requirements-dev.txt "$@"
compile requirements-bench.txt pyproject.toml --extra=bench --constraint=requirements-dev.txt "$@"
compile scripts/machines/requirements.txt scripts/machines/requirements.in "$@"
