#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tree/rooms.sh - rooms that a stranger can take in; see rooms.py
set -eu
"$PYTHON" tests/tree/rooms.py
