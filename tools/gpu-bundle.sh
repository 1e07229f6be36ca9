#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes bundle/ and bundle.tar.xz: all that tools/gpu-check.sh needs on a machine with a GPU and a driver, and nothing else. Built here, where there need
# be no GPU: bench with the cuda device, its op tests, the small programs of tests/cuda/gpu, the protocols, and the libraries
# that these load (not the C library: the machine's own must be as new as this one's).
set -eu
root=$(cd -- "$(dirname -- "$0")/.." && pwd -P)
cd "$root"
out=$root/bundle
build=$root/build/bundle

tools/setup.sh toolkit
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBENCH_CUDA=on -DBENCH_TESTS=ON >&2
cmake --build "$build" --target bench test_ops_dense test_ops_cache test_ops_select test_ops_pack test_ops_self >&2
rm -rf "$out.part"
mkdir -p "$out.part/bin" "$out.part/lib" "$out.part/share"

cp "$build/bench" "$out.part/bin/"
for test in ops_dense ops_cache ops_select ops_pack ops_self; do
    cp "$build/tests/test_$test" "$out.part/bin/"
done
nvcc=$(sed -n 's/^BENCH_NVCC:[^=]*=//p' "$build/CMakeCache.txt")
for program in constants primitives; do
    "$nvcc" -std=c++17 -O2 -I. -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 \
        -gencode arch=compute_90,code=compute_90 -o "$out.part/bin/gpu_$program" "tests/cuda/gpu/$program.cu"
done
strip -g "$out.part"/bin/*

# What the programs load, less what every system has.
for program in "$out.part"/bin/*; do ldd "$program"; done | awk '$2 == "=>" && $3 ~ "^/" {print $3}' | sort -u |
    grep -v -E '/(libc|libm|libdl|librt|libpthread|libresolv|ld-linux[^/]*)\.so' | while read -r library; do
    cp -L "$library" "$out.part/lib/"
done

cp -r protocols "$out.part/share/"
cp tests/cuda/gpu/speed.toml tests/cuda/gpu/peer_torch.py tests/golden/frag_maps.tsv "$out.part/share/"
cp tools/gpu-check.sh "$out.part/"
git describe --always --dirty >"$out.part/version" 2>/dev/null || echo unknown >"$out.part/version"

# One archive: the programs have the same kernels within, which only a wide window of xz sees.
rm -rf "$out"
mv "$out.part" "$out"
tar --sort=name -C "$root" -cf - bundle | xz -T1 -6 --lzma2=preset=6,dict=128MiB >"$out.tar.xz.part"
bytes=$(wc -c <"$out.tar.xz.part")
[ "$bytes" -le 41943040 ] || { echo "bench: the bundle has $bytes bytes, more than 40 MiB" >&2; exit 2; }
mv "$out.tar.xz.part" "$out.tar.xz"
echo "bundle.tar.xz: $bytes bytes; on the other machine: tar xf bundle.tar.xz; sh bundle/gpu-check.sh 1 OUT, then 2 OUT" >&2
