#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles every header alone, and twice in one file: check_headers.sh COMPILER [flags...]
set -u
cd "$(dirname "$0")/.." || exit 1
compiler=$1
shift
failed=0
count=0
# Where no CUDA toolkit is installed, the headers that speak its runtime's types are left out.
cuda=yes
printf '#include <cuda_runtime_api.h>\n' | "$compiler" "$@" -fsyntax-only -x c - 2>/dev/null || cuda=no
for header in base/*.h kernels/*.h kernels/*/*.h workloads/*.h workloads/*/*.h probes/*.h probes/*/*.h \
              results/*.h plots/*.h harness/*.h tests/*/*.h; do
    [ -e "$header" ] || continue
    case $cuda:$header in
    no:kernels/cuda/cuda.h | no:kernels/cuda/engine.h | no:kernels/cuda/launches.h | no:kernels/cuda/lt.h) continue ;;
    esac
    count=$((count + 1))
    printf '#include "%s"\n#include "%s"\ntypedef int one_declaration;\n' "$header" "$header" |
        "$compiler" -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion \
            -Wstrict-prototypes -Werror -I. "$@" -fsyntax-only -x c - || {
        echo "$header does not compile alone"
        failed=$((failed + 1))
    }
done
echo "$count headers, $failed failed"
[ "$count" -gt 0 ] && [ "$failed" -eq 0 ]
