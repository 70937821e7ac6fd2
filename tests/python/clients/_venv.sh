#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/_venv.sh VENV packages NAME==VERSION...|libshard - make a virtual environment, or install libshard in it
#
# The first package comes alone, so that nothing else decides on its version; from where is up to
# pip's configuration.  Those behind --no-deps come without what they ask for.  Of PyTorch a build
# for the CPU is enough.  libshard comes as from a package index: an sdist made of a copy, in which
# nothing but the sdist's own files are there to build from.
set -eu
venv=$1 step=$2
# Not bin/pip: it names the folder that it was made in, and would install there from a copy of it.
pip="$venv/bin/python -m pip --disable-pip-version-check --quiet"

case $step in
packages)
	rm -rf "$venv"
	echo "  VENV  $venv"
	"${PYTHON3:-python3}" -m venv "$venv"
	shift 2
	list=$* first=$1 names= bare=
	shift
	$pip install "$first"
	for name in "$@"; do
		case $bare$name in *--no-deps*) bare="$bare $name" ;; *) names="$names $name" ;; esac
	done
	# shellcheck disable=SC2086 # names hold no blanks
	$pip install "$first" $names 'setuptools>=77'
	# shellcheck disable=SC2086
	[ -z "$bare" ] || $pip install "$first" $bare
	printf '%s\n' "$list" >"$venv/packages"
	;;
libshard)
	echo "  WHEEL libshard"
	rm -rf "$venv/sdist"
	mkdir -p "$venv/sdist/format" "$venv/sdist/docs" "$venv/sdist/examples"
	cp -r python libshard include Makefile tools LICENSE "$venv/sdist"
	cp format/shard_format.h "$venv/sdist/format"
	cp -r examples/photos "$venv/sdist/examples"
	cp -r docs/man docs/manual.awk docs/header_man.awk "$venv/sdist/docs"
	rm -rf "$venv/sdist/python/build" "$venv/sdist/python/dist"
	log=$venv/sdist.log
	(cd "$venv/sdist/python" && ../../bin/python setup.py --quiet sdist) >"$log" 2>&1 || { cat "$log" && exit 1; }
	mv "$venv"/sdist/python/dist/*.tar.gz "$venv"
	rm -rf "$venv/sdist"
	$pip install --no-build-isolation --no-deps --force-reinstall "$venv"/libshard-*.tar.gz
	rm "$venv"/libshard-*.tar.gz
	touch "$venv/libshard"
	;;
esac
