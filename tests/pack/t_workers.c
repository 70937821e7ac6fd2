/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_workers.c - tickets are taken in order and once, however few threads and slots there are, and
 * however seldom the taker is woken
 */
#include "tools/common/workers.h"

#include "libshard/base/turns.h"
#include "tests/test.h"
#include "tools/common/message.h"

#define TICKETS 300

struct job {
	uint64_t assigned, given_back; /* tickets so far */
	uint64_t ticket[TICKETS];      /* of a slot */
	bool worked[TICKETS];	       /* of a slot */
};

static void *begin(void *context)
{
	return context;
}

static void end(void *own)
{
	(void)own;
}

static void assign(void *context, uint64_t slot)
{
	struct job *j = context;

	j->ticket[slot] = j->assigned++;
	j->worked[slot] = false;
}

static void work(void *context, void *own, uint64_t slot)
{
	struct job *j = context;

	(void)own;
	j->worked[slot] = true;
}

static void give_back(void *context, uint64_t slot)
{
	struct job *j = context;

	(void)slot;
	j->given_back++;
}

/*
 * Take all of them; those that are there already without waiting, if `eager`.  With a `step` so
 * many are allowed at a time, and none is started before.
 */
static void take_all(unsigned workers, uint64_t slots, unsigned wake_count, bool eager, uint64_t step)
{
	struct job j = {.assigned = 0};
	struct progress progress = {0};
	struct workers_options o = {.ticket_count = TICKETS,
				    .slot_count = slots,
				    .worker_count = workers,
				    .wake_count = wake_count,
				    .on_demand = step != 0,
				    .progress = &progress,
				    .context = &j,
				    .begin = begin,
				    .end = end,
				    .assign = assign,
				    .work = work,
				    .give_back = give_back};
	struct workers *w;
	uint64_t slot;

	o.turns = turns_open(1);
	CHECK(o.turns);
	CHECK_EQ(workers_open(&w, &o), EXIT_DONE);
	for (uint64_t i = 0; i < TICKETS; i++) {
		if (step && i % step == 0) {
			CHECK_EQ(workers_next_now(w), WORKERS_NO_SLOT);
			workers_allow(w, TICKETS - i < step ? TICKETS - i : step);
		}
		slot = i && eager ? workers_next_now(w) : WORKERS_NO_SLOT;
		if (slot == WORKERS_NO_SLOT)
			CHECK_EQ(workers_next(w, &slot), EXIT_DONE);
		CHECK(slot < slots && j.worked[slot]);
		CHECK_EQ(j.ticket[slot], i);
		workers_release(w);
	}
	CHECK_EQ(workers_next_now(w), WORKERS_NO_SLOT);
	CHECK_EQ(workers_next(w, &slot), EXIT_DONE);
	CHECK_EQ(slot, WORKERS_NO_SLOT);
	workers_close(w);
	turns_close(o.turns);
	CHECK_EQ(j.given_back, TICKETS);
}

TEST(tickets_come_in_order_and_once)
{
	static const unsigned workers[] = {1, 3}, wakes[] = {0, 1, WORKERS_AT_ONCE, 1000};
	static const uint64_t slots[] = {1, 2, 7, TICKETS}, steps[] = {0, 1, 13};

	for (size_t k = 0; k < 2; k++)
		for (size_t s = 0; s < 4; s++)
			for (size_t n = 0; n < 4; n++)
				for (int eager = 0; eager < 2; eager++)
					for (size_t a = 0; a < 3; a++) {
						STORY("%u workers, %" PRIu64 " slots, woken at %u%s, %" PRIu64
						      " allowed",
						      workers[k], slots[s], wakes[n], eager ? ", eager" : "", steps[a]);
						take_all(workers[k], slots[s], wakes[n], eager, steps[a]);
					}
}

TEST_MAIN()
