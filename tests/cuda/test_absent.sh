#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Where there is no GPU the device says why, in one sentence: on this machine, and on those the emulated runtime plays.
set -u
failed=0
list=$("$BENCH" list devices | tr -s ' \n' ' ')

says() { # says WORDS SENTENCE
    case $1 in
    *"$2"*) ;;
    *)
        echo "expected '$2' in: $1"
        failed=1
        ;;
    esac
}

case $list in
*"cuda not built"*) says "$list" "cuda not built " ;;
*) [ -e /dev/nvidiactl ] || says "$list" "unavailable: cuda: no driver on this machine" ;;
esac
case $list in
*cuda-emu*) ;;
*)
    echo "no cuda-emu in this build"
    exit $failed
    ;;
esac
for row in "none:no driver on this machine" "old:the driver is too old: it runs CUDA 11.8" \
    "stub:only the stub libcuda was found" "nodevice:a driver, but no device"; do
    says "$(SIMT_DRIVER=${row%%:*} "$BENCH" list devices | tr -s ' \n' ' ')" "unavailable: cuda-emu: ${row#*:}"
done

# Too little memory is a row's state, not the run's end.
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/models" && cp "$SOURCE_DIR/protocols/models/tiny.toml" "$folder/models" || exit 1
cat >"$folder/small.toml" <<END
title = "Small"
[workload]
name = "decode"
context = 8
[model]
shape = "tiny"
[measure]
warmups = 1
END
SIMT_MEMORY=200000 BENCH_DATA=$folder "$BENCH" run "$folder/small.toml" --device cuda-emu --quick \
    >"$folder/out" 2>&1
says "$(tr -s ' \n' ' ' <"$folder/out")" " oom · "
exit $failed
