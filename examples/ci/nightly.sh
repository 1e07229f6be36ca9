#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A nightly history: measures a protocol, keeps the result, and says where a row has changed its level for good.
#
#   nightly.sh FOLDER [PROTOCOL [WORDS...]]
#     FOLDER    where results are kept from night to night (a cache, a volume, a branch): one file a night
#     PROTOCOL  default ci_gate
#     WORDS     further words for bench run, as --device cuda
#
# Ends with 3 if the run was incomplete, else with what bench history says: 1 if a row stepped and nobody accepted it
# (bench history --help), 0 otherwise. BENCH: the program, default ./bench.
set -eu
folder=${1:?where are the results kept?}
protocol=${2:-ci_gate}
shift
[ $# -lt 1 ] || shift
bench=${BENCH:-./bench}
mkdir -p "$folder"
"$bench" run "$protocol" -o "$folder/$(date -u +%Y%m%d-%H%M%S).h5" --no-plot --quiet "$@"
exec "$bench" history "$folder"
