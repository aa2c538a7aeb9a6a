#!/bin/sh
# Prints the newest supported Python on this machine (3.11 to 3.13), or says how to get one.
for name in ${PYTHON:-} python3.13 python3.12 python3.11 python3; do
    path=$(command -v "$name" 2>/dev/null) || continue
    if "$path" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
        # Debian ships venv apart: a Python that cannot make an environment is of no use here.
        if "$path" -c 'import ensurepip, venv' 2>/dev/null; then echo "$path"; exit 0; fi
        short=$("$path" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
        without_venv=${without_venv:-$short}
    fi
done
. /etc/os-release 2>/dev/null
case "${VERSION_ID:-}" in
    22.04) package=python3.11 ;;
    24.04) package=python3.12 ;;
    *)     package=python3.11 ;;
esac
package=${without_venv:-$package}
echo "tilelab needs Python 3.11, 3.12 or 3.13 with venv; none was found." >&2
echo "Install one with:  sudo apt-get update && sudo apt-get install -y $package $package-venv" >&2
exit 1
