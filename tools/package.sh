#!/bin/sh
# Builds trtmc as it is released and makes its packages in build/package/packages: a tarball that runs
# wherever it is unpacked, and the Debian packages trtmc, libtrtmc… and libtrtmc-dev. Needs nothing but the
# checkout; `TRTMC_PACKAGE_CONTACT="Name <mail>" tools/package.sh` names their maintainer.
set -eu
cd "$(dirname "$0")/.."

tools/install_deps.sh
command -v dpkg-shlibdeps >/dev/null || { echo "dpkg-shlibdeps is missing: apt-get install dpkg-dev" >&2; exit 1; }
folder=build/package

configure() {  # configure LIBDIR ZSH_FOLDER
  cmake --preset release -B "$folder" -DTRTMC_TESTS=OFF -DTRTMC_BENCH=OFF -DCMAKE_INSTALL_LIBDIR="$1" \
    -DTRTMC_ZSH_FOLDER="share/zsh/$2" \
    ${TRTMC_PACKAGE_CONTACT:+-DCPACK_PACKAGE_CONTACT="$TRTMC_PACKAGE_CONTACT"} >/dev/null
  cmake --build "$folder" -- --quiet
}

echo "building the tarball"
configure lib site-functions
cpack --config "$folder/CPackConfig.cmake" -G TGZ >/dev/null
echo "building the Debian packages"
configure "lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)" vendor-completions
cpack --config "$folder/CPackConfig.cmake" -G DEB >/dev/null
cd "$folder/packages"
sha256sum ./*.tar.gz ./*.deb | tee SHA256SUMS
