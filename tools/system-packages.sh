#!/bin/sh
# Installs the Debian packages that are missing for a purpose, where the user may; else names the exact command.
#   tools/system-packages.sh grade    bubblewrap (the sandbox), g++ (emulated CUDA C++)
#   tools/system-packages.sh hub      these, and node with the hub's proxy (in .venv/node)
#   tools/system-packages.sh test     these, and chromium (browser tests)
set -u
missing=""
need() { command -v "$1" >/dev/null 2>&1 || missing="$missing $2"; }
need g++ g++
need bwrap bubblewrap
case "${1:-}" in
    grade) ;;
    hub) proxy=yes ;;
    test)
        proxy=yes
        . /etc/os-release 2>/dev/null
        if [ "${ID:-}" = ubuntu ]; then
            # Ubuntu's chromium package is a snap, which headless tests cannot drive: Playwright brings its own.
            command -v chromium >/dev/null || command -v google-chrome >/dev/null || playwright=yes
        else
            need chromium chromium
        fi ;;
    *) echo "usage: $0 grade | hub | test" >&2; exit 2 ;;
esac
if [ "${proxy:-}" = yes ]; then need node nodejs; need npm npm; fi
if [ "${playwright:-}" = yes ] && [ -z "$(ls -d "$HOME"/.cache/ms-playwright/chromium* 2>/dev/null)" ]; then
    .venv/bin/playwright install --with-deps chromium || exit 1
fi
proxy() {
    [ "${proxy:-}" = yes ] || return 0
    lock=autograder/hub/package-lock.json
    cmp -s "$lock" .venv/node/package-lock.json && [ -d .venv/node/node_modules ] && return 0
    echo "Installing configurable-http-proxy into .venv/node (pinned in $lock)"
    mkdir -p .venv/node && cp autograder/hub/package.json "$lock" .venv/node/ || return 1
    npm ci --prefix .venv/node --no-fund --no-audit --loglevel=error >/dev/null || { rm .venv/node/package-lock.json; return 1; }
}
[ -z "$missing" ] && { proxy; exit; }
command="apt-get update && apt-get install -y --no-install-recommends$missing"
if [ "$(id -u)" = 0 ]; then sudo=""
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then sudo="sudo"
else
    echo "These packages are missing:$missing. Install them with:" >&2
    echo "    sudo sh -c '$command'" >&2
    exit 1
fi
echo "Installing$missing"
$sudo sh -c "export DEBIAN_FRONTEND=noninteractive; $command" >/dev/null && proxy
