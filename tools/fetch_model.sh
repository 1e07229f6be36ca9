#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `bench model NAME` runs: finds a python3 that has pip, installs one where there is none, then fetch_model.py.
here=$(dirname -- "$0")
with_pip() {
    for python in python3 /usr/bin/python3; do
        "$python" -c "import pip" 2>/dev/null && return 0
    done
    return 1
}
with_pip || {
    [ -e "$here/setup.sh" ] || {
        echo "bench model: python3 with pip is needed, which Debian calls python3-pip" >&2
        exit 2
    }
    sh "$here/setup.sh" pip || exit
    with_pip || {
        echo "bench model: python3 has no pip, though python3-pip is installed" >&2
        exit 2
    }
}
exec "$python" "$here/fetch_model.py" "$@"
