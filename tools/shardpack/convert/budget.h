/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.h - memory for large images, shared by all workers
 *
 * Small images need no leave.  A large one takes its bytes from the budget before it is decoded,
 * waiting until others have given theirs back, and one that is larger than the whole budget waits
 * until it is alone.  So memory is bounded by the number of workers times what is small, plus the
 * budget or the largest image.
 *
 * An image takes once at most, before it holds anything that another could wait for; so nobody
 * waits in a circle.
 */
#ifndef SHARD_CONVERT_BUDGET_H
#define SHARD_CONVERT_BUDGET_H

#include <pthread.h>
#include <stdint.h>

#define BUDGET_SMALL_BYTES (UINT64_C(16) << 20)	 /* up to here there is no need to ask */
#define BUDGET_BYTES	   (UINT64_C(256) << 20) /* 58 megapixels of progressive 4:2:0, or some photos at once */

struct budget {
	pthread_mutex_t lock;
	pthread_cond_t given; /* with lock: `used` became less */
	uint64_t used;	      /* lock */
};

void budget_init(struct budget *b);
void budget_destroy(struct budget *b);

/* Waits for as long as it takes: those that have taken are at work, and give. */
void budget_take(struct budget *b, uint64_t bytes);
void budget_give(struct budget *b, uint64_t bytes);

#endif
