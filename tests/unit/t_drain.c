/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_drain.c - all bytes, in order; filling goes on while a write waits; the first failure is kept
 * and told
 *
 * LDFLAGS: -Wl,--wrap=pthread_create
 */
#include "libshard/write/write.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "libshard/base/error.h"
#include "tests/test.h"

#define BUFFER_BYTES 4096u

static bool no_threads;
static uint8_t memory[2][BUFFER_BYTES], *const buffers[] = {memory[0], memory[1]};

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	return no_threads ? EAGAIN : __real_pthread_create(thread, attr, start, arg);
}

/* Where the bytes go. */
struct sink {
	uint8_t bytes[64 * BUFFER_BYTES];
	size_t used;
	unsigned calls, fail_at; /* the call that fails, from 1; 0: none */
	sem_t *may_go;		 /* NULL: at once */
	bool waited_in_vain;
	pthread_t writer;
};

static int take(void *context, const void *data, size_t bytes, struct shard_error *err)
{
	struct sink *s = context;
	struct timespec until;

	s->writer = pthread_self();
	if (++s->calls == s->fail_at)
		return error_set(err, SHARD_E_IO, "write %u fails", s->calls);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 20;
	if (s->may_go && sem_timedwait(s->may_go, &until))
		s->waited_in_vain = true;
	memcpy(s->bytes + s->used, data, bytes);
	s->used += bytes;
	return SHARD_OK;
}

static void fill(struct drain *d, unsigned turn, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		drain_buffer(d)[i] = (uint8_t)(turn * 31 + i);
}

static void all_arrives(bool in_thread)
{
	static struct sink s;
	struct drain *d;
	size_t at = 0, bytes[60];

	memset(&s, 0, sizeof(s));
	d = drain_open(take, &s, buffers);
	CHECK(d);
	for (unsigned turn = 0; turn < 60; turn++) {
		bytes[turn] = turn % 7 ? BUFFER_BYTES : turn;
		CHECK(drain_buffer(d) == buffers[turn % 2]);
		fill(d, turn, bytes[turn]);
		CHECK_EQ(drain_put(d, bytes[turn], NULL), SHARD_OK);
	}
	CHECK_EQ(drain_wait(d, NULL), SHARD_OK);
	CHECK_EQ(s.calls, 60);
	CHECK_EQ(!pthread_equal(s.writer, pthread_self()), in_thread);
	for (unsigned turn = 0; turn < 60; at += bytes[turn++])
		for (size_t i = 0; i < bytes[turn]; i++)
			CHECK_EQ(s.bytes[at + i], (uint8_t)(turn * 31 + i));
	CHECK_EQ(s.used, at);
	drain_close(d);
}

TEST(all_arrives_in_order)
{
	all_arrives(true);
}

TEST(without_a_thread_it_writes_by_itself)
{
	no_threads = true;
	all_arrives(false);
	no_threads = false;
}

TEST(one_buffer_is_filled_while_the_other_is_written)
{
	static struct sink s;
	struct drain *d;
	sem_t go;

	CHECK_EQ(sem_init(&go, 0, 0), 0);
	memset(&s, 0, sizeof(s));
	s.may_go = &go;
	d = drain_open(take, &s, buffers);
	CHECK(d);
	fill(d, 1, BUFFER_BYTES);
	CHECK_EQ(drain_put(d, BUFFER_BYTES, NULL), SHARD_OK); /* comes back, though nothing may be written yet */
	fill(d, 2, BUFFER_BYTES);			      /* and does not touch what is being written */
	sem_post(&go);
	sem_post(&go);
	CHECK_EQ(drain_put(d, BUFFER_BYTES, NULL), SHARD_OK);
	CHECK_EQ(drain_wait(d, NULL), SHARD_OK);
	CHECK(!s.waited_in_vain);
	CHECK_EQ(s.used, 2 * BUFFER_BYTES);
	CHECK_EQ(s.bytes[0], 31);
	CHECK_EQ(s.bytes[BUFFER_BYTES], 62);
	drain_close(d);
	sem_destroy(&go);
}

static void first_failure_is_kept(void)
{
	static struct sink s;
	struct shard_error err;
	struct drain *d;
	int rc = SHARD_OK;

	memset(&s, 0, sizeof(s));
	s.fail_at = 2;
	d = drain_open(take, &s, buffers);
	CHECK(d);
	for (unsigned turn = 0; turn < 4; turn++)
		rc = drain_put(d, BUFFER_BYTES, &err);
	CHECK_EQ(rc, SHARD_E_IO);
	CHECK_STR(err.message, "write 2 fails");
	memset(&err, 0, sizeof(err));
	CHECK_EQ(drain_wait(d, &err), SHARD_E_IO);
	CHECK_STR(err.message, "write 2 fails");
	CHECK_EQ(s.calls, 2); /* what comes after a failure would leave a hole */
	CHECK_EQ(s.used, BUFFER_BYTES);
	drain_close(d);
}

TEST(the_first_failure_is_kept_and_nothing_is_written_after_it)
{
	first_failure_is_kept();
	no_threads = true;
	first_failure_is_kept();
	no_threads = false;
}

TEST(closed_in_the_middle)
{
	static struct sink s;

	for (unsigned i = 0; i < 200; i++) {
		struct drain *d;

		memset(&s, 0, sizeof(s));
		d = drain_open(take, &s, buffers);
		CHECK(d);
		for (unsigned k = 0; k < i % 4; k++)
			CHECK_EQ(drain_put(d, BUFFER_BYTES, NULL), SHARD_OK);
		drain_close(d);
		CHECK(s.calls <= i % 4);
	}
	drain_close(NULL);
}

TEST_MAIN()
