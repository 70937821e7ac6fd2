/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_turns.c - turns limit how many threads compute, and a writer has none while it waits
 *
 * LDFLAGS: -Wl,--wrap=sha256_update,--wrap=checksum64
 * LDFLAGS: -Wl,--wrap=file_temp_sync,--wrap=read_ahead_wait,--wrap=drain_put,--wrap=drain_wait
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "libshard/base/turns.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"
#include "libshard/verify/verify.h"
#include "libshard/write/write.h"
#include "shard_pack.h"
#include "tests/store/fixture.h"

static _Thread_local int held;		/* turns of this thread */
static atomic_int taken, most;		/* of all threads, now and ever */
static atomic_int hashed_without;	/* bytes were hashed by a thread without a turn */
static atomic_int waited_with;		/* a thread waited for the disk and kept its turn */
static atomic_int hashed_by_sha, waits; /* how often either happened */
static bool watching;

void __real_sha256_update(struct sha256 *s, const void *data, size_t bytes);
void __wrap_sha256_update(struct sha256 *s, const void *data, size_t bytes);
uint64_t __real_checksum64(const void *data, size_t bytes);
uint64_t __wrap_checksum64(const void *data, size_t bytes);
int __real_file_temp_sync(struct file_temp *t, struct shard_error *err);
int __wrap_file_temp_sync(struct file_temp *t, struct shard_error *err);
int __real_read_ahead_wait(struct read_ahead *f, unsigned which, size_t bytes, struct shard_error *err);
int __wrap_read_ahead_wait(struct read_ahead *f, unsigned which, size_t bytes, struct shard_error *err);
int __real_drain_put(struct drain *d, size_t bytes, struct shard_error *err);
int __wrap_drain_put(struct drain *d, size_t bytes, struct shard_error *err);
int __real_drain_wait(struct drain *d, struct shard_error *err);
int __wrap_drain_wait(struct drain *d, struct shard_error *err);

static void computes(void)
{
	hashed_without += watching && held != 1;
}

static void waits_now(void)
{
	waits += watching;
	waited_with += watching && held != 0;
}

void __wrap_sha256_update(struct sha256 *s, const void *data, size_t bytes)
{
	computes();
	hashed_by_sha += watching;
	__real_sha256_update(s, data, bytes);
}

uint64_t __wrap_checksum64(const void *data, size_t bytes)
{
	computes();
	return __real_checksum64(data, bytes);
}

int __wrap_file_temp_sync(struct file_temp *t, struct shard_error *err)
{
	waits_now();
	return __real_file_temp_sync(t, err);
}

int __wrap_read_ahead_wait(struct read_ahead *f, unsigned which, size_t bytes, struct shard_error *err)
{
	waits_now();
	return __real_read_ahead_wait(f, which, bytes, err);
}

int __wrap_drain_put(struct drain *d, size_t bytes, struct shard_error *err)
{
	waits_now();
	return __real_drain_put(d, bytes, err);
}

int __wrap_drain_wait(struct drain *d, struct shard_error *err)
{
	waits_now();
	return __real_drain_wait(d, err);
}

/* ---- turns alone ---- */

#define THREADS	 8
#define PER_EACH 200

static struct shard_turns *turns;
static atomic_int computing, most_computing;

static void *compute(void *context)
{
	(void)context;
	for (int i = 0; i < PER_EACH; i++) {
		int now;

		turns_take(turns);
		now = ++computing;
		if (now > most_computing)
			most_computing = now;
		sched_yield();
		computing--;
		turns_give(turns);
	}
	return NULL;
}

TEST(no_more_threads_than_turns_compute)
{
	for (uint32_t count = 1; count <= 3; count++) {
		pthread_t thread[THREADS];

		STORY("%u turns", count);
		turns = turns_open(count);
		CHECK(turns);
		most_computing = 0;
		for (int i = 0; i < THREADS; i++)
			CHECK_EQ(pthread_create(&thread[i], NULL, compute, NULL), 0);
		for (int i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
		CHECK(most_computing >= 1 && most_computing <= (int)count);
		for (uint32_t i = 0; i < count; i++) /* all of them are free again */
			turns_take(turns);
		for (uint32_t i = 0; i < count; i++)
			turns_give(turns);
		turns_close(turns);
	}
	turns_close(NULL);
}

/* ---- a writer ---- */

#define RECORD_BYTES 65536u
#define RECORDS	     200u /* several buffers of output, and several pieces that are read back */

/* What the writer calls; `context` is the turns of which this takes one. */
static void take_counted(void *context)
{
	turns_take(context);
	held++;
	if (++taken > most)
		most = taken;
}

static void give_counted(void *context)
{
	held--;
	taken--;
	turns_give(context);
}

static void write_in_turns(const char *path, bool skip_read_back, const struct shard_turns *with)
{
	struct shard_schema schema = {.group_count = 1,
				      .field_count = 1,
				      .field = {{.name = "x", .dtype = SHARD_U8, .ndim = 1, .shape = {RECORD_BYTES}}}};
	struct shard_writer_options o = {
		.size = sizeof(o), .planned_records = RECORDS, .skip_read_back = skip_read_back, .turns = with};
	static uint8_t record[RECORD_BYTES];
	const void *group[] = {record};
	struct shard_writer *w;

	unlink(path);
	CHECK_OK(shard_schema_lay_out(&schema, 0, &fixture_err));
	CHECK_OK(shard_writer_open(&w, path, &schema, &o, &fixture_err));
	watching = true;
	hashed_without = waited_with = hashed_by_sha = waits = 0;
	most = 0;
	for (uint32_t i = 0; i < RECORDS; i++) {
		memset(record, (int)i, sizeof(record));
		turns_take(with);
		CHECK_OK(shard_writer_append(w, group, NULL, 0, &fixture_err));
		turns_give(with);
	}
	turns_take(with);
	CHECK_OK(shard_writer_finish(w, NULL, &fixture_err));
	CHECK_EQ(held, with ? 1 : 0);
	turns_give(with);
	watching = false;
	shard_writer_close(w);
	unlink(path);
}

TEST(a_writer_computes_in_turns_and_waits_without)
{
	struct shard_turns *one, counted = {.take = take_counted, .give = give_counted};
	struct path p;

	tmp(&p, "t_turns.%d.shard", (int)getpid());
	for (int skip = 0; skip < 2; skip++) {
		STORY(skip ? "not read back" : "read back");
		counted.context = one = turns_open(1);
		CHECK(one);
		write_in_turns(p.text, skip, &counted);
		turns_close(one);
		CHECK_EQ(hashed_without, 0);
		CHECK_EQ(waited_with, 0);
		CHECK_EQ(most, 1);
		CHECK(hashed_by_sha > 1 && waits > 8);
	}
	/* The counters count: without turns, everything is hashed without one. */
	write_in_turns(p.text, false, NULL);
	CHECK(hashed_without > (int)RECORDS && !waited_with && !most);
}

TEST_MAIN()
