# shellcheck shell=bash
# What tools/run, tools/test and .ci/run share. Source it after `set -euo pipefail`.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=${0#"$root"/}
cd "$root" || exit

fail() {
    echo "$program: $*" >&2
    exit 1
}

# --- packages -------------------------------------------------------------------------------

# Whether a command of this name, or a file by this path, is there.
is_there() {
    case $1 in
        /*) compgen -G "$1" >/dev/null ;;
        *) command -v "$1" >/dev/null ;;
    esac
}

# missing_packages PURPOSE...: the packages for them whose proof is not there.
missing_packages() {
    local package purpose proof
    while read -r package purpose proof; do
        [[ -n $package && $package != '#'* && " $* " == *" $purpose "* ]] || continue
        is_there "$proof" || echo "$package"
    done <tools/packages.txt
}

# has PURPOSE: whether nothing for it is missing.
has() { [[ -z $(missing_packages "$1") ]]; }

as_root() {
    if [[ $(id -u) == 0 ]]; then "$@"; else sudo "$@"; fi
}

apt() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@"; }

is_known() { LC_ALL=C apt-cache policy "$1" 2>/dev/null | grep Candidate: | grep -qv "(none)"; }

# Says in one line what to do when apt could not install the packages named.
explain_failure() {
    local package
    for package; do
        is_known "$package" && continue
        fail "apt knows no package $package: check this machine's network and package sources;" \
            "it is in Debian 12; needed are: $*"
    done
    fail "apt-get could not install $*: make sure that this machine is online;" \
        "build/packages.log ends with the reason"
}

# install PURPOSE...: what is missing for them, through apt; nothing and silence otherwise.
install() {
    local missing
    mapfile -t missing < <(missing_packages "$@")
    [[ ${#missing[@]} -gt 0 ]] || return 0
    command -v apt-get >/dev/null ||
        fail "no apt-get here: install what these Debian packages hold: ${missing[*]}"
    [[ $(id -u) == 0 ]] || command -v sudo >/dev/null ||
        fail "neither root nor sudo: as root, run apt-get install ${missing[*]}"
    echo "$program: installing ${missing[*]}"
    mkdir -p build
    # The lists may be old or absent; whether they were fetched shows when packages are.
    apt update >build/packages.log 2>&1 || true
    apt install --no-install-recommends "${missing[@]}" >>build/packages.log 2>&1 ||
        explain_failure "${missing[@]}"
}

# --- building -------------------------------------------------------------------------------

# What is switched on is what the packages are there for; measurements only where they mean
# something. The sanitizers' presets say it themselves.
build_options() {
    case $1 in
        asan | tsan) ;;
        install) switches COMMAND:tensorpool ;;
        release) switches TESTS:test PERF:perf TOOLS:photos COMMAND:tensorpool ;;
        *)
            switches TESTS:test TOOLS:photos COMMAND:tensorpool
            echo "-DTENSORPOOL_BUILD_PERF=OFF"
            ;;
    esac
}

# switches NAME:PURPOSE...: the options of CMake that switch each name on or off.
switches() {
    local switch on_off
    for switch; do
        on_off=OFF
        ! has "${switch#*:}" || on_off=ON
        echo "-DTENSORPOOL_BUILD_${switch%:*}=$on_off"
    done
}

# Lines of a build in, and the present one shown on a terminal, or one line that it goes on.
show_build() {
    local line told=no
    while IFS= read -r line; do
        [[ $line == *Building* || $line == *Linking* ]] || continue
        if [[ -t 1 ]]; then
            printf '\r\033[K%.*s' 78 "$line"
        elif [[ $told == no ]]; then
            echo "$program: building, preset $1"
            told=yes
        fi
    done
    [[ ! -t 1 ]] || printf '\r\033[K'
}

# build PRESET [TARGET]...: configures and builds; all of it without a target. Logs lie in the
# build's folder, and are printed when it fails.
build() {
    local preset=$1 folder=build/$1 options targets=("${@:2}")
    mapfile -t options < <(build_options "$preset")
    mkdir -p "$folder"
    cmake --preset "$preset" "${options[@]}" >"$folder/configure.log" 2>&1 || {
        cat "$folder/configure.log" >&2
        fail "cannot be configured, preset $preset: the reason is above"
    }
    cmake --build --preset "$preset" --parallel "$(nproc)" ${2:+--target "${targets[@]}"} 2>&1 |
        tee "$folder/build.log" | show_build "$preset" || {
        grep -v 'Building\|Built target' "$folder/build.log" >&2
        fail "does not build, preset $preset: the reason is above"
    }
}
