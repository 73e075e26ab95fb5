#!/bin/sh
# Builds the probes and runs them: on a phone or board by adb, or on this machine. Writes JSON files.
#
#   ./probe.sh --adb --out my-phone          # needs adb, and NDK or CC as a compiler for the phone
#   ./probe.sh --out this-machine            # on this machine
#
# writes OUT/cpu.json, and OUT/gpu.json if OpenCL is found (on this machine with CUDA if nvcc is found). Then
#
#   haversack calibrate probe my-phone/cpu.json my-phone/gpu.json --as my-phone --base galaxy-s22
#
# NDK names the folder of Android's NDK; SERIAL selects one of several phones.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
out=probe-out
adb=no
quick=
usage() {
    echo "usage: $0 [--adb] [--quick] [--out DIR]" >&2
    exit 2
}
while [ $# -gt 0 ]; do
    case $1 in
        --adb) adb=yes ;;
        --quick) quick=--quick ;;
        --out) [ $# -gt 1 ] || usage; out=$2; shift ;;
        *) echo "error: $1: expected --adb, --quick or --out DIR" >&2; usage ;;
    esac
    shift
done
mkdir -p "$out"
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT

# keep FILE COMMAND: keeps the output of the command as a file only if it succeeded.
keep() {
    name=$1
    shift
    if "$@" > "$build/$name"; then
        mv "$build/$name" "$out/$name"
        echo "wrote $out/$name" >&2
    else
        echo "note: no $out/$name (see above)" >&2
        return 1
    fi
}

# busy LOAD CORES: warns that other programs slow the measurements down.
busy() {
    awk -v load="$1" -v cores="$2" 'BEGIN { exit !(load > 0.3 * cores + 0.2) }' || return 0
    echo "warning: $1 programs run on $2 cores already; what is measured will be too slow: end them and run again" >&2
}

if [ $adb = no ]; then
    [ -r /proc/loadavg ] && busy "$(cut -d ' ' -f 1 /proc/loadavg)" "$(getconf _NPROCESSORS_ONLN)"
    ${CC:-cc} -O2 "$here/probe.c" -o "$build/probe" -lpthread -lm
    keep cpu.json "$build/probe" $quick --folder "$out"
    if command -v nvcc > /dev/null && nvcc -O2 -arch=native "$here/probe.cu" -o "$build/probe_cuda"; then
        keep gpu.json "$build/probe_cuda" $quick && exit 0
    fi
    ${CC:-cc} -O2 "$here/probe_opencl.c" -o "$build/probe_opencl" -ldl
    keep gpu.json "$build/probe_opencl" $quick || true
    exit 0
fi

command -v adb > /dev/null || { echo "error: no adb on PATH: install Android's platform tools" >&2; exit 1; }
device() { adb ${SERIAL:+-s "$SERIAL"} "$@"; }
if [ -n "${NDK:-}" ]; then
    CC=$(ls "$NDK"/toolchains/llvm/prebuilt/*/bin/aarch64-linux-android2[4-9]-clang 2> /dev/null | head -n 1)
    [ -n "$CC" ] || { echo "error: NDK=$NDK has no toolchains/llvm/prebuilt/*/bin/aarch64-linux-android24-clang" >&2; exit 1; }
fi
[ -n "${CC:-}" ] || { echo "error: set NDK to the folder of Android's NDK, or CC to a compiler for the phone" >&2; exit 1; }

# Dot-product instructions only if all of its cores have them.
march=armv8-a
device shell cat /proc/cpuinfo | grep -q asimddp && march=armv8.2-a+dotprod
# shellcheck disable=SC2086
"$CC" -O2 -march=$march "$here/probe.c" -o "$build/probe" -lm
# shellcheck disable=SC2086
"$CC" -O2 -march=$march "$here/probe_opencl.c" -o "$build/probe_opencl" -ldl
folder=/data/local/tmp/haversack-probe
device shell mkdir -p $folder
device push "$build/probe" "$build/probe_opencl" $folder > /dev/null
device shell chmod 755 $folder/probe $folder/probe_opencl
# The probe moves itself from cluster to cluster; taskset lets it use all cores if the shell is limited to the little ones.
device shell "command -v taskset > /dev/null" && taskset="taskset ff" || taskset=
keep cpu.json device shell "$taskset $folder/probe $quick --folder $folder" || true
# Vendors' drivers are outside the linker's paths.
keep gpu.json device shell "LD_LIBRARY_PATH=/vendor/lib64:/system/vendor/lib64 $folder/probe_opencl $quick" || true
device shell rm -r $folder
[ -s "$out/cpu.json" ]
