# Sourced by demo and run: says at once what is missing, and how to get it.
# shellcheck shell=bash
fail() { printf '%s: %s\n' "$(basename "$0")" "$1" >&2; exit 1; }

[[ $(uname -s) == Linux ]] || fail "this needs Linux"
[[ $EUID -eq 0 ]] || fail "this needs root: it boots hosts in containers. Run it with sudo -E $0"
command -v apt-get >/dev/null || fail "this needs Debian (12 or later): it installs what it needs with apt-get"
if ! command -v cargo >/dev/null && [[ -x $HOME/.cargo/bin/cargo ]]; then
  PATH=$HOME/.cargo/bin:$PATH
fi
command -v cargo >/dev/null || fail "this needs Rust 1.90 or later: apt-get install rustup && rustup default stable"
version=$(rustc --version | cut -d' ' -f2)
[[ $(printf '%s\n1.90.0\n' "${version%%-*}" | sort -V | head -n1) == 1.90.0 ]] ||
  fail "this needs Rust 1.90 or later, and here is $version: rustup update stable"
if ! command -v cc >/dev/null; then
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq gcc libc6-dev >/dev/null
fi
