#!/usr/bin/env bash
# Fills a folder with the HTML pages of Debian documentation packages: pages.sh DIR
#
# Nothing is installed: packages are downloaded and unpacked. Those that the release at hand does not
# have are left out, and said so.
set -euo pipefail
folder=${1:?usage: pages.sh DIR}
packages="python3.11-doc openjdk-17-doc postgresql-doc-15 apache2-doc libboost1.74-doc
    qtbase5-doc-html libstdc++-12-doc cmake-doc python-django-doc python-pandas-doc erlang-doc
    nodejs-doc installation-guide-amd64 libreoffice-help-en-us octave-doc rust-doc"

mkdir -p "$folder/debs" "$folder/pages"
cd "$folder/debs"
for package in $packages; do
    compgen -G "${package}_*.deb" >/dev/null && continue
    apt-get download -q "$package" || echo "left out: $package"
done
for deb in *.deb; do
    [ -d "../pages/${deb%%_*}" ] || dpkg-deb -x "$deb" "../pages/${deb%%_*}"
done
# Only pages are needed.
find ../pages -type f ! -name '*.html' ! -name '*.htm' -delete
find ../pages -type f | wc -l
