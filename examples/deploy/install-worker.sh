#!/bin/sh
# Make this host a worker: a user, its file, and the service. As root; safe to run again. It replaces nothing.
# Usage: install-worker.sh [ROOT]     (ROOT: where to write, for a trial; default: this system)
set -eu
root=${1-}
here=$(cd -- "$(dirname -- "$0")" && pwd)

if [ -z "$root" ]; then
    command -v bwrap >/dev/null || { echo "bubblewrap is missing: apt-get install bubblewrap" >&2; exit 1; }
    command -v pmagent >/dev/null || { echo "pmagent is missing: uv tool install 'pmagent[pg]'" >&2; exit 1; }
    id pmagent-worker >/dev/null 2>&1 ||
        useradd --system --home-dir /var/lib/pmagent-worker --shell /usr/sbin/nologin pmagent-worker
fi
mkdir -p "$root/etc/pmagent" "$root/etc/systemd/system"
[ -e "$root/etc/pmagent/worker.toml" ] || install -m 644 "$here/worker.toml" "$root/etc/pmagent/worker.toml"
install -m 644 "$here/pmagent-worker.service" "$root/etc/systemd/system/pmagent-worker.service"
echo "edit $root/etc/pmagent/worker.toml, then: systemctl enable --now pmagent-worker"
