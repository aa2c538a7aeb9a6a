#!/bin/sh
# Installs the Debian packages that are missing for a purpose, where the user may; else names the exact command.
#   tools/system-packages.sh grade    bubblewrap (the sandbox), g++ (emulated CUDA C++)
#   tools/system-packages.sh hub      these, and node with npm (the hub's proxy)
#   tools/system-packages.sh test     these, and chromium (browser tests)
set -u
missing=""
need() { command -v "$1" >/dev/null 2>&1 || missing="$missing $2"; }
need g++ g++
need bwrap bubblewrap
case "${1:-}" in
    grade) ;;
    hub) need node nodejs; need npm npm ;;
    test)
        need node nodejs; need npm npm
        . /etc/os-release 2>/dev/null
        if [ "${ID:-}" = ubuntu ]; then
            # Ubuntu's chromium package is a snap, which headless tests cannot drive: Playwright brings its own.
            command -v chromium >/dev/null || command -v google-chrome >/dev/null || playwright=yes
        else
            need chromium chromium
        fi ;;
    *) echo "usage: $0 grade | hub | test" >&2; exit 2 ;;
esac
if [ "${playwright:-}" = yes ] && [ -z "$(ls -d "$HOME"/.cache/ms-playwright/chromium* 2>/dev/null)" ]; then
    .venv/bin/playwright install --with-deps chromium || exit 1
fi
[ -z "$missing" ] && exit 0
command="apt-get update && apt-get install -y --no-install-recommends$missing"
if [ "$(id -u)" = 0 ]; then sudo=""
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then sudo="sudo"
else
    echo "These packages are missing:$missing. Install them with:" >&2
    echo "    sudo sh -c '$command'" >&2
    exit 1
fi
echo "Installing$missing"
$sudo sh -c "export DEBIAN_FRONTEND=noninteractive; $command" >/dev/null
