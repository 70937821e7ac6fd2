#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/cluster/_submitit.sh - tasks of submitit, jobs on this machine
# TIMEOUT: 1800
exec "$ROOT/tests/cluster/_ray.sh" submitit
