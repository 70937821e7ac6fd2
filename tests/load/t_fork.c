/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_fork.c - a loader and the processes that are forked from its own, and what is left of one that is killed
 *
 * Children are forked while threads open shards and fill slots.  A ring that children inherit, one whose memory stays out
 * of children for ever, a dataset with a lock and a process that leaves a file behind must be noticed.
 *
 * LDFLAGS: -Wl,--wrap=rows_fill,--wrap=buffer_keep,--wrap=buffer_close,--wrap=shard_dataset_reader
 * TIMEOUT: 300
 */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "libshard/base/mem.h"
#include "libshard/io/buffer.h"
#include "tests/load/inject.h"

#if defined(__SANITIZE_THREAD__)
#define FORKS	  0 /* it takes a child's threads for its parent's */
#define SANITIZED 1
#elif defined(__SANITIZE_ADDRESS__)
#define FORKS	  40
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

void __real_buffer_keep(void *buffer, size_t bytes);
void __wrap_buffer_keep(void *buffer, size_t bytes);
void __real_buffer_close(void *buffer, size_t bytes);
void __wrap_buffer_close(void *buffer, size_t bytes);
int __real_shard_dataset_reader(struct shard_dataset *d, uint64_t idx, struct shard_reader **out, struct shard_error *err);
int __wrap_shard_dataset_reader(struct shard_dataset *d, uint64_t idx, struct shard_reader **out, struct shard_error *err);

void __wrap_buffer_keep(void *buffer, size_t bytes)
{
	if (!inherit_ring)
		__real_buffer_keep(buffer, bytes);
}

void __wrap_buffer_close(void *buffer, size_t bytes)
{
	if (never_inherit_again)
		mem_free(buffer);
	else
		__real_buffer_close(buffer, bytes);
}

int __wrap_shard_dataset_reader(struct shard_dataset *d, uint64_t idx, struct shard_reader **out, struct shard_error *err)
{
	int rc;

	if (!lock_dataset)
		return __real_shard_dataset_reader(d, idx, out, err);
	pthread_mutex_lock(&dataset_lock);
	usleep(500);
	rc = __real_shard_dataset_reader(d, idx, out, err);
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

static unsigned child_seconds = 20; /* then it hangs */

/* How a child ended that ran this. */
static int in_child(int (*story)(const struct scene *), const struct scene *scene)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		alarm(child_seconds);
		_exit(story(scene));
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
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

/* Everything that would need the parent's threads is refused; what is arithmetic works; closing does not wait for anybody. */
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
	if (shard_loader_order(s->l, 0, 0, 7, idx, NULL) || memcmp(idx, wanted.order[0], sizeof(idx)))
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
static int look_at_the_ring(const struct scene *s)
{
	size_t there = 0;

	for (size_t at = 0; at < s->bytes; at += 4096)
		there += readable(s->memory + at);
	return there == 0 ? 0 : there == s->bytes / 4096 ? 1 : 2;
}

TEST(children_do_not_inherit_the_ring)
{
	struct shard_batch more;
	struct scene s;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (int broken = 0; broken < 2; broken++)
		for (uint32_t slots = 2; slots < 10; slots += 7) {
			STORY("%u slots, %s", slots, broken ? "broken" : "sound");
			inherit_ring = broken;
			inject_nothing();
			scene_open(&s, (struct shard_loader_options){.batch_records = 7, .slot_count = slots, .thread_count = 2});
			s.memory = s.l->ring;
			s.bytes = shard_loader_ring_bytes(s.l);
			CHECK((const uint8_t *)s.b.group[0].data >= s.memory && (const uint8_t *)s.b.group[0].data < s.memory + s.bytes);
			CHECK_EQ(look_at_the_ring(&s), 1); /* to its own process it is there */
			CHECK_EQ(in_child(look_at_the_ring, &s), broken ? 1 << 8 : 0);
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
	return look_at_the_ring(s) != 1 || s->memory[0] != 7 || s->memory[s->bytes - 1] != 7;
}

/* Memory that was a ring, and that malloc gives to somebody else: children inherit it as they do all else. */
TEST(what_was_a_ring_is_ordinary_memory_again)
{
	struct scene s;

	mallopt(M_MMAP_THRESHOLD, 1 << 30); /* so that memory is used again, and not given back to the system */
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (int broken = 0; broken < 2; broken++) {
		uintptr_t was;
		uint8_t *next;

		never_inherit_again = broken;
		inject_nothing();
		scene_open(&s, (struct shard_loader_options){.batch_records = 7, .slot_count = 4, .thread_count = 1});
		was = (uintptr_t)s.l->ring;
		s.bytes = shard_loader_ring_bytes(s.l);
		close_loader(s.l);
		never_inherit_again = false;
		next = buffer_open(s.bytes);
		memset(next, 7, s.bytes);
		s.memory = next;
		if (!broken)
			CHECK_EQ(in_child(read_it, &s), 0);
		else if (!SANITIZED) /* whose memory is not used again so soon */
			CHECK(in_child(read_it, &s) != 0);
		CHECK(SANITIZED || (uintptr_t)next == was);
		buffer_close(next, s.bytes); /* which mends what was broken */
	}
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
 * While the parent's threads open shards, check units and wait for slots.  A sanitizer's own malloc is not made for fork,
 * so with one all shards are open already.
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
		scene_open(&s, (struct shard_loader_options){.batch_records = 7, .slot_count = 6, .thread_count = 3, .seed = (uint64_t)round,
							     .shuffle = SHARD_SHUFFLE_GLOBAL, .tail = SHARD_KEEP});
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
	CHECK_EQ(fork_while_busy(FORKS), SIGALRM); /* inherited locked, and nobody is there who could open it */
	lock_dataset = false;
	child_seconds = 20;
#endif
}

/* ---- killed ---- */

/* Does a process have anything in its hands that would outlive it: named memory, or a file below `dir` that is no shard? */
static bool holds_something(pid_t pid, const char *dir)
{
	char line[4096], name[64];
	bool found = false;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	f = fopen(name, "r");
	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (!strstr(line, "(deleted)")) /* that goes with the process */
			found = found || strstr(line, "/dev/shm") || strstr(line, "/SYSV") ||
				(strstr(line, dir) && !strstr(line, ".shard") && !strstr(line, "/tests/load/"));
	fclose(f);
	return found;
}

static int reporting; /* the pipe on which a child says that it is at work */

static int work_until_killed(const struct scene *s)
{
	struct lent lent = {.count = 0};
	struct prng p = {4};
	struct shard_loader *l;
	struct path leak;
	int fd;

	wanted_seek(&wanted, 0, 0);
	l = loader_of(&wanted);
	consume(&wanted, l, &lent, &p, 5, 3);
	if (s->bytes) { /* the control: a file beside the shards, mapped */
		fd = open(tmp(&leak, "ring"), O_CREAT | O_RDWR, 0600);
		if (fd < 0 || ftruncate(fd, 4096) || mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
			return 1;
	}
	if (write(reporting, "x", 1) != 1)
		return 1;
	for (;;) {
		wanted_seek(&wanted, 0, 0);
		if (shard_loader_seek(l, 0, 0, NULL))
			return 1;
		consume(&wanted, l, &lent, &p, 10, 3);
	}
}

/* Did a process that was killed in the middle of loading leave anything? */
static bool killed_leaves_something(bool leaks)
{
	struct path dir;
	struct scene s = {.bytes = leaks};
	unsigned before = entries(tmp(&dir, "."), "");
	int ends[2], status;
	bool held;
	char byte;
	pid_t pid;

	CHECK_EQ(pipe(ends), 0);
	reporting = ends[1];
	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(20);
		_exit(work_until_killed(&s));
	}
	CHECK_EQ(read(ends[0], &byte, 1), 1);
	dir.text[strlen(dir.text) - 2] = 0; /* without the "/." */
	held = holds_something(pid, dir.text);
	usleep(2000);
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, SIGKILL);
	close(ends[0]);
	close(ends[1]);
	return held || entries(dir.text, "") != before;
}

TEST(a_killed_process_leaves_nothing)
{
	struct path leak;

	inject_nothing();
	inject.delay_us = 500;
	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	wanted_open(&wanted, (struct shard_loader_options){.batch_records = 7, .slot_count = 5, .thread_count = 3});
	for (int round = 0; round < 10; round++)
		CHECK(!killed_leaves_something(false));
	CHECK(killed_leaves_something(true));
	unlink(tmp(&leak, "ring"));
}

TEST_MAIN()
