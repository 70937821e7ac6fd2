#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/pages.sh [HAVE PAGE] - pages that need PyTorch, run from their first block to
# their last; or one page, in the virtual environment of CLIENT, which has HAVE
# TIMEOUT: 900
# TAKES: 160
set -eu
. "$ROOT/tests/docs/lib.sh"
parent=$BUILD/venv/${CLIENT:-torch}

# An environment of our own, since a page may install libshard.  It sees the packages of the other.
"$parent/bin/python" -m venv --without-pip "$TMPDIR/venv"
echo "$parent"/lib/python3*/site-packages >"$(echo "$TMPDIR"/venv/lib/python3*/site-packages)/parent.pth"
use_python "$TMPDIR/venv/bin/python"
for script in pip torchrun; do
	module=$script
	[ $script = pip ] || module=torch.distributed.run
	printf '#!/bin/sh\nexec "%s" -m %s "$@"\n' "$TMPDIR/venv/bin/python" $module >"$TMPDIR/bin/$script"
	chmod +x "$TMPDIR/bin/$script"
done
PIP_NO_BUILD_ISOLATION=0 # which is how pip spells that setuptools is there already
export PIP_NO_BUILD_ISOLATION
[ $# != 0 ] || set -- --only "${CLIENT:-torch}" "${CLIENT:-torch},pip"
run_pages "$@"
