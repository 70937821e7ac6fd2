/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_fork.c - a loader and the processes that are forked from its own
 *
 * Children are forked while threads open shards and fill slots.  A ring that children inherit, one
 * whose memory stays out of children for ever and a dataset with a lock must be noticed.
 *
 * LDFLAGS: -Wl,--wrap=slot_fill,--wrap=buffer_open,--wrap=buffer_keep,--wrap=buffer_close
 * LDFLAGS: -Wl,--wrap=dataset_use_shard
 * TIMEOUT: 300
 */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "libshard/base/mem.h"
#include "libshard/dataset/dataset.h"
#include "libshard/io/io.h"
#include "shard_inspect.h"
#include "tests/child.h"
#include "tests/load/inject.h"

#if defined(__SANITIZE_THREAD__)
#define FORKS	  0 /* the sanitizer takes a child's threads for its parent's */
#define SANITIZED 1
#elif defined(__SANITIZE_ADDRESS__)
#define FORKS	  0 /* its allocator may be locked by another thread at the fork, and then stays so in the child */
#define SANITIZED 1
#else
#define FORKS	  200
#define SANITIZED 0
#endif

static const uint64_t sizes[] = {5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 8};
static struct wanted wanted;

/* ---- broken twins ---- */

static bool inherit_ring, never_inherit_again, lock_dataset;
static pthread_mutex_t dataset_lock = PTHREAD_MUTEX_INITIALIZER;

void *__real_buffer_open(size_t bytes);
void *__wrap_buffer_open(size_t bytes);
void __real_buffer_keep(void *buffer, size_t bytes);
void __wrap_buffer_keep(void *buffer, size_t bytes);
void __real_buffer_close(void *buffer, size_t bytes);
void __wrap_buffer_close(void *buffer, size_t bytes);
int __real_dataset_use_shard(struct shard_dataset *d, uint64_t idx, struct shard_reader **out, struct shard_error *err);
int __wrap_dataset_use_shard(struct shard_dataset *d, uint64_t idx, struct shard_reader **out, struct shard_error *err);

static struct {
	_Atomic(const uint8_t *) memory;
	atomic_size_t bytes;
} buffer[LENT_CAP]; /* what was opened since the scene was */
static atomic_uint buffers;

void *__wrap_buffer_open(size_t bytes)
{
	void *p = __real_buffer_open(bytes);
	unsigned i = atomic_fetch_add(&buffers, 1);

	if (i < LENT_CAP) {
		buffer[i].memory = p;
		buffer[i].bytes = bytes;
	}
	return p;
}

void __wrap_buffer_keep(void *memory, size_t bytes)
{
	if (!inherit_ring)
		__real_buffer_keep(memory, bytes);
}

void __wrap_buffer_close(void *memory, size_t bytes)
{
	if (never_inherit_again)
		mem_free(memory);
	else
		__real_buffer_close(memory, bytes);
}

int __wrap_dataset_use_shard(struct shard_dataset *d, uint64_t idx, struct shard_reader **out, struct shard_error *err)
{
	int rc;

	if (!lock_dataset)
		return __real_dataset_use_shard(d, idx, out, err);
	pthread_mutex_lock(&dataset_lock);
	usleep(500);
	rc = __real_dataset_use_shard(d, idx, out, err);
	pthread_mutex_unlock(&dataset_lock);
	return rc;
}

/* ---- children ---- */

struct scene {
	struct shard_loader *l; /* the parent's, at work */
	struct shard_batch b;	/* lent */
	const uint8_t *memory;
	size_t bytes;
};

static unsigned child_seconds = 120; /* then it hangs */

/* How a child ended that ran this. */
static int in_child(int (*story)(const struct scene *), const struct scene *scene)
{
	pid_t pid;

	if (child_begin(&pid, child_seconds))
		_exit(story(scene));
	return child_end(pid);
}

static void scene_open(struct scene *s, struct shard_loader_options o)
{
	if (!SANITIZED)
		reopen(NULL);
	wanted_open(&wanted, o);
	s->l = loader_of(&wanted);
	CHECK_EQ(wanted_next(&wanted, s->l, &s->b), SHARD_OK);
}

static bool refused(int rc, const struct shard_error *err)
{
	return rc == SHARD_E_ARGUMENT && strstr(err->message, "belongs to process");
}

/*
 * Everything that would need the parent's threads is refused; what is arithmetic works; closing
 * does not wait for anybody.
 */
static int use_the_parents_loader(const struct scene *s)
{
	struct shard_error err = {.message = ""};
	struct shard_loader_stats stats, none;
	char token[SHARD_TOKEN_BYTES];
	uint64_t epoch, position, idx[7];
	struct shard_batch b = s->b;

	for (int i = 0; i < 3; i++)
		if (!refused(shard_loader_next(s->l, &b, &err), &err))
			return 1;
	if (!refused(shard_loader_release(s->l, &s->b, &err), &err))
		return 2;
	if (!refused(shard_loader_seek(s->l, 1, 0, &err), &err))
		return 3;
	shard_loader_token(s->l, token);
	if (!refused(shard_loader_resume(s->l, token, &err), &err))
		return 4;
	shard_loader_tell(s->l, &epoch, &position);
	if (epoch != wanted.epoch || position != wanted.step * 7)
		return 5;
	if (shard_loader_order(s->l, 0, 0, 7, NULL, idx, NULL) || memcmp(idx, wanted.order[0], sizeof(idx)))
		return 6;
	memset(&none, 0, sizeof(none));
	shard_loader_stats(s->l, &stats);
	if (memcmp(&stats, &none, sizeof(none)))
		return 7;
	shard_loader_close(s->l);
	return 0;
}

TEST(a_child_cannot_use_its_parents_loader_but_close_it)
{
	struct lent lent = {.count = 0};
	struct prng p = {1};
	struct scene s;

	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	for (int round = 0; round < 20; round++) {
		STORY("round %d", round);
		inject_nothing();
		inject.delay_us = 2000;
		scene_open(&s, (struct shard_loader_options){.batch_records = 7, .slot_count = 5, .thread_count = 3});
		usleep((unsigned)prng_below(&p, 3000));
		CHECK_EQ(in_child(use_the_parents_loader, &s), 0);
		check_rows(&wanted, &s.b); /* the parent goes on */
		CHECK_OK(shard_loader_release(s.l, &s.b, &fixture_err));
		consume(&wanted, s.l, &lent, &p, 20, 3);
		give_all(&wanted, s.l, &lent);
		CHECK_NO_COMPLAINT(&wanted);
		close_loader(s.l);
	}
}

/* ---- the ring ---- */

/* Is this memory there?  A system call looks, so that the answer is no signal. */
static bool readable(const void *at)
{
	struct iovec there = {(void *)(uintptr_t)at, 1}, here;
	unsigned char in_memory;
	uint8_t byte;
	bool mapped = !mincore((void *)((uintptr_t)at & ~(uintptr_t)4095), 1, &in_memory);

	here = (struct iovec){&byte, 1};
	if ((process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1) != mapped && errno != ENOSYS && errno != EPERM)
		_exit(9); /* the two must agree */
	return mapped;
}

/* 0: none of it is there.  1: all of it. */
static int look_at(const uint8_t *memory, size_t bytes)
{
	size_t there = 0;

	for (size_t at = 0; at < bytes; at += 4096)
		there += readable(memory + at);
	return there == 0 ? 0 : there == bytes / 4096 ? 1 : 2;
}

/* The same of the ring, and of whatever else disks write to. */
static int look_at_the_buffers(const struct scene *s)
{
	int all = look_at(buffer[0].memory, buffer[0].bytes);

	(void)s;
	for (unsigned i = 1; i < atomic_load(&buffers); i++)
		all = look_at(buffer[i].memory, buffer[i].bytes) == all ? all : 3;
	return all;
}

TEST(children_do_not_inherit_the_ring)
{
	struct shard_batch more;
	struct scene s;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (int broken = 0; broken < 2; broken++)
		for (uint32_t way = SHARD_PATH_AUTO; way <= SHARD_PATH_PREAD; way++) {
			STORY("path %u, %s", way, broken ? "broken" : "sound");
			inherit_ring = broken;
			inject_nothing();
			atomic_store(&buffers, 0);
			scene_open(&s, (struct shard_loader_options){.batch_records = 7,
								     .slot_count = 2 + 3 * way,
								     .thread_count = 2,
								     .path = way});
			wait_until_full(s.l); /* so nobody opens another buffer now */
			CHECK_EQ(buffer[0].bytes, shard_loader_ring_bytes(s.l));
			CHECK((const uint8_t *)s.b.group[0].data >= buffer[0].memory &&
			      (const uint8_t *)s.b.group[0].data < buffer[0].memory + buffer[0].bytes);
			CHECK_EQ(look_at_the_buffers(&s), 1); /* to their own process they are there */
			CHECK_EQ(in_child(look_at_the_buffers, &s), broken ? 1 << 8 : 0);
			CHECK_EQ(in_child(use_the_parents_loader, &s), 0);
			CHECK_EQ(wanted_next(&wanted, s.l, &more), SHARD_OK);
			check_rows(&wanted, &s.b);
			CHECK_NO_COMPLAINT(&wanted);
			close_loader(s.l);
			inherit_ring = false;
		}
}

static int read_it(const struct scene *s)
{
	return look_at(s->memory, s->bytes) != 1 || s->memory[0] != 7 || s->memory[s->bytes - 1] != 7;
}

/*
 * Memory that was a ring, and that malloc gives to somebody else: can children read it?  -1: malloc
 * gave other memory, as it may.
 */
static int child_reads_what_was_a_ring(bool broken)
{
	struct scene s;
	uintptr_t was;
	uint8_t *next;
	int status;

	inject_nothing();
	scene_open(&s, (struct shard_loader_options){.batch_records = 7, .slot_count = 4, .thread_count = 1});
	was = (uintptr_t)s.l->feed->ring.memory;
	s.bytes = shard_loader_ring_bytes(s.l);
	never_inherit_again = broken;
	close_loader(s.l);
	never_inherit_again = false;
	next = buffer_open(s.bytes);
	memset(next, 7, s.bytes);
	s.memory = next;
	status = in_child(read_it, &s);
	if (broken) /* or later children would miss what lies there */
		madvise((void *)was, s.bytes, MADV_DOFORK);
	mem_free(next);
	return (uintptr_t)next == was ? status == 0 : -1;
}

TEST(what_was_a_ring_is_ordinary_memory_again)
{
	int sound = -1, broken = -1;

#if SANITIZED
	return; /* they do not use memory again so soon */
#endif
	mallopt(M_MMAP_THRESHOLD, 1 << 30); /* so that memory is used again, and not given back to the system */
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (int i = 0; i < 20 && sound < 0; i++)
		sound = child_reads_what_was_a_ring(false);
	for (int i = 0; i < 20 && broken < 0; i++)
		broken = child_reads_what_was_a_ring(true);
	CHECK_EQ(sound, 1);
	CHECK_EQ(broken, 0);
}

/* ---- a loader of its own ---- */

static int run_an_own_loader(const struct scene *s)
{
	struct lent lent = {.count = 0};
	struct prng p = {2};
	struct shard_loader *l;

	on_lent = NULL;
	wanted_seek(&wanted, 0, 0);
	l = loader_of(&wanted);
	consume(&wanted, l, &lent, &p, (unsigned)shard_loader_step_count(l) + 3, 2);
	close_loader(l);
	close_loader(s->l);
	if (wanted.complaint[0])
		printf("in the child: %s\n", wanted.complaint);
	return wanted.complaint[0] ? 1 : 0;
}

/*
 * While the parent's threads open shards, check units and wait for slots.  A sanitizer's own malloc
 * is not made for fork, so with one all shards are open already.
 */
static int fork_while_busy(int rounds)
{
	struct prng p = {5};
	int status = 0;

	for (uint64_t i = 0; SANITIZED && i < COUNT(sizes); i++) {
		struct shard_reader *r;

		CHECK_OK(shard_dataset_reader(ds, i, &r, &fixture_err));
		for (uint32_t g = 0; g < schema.group_count; g++)
			CHECK(reader_seen(r, g));
	}

	for (int round = 0; round < rounds && !status; round++) {
		struct scene s;

		inject_nothing();
		inject.delay_us = round % 2 ? 200 : 0;
		scene_open(&s, (struct shard_loader_options){.batch_records = 7,
							     .slot_count = 6,
							     .thread_count = 3,
							     .order.seed = (uint64_t)round,
							     .order.shuffle = SHARD_SHUFFLE_GLOBAL,
							     .tail = SHARD_KEEP});
		usleep((unsigned)prng_below(&p, 300));
		CHECK_OK(shard_loader_seek(s.l, 1, 0, &fixture_err));
		status = in_child(run_an_own_loader, &s);
		close_loader(s.l);
	}
	return status;
}

TEST(a_child_opens_its_own_loader_while_the_parents_threads_work)
{
	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	CHECK_EQ(fork_while_busy(FORKS), 0);
#if !SANITIZED
	STORY("a dataset with a lock");
	lock_dataset = true;
	child_seconds = 2;
	CHECK_EQ(fork_while_busy(FORKS), SIGALRM); /* it was inherited locked, and no thread can open it */
	lock_dataset = false;
	child_seconds = 120;
#endif
}

TEST_MAIN()
