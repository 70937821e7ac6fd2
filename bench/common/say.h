/* SPDX-License-Identifier: Apache-2.0 */
/*
 * say.h - a benchmark's words besides its rows
 */
#ifndef SHARD_COMMON_SAY_H
#define SHARD_COMMON_SAY_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For prepare, run and after: why the row cannot go on.  Returns false. */
__attribute__((format(printf, 1, 2))) bool bench_skip(const char *format, ...);
const char *bench_skip_reason(void); /* the last one */

/* Print a line for people beneath the row. */
__attribute__((format(printf, 1, 2))) void bench_note(const char *format, ...);

/* Something is wrong that is not a measurement: say so and exit with 1. */
__attribute__((format(printf, 1, 2), noreturn)) void bench_die(const char *format, ...);

#ifdef __cplusplus
}
#endif

#endif
