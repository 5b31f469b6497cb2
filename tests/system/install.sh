#!/usr/bin/env bash
# Installs what the tests need beyond Python and npm, by package name, where that is possible (root, Debian); else says how.
set -euo pipefail
missing=()
command -v setpriv >/dev/null || missing+=(util-linux)
command -v chromium >/dev/null || missing+=(chromium)
command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v tmux >/dev/null || missing+=(tmux)
command -v git >/dev/null || missing+=(git)
command -v npm >/dev/null || missing+=(nodejs npm)
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing ${missing[*]}"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
else
    echo "The tests need: ${missing[*]}. Install them, on Debian with: sudo apt-get install ${missing[*]}" >&2
    exit 1
fi
