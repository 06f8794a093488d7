#!/usr/bin/env bash
# Gathers the libraries that Strobe cannot be built without (and GoogleTest) into one folder, to be copied to a machine
# that has no packages of them: headers, static libraries, licences. docs/bare-build.md. Needs no root: what is installed
# is copied, the rest is downloaded by apt-get. STROBE_BUNDLE_DOWNLOAD=1 downloads everything.
set -euo pipefail
bundle=${1:?usage: bundle_dependencies.sh FOLDER}
packages=(libfmt-dev nlohmann-json3-dev libcli11-dev libsqlite3-dev libyaml-cpp-dev zlib1g-dev liblz4-dev libzstd-dev
  libgtest-dev libgmock-dev)

fail() { echo "bundle: $*" >&2; exit 2; }
if [ -e "$bundle" ] && [ ! -f "$bundle/bundle.txt" ]; then
  [ -d "$bundle" ] && [ -z "$(ls -A "$bundle")" ] || fail "$bundle is there and no bundle: it is left alone"
fi
command -v dpkg-deb >/dev/null || fail "this is no Debian: the packages are Debian's"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/debs" "$work/bundle/include" "$work/bundle/lib" "$work/bundle/licences"

missing=()
for package in "${packages[@]}"; do
  mkdir -p "$work/tree/$package"
  if [ -z "${STROBE_BUNDLE_DOWNLOAD:-}" ] &&
     dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed'; then
    dpkg -L "$package" | while read -r path; do [ ! -f "$path" ] || echo "$path"; done |
      (grep -E '^/usr/(include|lib/.*\.a$|share/doc/.*/copyright$)' || true) |
      xargs -d '\n' cp -L --parents -t "$work/tree/$package"
    dpkg-query -W -f='${Package} ${Version} ${Architecture}\n' "$package" >>"$work/bundle/bundle.txt"
  else
    missing+=("$package")
  fi
done
if [ ${#missing[@]} -gt 0 ]; then
  (cd "$work/debs" && apt-get download -qq "${missing[@]}") || fail "apt-get cannot download ${missing[*]}"
  for deb in "$work"/debs/*.deb; do
    package=$(dpkg-deb -f "$deb" Package)
    dpkg-deb -x "$deb" "$work/tree/$package"
    dpkg-deb -W --showformat='${Package} ${Version} ${Architecture}\n' "$deb" >>"$work/bundle/bundle.txt"
  done
fi

for package in "${packages[@]}"; do
  usr=$work/tree/$package/usr
  cp -r "$usr/include/." "$work/bundle/include/"
  find "$usr/lib" -name '*.a' -exec cp -t "$work/bundle/lib" {} + 2>/dev/null || true
  mkdir "$work/bundle/licences/$package"
  cp "$usr/share/doc/$package/copyright" "$work/bundle/licences/$package/" || fail "$package has no copyright file"
done
# Headers for the machine's architecture lie in a folder of their own.
for folder in "$work"/bundle/include/*-linux-gnu; do
  [ -d "$folder" ] || continue
  cp -r "$folder/." "$work/bundle/include/"
  rm -r "$folder"
done
sort -o "$work/bundle/bundle.txt" "$work/bundle/bundle.txt"

mkdir -p "$(dirname "$bundle")"
rm -rf "$bundle"
cp -r "$work/bundle" "$bundle"
echo "bundle: $bundle, $(du -sh "$bundle" | cut -f1), ${#packages[@]} packages"
