/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_seek.c - going on somewhere else, in the middle of anything: storms of seek, resume, next and
 * release
 *
 * A thousand calls drawn from a seed are compared with a model that knows where the next batch must
 * come from.  A seek that forgets nothing, and one that lets a slot be used while it is still being
 * filled, must be noticed.
 *
 * LDFLAGS: -Wl,--wrap=slot_fill,--wrap=crew_move,--wrap=crew_rest,--wrap=crew_use_orders
 * LDFLAGS: -Wl,--wrap=mem_array
 * TIMEOUT: 300
 */
#include "libshard/base/mem.h"
#include "tests/load/inject.h"

static const uint64_t sizes[] = {40, 1, 0, 62};
static struct wanted wanted;

/* ---- broken twins, and memory that is not there ---- */

static enum { MOVES, STAYS, FREES_TOO_EARLY, WAITS, DOES_NOT_REST } seeking;
static atomic_bool no_memory;

void __real_crew_move(struct crew *c, struct step_place to);
void __wrap_crew_move(struct crew *c, struct step_place to);
void __real_crew_rest(struct crew *c);
void __wrap_crew_rest(struct crew *c);
void __real_crew_use_orders(struct crew *c, struct epoch_orders *orders);
void __wrap_crew_use_orders(struct crew *c, struct epoch_orders *orders);
void *__real_mem_array(size_t count, size_t item_bytes);
void *__wrap_mem_array(size_t count, size_t item_bytes);

void __wrap_crew_move(struct crew *c, struct step_place to)
{
	if (seeking == STAYS)
		return;
	if (seeking == FREES_TOO_EARLY) {
		pthread_mutex_lock(&c->lock);
		for (uint32_t i = 0; i < c->ring->slot_count; i++)
			if (c->claim[i].state == CLAIM_FILLING)
				c->claim[i].state = CLAIM_READY; /* as if no thread were in it */
		pthread_mutex_unlock(&c->lock);
	}
	if (seeking == WAITS)
		__real_crew_rest(c);
	__real_crew_move(c, to);
}

/* Without waiting for threads that still fill slots in the old order. */
void __wrap_crew_rest(struct crew *c)
{
	if (seeking != DOES_NOT_REST)
		__real_crew_rest(c);
}

/* Only resume comes here; the tables of the old order are about to be freed. */
void __wrap_crew_use_orders(struct crew *c, struct epoch_orders *orders)
{
	pthread_mutex_lock(&c->lock);
	if (c->busy)
		complain(&wanted, "a token takes the order away from threads that use it");
	pthread_mutex_unlock(&c->lock);
	__real_crew_rest(c); /* the control shall not crash */
	__real_crew_use_orders(c, orders);
}

void *__wrap_mem_array(size_t count, size_t item_bytes)
{
	return no_memory ? NULL : __real_mem_array(count, item_bytes);
}

/* ---- storms ---- */

static void seek_somewhere(struct shard_loader *l, struct prng *p)
{
	uint64_t epoch = prng_below(p, EPOCHS - 2), position = prng_below(p, record_total + 1);
	struct shard_error err = {.message = ""};
	char token[SHARD_TOKEN_BYTES];

	if (prng_below(p, 2)) { /* to where we are, as a token */
		shard_loader_tell(l, &epoch, &position);
		shard_loader_token(l, token);
		if (shard_loader_resume(l, token, &err))
			complain(&wanted, "resume: %s", err.message);
	} else if (shard_loader_seek(l, epoch, position, &err)) {
		complain(&wanted, "seek: %s", err.message);
	}
	wanted_seek(&wanted, epoch, position);
}

static void check_place(const struct shard_loader *l)
{
	bool ended = !steps_left(&wanted);
	uint64_t epoch, position;

	shard_loader_tell(l, &epoch, &position);
	if (epoch != wanted.epoch + ended ||
	    position != (ended ? 0 : wanted.first + wanted.step * step_records(&wanted)))
		complain(&wanted, "told epoch %" PRIu64 ", position %" PRIu64 " instead of %" PRIu64 ", %" PRIu64,
			 epoch, position, wanted.epoch, wanted.first);
}

static void storm(struct shard_loader_options o, uint64_t seed, unsigned rounds)
{
	struct prng p = {seed};
	struct lent lent = {.count = 0};
	struct shard_loader *l;

	wanted_open(&wanted, o);
	l = loader_of(&wanted);
	inject_watch(l);
	while (rounds-- && !wanted.complaint[0]) {
		uint64_t what = prng_below(&p, 10);

		check_place(l);
		if (what < 3 || wanted.epoch + 2 >= EPOCHS)
			seek_somewhere(l, &p);
		else
			consume(&wanted, l, &lent, &p, (unsigned)prng_below(&p, what < 9 ? 3 : 15), o.slot_count - 1);
		if (what == 5)
			give_all(&wanted, l, &lent);
	}
	close_loader(l);
	if (atomic_load(&together))
		complain(&wanted, "two threads in one slot");
	if (atomic_load(&while_lent))
		complain(&wanted, "a slot was filled while it was lent");
}

TEST(a_thousand_calls_of_every_kind)
{
	static const struct shard_loader_options shapes[] = {
		{.batch_records = 7, .slot_count = 4, .thread_count = 1, .tail = SHARD_DROP},
		{.batch_records = 9, .slot_count = 2, .thread_count = 3, .tail = SHARD_KEEP},
		{.batch_records = 5, .slot_count = 9, .thread_count = 8, .tail = SHARD_PAD, .rank = 1, .world = 3},
		{.batch_records = 50, .slot_count = 5, .thread_count = 4, .tail = SHARD_PAD, .rank = 1, .world = 2},
		{.batch_records = 1, .slot_count = 3, .thread_count = 2, .tail = SHARD_DROP, .rank = 6, .world = 7},
	};

	alarm(250);
	for (uint32_t side = 8; side <= 40; side += 32) {
		open_photos(side, SHARD_RAW, sizes, COUNT(sizes));
		for (size_t i = 0; i < COUNT(shapes); i++)
			for (uint32_t shuffle = SHARD_SEQUENTIAL; shuffle <= SHARD_SHUFFLE_WINDOWS; shuffle++)
				for (unsigned delay = 0; delay <= 200; delay += 200) {
					struct shard_loader_options o = shapes[i];

					STORY("side %u, shape %zu, shuffle %u, delay %u us", side, i, shuffle, delay);
					inject_nothing();
					inject.delay_us = delay;
					o.order.shuffle = shuffle;
					o.order.seed = i;
					storm(o, delay + i * 3 + shuffle, delay ? 150 : 1000);
					CHECK_NO_COMPLAINT(&wanted);
				}
	}
	alarm(0);
}

TEST(broken_seeks_are_noticed)
{
	const struct shard_loader_options o = {.batch_records = 7, .slot_count = 4, .thread_count = 2, .order.seed = 3};

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	alarm(120);
	STORY("it forgets nothing");
	inject_nothing();
	seeking = STAYS;
	storm(o, 1, 1000);
	seeking = MOVES;
	CHECK(strstr(wanted.complaint, "came instead of"));
#if !defined(__SANITIZE_THREAD__)
	STORY("it frees slots that threads are in");
	wanted.complaint[0] = 0;
	/* the first of them was enough 48 times of 48 */
	for (uint64_t seed = 1; seed <= 20 && !wanted.complaint[0]; seed++) {
		inject_nothing();
		inject.delay_us = 300;
		seeking = FREES_TOO_EARLY;
		storm(o, seed, 1000);
		seeking = MOVES;
	}
	CHECK(wanted.complaint[0]);
#endif
	STORY("a slot that is not filled");
	inject_nothing();
	inject.broken = STALE_SLOT;
	storm(o, 1, 1000);
	CHECK(strstr(wanted.complaint, "is not that of record"));
	alarm(0);
}

/* Once somebody waits for the threads. */
static void *open_gate(void *context)
{
	struct crew *c = context;

	for (bool awaited = false; !awaited; usleep(500)) {
		pthread_mutex_lock(&c->lock);
		awaited = c->resting;
		pthread_mutex_unlock(&c->lock);
	}
	set_gate(true);
	return NULL;
}

/*
 * A hundred seeks while three threads stand still in the middle of filling; if they wait for these,
 * the gate is opened.
 */
static void seek_while_busy(bool wait)
{
	struct shard_loader *l;
	struct shard_batch b;
	pthread_t thread;

	inject_nothing();
	inject.meanwhile = behind_gate;
	set_gate(true);
	wanted_open(&wanted, (struct shard_loader_options){.batch_records = 7, .slot_count = 4, .thread_count = 3});
	l = loader_of(&wanted);
	CHECK_EQ(wanted_next(&wanted, l, &b), SHARD_OK);
	wait_until_full(l);
	set_gate(false);
	CHECK_OK(shard_loader_seek(l, 1, 0, &fixture_err));
	while (atomic_load(&behind) < 3)
		usleep(500);
	if (wait)
		CHECK_EQ(pthread_create(&thread, NULL, open_gate, &l->feed->crew), 0);
	for (uint64_t i = 0; i < 100; i++)
		CHECK_OK(shard_loader_seek(l, i % 3, i, &fixture_err));
	check_rows(&wanted, &b); /* lent before, and still what it was */
	CHECK_NO_COMPLAINT(&wanted);
	if (wait)
		pthread_join(thread, NULL);
	set_gate(true);
	wanted_seek(&wanted, 0, 99);
	CHECK_EQ(wanted_next(&wanted, l, &b), SHARD_END);
	close_loader(l);
	CHECK_NO_COMPLAINT(&wanted);
}

/* A seek waits for nobody: threads that are in the middle of something finish it for nothing. */
TEST(seek_does_not_wait)
{
	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	alarm(250); /* a hang: the gate opens only for a consumer that waits */
	seek_while_busy(false);
	STORY("a seek that does");
	seeking = WAITS;
	seek_while_busy(true);
	seeking = MOVES;
	alarm(0);
}

/* ---- another order, in the middle of one ---- */

static const struct shard_loader_options other_windows = {.batch_records = 4,
							  .order.seed = 3,
							  .order.shuffle = SHARD_SHUFFLE_WINDOWS,
							  .order.run_records = 5,
							  .order.window_runs = 2,
							  .order.lane_count = 3,
							  .order.phase_unit_records = 2};

/* A token of windows that are not the defaults, at this place. */
static void token_of(struct shard_loader_options o, uint64_t epoch, uint64_t position, char token[SHARD_TOKEN_BYTES])
{
	struct shard_loader *l;

	o.size = sizeof(o);
	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	CHECK_OK(shard_loader_seek(l, epoch, position, &fixture_err));
	shard_loader_token(l, token);
	shard_loader_close(l);
}

static void change_order_in_the_middle(uint32_t threads, unsigned calls)
{
	const struct shard_loader_options o = {
		.batch_records = 7, .order.seed = 3, .slot_count = 5, .thread_count = threads};
	struct lent lent = {.count = 0};
	char token[SHARD_TOKEN_BYTES];
	struct shard_loader *l;
	struct wanted first;
	struct prng p = {calls};

	token_of(other_windows, 1, 30, token);
	wanted_open(&wanted, other_windows); /* what must come then */
	wanted.o.batch_records = 7;
	wanted_open(&first, o);
	l = loader_of(&first);
	consume(&first, l, &lent, &p, calls, 3);
	CHECK_NO_COMPLAINT(&first);
	CHECK_OK(shard_loader_resume(l, token, &fixture_err));
	wanted_seek(&wanted, 1, 30);
	for (unsigned i = 0; i < lent.count; i++)
		check_rows(&first, &lent.batch[i]); /* they stay what they were */
	CHECK_NO_COMPLAINT(&first);
	while (lent.count)
		CHECK_OK(shard_loader_release(l, &lent.batch[--lent.count], &fixture_err));
	consume(&wanted, l, &lent, &p, 30, 4);
	close_loader(l);
}

TEST(a_token_changes_the_order_of_a_running_loader)
{
	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	alarm(120);
	for (uint32_t threads = 1; threads <= 4; threads++)
		for (unsigned calls = 0; calls < 20; calls += 3) {
			STORY("%u threads, after %u calls", threads, calls);
			inject_nothing();
			inject.delay_us = 300;
			change_order_in_the_middle(threads, calls);
			CHECK_NO_COMPLAINT(&wanted);
		}
	STORY("without waiting for the threads");
	seeking = DOES_NOT_REST;
	for (int i = 0; i < 50; i++) { /* until a thread is in the middle of something */
		inject_nothing();
		inject.delay_us = 20000;
		change_order_in_the_middle(4, 2);
		if (wanted.complaint[0])
			break;
	}
	seeking = MOVES;
	CHECK(strstr(wanted.complaint, "takes the order away"));
	alarm(0);
}

/*
 * Resume to another order needs memory.  Without it the loader must stay usable: where it was, and
 * for another try.
 */
TEST(no_memory_for_another_order)
{
	for (uint32_t threads = 1; threads <= 2; threads++)
		for (int then = 0; then < 3; then++) {
			const struct shard_loader_options o = {
				.batch_records = 7, .order.seed = 3, .thread_count = threads};
			struct shard_error err = {.message = ""};
			char token[SHARD_TOKEN_BYTES];
			struct shard_loader *l;
			struct shard_batch b;

			STORY("%u threads, then %s", threads,
			      then == 0	  ? "close"
			      : then == 1 ? "seek"
					  : "resume again");
			open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
			inject_nothing();
			token_of(other_windows, 1, 30, token);
			wanted_open(&wanted, o);
			l = loader_of(&wanted);
			CHECK_EQ(wanted_next(&wanted, l, &b), SHARD_OK);
			wait_until_full(l); /* so that no thread asks for memory now */
			no_memory = true;
			CHECK_EQ(shard_loader_resume(l, token, &err), SHARD_E_MEMORY);
			no_memory = false;
			check_rows(&wanted, &b);
			if (then == 1) { /* in the order that it had */
				CHECK_OK(shard_loader_seek(l, 2, 7, &fixture_err));
				wanted_seek(&wanted, 2, 7);
				CHECK_EQ(wanted_next(&wanted, l, &b), SHARD_OK);
			} else if (then == 2) {
				CHECK_OK(shard_loader_resume(l, token, &fixture_err));
				wanted_open(&wanted, other_windows);
				wanted.o.batch_records = 7;
				wanted_seek(&wanted, 1, 30);
				CHECK_EQ(wanted_next(&wanted, l, &b), SHARD_OK);
			}
			CHECK_NO_COMPLAINT(&wanted);
			close_loader(l);
		}
}

TEST_MAIN()
