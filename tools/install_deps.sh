#!/bin/sh
# Installs what building and testing trtmc needs on Debian 12 (or a relative), and nothing when it is
# there already. `--tests` adds what only the tests use, `--arm64` what only the cross build does.
set -eu

build="g++ cmake ninja-build pkg-config ccache mold
  libfmt-dev libssl-dev libcurl4-openssl-dev libxxhash-dev libpcre2-dev libedit-dev libzstd-dev nlohmann-json3-dev libcli11-dev libboost1.81-dev prometheus-cpp-dev zstd git"
tests="libgtest-dev libgmock-dev libbenchmark-dev clang clang-format clang-tidy libclang-rt-14-dev llvm
  python3 python3-venv curl xz-utils dpkg-dev zsh fish groff-base valgrind"

arm64="g++-aarch64-linux-gnu qemu-user"

wanted=$build
[ "${1:-}" = "--tests" ] && wanted="$build $tests"
[ "${1:-}" = "--arm64" ] && wanted="$build $arm64"

missing=""
for package in $wanted; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

echo "installing$missing"
as_root=""
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "these packages are missing and there is no sudo:$missing" >&2; exit 1; }
  as_root=sudo
fi
log=$(mktemp)
# Package lists may be old or absent on a fresh machine; a failed update still leaves what is there usable.
$as_root apt-get update -qq >"$log" 2>&1 || true
# shellcheck disable=SC2086  # A list of words.
if ! $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >>"$log" 2>&1; then
  tail -20 "$log" >&2
  echo "apt-get could not install the packages; its output is above and in $log" >&2
  exit 1
fi
rm -f "$log"
