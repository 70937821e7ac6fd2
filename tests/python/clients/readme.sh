#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/readme.sh - the Python of both READMEs runs as it stands, in order, on the demo's photographs
. "${0%/*}/lib.sh"
"$BUILD/bin/shardpack" images "$ROOT/examples/photos/train" -o ds/train --resize 256 --crop 224 -q
for readme in "$ROOT/README.md" "$ROOT/python/README.md"; do
	awk '/^```python$/ {on = 1; next} /^```$/ {on = 0} on' "$readme" >example.py
	[ "$(grep -c . example.py)" -gt 6 ] || { echo "$readme: no Python in it" && exit 1; }
	python -W error example.py || { cat example.py && exit 1; }
done
echo 'for batch in loader: batch["nothing"]' >>example.py
! python example.py 2>/dev/null || { echo "a wrong example went unnoticed" && exit 1; }
echo "both READMEs"
