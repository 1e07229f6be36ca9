#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gen/build_info.h: unknown outside of git, the revision within, dirty after a change, untouched when nothing changed.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
ask() {
    cmake -DSOURCE="$work/a tree" -DOUT="$work/info.h" -DVERSION=1 -DCOMPILER=c -DFLAGS=-O2 -DTYPE=Release \
        -DCOMMAND="cmake -DCMAKE_C_FLAGS='-DX=\"a b\\\\\"'" \
        -P "$SOURCE_DIR/tools/cmake/build_info.cmake" || failed=1
}
holds() { grep -qxF "$1" "$work/info.h" || { echo "$2: no '$1' in"; cat "$work/info.h"; failed=1; }; }

mkdir "$work/a tree"
ask
holds '#define BUILD_REVISION "unknown"' 'a tarball'
holds '#define BUILD_FLAGS "-O2"' 'flags'
holds '#define BUILD_COMMAND "cmake -DCMAKE_C_FLAGS='"'-DX=\\\"a b\\\\\\\\\\\"'"'"' 'quotes'
command -v git >/dev/null || { echo 'SKIPPED: git is missing'; [ "$failed" = 0 ] && exit 77; exit 1; }
cd "$work/a tree" || exit 1
{ git init -q . && echo 1 >file && git add file &&
    git -c user.name=t -c user.email=t@t -c commit.gpgsign=false commit -q -m t; } || exit 1
ask
holds "#define BUILD_REVISION \"$(git rev-parse HEAD)\"" 'a clone'
holds '#define BUILD_DIRTY 0' 'a clone'
touch -d '2020-01-01' "$work/info.h"
ask
[ "$(date -r "$work/info.h" +%Y)" = 2020 ] || { echo 'rewritten though nothing changed'; failed=1; }
echo 2 >file
ask
holds '#define BUILD_DIRTY 1' 'a change'
exit "$failed"
