# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# tests/cluster/lib_sshfs.sh - one folder, mounted twice by sshfs: as a/ and b/; sourced, not run
#
# The folder is store/, and the servers are those of lib_ssh.sh.  Each mount has its own caches, and
# locks of the one are not seen by the other, as on two machines.
command -v sshfs >/dev/null || skip "sshfs is not installed"
[ -c /dev/fuse ] || skip "there is no /dev/fuse"
for sftp_server in /usr/lib/openssh/sftp-server /usr/libexec/openssh/sftp-server; do
	[ ! -x $sftp_server ] || break
done
[ -x $sftp_server ] || skip "openssh has no sftp-server here"
declare -A mount_pid

is_mounted() { # MOUNT
	mountpoint -q "$1"
}

mount_store() { # MOUNT NODE
	printf '#!/bin/sh\necho $$ >"%s"\nexec "%s" "$@"\n' "$ssh_dir/pid-$1" "$ssh_dir/bin/ssh" >"$ssh_dir/bin/ssh-$1"
	chmod +x "$ssh_dir/bin/ssh-$1"
	sshfs -f -o "ssh_command=$ssh_dir/bin/ssh-$1,sftp_server=$sftp_server,reconnect" "$2:$PWD/store" "$1" \
		2>"$ssh_dir/mount-$1.err" &
	mount_pid[$1]=$!
	until_true is_mounted "$1"
}

# The connection is lost, and found again at the next request; those on their way fail.
cut_connection() { # MOUNT
	kill -9 "$(cat "$ssh_dir/pid-$1")" && kills=$((kills + 1))
}

# All that is on its way is lost, and the mount with it.
lose_mount() { # MOUNT
	kill -9 "${mount_pid[$1]}" && kills=$((kills + 1))
	wait "${mount_pid[$1]}" 2>/dev/null || :
	fusermount3 -u -z "$1"
}

start_sshfs() {
	mkdir -p store a b
	at_end 'fusermount3 -u -z a; fusermount3 -u -z b'
	mount_store a node1
	mount_store b node2
	[ "$(stat -f -c %T a)" = fuseblk ] || [ "$(stat -f -c %T a)" = fuse ] || die "a is no FUSE: $(stat -f a)"
}
