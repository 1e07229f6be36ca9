#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Format and clang-tidy (the tree's own rules are tests): lint.sh [BUILD_FOLDER with compile_commands.json] (default build/release)
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:-build/release}
failed=0
folders="base kernels workloads probes results plots harness tests"

for tool in clang-format clang-tidy; do
    command -v "$tool" >/dev/null || { echo "lint: $tool is missing (package $tool)" >&2; exit 2; }
done
# Headers are tables of declarations and comments, aligned by hand.
echo "lint: format"
# shellcheck disable=SC2086 # words
find $folders \( -name '*.c' -o -name '*.cpp' \) -print0 | xargs -0 clang-format --dry-run -Werror || failed=1
echo "lint: clang-tidy"
# shellcheck disable=SC2086 # words
find ${folders% tests} -name '*.c' ! -path '*/cpu/neon/*' -print0 |
    xargs -0 -n 4 -P "$(nproc)" clang-tidy --quiet -p "$build" 2>/dev/null || failed=1
if [ -d /usr/aarch64-linux-gnu/include ]; then
    clang-tidy --quiet kernels/cpu/neon/*.c -- --target=aarch64-linux-gnu -march=armv8.2-a+dotprod -std=gnu17 -D_GNU_SOURCE -I. -Wall -Wextra \
        -Wshadow -Wconversion -Wno-sign-conversion 2>/dev/null || failed=1
else
    echo "lint: kernels/cpu/neon is left out: its headers are missing (tools/setup.sh arm64-packages)"
fi
[ "$failed" -eq 0 ] && echo "lint: nothing to say"
exit "$failed"
