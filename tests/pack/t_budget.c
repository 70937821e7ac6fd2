/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_budget.c - memory for large images: never more than there is, except for one that is alone
 */
#include "tools/shardpack/make/make.h"

#include "tests/pack/prng.h"
#include "tests/test.h"

#define THREADS 6

struct crowd {
	struct budget budget;
	pthread_mutex_t lock;
	uint64_t bytes, most_bytes; /* lock */
	unsigned count, most_count; /* lock */
	bool alone_was_not;	    /* lock: one larger than the budget met another */
};

struct member {
	struct crowd *crowd;
	uint64_t seed;
};

static void enter(struct crowd *c, uint64_t bytes)
{
	budget_take(&c->budget, bytes);
	pthread_mutex_lock(&c->lock);
	c->bytes += bytes;
	c->count++;
	c->most_bytes = c->most_bytes > c->bytes ? c->most_bytes : c->bytes;
	c->most_count = c->most_count > c->count ? c->most_count : c->count;
	if (c->bytes > BUDGET_BYTES && c->count > 1)
		c->alone_was_not = true;
	pthread_mutex_unlock(&c->lock);
}

static void leave(struct crowd *c, uint64_t bytes)
{
	pthread_mutex_lock(&c->lock);
	c->bytes -= bytes;
	c->count--;
	pthread_mutex_unlock(&c->lock);
	budget_give(&c->budget, bytes);
}

static void *wander(void *context)
{
	struct member *m = context;

	for (uint64_t i = 0; i < 300; i++) {
		uint64_t bytes = prng_at(m->seed, i) % (BUDGET_BYTES / 2);

		if (i % 20 == m->seed)
			bytes = 2 * BUDGET_BYTES;
		enter(m->crowd, bytes);
		usleep((useconds_t)(prng_at(m->seed, i) % 200));
		leave(m->crowd, bytes);
	}
	return NULL;
}

TEST(large_ones_wait_for_each_other)
{
	struct crowd c = {.lock = PTHREAD_MUTEX_INITIALIZER};
	struct member member[THREADS];
	pthread_t thread[THREADS];

	budget_init(&c.budget);
	for (uint64_t i = 0; i < THREADS; i++) {
		member[i] = (struct member){&c, i};
		CHECK_EQ(pthread_create(&thread[i], NULL, wander, &member[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	CHECK_EQ(c.bytes, 0);
	CHECK_EQ(c.budget.used, 0);
	CHECK(!c.alone_was_not);
	CHECK_EQ(c.most_bytes, 2 * BUDGET_BYTES);
	CHECK(c.most_count > 1); /* those that fit beside each other were at work together */
	budget_destroy(&c.budget);
}

TEST_MAIN()
