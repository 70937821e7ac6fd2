/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_nearest.h - which name was probably meant
 */
#ifndef SHARD_CLI_CLI_NEAREST_H
#define SHARD_CLI_CLI_NEAREST_H

#include <stddef.h>

/* Index of the candidate that was probably meant, or -1. */
int cli_nearest(const char *typed, const char *const *candidates, size_t candidate_count);

#endif
