/* SPDX-License-Identifier: Apache-2.0 */
/*
 * invariant.h - how a broken rule of format/SHARD.md is reported
 *
 * Every check of bytes from a file is a MUST() with the number of its rule, and all of them come
 * through invariant_broken().  A test that replaces this one function (ld --wrap) can so take out
 * any single check and prove that the file which breaks it is otherwise good.
 */
#ifndef SHARD_DISK_INVARIANT_H
#define SHARD_DISK_INVARIANT_H

#include "shard.h"

/* Write "I13: ..." and return `status`. */
int invariant_broken(struct shard_error *err, int status, const char *number, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#define MUST_OR(status, number, cond, ...)                                                    \
	do {                                                                                  \
		if (!(cond)) {                                                                \
			int broken_ = invariant_broken(err, (status), (number), __VA_ARGS__); \
			if (broken_)                                                          \
				return broken_;                                               \
		}                                                                             \
	} while (0)

#define MUST(number, cond, ...) MUST_OR(SHARD_E_CORRUPT, number, cond, __VA_ARGS__)

#endif
