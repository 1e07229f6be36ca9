#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ./bench on a tree of stand-ins: words, status and folder pass through; what it says about newer sources; its cost.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
tree="$work/a tree"
failed=0
expect() { # expect WHAT WANTED FOUND
    [ "$2" = "$3" ] || { echo "$1: wanted '$2', found '$3'"; failed=1; }
}

mkdir -p "$tree/build/release" "$tree/tools" "$work/else where"
for folder in base kernels workloads probes results plots harness; do
    mkdir "$tree/$folder"
    touch -d '2020-01-01' "$tree/$folder/a.c"
done
touch -d '2020-01-01' "$tree/CMakeLists.txt"
cp "$SOURCE_DIR/bench" "$tree/bench"
cat >"$tree/build/release/bench" <<'STAND_IN'
#!/bin/sh
for word; do printf '[%s]' "$word"; done
pwd
exit 5
STAND_IN
chmod +x "$tree/build/release/bench"
cat >"$tree/tools/setup.sh" <<'STAND_IN'
echo "setup $*" >&2
exit 2
STAND_IN

cd "$work/else where" || exit 1
out=$("$tree/bench" run 'a b' '' '*' 2>"$work/err")
expect 'status' 5 $?
expect 'words and folder' "[run][a b][][*]$work/else where" "$out"
expect 'nothing to say' '' "$(cat "$work/err")"

ln -s "$tree/bench" "$work/link"
expect 'through a link' "[x]$work/else where" "$("$work/link" x)"
expect 'by its name alone' "[x]$tree" "$(cd "$tree" && sh bench x)"

touch "$tree/build/release/bench" && touch -d '+1 minute' "$tree/results/a.c"
expect 'newer sources' 'bench: sources are newer than build/release/bench; ./bench --build rebuilds' \
    "$("$tree/bench" x 2>&1 >/dev/null)"
touch -d '+2 minutes' "$tree/build/release/built"
expect 'newer, but built since' '' "$("$tree/bench" x 2>&1 >/dev/null)"

expect '--build' 'setup build' "$("$tree/bench" --build 2>&1)"
"$tree/bench" --build >/dev/null 2>&1
expect '--build that fails' 2 $?
rm "$tree/build/release/bench"
expect 'no program' 'setup build-if-absent' "$("$tree/bench" list 2>&1)"
"$tree/bench" list >/dev/null 2>&1
expect 'no program and no build' 2 $?

# Its own cost: the quickest of twenty, with a program that does nothing, against that program alone.
printf '#!/bin/sh\n' >"$tree/build/release/bench" && chmod +x "$tree/build/release/bench"
quickest() {
    least=999999999
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        begin=$(date +%s%N)
        "$@"
        took=$(($(date +%s%N) - begin))
        [ "$took" -ge "$least" ] || least=$took
    done
    echo "$least"
}
cost=$(($(quickest "$tree/bench") - $(quickest "$tree/build/release/bench")))
echo "the launcher costs $((cost / 1000)) us"
[ "$cost" -le 20000000 ] || { echo "that is more than 20 ms"; failed=1; }
exit "$failed"
