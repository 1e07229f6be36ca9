#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What ./bench, ./test and .ci/run share: installs what is missing (apt; says what, asks nothing) and builds a preset.
#   setup.sh build            the program (release)        setup.sh build-if-absent   only where there is none
#   setup.sh tests            the program and its tests    setup.sh ci-packages       only installs, for .ci/run
#   setup.sh python-peers     brings PyTorch and transformers by pip into build/peers (3 GB), for golden/slow_peers
#   setup.sh pip              only installs python3 with pip, for ./bench model
#   setup.sh arm64-packages  what the preset arm64 needs: Debian's cross compiler and qemu
#   setup.sh preset NAME [TARGET]   builds another preset, for .ci/run
#   setup.sh toolkit         where no CUDA toolkit is installed, brings nvcc and headers by pip into build/toolkit
# All words go to stderr. Exit 2: something is missing that this script may not or cannot install, or the build failed.
set -u
umask 022
root=$(cd -- "$(dirname -- "$0")/.." && pwd -P) || exit 2
cd "$root" || exit 2

# command:package, or a package that is asked of dpkg
for_build="${CC:-cc}:gcc ${CXX:-c++}:g++ cmake:cmake ninja:ninja-build gnuplot:gnuplot-nox libc6-dev
    libhdf5-dev libcjson-dev libhwloc-dev libxxhash-dev libtomlplusplus-dev
    libpcre2-dev libunistring-dev"
for_tests="libcmocka-dev python3:python3 python3-numpy python3-h5py"
for_ci="clang:clang clang-format:clang-format clang-tidy:clang-tidy shellcheck:shellcheck libclang-rt-dev python3-pandas"

for_arm64="cmake:cmake ninja:ninja-build aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-aarch64:qemu-user
    libxxhash-dev"

say() { echo "bench: $*" >&2; }
fail() { say "$*"; exit 2; }

# Prints the packages among the words given that are absent here. Without dpkg only commands can be asked for.
missing() {
    packages=
    for word; do
        case $word in
        *:*) command -v "${word%%:*}" >/dev/null 2>&1 || echo "${word#*:}" ;;
        *) packages="$packages $word" ;;
        esac
    done
    command -v dpkg-query >/dev/null 2>&1 || return 0
    # shellcheck disable=SC2086,SC2016 # words; and the format is dpkg-query's
    have=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $packages 2>/dev/null)
    for word in $packages; do
        echo "$have" | grep -qx "$word installed" || echo "$word"
    done
}

apt() {
    if [ "$(id -u)" = 0 ]; then
        DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 "$@"
    else
        sudo DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 "$@"
    fi </dev/null >>"$log" 2>&1
}

install() {
    absent=$(missing "$@" | tr '\n' ' ')
    [ -n "$absent" ] || return 0
    command -v apt-get >/dev/null 2>&1 ||
        fail "this system has no apt-get; install what Debian calls: $absent"
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null 2>&1 && { sudo -n true 2>/dev/null || [ -t 0 ]; } ||
            fail "packages are missing and this user may not install them; as root: apt-get install $absent"
    fi
    say "installing $absent"
    log=$root/build/packages.log
    : >"$log" || exit 2
    # shellcheck disable=SC2086 # words
    set -- install --no-install-recommends $absent
    # Lists that are absent or out of date show in the first try only.
    apt "$@" || { apt update && apt "$@"; } || {
        tail -n 15 "$log" >&2
        fail "apt-get install failed (build/packages.log); needed: $absent"
    }
}

# Runs a command into $log; on a terminal the last line of the log is shown meanwhile.
logged() {
    "$@" >>"$log" 2>&1 9>&- &
    job=$!
    trap 'kill "$job" 2>/dev/null' INT TERM HUP
    if [ -t 2 ]; then
        while kill -0 "$job" 2>/dev/null; do
            printf '\r\033[K%s' "$(tail -n 1 "$log" | cut -c 1-70)" >&2
            sleep 0.3
        done
        printf '\r\033[K' >&2
    fi
    wait "$job"
    status=$?
    trap - INT TERM HUP
    return "$status"
}

# build PRESET TARGET [CMake options]
build() {
    preset=$1
    target=$2
    shift 2
    folder=build/$preset
    log=$root/$folder/build.log
    began=$(date +%s)
    # A tree that was moved cannot go on with CMake's notes of its old place.
    if [ -e "$folder/CMakeCache.txt" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$folder/CMakeCache.txt"; then
        rm -rf "$folder"
    fi
    mkdir -p "$folder" && : >"$log" && : >"$folder/began" || fail "cannot write to $root/$folder"
    say "building $folder"
    logged cmake --preset "$preset" "$@" && logged cmake --build "$folder" --target "$target" || {
        # From the first failed file on; a failed configuration says it at its end.
        if grep -q '^FAILED: ' "$log"; then sed -n '/^FAILED: /,$p' "$log" | head -n 30; else tail -n 30 "$log"; fi >&2
        command -v dpkg-query >/dev/null 2>&1 ||
            say "needed, by Debian's names: $(echo "$for_build" | sed 's/[^ ]*://g' | tr -s '\n ' ' ')"
        fail "the build failed; all of it is in $folder/build.log"
    }
    mv -f "$folder/began" "$folder/built"
    say "built $folder in $(($(date +%s) - began)) s"
}

# An installed toolkit, as kernels/cuda/CMakeLists.txt looks for it.
has_toolkit() {
    for folder in "${CUDA_HOME-}" "${CUDA_PATH-}" build/toolkit /usr/local/cuda; do
        [ -n "$folder" ] && [ -x "$folder/bin/nvcc" ] && [ -e "$folder/include/cuda_runtime_api.h" ] && return 0
    done
    command -v nvcc >/dev/null 2>&1
}

# The parts of CUDA 13.0 that compile and link, a fortieth of the whole. cuBLASLt stays with whoever installs it.
toolkit() {
    has_toolkit && return 0
    python3 -m pip --version >/dev/null 2>&1 || install python3 python3-pip
    log=$root/build/toolkit.log
    new=build/toolkit.new
    rm -rf "$new" && mkdir -p "$new" && : >"$log" || fail "cannot write to $root/build"
    say "bringing nvcc 13.0 into build/toolkit (100 MB)"
    logged python3 -m pip download --no-deps --only-binary :all: --disable-pip-version-check -d "$new/wheels" \
        nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-runtime==13.0.96 || {
        tail -n 5 "$log" >&2
        fail "pip could not bring the CUDA toolkit (build/toolkit.log); install one of version 13.0, or set CUDA_HOME"
    }
    for wheel in "$new"/wheels/*.whl; do
        python3 -m zipfile -e "$wheel" "$new" || fail "cannot unpack $wheel"
    done
    chmod +x "$new"/nvidia/cu13/bin/* "$new"/nvidia/cu13/nvvm/bin/* || exit 2
    rm -rf build/toolkit && mv "$new/nvidia/cu13" build/toolkit && rm -rf "$new" || exit 2
}

# What golden/tokenizer_peer holds ids against (4 MB); the test is skipped without it.
tokenizers() {
    [ ! -e build/tokenizers/tokenizers/__init__.py ] || return 0
    python3 -m pip --version >/dev/null 2>&1 || install python3 python3-pip
    log=$root/build/tokenizers.log
    : >"$log" && rm -rf build/tokenizers.new || fail "cannot write to $root/build"
    say "bringing the Python package tokenizers into build/tokenizers (4 MB)"
    # For the interpreter that runs the tests: tests/CMakeLists.txt asks for this one first.
    python=/usr/bin/python3
    [ -x "$python" ] || python=python3
    logged "$python" -m pip install --no-deps --only-binary :all: --disable-pip-version-check --target build/tokenizers.new \
        tokenizers==0.22.1 || {
        tail -n 5 "$log" >&2
        fail "pip could not bring tokenizers (build/tokenizers.log)"
    }
    rm -rf build/tokenizers && mv build/tokenizers.new build/tokenizers || exit 2
}

# What our logits are held against. Nothing here needs it; tests that would use it are skipped without it.
python_peers() {
    [ ! -x build/peers/bin/python ] || return 0
    python3 -c 'import ensurepip, venv' 2>/dev/null || install python3 python3-venv
    log=$root/build/peers.log
    : >"$log" && rm -rf build/peers.new || fail "cannot write to $root/build"
    say "bringing PyTorch and transformers into build/peers (about 3 GB)"
    logged python3 -m venv build/peers.new && logged build/peers.new/bin/python -m pip install --disable-pip-version-check \
        numpy torch transformers safetensors gguf tokenizers || {
        tail -n 5 "$log" >&2
        rm -rf build/peers.new
        fail "pip could not bring them (build/peers.log)"
    }
    mv build/peers.new build/peers
}

# A GPU without a toolkit: the program is worth having without it too.
toolkit_for_gpu() {
    [ -e /dev/nvidiactl ] || return 0
    (toolkit) || say "going on without the cuda device"
}

mkdir -p build 2>/dev/null && [ -w build ] || fail "cannot write to $root/build (whose is it?)"
# Two at a time would trip over each other: the second waits, and may then find its work done.
if command -v flock >/dev/null 2>&1; then
    exec 9>build/lock || exit 2
    flock -n 9 || { say "another build is running here; waiting for it"; flock 9; }
fi

# shellcheck disable=SC2086 # lists of words
case ${1-} in
build)
    install $for_build
    toolkit_for_gpu
    build release bench
    ;;
build-if-absent)
    [ ! -x build/release/bench ] || exit 0
    install $for_build
    toolkit_for_gpu
    build release bench
    ;;
tests)
    install $for_build $for_tests
    (tokenizers) || say "going on without it"
    build release all -DBENCH_TESTS=ON
    ;;
ci-packages)
    install $for_build $for_tests $for_ci
    ;;
python-peers)
    python_peers
    ;;
pip)
    install python3:python3 python3-pip
    ;;
arm64-packages)
    install $for_arm64
    ;;
toolkit)
    toolkit
    ;;
preset)
    build "$2" "${3:-all}"
    ;;
*) fail "setup.sh build | build-if-absent | tests | ci-packages | pip | arm64-packages | toolkit | python-peers | preset NAME [TARGET]" ;;
esac
