#!/bin/sh
# Install the agents that the tests run into the user's cache, at the pinned versions and hashes of
# scripts/guests/package-lock.json; without their install scripts. Safe to run again: does nothing when nothing changed.
# $PMAGENT_GUESTS names another folder.
set -eu
cd -- "$(dirname -- "$0")/guests"

target=${PMAGENT_GUESTS:-${XDG_CACHE_HOME:-$HOME/.cache}/pmagent/guests}
wanted=$(cat package.json package-lock.json | sha256sum)
[ "$(cat "$target/stamp" 2>/dev/null)" != "$wanted" ] || exit 0

if [ -e "$target" ] && ! grep -qs '"name": "guests"' "$target/package.json"; then
    echo "guests: $target holds something else; remove it, or name another folder with PMAGENT_GUESTS" >&2
    exit 1
fi
rm -rf "$target"
mkdir -p "$target"
cp package.json package-lock.json "$target/"
cd "$target"
# These programs bring their own runtime; npm's own Node may be older than they wish, so the versions are held here.
npm ci --silent --ignore-scripts --no-audit --no-fund

held() { # PROGRAM VERSION: it says that it is that one
    found=$("$1" --version </dev/null)
    case " $found " in
    *" $2 "*) ;;
    *)
        echo "guests: $1 says that it is $found, not $2" >&2
        exit 1
        ;;
    esac
}

mkdir bin home
export HOME="$target/home" DISABLE_AUTOUPDATER=1
cd bin
ln -s ../node_modules/@anthropic-ai/claude-code-linux-*/claude claude
ln -s ../node_modules/@openai/codex-linux-*/vendor/*/bin/codex codex
ln -s ../node_modules/@google/gemini-cli/bundle/gemini.js gemini
opencode=../node_modules/opencode-linux-x64-baseline/bin/opencode # published for x86-64 alone where we look
[ ! -e "$opencode" ] || ln -s "$opencode" opencode
held ./claude 2.1.330
held ./codex 0.169.0
held ./gemini 0.61.0
[ ! -e opencode ] || held ./opencode 1.18.33
echo "$wanted" >"$target/stamp"
