#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/example_ddp.sh - examples/python/ddp.py: exactly once, the gradients of one
# process, kills and other worlds
. "${0%/*}/lib.sh"
GLOO_SOCKET_IFNAME=lo
export GLOO_SOCKET_IFNAME
python -W error "$ROOT/tests/python/clients/example_ddp.py"
