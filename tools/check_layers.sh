#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Includes point down only: a file of a folder may include from the folders named after it here, and itself.
set -u
cd "$(dirname "$0")/.." || exit 1
find base kernels workloads probes results plots harness -name '*.[ch]' -o -name '*.cpp' -o -name '*.cu' | sort |
    xargs awk '
    BEGIN {
        may["base"] = "base"
        may["kernels"] = "base kernels"
        may["results"] = "base results"
        may["plots"] = "base results plots"
        may["probes"] = "base kernels results probes"
        may["workloads"] = "base kernels workloads"
        may["harness"] = "base kernels workloads probes results plots harness gen"
    }
    /^[ \t]*#[ \t]*include[ \t]*"/ {
        split(FILENAME, from, "/")
        split($0, quoted, "\"")
        target = quoted[2]
        includes++
        if (split(target, to, "/") < 2) {
            printf "%s:%d: \"%s\" is not a path from the root\n", FILENAME, FNR, target
            bad++
        } else if (index(" " may[from[1]] " ", " " to[1] " ") == 0) {
            printf "%s:%d: %s/ may not include \"%s\"\n", FILENAME, FNR, from[1], target
            bad++
        } else if (target ~ /toml\+\+/ && FILENAME != "harness/toml.cpp") {
            printf "%s:%d: toml++ belongs to harness/toml.cpp\n", FILENAME, FNR
            bad++
        }
    }
    /^[ \t]*#[ \t]*include[ \t]*<hdf5/ && FILENAME !~ /^results\/store_/ {
        printf "%s:%d: hdf5.h belongs to results/store_*.c\n", FILENAME, FNR
        bad++
    }
    END { printf "%d includes, %d wrong\n", includes, bad; exit bad > 0 || includes == 0 }'
