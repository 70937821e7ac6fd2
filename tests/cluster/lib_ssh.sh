# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# tests/cluster/lib_ssh.sh - two machines, node1 and node2, that ssh reaches; sourced, not run
#
# Their servers have keys, ports and settings of their own, and so has the client: `ssh` here is
# that of nobody.
ssh_dir=$PWD/ssh
ssh_client=$(command -v ssh) || skip "ssh is not installed"
ssh_server=$(PATH=$PATH:/usr/sbin command -v sshd) || skip "sshd is not installed"

ssh_node() { # NAME PORT
	cat >"$ssh_dir/$1" <<END
ListenAddress 127.0.0.1
Port $2
HostKey $ssh_dir/host
AuthorizedKeysFile $ssh_dir/user.pub
PidFile none
UsePAM no
StrictModes no
SetEnv PATH="$PATH" LD_LIBRARY_PATH="${LD_LIBRARY_PATH-}"
END
	cat >>"$ssh_dir/config" <<END
Host $1
HostName 127.0.0.1
Port $2
IdentityFile $ssh_dir/user
IdentitiesOnly yes
BatchMode yes
LogLevel ERROR
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
END
	machine "$ssh_server" -D -e -f "$ssh_dir/$1" 2>"$ssh_dir/$1.log" &
}

start_ssh() {
	local ports
	mkdir -p "$ssh_dir/bin"
	ssh-keygen -q -t ed25519 -N "" -f "$ssh_dir/host"
	ssh-keygen -q -t ed25519 -N "" -f "$ssh_dir/user"
	printf '#!/bin/sh\nexec "%s" -F "%s" "$@"\n' "$ssh_client" "$ssh_dir/config" >"$ssh_dir/bin/ssh"
	chmod +x "$ssh_dir/bin/ssh"
	# The server of Debian wants a folder that its service would make.  It stays, because another
	# script may have a server that needs it.
	[ "$(id -u)" != 0 ] || mkdir -p /run/sshd
	at_end end_machines
	read -r -a ports < <(free_ports 2)
	ssh_node node1 "${ports[0]}"
	ssh_node node2 "${ports[1]}"
	PATH=$ssh_dir/bin:$PATH
	until_true ssh node1 true 2>"$ssh_dir/err"
	until_true ssh node2 true 2>"$ssh_dir/err"
}
