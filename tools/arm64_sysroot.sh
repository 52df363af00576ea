#!/bin/bash
# Makes build/arm64-sysroot, the libraries that the cross build for 64-bit ARM links (docs/arm64.md): Debian's own
# packages, unpacked and not installed, so that dpkg need know no foreign architecture. Installs the cross compiler
# and qemu. Does nothing when all is there.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install_deps.sh --arm64

# Development packages as in install_deps.sh, and what programs run with.
packages="libc6-dev libstdc++6 libgcc-s1 libfmt-dev libssl-dev libcurl4-openssl-dev libxxhash-dev libpcre2-dev
  libedit-dev libzstd-dev nlohmann-json3-dev libcli11-dev libgtest-dev libgmock-dev libbenchmark-dev libboost1.81-dev prometheus-cpp-dev"

sysroot=$PWD/build/arm64-sysroot
made_from="$(sha256sum <"tools/$(basename "$0")")"
[ "$(cat "$sysroot/.made_from" 2>/dev/null)" = "$made_from" ] && exit 0
echo "making $sysroot"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists,cache}/partial
touch "$work/status"  # Nothing is installed there, so that apt names every package that is needed.
apt() {
  apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Install-Recommends=false \
    -o APT::Sandbox::User="$(id -un)" -o Dir::State::Lists="$work/lists" -o Dir::State::status="$work/status" \
    -o Dir::Cache="$work/cache" -o Dir::Cache::archives="$work/cache" -o Debug::NoLocking=true "$@"
}
# Other repositories of this machine may have nothing for arm64; what is missing then shows below.
apt update >"$work/log" 2>&1 || true
# shellcheck disable=SC2086  # A list of words.
apt -y --download-only install $packages >>"$work/log" 2>&1 || { tail -20 "$work/log" >&2; exit 1; }

rm -rf "$sysroot"
mkdir -p "$sysroot"
for package in "$work"/cache/*.deb; do dpkg-deb -x "$package" "$sysroot"; done
# An absolute link would lead to this machine's own libraries.
find "$sysroot" -type l -lname '/*' -print0 | while IFS= read -r -d '' link; do
  ln -sfnr "$sysroot$(readlink "$link")" "$link"
done
rm -rf "$sysroot"/usr/share/{doc,man,locale,i18n} "$sysroot"/usr/lib/aarch64-linux-gnu/gconv
echo "$made_from" >"$sysroot/.made_from"
