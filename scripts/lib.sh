# shellcheck shell=bash
# Read by every script here: strict mode, the repository root as working folder, where downloaded tools live.
set -euo pipefail
((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404)) || {
    echo "error: bash 4.4 or newer is needed (macOS: brew install bash)" >&2
    exit 1
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools="${KRANE_TOOLS:-${XDG_CACHE_HOME:-${HOME:?must be set, or KRANE_TOOLS}/.cache}/krane/tools}"
[[ "$tools" == /* ]] || tools="$PWD/$tools"
export PATH="$tools/bin:$PATH"

# Never a changed Cargo.lock, never a prompt.
export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-auto}" GIT_TERMINAL_PROMPT=0

# The first lines of a script say what it does and how it is called.
if [[ "${1:-}" == --help || "${1:-}" == -h ]]; then
    sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p;}' "${BASH_SOURCE[1]}"
    exit 0
fi

say() { printf '\n== %s\n' "$*"; }

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# need COMMAND HINT
need() {
    command -v "$1" >/dev/null || fail "$1 is missing: $2"
}
