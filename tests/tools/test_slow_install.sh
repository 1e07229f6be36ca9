#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts under a prefix works from there, without the tree.
set -eu
prefix=$(mktemp -d)/"a prefix"
trap 'rm -rf "${prefix%/*}"' EXIT
cmake --install "$BUILD_DIR" --prefix "$prefix" >/dev/null
cd "${prefix%/*}"
for folder in protocols protocols/models; do
    ls "$prefix/share/bench/$folder/"*.toml >/dev/null || exit 1
done
ls "$prefix/share/bench/plots/"*.gp >/dev/null
grep -q '^\.TH BENCH 1' "$prefix/share/man/man1/bench.1"
"$prefix/bin/bench" list protocols >listed
for file in "$SOURCE_DIR"/protocols/*.toml; do
    name=${file##*/}
    grep -qw "${name%.toml}" listed || { echo "bench list protocols does not name $name"; cat listed; exit 1; }
done
"$prefix/bin/bench" run overhead --quick --device fake -o "$prefix/result.h5" >printed
grep -q . printed
"$prefix/bin/bench" show "$prefix/result.h5" >shown
grep -q null shown
