# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# tests/cluster/lib_slurm.sh - a Slurm of our own: a controller and two machines, n1 and n2; sourced
#
# It needs neither root nor systemd, and knows nothing of a Slurm that may be installed: its key,
# sockets, ports and files are its own.
slurm=$PWD/slurm
export SLURM_CONF=$slurm/slurm.conf
declare -A node_pid

slurm_log() { # what Slurm says, for messages
	tail -n 5 "$slurm"/log/* 2>/dev/null
}

slurm_conf() {
	local host port
	host=$(hostname)
	read -r -a port < <(free_ports 3)
	cat <<END
ClusterName=check
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$slurm/munge,cred_expire=5
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/%n
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd-%n.pid
SlurmctldLogFile=$slurm/log/slurmctld
SlurmdLogFile=$slurm/log/slurmd-%n
SlurmctldPort=${port[0]}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
SlurmdTimeout=10
KillWait=5
RequeueExit=75
ReturnToService=2
MailProg=/bin/true
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=${port[1]} CPUs=8
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=${port[2]} CPUs=8
PartitionName=all Nodes=n1,n2 Default=YES LLN=YES MaxTime=INFINITE State=UP
END
}

start_node() { # NAME
	machine slurmd -D -N "$1" >"$slurm/log/start-$1" 2>&1 &
	node_pid[$1]=$!
}

# All workers of the node go with it.
lose_node() { # NAME
	kill -9 "${node_pid[$1]}"
	wait "${node_pid[$1]}" 2>/dev/null || :
}

nodes_idle() {
	[ "$(sinfo -h -t idle -o %D 2>/dev/null | head -n 1)" = 2 ]
}

start_slurm() {
	at_end end_machines
	mkdir -p "$slurm"/{state,n1,n2,log}
	head -c 1024 /dev/urandom >"$slurm/key"
	chmod 400 "$slurm/key"
	slurm_conf >"$SLURM_CONF"
	# --force: the folder of tests is closed to others, and that of a socket should not be.
	machine munged --force --foreground --num-threads=2 --socket="$slurm/munge" --key-file="$slurm/key" \
		--pid-file="$slurm/munged.pid" --log-file="$slurm/log/munged" --seed-file="$slurm/seed" \
		>"$slurm/log/start-munged" 2>&1 &
	machine slurmctld -D >"$slurm/log/start-slurmctld" 2>&1 &
	start_node n1
	start_node n2
	for _ in $(seq 150); do
		! nodes_idle || return 0
		sleep 0.2
	done
	die "Slurm did not start: $(slurm_log)"
}

no_jobs() {
	[ -z "$(squeue -h 2>&1)" ]
}
