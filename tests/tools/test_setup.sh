#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/setup.sh among stand-ins of dpkg, apt, sudo, id and cmake: what it installs, as whom, and what it says where it cannot.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
tree="$work/a tree"
bin=$work/bin
failed=0

# A machine with exactly these commands.
mkdir -p "$tree/tools" "$bin"
cp "$SOURCE_DIR/tools/setup.sh" "$tree/tools/"
for command in sh cat rm mkdir mv dirname readlink date grep sed tr tail cut sleep flock env; do
    found=$(command -v "$command") && ln -s "$found" "$bin/$command"
done
stand_in() { # stand_in NAME, its script on standard input
    { echo '#!/bin/sh'; cat; } >"$bin/$1"
    chmod +x "$bin/$1"
}
# shellcheck disable=SC2016 # for the stand-ins to expand
stand_ins() {
    for command in cc c++ ninja gnuplot; do echo 'exit 0' | stand_in "$command"; done
    echo 'echo "${IS_USER:-0}"' | stand_in id
    stand_in dpkg-query <<'SCRIPT'
shift 2
for word; do case $word in libxxhash-dev) ;; *) echo "$word installed" ;; esac; done
SCRIPT
    stand_in apt-get <<'SCRIPT'
echo "apt-get $*" >>"$CALLS"
case "$*" in *update*) : >"$CALLS.updated" ;; *install*) [ -z "${STALE-}" ] || [ -e "$CALLS.updated" ] ;; esac
SCRIPT
    stand_in cmake <<'SCRIPT'
echo "cmake $*" >>"$CALLS"
[ -z "${BROKEN-}" ] || { echo 'error: broken on purpose'; exit 1; }
SCRIPT
}
attempt() { # attempt [VARIABLE=value...] -- WORDS of setup.sh; leaves $status, $said and $called
    rm -rf "$work/calls" "$work/calls.updated" "$tree/build"
    called=
    settings=
    while [ "$1" != -- ]; do settings="$settings $1"; shift; done
    shift
    # shellcheck disable=SC2086 # words
    said=$(env -i PATH="$bin" CALLS="$work/calls" $settings sh "$tree/tools/setup.sh" "$@" 2>&1 </dev/null)
    status=$?
    [ ! -e "$work/calls" ] || called=$(cat "$work/calls")
}
has() { # has WHAT TEXT PIECE
    case $2 in *"$3"*) ;; *) echo "$1: no '$3' in: $2"; failed=1 ;; esac
}
has_not() {
    case $2 in *"$3"*) echo "$1: '$3' in: $2"; failed=1 ;; esac
}
ends() { # ends WHAT STATUS
    [ "$status" = "$2" ] || { echo "$1: status $status, not $2; said: $said"; failed=1; }
}

stand_ins
attempt -- build
ends 'root' 0
has 'root says what' "$said" 'bench: installing libxxhash-dev '
has 'root installs that alone' "$called" 'install --no-install-recommends libxxhash-dev
cmake --preset release'
has 'root builds' "$called" 'cmake --build build/release --target bench'
has_not 'lists are read only when needed' "$called" update

attempt STALE=1 -- build
ends 'stale lists' 0
has 'stale lists are read' "$called" update

attempt -- tests
ends 'tests' 0
has 'tests need Python' "$called" python3
has 'tests are built' "$called" 'cmake --preset release -DBENCH_TESTS=ON
cmake --build build/release --target all'

attempt -- arm64-packages
ends 'arm64' 0
has 'arm64 takes what is absent' "$called" 'install --no-install-recommends gcc-aarch64-linux-gnu qemu-user libxxhash-dev'
has_not 'arm64 builds nothing' "$called" cmake

attempt -- pip
ends 'pip' 0
has 'pip takes what is absent' "$called" 'install --no-install-recommends python3'
has_not 'pip builds nothing' "$called" cmake

attempt BROKEN=1 -- build
ends 'a broken build' 2
has 'its log is shown' "$said" 'broken on purpose'
has 'and named' "$said" build/release/build.log

attempt IS_USER=1000 -- build
ends 'a user without sudo' 2
has 'is told the command' "$said" 'as root: apt-get install libxxhash-dev'
has_not 'and nothing is tried' "$called" apt-get

# shellcheck disable=SC2016 # for the stand-in to expand
printf 'echo "sudo $*" >>"$CALLS"\nexec env "$@"\n' | stand_in sudo
sed -i 's/exec env/[ "$1" = -n ] \&\& shift\nexec env/' "$bin/sudo"
echo exit 0 | stand_in true
attempt IS_USER=1000 -- build
ends 'a user with sudo' 0
has 'sudo installs' "$called" 'sudo DEBIAN_FRONTEND=noninteractive apt-get'

rm "$bin/apt-get" "$bin/dpkg-query" "$bin/ninja"
attempt -- build
ends 'another system' 2
has 'gets the names' "$said" 'ninja-build'
echo 'exit 0' | stand_in ninja
attempt -- build
ends 'another system where all is there' 0
attempt BROKEN=1 -- build
ends 'another system where something lacks' 2
has 'gets all names' "$said" libhdf5-dev

# Where the program exists meanwhile, as when two start at once, nothing is done.
stand_ins
attempt -- build
mkdir -p "$tree/build/release" && echo exit 0 >"$tree/build/release/bench" && chmod +x "$tree/build/release/bench"
rm -f "$work/calls"
env -i PATH="$bin" CALLS="$work/calls" sh "$tree/tools/setup.sh" build-if-absent || { echo 'build-if-absent failed'; failed=1; }
[ ! -e "$work/calls" ] || { echo 'build-if-absent built what was there'; failed=1; }
exit "$failed"
