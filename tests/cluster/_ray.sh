#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cluster/_ray.sh [NAME] - tasks of Ray on three nodes; or of another package, see build_on.py
# TIMEOUT: 1800
# shellcheck disable=SC1091
. "$ROOT/tests/cluster/lib.sh"

cat >slow <<END
#!/bin/sh
if [ "\$1" = build ]; then
	echo "\$*" >>"$PWD/starts"
	export SHIM=delay SHIM_SEED=\$\$ SHIM_DELAY_US=20000 LD_PRELOAD="$PWD/shim.so"
fi
exec "$PACK" "\$@"
END
chmod +x slow
RAY_TMPDIR=$(mktemp -d /tmp/ray.XXXXXX) # Ray has sockets in it, whose names have 107 bytes at most
at_end 'rm -rf "$RAY_TMPDIR"'
export RAY_TMPDIR RAY_USAGE_STATS_ENABLED=0 RAY_worker_niceness=0 # busy machines run tests too
export SHARDS RECIPE_WORDS="${RECIPE[*]}"
name=${1-ray}
story=$name workers=3 began=$SECONDS
"$BUILD/venv/cluster/bin/python" "$ROOT/tests/cluster/build_on.py" "$name"
story=""
