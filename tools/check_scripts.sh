#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The scripts parse, and shellcheck (where it is installed) has nothing to say but on three matters of taste:
# `a && b || fail`, where b cannot fail alone, awk in single quotes, and `-nt`, which POSIX has since 2024 and dash had always.
set -u
cd "$(dirname "$0")/.." || exit 1
failed=0
for script in bench test .ci/run tools/*.sh tests/*/*.sh; do
    [ -e "$script" ] || continue
    shell="sh"
    head -n 1 "$script" | grep -q bash && shell=bash
    "$shell" -n "$script" || failed=1
    ! command -v shellcheck >/dev/null || shellcheck -x -e SC2015,SC2016,SC3013 "$script" || failed=1
done
for script in bench test; do
    [ -x "$script" ] || { echo "$script is not executable"; failed=1; }
done
exit "$failed"
