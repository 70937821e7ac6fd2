#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/deps.sh [build|check|cluster|ci|fuzz|wheel] - install what this machine lacks, and say why and how
#
# build: to compile and use everything; check: to run the tests as well; cluster: also schedulers,
# for `make check-cluster`; ci: also a second compiler; fuzz: what `make fuzz` needs; wheel: what
# `make wheel` needs besides the sources.  Asks the package system once and is done when nothing is
# missing.  Otherwise it prints each missing package with its reason, then the command, then runs it:
# as root, or through sudo.  Where neither is possible it stops; run the command yourself.  Libraries
# that came in some other way are not seen: use `make DEPS=skip ...`.
set -eu
group=${1:-check}

# group | apt (the first is installed; any of them will do) | dnf | reason
packages='
build|gcc|gcc|the C compiler
build|make|make|runs the Makefile
build|libc6-dev|glibc-devel|headers of the C library
build|binutils|binutils|ld and objcopy make libshard.a
build|pkg-config pkgconf|pkgconf-pkg-config|finds the libraries below
build|liblz4-dev|lz4-devel|compressed shards
build|liburing-dev|liburing-devel|reads past the page cache
build|libxxhash-dev|xxhash-devel|XXH3, the hash of every unit
build|libjpeg-dev libjpeg62-turbo-dev libjpeg-turbo8-dev|libjpeg-turbo-devel|shardpack reads JPEG
build|libpng-dev|libpng-devel|shardpack reads PNG, shardcat writes it
build|libwebp-dev|libwebp-devel|shardpack reads WebP
build|zlib1g-dev|zlib-devel|libpng stands on it, and shardpack unpacks .gz and .npz
build|libzstd-dev|libzstd-devel|shardpack unpacks .zst
build|libarchive-dev|libarchive-devel|shardpack unpacks .bz2 and .xz; without it a build leaves these out
build|libgif-dev|giflib-devel|shardpack reads GIF; without it a build leaves GIF out
build|libtiff-dev|libtiff-devel|shardpack reads TIFF; without it a build leaves TIFF out
build|libavif-dev|libavif-devel|shardpack reads AVIF; without it a build leaves AVIF out
build|libjansson-dev|jansson-devel|shardpack reads JSON labels
check|g++|gcc-c++|a C++ program must be able to use shard.h
check|git|git|shows that a build leaves the tree alone
check|libssl-dev|openssl-devel|a second SHA-256 to compare ours with
check|python3|python3|the second reader of the format
check|python3-dev|python3-devel|the Python package is built and tested
check|python3-hypothesis|python3-hypothesis|tests of the Python package think of cases
check|python3-numpy|python3-numpy|arrays to compare with
check|python3-venv|python3|the Python package is installed as anybody would
check|python3-pil|python3-pillow|resizing must equal Pillow bit for bit
check|groff-base|groff-base|man pages are set without a complaint
check|strace|strace|tests make system calls fail
check|zstd|zstd|makes the .zst files that tests unpack
check|xz-utils|xz|makes a .xz file that tests unpack
check|util-linux|util-linux|tests mount small disks and drop root
cluster|slurm-wlm|slurm|job arrays and ranks of Slurm
cluster|munge|munge|authenticates the programs of Slurm to each other
cluster|openmpi-bin|openmpi|ranks of Open MPI
cluster|openssh-server|openssh-server|workers that ssh starts
cluster|openssh-client|openssh-clients|ssh starts workers on other machines
cluster|sshfs|fuse-sshfs|a shared file system on one machine
ci|clang|clang|everything must also build without a warning under clang
ci|ccache|ccache|four builds of everything compile only what changed
ci|clang-format|clang-tools-extra|code is formatted by its version 14
wheel|cmake|cmake|builds libraries of the wheel
wheel|nasm|nasm|JPEG and AVIF are fast by assembly
wheel|patch|patch|repairs libraries of the wheel
fuzz|libclang-rt-dev|compiler-rt|libFuzzer and its sanitizers
'
case $group in
build) groups=build ;;
check) groups='build|check' ;;
cluster) groups='build|check|cluster' ;;
ci) groups='build|check|ci|wheel' ;;
fuzz) groups='build|ci|fuzz' ;;
wheel) groups='build|check|wheel' ;;
*) echo "deps: '$group' is not a group; give build, check, cluster, ci, fuzz or wheel" >&2 && exit 2 ;;
esac
packages=$(echo "$packages" | grep -E "^($groups)\|")

if command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then
	column=2
	refresh='apt-get update'
	install='env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends'
	# Prints the packages that are there and whole; complains about those it never heard of.
	there() { dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null | sed -n 's/ installed$//p'; }
elif command -v dnf >/dev/null && command -v rpm >/dev/null; then
	column=3
	refresh=true # dnf looks for news by itself
	install='dnf install -y'
	# By what packages provide, not by their names, which differ between releases.
	there() { rpm -q --whatprovides --queryformat '[%{PROVIDENAME}\n]' "$@" 2>/dev/null; }
else
	echo "deps: neither apt-get nor dnf is here.  Install these yourself, then run make with DEPS=skip:" >&2
	echo "$packages" | awk -F '|' '{printf "  %-20s %s\n", $2, $4}' >&2
	exit 1
fi

# shellcheck disable=SC2046 # one word for each name is what we want
have=" $(there $(echo "$packages" | cut -d '|' -f $column) | tr '\n' ' ') "
missing=$(echo "$packages" | awk -F '|' -v have="$have" -v column=$column '{
	n = split($column, names, " ")
	for (i = 1; i <= n; i++)
		if (index(have, " " names[i] " "))
			next
	print names[1] "|" $4 }')
[ -n "$missing" ] || exit 0

echo "deps: missing here, and what each is for:"
echo "$missing" | awk -F '|' '{printf "  %-16s %s\n", $1, $2}'
command="$install $(echo "$missing" | cut -d '|' -f 1 | tr '\n' ' ')"
sudo=
if [ "$(id -u)" != 0 ]; then
	if ! command -v sudo >/dev/null; then
		echo "deps: you are not root and there is no sudo.  As root, run:  $refresh; $command" >&2
		exit 1
	fi
	sudo='sudo '
fi
echo "deps: $sudo$refresh; $sudo$command"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Old package lists may still do; the next command shows it.
# shellcheck disable=SC2086 # commands and their words
$sudo$refresh >"$log" 2>&1 ||
	{ tail -n 20 "$log" && echo "deps: '$refresh' failed; trying with the lists that are here"; }
# shellcheck disable=SC2086
$sudo$command >"$log" 2>&1 || {
	tail -n 40 "$log" >&2
	echo "deps: that failed, see above.  If the libraries are there in another way, run make with DEPS=skip" >&2
	exit 1
}
echo "deps: installed"
