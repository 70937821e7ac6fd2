/* SPDX-License-Identifier: Apache-2.0 */
/*
 * human.h - numbers as people read them: 1.5 GiB, 1,281,167, 3m 20s
 *
 * Each call writes into the caller's buffer of HUMAN_CHARS and returns it, so that it can
 * stand among the arguments of a printf.  No locale is consulted.
 */
#ifndef SHARD_COMMON_HUMAN_H
#define SHARD_COMMON_HUMAN_H

#include <stdint.h>

#define HUMAN_CHARS 40 /* the longest is 2^64 with separators and a unit, 34 */

const char *human_bytes(char out[HUMAN_CHARS], uint64_t bytes);		     /* "512 B", "1.5 GiB" */
const char *human_count(char out[HUMAN_CHARS], uint64_t count);		     /* "1,281,167" */
const char *human_duration(char out[HUMAN_CHARS], uint64_t duration_ns);     /* "4.2 s", "3m 20s", "1h 02m" */
const char *human_rate(char out[HUMAN_CHARS], double per_second);	     /* "0.4/s", "5,312/s" */
const char *human_byte_rate(char out[HUMAN_CHARS], double bytes_per_second); /* "812.4 MiB/s" */

#endif
