# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# tests/cluster/lib_python.sh - what the scripts of Ray, Dask and submitit share; sourced, not run
#
# They run build_on.py in the virtual environment of these packages.
# shellcheck disable=SC1091,SC2034
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

build_on() { # NAME
	export SHARDS RECIPE_WORDS="${RECIPE[*]}" SCRIPT=${0##*/}
	story=$1 workers=3 began=$SECONDS
	"$BUILD/venv/cluster/bin/python" "$ROOT/tests/cluster/build_on.py" "$1"
	story=""
}
