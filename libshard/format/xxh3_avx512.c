/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xxh3_avx512.c - XXH3 with AVX-512
 */
#include "libshard/format/format.h"

#if defined(__x86_64__)

/* What these declare is for all; only what follows them is compiled for the other processor. */
#include <immintrin.h>
#include <stdlib.h>
#include <string.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f")
#endif

#define XXH_VECTOR XXH_AVX512
/* The header would take 512 here, which is 8 to 12 % slower on an AMD EPYC (Zen 4). */
#define XXH_PREFETCH_DIST 384
#include "libshard/format/xxh3_code.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

static const struct xxh3 functions = {"AVX-512", XXH3_FUNCTIONS};
const struct xxh3 *const xxh3_avx512 = &functions;

#else

const struct xxh3 *const xxh3_avx512 = NULL;

#endif
