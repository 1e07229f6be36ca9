#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# First contact with a GPU, from the bundle that tools/gpu-bundle.sh makes: two runs of at most 8 and 5 minutes.
#   gpu-check.sh 1 OUT    environment, primitives, launch constants, kernels against ref, tokens, speed
#   gpu-check.sh 2 OUT    counters by Nsight Compute, compute-sanitizer
#   gpu-check.sh table OUT   only prints the table again
# Each step is a process of its own under a limit; none stops the others; each adds a line to OUT/steps.tsv, and its words are in
# OUT/STEP.log. Without a GPU every step says SKIP and the script ends with 0. SKIP="speed tokens" leaves steps out.
# shellcheck disable=SC2317 # the functions of the steps are called by name, from `inside`
set -u
here=$(cd -- "$(dirname -- "$0")" && pwd -P)
[ -d "$here/bin" ] || here=$(cd -- "$here/../bundle" 2>/dev/null && pwd -P) ||
    { echo "gpu-check: there is no bundle; make gpu-bundle makes it" >&2; exit 2; }
what=${1:-1}
out=${2:-gpu-check}
mkdir -p "$out" || exit 2
out=$(cd -- "$out" && pwd -P)
export BENCH_DATA="$here/share"
bench=$here/bin/bench
failed=0

run() { LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@"; }
has_gpu() {
    run "$bench" list devices --format tsv 2>/dev/null |
        awk -F '\t' '$1 == "cuda" && $2 !~ /not built|unavailable/ {found = 1} END {exit !found}'
}

# step NAME LIMIT_S COMMAND...: exit 77 of the command means skipped, with its last line as the reason.
step() {
    name=$1 limit=$2
    shift 2
    case " ${SKIP:-} " in *" $name "*) note "$name" SKIP 0 "left out by SKIP"; return ;; esac
    if [ "$gpu" = no ] && [ "$name" != environment ]; then
        note "$name" SKIP 0 "no GPU that works"
        return
    fi
    began=$(date +%s)
    timeout -k 5 "$limit" "$@" >"$out/$name.log" 2>&1 </dev/null
    code=$?
    took=$(($(date +%s) - began))
    case $code in
    0) note "$name" ok "$took" "" ;;
    77) note "$name" SKIP "$took" "$(tail -n 1 "$out/$name.log")" ;;
    124 | 137) note "$name" TIMEOUT "$took" "over $limit s"; failed=1 ;;
    *) note "$name" FAILED "$took" "exit $code: $(grep -v '^ *$' "$out/$name.log" | tail -n 1)"; failed=1 ;;
    esac
}
note() {
    printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" >>"$out/steps.tsv"
    printf '%-22s %-8s %4s s  %s\n' "$1" "$2" "$3" "$4"
}

environment() {
    cat "$here/version"
    uname -a
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.mem,power.limit,persistence_mode --format=csv
    nvidia-smi -q -d CLOCK,POWER,PERFORMANCE,TEMPERATURE
    for tool in nvcc ncu nsys compute-sanitizer python3; do command -v "$tool" || echo "$tool is absent"; done
    run "$bench" list devices
    run "$bench" list probes
    has_gpu || { echo "skipped: no GPU that works"; exit 77; }
    run "$bench" run ceilings --device cuda --quick -o "$out/ceilings.h5" # loads every kernel
}
primitives() { run "$here/bin/gpu_primitives" "$here/share/frag_maps.tsv"; }
constants() { run "$here/bin/gpu_constants" | tee "$out/constants.tsv"; }
# All kernels in one process; one by one only after a death, so that the culprit has a name.
kernels() {
    code=0
    for test in ops_dense ops_cache ops_select ops_pack; do
        BENCH_DEVICE=cuda run "$here/bin/test_$test" || code=1
    done
    return "$code"
}
# The same tokens, whatever the form of the step: one hash for all of them.
tokens() {
    for graph in true false; do for layout in contiguous paged; do for pdl in false true; do
        run "$bench" run decode_knee --quick --device cuda --set model.shape=tiny --set "model.layout=$layout" \
            --set "device.graph=$graph" --set "device.pdl=$pdl" -o "$out/tokens.h5" >/dev/null || return 1
        run "$bench" export "$out/tokens.h5" --format json | tr ',' '\n' | grep output_hash | sort -u | cksum |
            sed "s/^/graph=$graph layout=$layout pdl=$pdl /"
        rm -f "$out"/tokens.*
    done; done; done >"$out/tokens.txt"
    cat "$out/tokens.txt"
    [ "$(awk '{print $(NF - 1)}' "$out/tokens.txt" | sort -u | wc -l)" = 1 ]
}
speed() { run "$bench" run "$here/share/speed.toml" -o "$out/speed.h5" --no-plot; }
peer() { python3 "$here/share/peer_torch.py" | tee "$out/peer.tsv"; }
counters() {
    command -v ncu >/dev/null || { echo "skipped: ncu is absent"; exit 77; }
    LD_LIBRARY_PATH=$here/lib ncu --csv --target-processes all --launch-skip 200 --launch-count 120 --metrics \
        dram__bytes_read.sum,dram__bytes_write.sum,gpu__time_duration.sum,sm__inst_executed_pipe_tensor.sum,l1tex__data_bank_conflicts_pipe_lsu.sum \
        "$bench" run "$here/share/protocols/roofline.toml" --device cuda --profile --no-isolate -o "$out/counters.h5" --no-plot |
        tee "$out/counters.csv"
}
sanitizer() { # sanitizer TOOL TEST
    command -v compute-sanitizer >/dev/null || { echo "skipped: compute-sanitizer is absent"; exit 77; }
    BENCH_DEVICE=cuda LD_LIBRARY_PATH=$here/lib \
        compute-sanitizer --tool "$1" --error-exitcode 9 "$here/bin/test_$2"
}
table() {
    [ -f "$out/speed.h5" ] && run "$bench" show "$out/speed.h5"
    [ -f "$out/constants.tsv" ] && cat "$out/constants.tsv"
    [ -f "$out/peer.tsv" ] && { echo "PyTorch: name, us, GB/s, TFLOP/s"; cat "$out/peer.tsv"; }
    column -t -s "$(printf '\t')" "$out/steps.tsv" 2>/dev/null || cat "$out/steps.tsv"
}

# A step runs this script again, so that `timeout` holds for all of it.
case $what in
inside) shift 2; "$@"; exit ;;
esac
gpu=no
has_gpu && gpu=yes
again() { # again NAME LIMIT FUNCTION...
    name=$1 limit=$2
    shift 2
    step "$name" "$limit" sh "$here/gpu-check.sh" inside "$out" "$@"
}
case $what in
1)
    : >"$out/steps.tsv"
    again environment 30 environment
    again primitives 15 primitives
    again constants 40 constants
    again kernels 60 kernels
    again tokens 60 tokens
    again speed 150 speed
    again peer 40 peer
    table
    ;;
2)
    again counters 90 counters
    for test in ops_dense ops_cache ops_select; do again "memcheck-$test" 40 sanitizer memcheck "$test"; done
    for test in ops_dense ops_cache; do again "racecheck-$test" 40 sanitizer racecheck "$test"; done
    table
    ;;
table) table ;;
*) echo "gpu-check: 1, 2 or table" >&2; exit 2 ;;
esac
exit "$failed"
