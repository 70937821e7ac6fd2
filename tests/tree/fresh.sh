#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tree/fresh.sh DIR [SUITE] - the fresh machine: a minimal Debian in DIR, the last commit,
# `make check`, `make demo`
#
# By hand and as root; needs debootstrap, some minutes and 3 GB.  DIR must not exist; it is left
# behind for a look, so remove it afterwards.  Packages come from wherever this machine's apt gets
# them: mirror, proxy and other settings are read from its configuration.  Nothing but make and git
# is there before our own `make deps` runs.
set -eu
dir=${1:?the directory to make}
suite=${2:-bookworm}
[ "$(id -u)" = 0 ] || { echo "fresh: only root can make a chroot" >&2 && exit 1; }
[ ! -e "$dir" ] || { echo "fresh: $dir exists; give a name that is free" >&2 && exit 1; }
command -v debootstrap >/dev/null || { echo "fresh: debootstrap is not installed" >&2 && exit 1; }
cd "$(dirname "$0")/../.."

# One line for each package list that apt knows of this suite: deb URI RELEASE COMPONENT
# shellcheck disable=SC2016 # apt expands it
sources=$(apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
	awk -v s="$suite" '$3 == s || index($3, s "-") == 1' | sort -u)
mirror=$(echo "$sources" | awk -v s="$suite" '$3 == s {print $2; exit}')
[ -n "$mirror" ] || { echo "fresh: apt on this machine knows no mirror of $suite" >&2 && exit 1; }
for p in http https; do
	eval "$(apt-config shell value Acquire::$p::Proxy)"
	[ -z "${value-}" ] || export "${p}_proxy=$value"
	value=
done
case $mirror in https:*) include=--include=ca-certificates ;; *) include= ;; esac

echo "== debootstrap $suite from $mirror"
# shellcheck disable=SC2086 # one option or none
debootstrap --variant=minbase $include "$suite" "$dir" "$mirror" >"$dir.log" 2>&1 ||
	{ tail -n 20 "$dir.log" >&2 && exit 1; }
rm -f "$dir.log" "$dir"/etc/apt/sources.list.d/*
echo "$sources" >"$dir/etc/apt/sources.list"
apt-config dump | grep -E '^Acquire::' >"$dir/etc/apt/apt.conf.d/00host"
cp /etc/resolv.conf /etc/hosts "$dir/etc/"
git clone -q --no-hardlinks . "$dir/libshard"

# Mounts live in a namespace of their own and are gone with it.
inside() {
	# shellcheck disable=SC2016 # expanded inside
	unshare --mount sh -c 'mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && exec chroot "$@"' \
		sh "$dir" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/ TERM=dumb DEBIAN_FRONTEND=noninteractive \
		${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
		sh -c "$1" </dev/null
}
step() { # title, command
	echo "== $1"
	begin=$(date +%s)
	inside "$2" || { echo "fresh: $1 failed with exit status $?" >&2 && exit 1; }
	echo "== $1: $(($(date +%s) - begin)) s"
}
step "what a person types first" \
	'apt-get update -qq && apt-get install -y -qq --no-install-recommends make git >/dev/null'
step "make demo" 'cd /libshard && make demo'
step "make check" 'cd /libshard && make check'
step "the tree is as it was cloned" 'cd /libshard && git status --porcelain | { ! grep .; }'
