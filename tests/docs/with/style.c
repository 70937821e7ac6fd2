/* SPDX-License-Identifier: Apache-2.0 */
/*
 * style.c - around examples of how we write C: what they call exists, and they compile
 *
 * CFLAGS: -I. -Iinclude
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/io/io.h"

struct layout;
struct receipt {
	uint64_t records;
};
struct kernel {
	const char *name;
	double reach;
	double (*weight)(double x);
};

int receipt_parse(struct receipt *r, int fd, uint64_t bytes, struct shard_error *err);
double box_weight(double x);
double triangle_weight(double x);

#include "block.c"
