#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/_venv.sh VENV clients|libshard - make the virtual environment of `make check-python`, or install libshard in it
#
# PyTorch comes first and alone, so that nothing else decides on its version; from where is up to pip's configuration.  A
# build for the CPU is enough.  libshard comes as from a package index: an sdist made of a copy, in which nothing but the
# sdist's own files are there to build from.
set -eu
venv=$1
pip="$venv/bin/pip --disable-pip-version-check --quiet"

case $2 in
clients)
	rm -rf "$venv"
	echo "  VENV  $venv"
	"${PYTHON3:-python3}" -m venv "$venv"
	$pip install torch==2.13.0
	$pip install numpy==2.4.6 mypy==2.4.1 'setuptools>=77'
	;;
libshard)
	echo "  WHEEL libshard"
	rm -rf "$venv/sdist"
	mkdir -p "$venv/sdist/format"
	cp -r python libshard include LICENSE "$venv/sdist"
	cp format/shard_format.h "$venv/sdist/format"
	rm -rf "$venv/sdist/python/build" "$venv/sdist/python/dist"
	log=$venv/sdist.log
	(cd "$venv/sdist/python" && ../../bin/python setup.py --quiet sdist) >"$log" 2>&1 || { cat "$log" && exit 1; }
	mv "$venv"/sdist/python/dist/*.tar.gz "$venv"
	rm -rf "$venv/sdist"
	$pip install --no-build-isolation --no-deps --force-reinstall "$venv"/libshard-*.tar.gz
	rm "$venv"/libshard-*.tar.gz
	;;
esac
touch "$venv/$2"
