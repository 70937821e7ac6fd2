#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/gauntlet/judge.sh - what `make gauntlet` calls right, broken and refused
set -eu
exec "${PYTHON:-python3}" tests/gauntlet/judge_stories.py
