/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xxh3_plain.c - XXH3 for every processor of the family: SSE2 on x86-64, NEON on aarch64
 */
#include "libshard/format/xxh3_code.h"

const struct xxh3 xxh3_plain = {"plain", XXH3_FUNCTIONS};
