#!/bin/sh
# Make real repositories in .repositories/, in which tests of the first hour run: from sources that pip, npm and, where
# there is a cargo, apt find, each checked against its hash. Safe to run again: does nothing when nothing changed.
set -eu
cd -- "$(dirname -- "$0")/.."

here=$PWD
python=$here/.venv/bin/python
target=$here/.repositories
wanted=$(cat scripts/repositories.* scripts/repositories-isarray.json | sha256sum)
[ "$(cat "$target/stamp" 2>/dev/null)" != "$wanted" ] || exit 0

rm -rf "$target"
mkdir -p "$target/sources"
cd "$target/sources"
"$python" -I -m pip download --quiet --require-hashes --no-deps --no-binary certifi,click,six -r "$here/scripts/repositories.txt"
npm pack --silent isarray@1.0.0 color-name@1.1.3 eyes@0.1.6 >/dev/null
sha256sum --check --quiet <<'SUMS'
e23c76f14f5222e07e39d89858b61e8e33f96956de9e0df3659cbdf8db950c87  isarray-1.0.0.tgz
b0ef3371fb2563cbeb6379f1639dc2a8c0a895d1d48ac72c7ad43c5ff409784e  color-name-1.1.3.tgz
966b516a492d60e3880830ddf4a1594117c63a85fb3214aab93eb103af6656fe  eyes-0.1.6.tgz
SUMS

repository() { # NAME: of its one archive
    mkdir "$target/$1"
    tar -xzf "$1"-*gz --no-same-owner --strip-components=1 -C "$target/$1"
    committed "$1"
}

committed() { # NAME: all that lies there
    printf '.venv/\nnode_modules/\n__pycache__/\n.pytest_cache/\ntarget/\nCargo.lock\n' >"$target/$1/.gitignore"
    git_in "$1" init -q -b main
    git_in "$1" add --all
    git_in "$1" commit -q -m "The published sources"
}

git_in() { # NAME ARGUMENTS…
    name=$1
    shift
    git -C "$target/$name" -c user.name=somebody -c user.email=somebody@localhost "$@"
}

environment() { # NAME FOLDER: .venv with pytest, and the sources in FOLDER importable
    "$python" -I -m venv "$target/$1/.venv"
    "$target/$1/.venv/bin/python" -I -m pip install --quiet --no-index --find-links . pytest
    for library in "$target/$1"/.venv/lib/python*/site-packages; do
        echo "$target/$1/$2" >"$library/sources.pth"
    done
}

for name in certifi click six isarray color-name eyes; do
    repository "$name"
done
if command -v cargo >/dev/null && [ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ]; then # a crate without others
    apt-get download -qq librust-fnv-dev=1.0.7-1
    sha256sum --check --quiet <<'SUMS'
906cc04d72bbbb03e1439c56aa5c66356fee07a27716484623ba22754431d17f  librust-fnv-dev_1.0.7-1_amd64.deb
SUMS
    dpkg-deb --extract librust-fnv-dev_1.0.7-1_amd64.deb fnv
    cp -R fnv/usr/share/cargo/registry/fnv-1.0.7 "$target/fnv"
    committed fnv
fi
environment click src
git_in six worktree add -q "$target/six-worktree" -b work
environment six-worktree .
cp "$here/scripts/repositories-isarray.json" "$target/isarray/package-lock.json"
(cd "$target/isarray" && npm ci --silent --ignore-scripts --no-audit --no-fund)
echo "$wanted" >"$target/stamp"
