# shellcheck shell=bash
# Functions shared by tools/run, tools/test, tools/install and .ci/run. Source this file after
# `set -euo pipefail`.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=${0#"$root"/}
cd "$root" || exit

fail() {
    echo "$program: $*" >&2
    exit 1
}

# --- packages -------------------------------------------------------------------------------

# is_there NAME: whether a command of this name, or a file at this path, exists. The path may be a
# pattern.
is_there() {
    case $1 in
        /*) compgen -G "$1" >/dev/null ;;
        *) command -v "$1" >/dev/null ;;
    esac
}

# missing_packages PURPOSE...: prints the packages for these purposes whose proof file or command
# does not exist.
missing_packages() {
    local package purpose proof
    while read -r package purpose proof; do
        [[ -n $package && $package != '#'* && " $* " == *" $purpose "* ]] || continue
        is_there "$proof" || echo "$package"
    done <tools/packages.txt
}

# has PURPOSE: whether all packages for this purpose are installed.
has() { [[ -z $(missing_packages "$1") ]]; }

as_root() {
    if [[ $(id -u) == 0 ]]; then "$@"; else sudo "$@"; fi
}

# Prints one line if apt reports that it waits. Reads what apt prints.
report_wait() {
    local line reported=no
    while IFS= read -r line; do
        [[ $line == *"ould not get lock "* && $reported == no ]] || continue
        echo "$program: waiting for another apt: ${line##*"ould not get lock "}"
        reported=yes
    done
}

# apt ARGUMENT...: runs apt-get. If another process holds a lock, it waits up to ten minutes. Apt
# itself waits for the locks of dpkg only. For those of the lists and of the downloads, it is
# started again.
apt() {
    local tries printed
    for ((tries = 120; ; --tries)); do
        {
            printed=$(as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C \
                apt-get -q -y -o DPkg::Lock::Timeout=600 "$@" 2>&1 | tee /dev/fd/3) && return
        } 3>&1
        [[ $tries -gt 1 && $printed == *"E: Could not get lock "*/@(lists|archives)/lock* ]] ||
            return 1
        sleep 5
    done
}

is_known() { LC_ALL=C apt-cache policy "$1" 2>/dev/null | grep Candidate: | grep -qv "(none)"; }

# Fails with apt's reasons for not installing the packages.
explain_failure() {
    local package reasons
    reasons=$(grep '^E: ' build/packages.log | awk '!seen[$0]++') || true
    [[ -n $reasons ]] || reasons=$(tail -n 1 build/packages.log)
    for package; do
        is_known "$package" && continue
        fail "apt does not know the package $package, which is part of Debian 12: check the package" \
            "sources; required packages: $*; build/packages.log says:"$'\n'"$reasons"
    done
    fail "apt-get could not install $*; build/packages.log has its output:"$'\n'"$reasons"
}

# install PURPOSE...: installs the missing packages for these purposes through apt. Prints nothing
# if none is missing.
install() {
    local missing
    mapfile -t missing < <(missing_packages "$@")
    [[ ${#missing[@]} -gt 0 ]] || return 0
    command -v apt-get >/dev/null ||
        fail "apt-get not found: install the contents of these Debian packages: ${missing[*]}"
    [[ $(id -u) == 0 ]] || command -v sudo >/dev/null ||
        fail "not root, and sudo not found: as root, run apt-get install ${missing[*]}"
    echo "$program: installing ${missing[*]}"
    mkdir -p build
    # A failed update is ignored here: the lists may be recent enough. If they are not, the
    # installation fails.
    {
        apt update || true
        apt install --no-install-recommends "${missing[@]}"
    } | tee build/packages.log | report_wait || explain_failure "${missing[@]}"
}

# --- building -------------------------------------------------------------------------------

# build_options PRESET: enables each part whose packages are installed. Measurements are enabled
# only in the release preset, where their results are meaningful, and only if TENSORPOOL_MORE is set, as are
# the tests of the package. The sanitizer presets set their options themselves.
build_options() {
    local more=OFF
    [[ -z ${TENSORPOOL_MORE:-} ]] || more=ON
    case $1 in
        asan | tsan) return ;;
        install)
            switches COMMAND:tensorpool
            return
            ;;
    esac
    switches TESTS:test TOOLS:photos COMMAND:tensorpool
    echo "-DTENSORPOOL_TEST_PACKAGE=$more"
    if [[ $1 == release && $more == ON ]]; then
        switches PERF:perf
    else
        echo "-DTENSORPOOL_BUILD_PERF=OFF"
    fi
}

# switches NAME:PURPOSE...: prints the CMake option that enables or disables each part.
switches() {
    local switch on_off
    for switch; do
        on_off=OFF
        ! has "${switch#*:}" || on_off=ON
        echo "-DTENSORPOOL_BUILD_${switch%:*}=$on_off"
    done
}

# Filters the output of a build. A terminal shows the current line; otherwise one line reports that
# the build runs.
show_build() {
    local line reported=no
    while IFS= read -r line; do
        [[ $line == *Building* || $line == *Linking* ]] || continue
        if [[ -t 1 ]]; then
            printf '\r\033[K%.*s' 78 "$line"
        elif [[ $reported == no ]]; then
            echo "$program: building, preset $1"
            reported=yes
        fi
    done
    [[ ! -t 1 ]] || printf '\r\033[K'
}

# build PRESET [TARGET]...: configures and builds the targets, or everything if none is given. The
# logs are in the build folder, and are printed if a step fails.
build() {
    local preset=$1 folder=build/$1 options targets=("${@:2}")
    mapfile -t options < <(build_options "$preset")
    mkdir -p "$folder"
    cmake --preset "$preset" "${options[@]}" >"$folder/configure.log" 2>&1 || {
        cat "$folder/configure.log" >&2
        fail "configuring preset $preset failed; see the messages above"
    }
    cmake --build --preset "$preset" --parallel "$(nproc)" ${2:+--target "${targets[@]}"} 2>&1 |
        tee "$folder/build.log" | show_build "$preset" || {
        grep -v 'Building\|Built target' "$folder/build.log" >&2
        fail "building preset $preset failed; see the messages above"
    }
}
