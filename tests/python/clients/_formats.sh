#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/_formats.sh - what pyarrow, pandas and webdataset read of an export, and
# frames that PyAV reads; by hand, with `make check-clients`
CLIENT=formats
. "${0%/*}/lib.sh"
# webdataset leaves files open.
python -W error -W ignore::ResourceWarning "$ROOT/tests/python/clients/formats_.py"
