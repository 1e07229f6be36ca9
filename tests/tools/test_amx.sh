#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Level amx, which few machines can run: the program holds its instructions.
set -u
command -v objdump >/dev/null || { echo 'SKIPPED: objdump is missing'; exit 77; }
nm "$BENCH" | grep -q ' cpu_kernels_amx$' || { echo 'SKIPPED: this build has no level amx'; exit 77; }
code=$(objdump -d --no-show-raw-insn "$BENCH") || exit 1
failed=0
for word in ldtilecfg tilerelease tilezero tileloadd tilestored tdpbf16ps tdpbssd; do
    echo "$code" | grep -q "[[:space:]]$word" || { echo "no $word in $BENCH"; failed=1; }
done
exit "$failed"
