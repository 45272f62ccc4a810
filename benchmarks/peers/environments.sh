#!/bin/sh
# An environment for each peer under build/peers, with the versions in constraints/. A peer that cannot be installed is
# skipped: the comparison then says "not installed". torch comes first, so that the build without CUDA satisfies what needs it.
# environments.sh NAME ... builds those alone.
here=$(dirname "$0")
python=${PYTHON:-python3}
only=${*:-}
# A Python by its name: one that answers, if need be below pyenv's versions, whose shims are there even where they fail.
named() {
    for found in "$1" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"${1#python}".*/bin/"$1"; do
        "$found" -c '' 2>/dev/null && { echo "$found"; return; }
    done
}
wanted() { case " ${only:-$1} " in *" $1 "*) ;; *) return 1 ;; esac }

# Peers that are on no package index are read from the folder PEERS by their runners; here is what they need. Some want a Python
# of their own (pyenv's or the system's); where it is missing the peer is reported as not installed.
environment() {
    name=$1
    shift
    wanted "$name" || return
    other=$python
    case $1 in python=*) other=$(named "${1#python=}"); shift ;; esac
    [ -n "$other" ] || { echo "$name: no such Python"; return; }
    [ -e "build/peers/$name/.installed" ] && return
    constraints="$here/constraints/$name.txt"
    [ -e "$constraints" ] || constraints=
    "$other" -m venv "build/peers/$name" || return
    for package in "$@"; do
        "build/peers/$name/bin/python" -m pip install --quiet --disable-pip-version-check \
            ${constraints:+-c "$constraints"} "$package" || { echo "$name: $package could not be installed"; return; }
    done
    touch "build/peers/$name/.installed"
}

# Exactly the versions in constraints/, whatever their makers ask for: what these need and what they use are not the same.
frozen() {
    wanted "$1" || return
    other=$(named "$2")
    [ -n "$other" ] || { echo "$1: no such Python"; return; }
    [ -e "build/peers/$1/.installed" ] && return
    "$other" -m venv "build/peers/$1" || return
    "build/peers/$1/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
        -r "$here/constraints/$1.txt" || { echo "$1 could not be installed"; return; }
    touch "build/peers/$1/.installed"
}

environment smartnoise torch smartnoise-synth
environment dpmm torch dpmm
environment datasynthesizer DataSynthesizer
environment opendp 'opendp[polars,mbi]' pandas
environment anonypyx anonypyx
environment sdmetrics sdmetrics
environment dpsynth python=python3.12 'jax[cpu]==0.10.2' mbi==2.0.0 dp-accounting==0.6.0 'etils[epath]' pandas attrs absl-py \
    pydantic pyyaml more-itertools networkx scipy tqdm
environment privatepgm 'jax[cpu]==0.4.38' 'pandas<3' 'numpy<2.3' networkx chex optax attrs matplotlib
frozen twinify python3.10
frozen gsd python3.10  # of smartnoise-synth, which it asks for, it uses what reads tables alone: neither torch nor mbi
environment margnet torch pandas scikit-learn scipy tomli networkx tqdm matplotlib
environment tabbench torch 'pandas<3' scikit-learn scipy tomli tomli_w networkx tqdm matplotlib catboost xgboost optuna \
    category_encoders skorch
environment sdgym torch 'sdv<2' sdgym randomgen polars pyarrow  # sdgym fails with sdv 2; the last three are for covey, a guest there
environment tabpe torch pandas scikit-learn omegaconf==2.3.0 generalimport tenacity matplotlib requests tqdm
environment ebm interpret-core scikit-learn
frozen gbdt python3.10
:  # one that is not there is no reason to stop
