#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Gates a change on a table of throughputs: builds the commit that the change left, and the change; measures both in turns on
# this machine; ends with the verdict. Run it in a checkout that has the history; any CI will do (github.yml calls it).
#
#   pull_request.sh [BASE [PROTOCOL [WORDS...]]]
#     BASE      a revision, default origin/main: the change is compared with the commit where it left BASE
#     PROTOCOL  a file or a name, default ci_gate; its section [gate] says what counts (bench help section gate)
#     WORDS     further words for bench ab, as --strict
#
# Exit codes are those of bench ab: 0 nothing is slower, 1 a row is, 2 a mistake, 3 a row is missing or failed, 4 the two cannot be
# compared, 5 undecided. The table is also appended to $GITHUB_STEP_SUMMARY where there is one. Results stay in build/gate.
set -eu
base=$(git merge-base "${1:-origin/main}" HEAD)
protocol=${2:-ci_gate}
[ $# -lt 2 ] || shift
[ $# -lt 1 ] || shift
folder=build/gate
mkdir -p "$folder"

# BENCH_OLD and BENCH_NEW: programs that are there already.
old=${BENCH_OLD-}
if [ -z "$old" ]; then
    tree=$folder/$base
    [ -d "$tree" ] || git worktree add --quiet --detach "$tree" "$base"
    (cd "$tree" && ./bench --build)
    old=$tree/build/release/bench
fi
new=${BENCH_NEW-}
if [ -z "$new" ]; then
    ./bench --build
    new=build/release/bench
fi
exec "$new" ab "$protocol" --a-bin "$old" --b-bin "$new" -o "$folder/$(date -u +%Y%m%d-%H%M%S)-$$.h5" "$@"
