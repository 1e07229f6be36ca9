#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `bench doctor` and `bench list probes` on this machine, whatever it is: exit codes, width, formats.
set -u
[ -n "${BENCH:-}" ] || { echo "SKIPPED: no program was built"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() { echo "FAILED: $*"; failed=1; }

"$BENCH" doctor >"$work/text" 2>"$work/err" || fail "doctor: exit $?"
[ -s "$work/err" ] && fail "doctor says something on stderr: $(cat "$work/err")"
head -1 "$work/text" | grep -q "^What disturbs measuring here" || fail "no heading"
for line in turbo governor SMT load steal quota 'huge pages' memory NUMA timer ASLR thermal build lock GPU; do
    grep -q "^  $line " "$work/text" || fail "no line '$line'"
done
[ "$(LC_ALL=C.UTF-8 wc -L <"$work/text")" -le 100 ] || fail "beyond 100 columns"
# What is unknown is not called well.
grep -E '^  [a-zA-Z ]+ unknown +ok' "$work/text" && fail "unknown, yet ok"

"$BENCH" doctor --format tsv >"$work/tsv" || fail "tsv: exit $?"
awk -F'\t' 'NF != 5 { print "cells: " NF; bad = 1 } END { exit bad || NR < 15 }' "$work/tsv" || fail "tsv: not 5 columns"
head -1 "$work/tsv" | grep -q "^name	state	what it is	matters	mend$" || fail "tsv: heading"

"$BENCH" doctor --format yaml >"$work/out" 2>"$work/err"
[ $? -eq 2 ] || fail "an unknown format is not exit 2"
grep -q "'yaml' is no format; text, tsv, json" "$work/err" || fail "no sentence about the format"
[ -s "$work/out" ] && fail "data in spite of a mistake"
"$BENCH" doctor please >/dev/null 2>"$work/err"
[ $? -eq 2 ] || fail "a word is not exit 2"

"$BENCH" list probes --format tsv >"$work/probes" || fail "list probes: exit $?"
for probe in allocator clocks machine nvtx perf process rapl; do
    grep -q "^$probe	" "$work/probes" || fail "no probe '$probe'"
done
# Each works, or says why not.
awk -F'\t' 'NR > 1 && $3 != "works" && ($3 != "unavailable" || $4 !~ /; unavailable: .../) { print; bad = 1 }
            END { exit bad }' "$work/probes" || fail "a probe without a reason"
exit "$failed"
