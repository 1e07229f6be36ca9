#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tests that draw their cases, with other seeds than the one that all runs have: check_seeds.sh [RUNS [BUILD_FOLDER]]
# (default 10 build/release). Prints what failed with which seed; a build of BENCH_CUDA=emu gets other schedules too.
set -u
cd "$(dirname "$0")/.." || exit 1
runs=${1:-10}
folder=${2:-build/release}
[ -e "$folder/CTestTestfile.cmake" ] || { echo "check_seeds: no tests in $folder: ./test builds those of build/release" >&2; exit 2; }
log=$folder/check_seeds.log
failed=0
i=0
while [ "$i" -lt "$runs" ]; do
    i=$((i + 1))
    seed=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
    echo "BENCH_SEED=$seed SIMT_SEED=$((seed % 1000)), $i of $runs"
    if ! (cd "$folder" && BENCH_SEED=$seed SIMT_SEED=$((seed % 1000)) ctest -j "$(nproc)" --output-on-failure \
        --no-tests=error -R '^ops/|^fault/allocations') >"$log" 2>&1; then
        failed=$((failed + 1))
        cp "$log" "$log.$seed"
        grep -E '^FAILED |\(Failed\)|\(Timeout\)|No tests' "$log"
        echo "    all of it: $log.$seed"
    fi
done
echo "$failed of $runs seeds failed"
[ "$failed" -eq 0 ]
