#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The project's own numbers (make bench, make bench-NAME): what the harness costs, and how near the cpu device comes to
# what the machine gives. Not tests: a person reads them on a quiet machine. bench.sh [loop|pool|commands|speed|fair ...],
# or cpu, weights or load, which take minutes, or gate, which takes hours
set -u
cd "$(dirname "$0")/.." || exit 1
program=$PWD/build/release/bench
work=$(mktemp -d) || exit 1
busy=
trap '[ -z "$busy" ] || kill "$busy"; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# The fastest of N calls, in ms: the machine's own disturbances only ever add.
fastest() {
    count=$1
    shift
    least=999999999999
    while [ "$count" -gt 0 ]; do
        begin=$(date +%s%N)
        "$@" >/dev/null || return 1
        took=$(($(date +%s%N) - begin))
        [ "$took" -ge "$least" ] || least=$took
        count=$((count - 1))
    done
    echo $((least / 1000000))
}
# measure NAME: $work/NAME.toml to .h5 and .txt; what was said is shown where it fails
measure() {
    "$program" run "$work/$1.toml" -o "$work/$1.h5" --no-plot --quiet >"$work/$1.txt" 2>&1 || {
        cat "$work/$1.txt"
        return 1
    }
}
# value RESULT CASE METRIC: the median of a row's metric
value() {
    "$program" export "$1" --format tsv 2>/dev/null | awk -F '\t' -v case_name="$2" -v metric="$3" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["case"] == case_name && $at["metric"] == metric { print $at["median"] }'
}
flags() {
    "$program" export "$1" --format tsv 2>/dev/null | awk -F '\t' -v case_name="$2" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["case"] == case_name { print $at["flags"]; exit }'
}

bench_loop() {
    echo "== what a sample costs beyond its clock reads (goal: at most 20 ns), and 10^6 of them (at most 64 MiB)"
    build/release/tests/bench_loop
}

bench_commands() {
    echo "== commands"
    echo "bench list: $(fastest 20 "$program" list) ms (goal: at most 40)"
    {
        printf 'title = "Rows"\nquestion = "What does it cost to show many?"\n[workload]\nname = "null"\n'
        printf '[device]\nkind = "fake"\n[measure]\nrounds = 1\nwarmups = 0\nstop = "samples"\nsamples = 1000\n'
        printf '[[sweep]]\nworkload.spin = ['
        seq -f '"%.0f us"' -s ', ' 1 1000
        printf ']\n'
    } >"$work/rows.toml"
    measure rows || return 1
    echo "bench show, 1,000 rows and 10^6 samples: $(fastest 5 "$program" show "$work/rows.h5") ms (goal: at most 300)"
}

# The ceilings and one decode step; with `prefill`, a prefill of 512 tokens too.
speed_protocol() {
    cat <<'TOML'
title = "Speed"
question = "How near do decode and prefill come to what this machine gives?"
[model]
shape = "seed-0.5b"
type = "bf16"
[device]
kind = "cpu"
[measure]
budget = "60 s"
rounds = 5
warmups = 1
min_samples = 3
[[case]]
name = "ceilings"
workload = { name = "ceiling" }
[[case.sweep]]
workload.op = ["read", "fma", "gemm"]
[[case]]
name = "decode"
workload = { name = "decode" }
TOML
    [ "${1-}" != prefill ] || printf '[[case]]\nname = "prefill"\nworkload = { name = "prefill", tokens = 512 }\n'
}

bench_speed() {
    echo "== seed-0.5b bf16 on cpu (goals: decode at 0.70 of the read bandwidth, prefill of 512 at 0.50 of the FMA peak)"
    speed_protocol prefill >"$work/speed.toml"
    measure speed || return 1
    echo "decode: MBU $(value "$work/speed.h5" decode mbu)   prefill of 512: MFU $(value "$work/speed.h5" prefill mfu)"
    cat "$work/speed.txt"
}

bench_weights() {
    echo "== products by type of weights (goals at M = 1: bf16 0.92 of the read bandwidth, int8 0.90, int4 groups of 128 0.80)"
    build/release/tests/bench_weights auto 0
}

bench_load() { # BENCH_LOAD_TYPES: as GGUF has them
    echo "== a model's file to packed weights (goal where types stay as they are: 0.60 of the page cache into new memory)"
    for type in ${BENCH_LOAD_TYPES-F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q4_K Q6_K}; do
        python3 tests/bench/load_files.py "$work" 512 "$type" && build/release/tests/bench_load "$work/$type.gguf" || return 1
        rm -f "$work/$type.gguf"
    done
}

bench_pool() {
    echo "== a job of the cpu device's threads without work (goal: at most 2 us with two idle cores)"
    build/release/tests/bench_pool
}

bench_fair() {
    echo "== one core taken by another process (goal: decode loses no more than that core, and its rows say 'disturbed')"
    speed_protocol >"$work/alone.toml"
    speed_protocol >"$work/beside.toml"
    measure alone || return 1
    taskset -c 0 sh -c 'while :; do :; done' &
    busy=$!
    measure beside || return 1
    kill "$busy"
    busy=
    alone=$(value "$work/alone.h5" decode decode_rate)
    beside=$(value "$work/beside.h5" decode decode_rate)
    awk -v a="$alone" -v b="$beside" -v n="$(nproc)" 'BEGIN {
        printf "decode: %.3g token/s alone, %.3g beside it: %.2f of it kept; %d of %d cores left is %.2f\n",
            a, b, b / a, n - 1, n, (n - 1) / n }'
    echo "flags of that row: $(flags "$work/beside.h5" decode)"
}

bench_cpu() { # BENCH_PEER: a python that has llama.cpp, or PyTorch, or both
    echo "== the cpu device at the limit of the machine; results are kept in build/bench"
    # shellcheck disable=SC2086 # one word, or none
    python3 tests/bench/cpu_limits.py "$program" build/bench ${BENCH_PEER-}
}

bench_gate() { # BENCH_GATE_PARTS, BENCH_GATE_SHARE, BENCH_GATE_MOST: gate_rates.py says what they are
    echo "== how often the gate is wrong; raw files are kept in build/bench/gate"
    # shellcheck disable=SC2086 # words
    python3 tests/bench/gate_rates.py "$program" build/release/tests/bench_gate build/bench/gate ${BENCH_GATE_PARTS-}
}

sh tools/setup.sh tests || exit
status=0
[ $# -gt 0 ] || set -- loop pool commands speed fair
for name; do
    case $name in
    loop) bench_loop || status=1 ;;
    pool) bench_pool || status=1 ;;
    commands) bench_commands || status=1 ;;
    speed) bench_speed || status=1 ;;
    fair) bench_fair || status=1 ;;
    cpu) bench_cpu || status=1 ;;
    weights) bench_weights || status=1 ;;
    load) bench_load || status=1 ;;
    gate) bench_gate || status=1 ;;
    *)
        echo "bench.sh: '$name' is none of loop, pool, commands, speed, fair, cpu, weights, load, gate" >&2
        exit 2
        ;;
    esac
done
exit "$status"
