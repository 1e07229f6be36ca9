#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gpu-check.sh without a GPU: every step of both runs says SKIP with a reason, and it ends with 0.
set -u
[ -n "${BENCH:-}" ] || { echo "skipped: no bench was built" >&2; exit 77; }
if "$BENCH" list devices --format tsv | awk -F '\t' '$1 == "cuda" && $2 !~ /not built|unavailable/ {found = 1} END {exit !found}'; then
    echo "skipped: there is a GPU here" >&2
    exit 77
fi
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/bundle/bin" "$folder/bundle/lib" "$folder/bundle/share"
ln -s "$BENCH" "$folder/bundle/bin/bench"
ln -s "$SOURCE_DIR/protocols" "$folder/bundle/share/protocols"
cp "$SOURCE_DIR/tools/gpu-check.sh" "$folder/bundle/"
echo test >"$folder/bundle/version"
for run in 1 2; do
    sh "$folder/bundle/gpu-check.sh" "$run" "$folder/out" >"$folder/words" || { cat "$folder/words"; exit 1; }
done
cat "$folder/out/steps.tsv"
lines=$(wc -l <"$folder/out/steps.tsv")
skipped=$(awk -F '\t' '$2 == "SKIP" && $4 != ""' "$folder/out/steps.tsv" | wc -l)
[ "$lines" -ge 12 ] && [ "$lines" -eq "$skipped" ]
