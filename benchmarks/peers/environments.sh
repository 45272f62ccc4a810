#!/bin/sh
# An environment for each peer under build/peers, with the versions in constraints/. A peer that cannot be installed is
# skipped: the comparison then says "not installed". torch comes first, so that the build without CUDA satisfies what needs it.
here=$(dirname "$0")
python=${PYTHON:-python3}

environment() {
    name=$1
    shift
    [ -e "build/peers/$name/.installed" ] && return
    constraints="$here/constraints/$name.txt"
    [ -e "$constraints" ] || constraints=
    "$python" -m venv "build/peers/$name" || return
    for package in "$@"; do
        "build/peers/$name/bin/python" -m pip install --quiet --disable-pip-version-check \
            ${constraints:+-c "$constraints"} "$package" || { echo "$name: $package could not be installed"; return; }
    done
    touch "build/peers/$name/.installed"
}

environment smartnoise torch smartnoise-synth
environment dpmm torch dpmm
environment datasynthesizer DataSynthesizer
environment opendp 'opendp[polars,mbi]' pandas
environment anonypyx anonypyx
environment sdmetrics sdmetrics
