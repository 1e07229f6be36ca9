#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A nightly history: measures this program and a kept one, the anchor, in turns; keeps the result; says where a row has changed its
# level for good. Against an anchor what the machine itself does from night to night cancels.
#
#   nightly.sh FOLDER [PROTOCOL [WORDS...]]
#     FOLDER    where results are kept from night to night (a cache, a volume, a branch): one file a night, and the program `anchor`,
#               which the first night leaves there. Without it (removed, to begin anew) this night's program becomes the anchor
#     PROTOCOL  default ci_gate
#     WORDS     further words for bench ab, as --device cuda
#
# Ends with 3 if the measurement was incomplete, else with what bench history says: 1 if a row stepped and nobody accepted it
# (bench history --help), 0 otherwise. BENCH: the program, default build/release/bench.
set -eu
folder=${1:?where are the results kept?}
protocol=${2:-ci_gate}
shift
[ $# -lt 1 ] || shift
bench=${BENCH:-build/release/bench}
mkdir -p "$folder"
if [ ! -e "$folder/anchor" ]; then
    cp "$bench" "$folder/anchor.part"
    mv "$folder/anchor.part" "$folder/anchor"
fi
code=0
"$bench" ab "$protocol" --a-bin "$folder/anchor" -o "$folder/$(date -u +%Y%m%d-%H%M%S).h5" --quiet "$@" || code=$?
case $code in
    0 | 1 | 5) exec "$bench" history "$folder" ;; # slower than the anchor is no news: a new step is
    *) exit "$code" ;;
esac
