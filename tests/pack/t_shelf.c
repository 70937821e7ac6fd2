/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_shelf.c - memory that becomes files: its bytes are those of plain memory, a full disk is a
 * refusal, a child reads it, and its sort is that of the C library, without its memory
 *
 * LDFLAGS: -Wl,--wrap=posix_fallocate64
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/child.h"
#include "tests/pack/prng.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/common/text.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED true /* a sanitizer has plain memory of its own for what is mapped or was freed */
#else
#define SANITIZED false
#endif

static int answers[4];		     /* of the next calls, before those of the system */
static unsigned answer_count, calls; /* how many of them, and of all calls */
static bool only_longer;	     /* makes files longer without blocks, as before */

int __real_posix_fallocate64(int fd, off_t offset, off_t bytes);
int __wrap_posix_fallocate64(int fd, off_t offset, off_t bytes);

int __wrap_posix_fallocate64(int fd, off_t offset, off_t bytes)
{
	calls++;
	if (answer_count)
		return answers[--answer_count];
	return only_longer ? ftruncate(fd, offset + bytes) : __real_posix_fallocate64(fd, offset, bytes);
}

/* Random numbers, one after the other. */
struct dice {
	uint64_t seed, thrown;
};

static uint64_t throw(struct dice * d, uint64_t below)
{
	return prng_at(d->seed, d->thrown++) % below;
}

static const char *folder(void)
{
	return getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
}

static struct shelf *open_shelf(void)
{
	struct shelf *s = shelf_open(folder());

	CHECK(s != NULL);
	answer_count = calls = 0;
	return s;
}

/* How many maps of deleted files of this folder this process has; not those of ThreadSanitizer. */
static unsigned maps_of(const char *dir)
{
	FILE *in = fopen("/proc/self/maps", "re");
	char line[8192];
	unsigned count = 0;

	CHECK(in != NULL);
	while (fgets(line, sizeof(line), in))
		count += strstr(line, dir) && strstr(line, "(deleted)") && !strstr(line, "tsan.rodata");
	fclose(in);
	return count;
}

/* One step of a story: some bytes at the end, or a head before them. */
static void step(struct dice *d, struct text *a, struct text *b)
{
	char bytes[5000];
	size_t n = throw(d, sizeof(bytes));
	struct text head = {0};

	for (size_t i = 0; i < n; i++)
		bytes[i] = (char) throw(d, 256);
	if (throw(d, 200)) {
		text_add(a, bytes, n);
		text_add(b, bytes, n);
		text_format(a, "%zu\n", n);
		text_format(b, "%zu\n", n);
		return;
	}
	text_add(&head, bytes, n);
	text_put_before(a, &head);
	text_put_before(b, &head);
	text_free(&head);
}

TEST(a_text_on_a_shelf_is_the_text_in_memory)
{
	struct shelf *s = open_shelf();
	struct text on = {.shelf = s}, plain = {0};
	struct dice d = {.seed = 7};

	while (on.bytes < 24u << 20) {
		step(&d, &on, &plain);
		if (on.capacity_bytes <= SHELF_MEMORY_BYTES)
			CHECK_EQ(maps_of(folder()), 0);
	}
	CHECK(!text_failed(&on) && on.bytes == plain.bytes);
	CHECK(!memcmp(on.data, plain.data, plain.bytes + 1));
	CHECK_EQ(maps_of(folder()), 1);
	CHECK(calls > 1 && calls < 20);
	text_free(&on);
	CHECK_EQ(maps_of(folder()), 0);
	text_free(&plain);
	shelf_close(s);
}

TEST(arrays_and_texts_share_a_shelf)
{
	struct shelf *s = open_shelf();
	struct text text = {.shelf = s};
	uint64_t *numbers = NULL, capacity = 0;
	uint32_t(*triples)[3] = NULL;
	uint64_t triple_capacity = 0;

	for (uint64_t i = 0; i < 1000000; i++) {
		CHECK(grow_on(s, &numbers, &capacity, i + 1, sizeof(*numbers)));
		CHECK(grow_on(s, &triples, &triple_capacity, i + 1, sizeof(*triples)));
		numbers[i] = text.bytes;
		triples[i][0] = triples[i][2] = (uint32_t)i;
		text_format(&text, "%" PRIu64 "\n", i);
	}
	CHECK_EQ(maps_of(folder()), 3);
	for (uint64_t i = 0; i < 1000000; i++)
		CHECK(strtoull(text.data + numbers[i], NULL, 10) == i && triples[i][0] == i && triples[i][2] == i);
	shelf_free(s, numbers);
	CHECK_EQ(maps_of(folder()), 2);
	text_free(&text);
	shelf_close(s); /* and the triples with it */
	CHECK_EQ(maps_of(folder()), 0);
}

/* What shelf_refuse() says, into `out`. */
static void said(const struct shelf *s, char *out, size_t room)
{
	FILE *err = tmpfile();
	pid_t pid;

	CHECK(err != NULL);
	if (child_begin(&pid, 20)) {
		dup2(fileno(err), STDERR_FILENO);
		_exit(shelf_refuse(s, "a list of %d names", 3));
	}
	CHECK_EQ(WEXITSTATUS(child_end(pid)), EXIT_IO);
	rewind(err);
	out[fread(out, 1, room - 1, err)] = '\0';
	fclose(err);
}

/* Fill a text until it fails; all that was added before must be there still. */
static void fill(struct shelf *s, struct text *t, size_t most)
{
	*t = (struct text){.shelf = s};
	while (!text_failed(t) && t->bytes < most)
		text_add(t, "0123456789abcdef", 16);
	for (size_t i = 0; i + 16 <= t->bytes; i += 16)
		CHECK(!memcmp(t->data + i, "0123456789abcdef", 16));
}

TEST(a_full_disk_is_a_refusal_that_names_the_folder)
{
	static const struct {
		const char *story;
		int code;
		size_t first; /* calls that succeed before */
	} rows[] = {{"when the file is made", ENOSPC, 0}, {"when it grows", ENOSPC, 2}, {"a quota", EDQUOT, 1}};
	char line[4096], want[4096];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct shelf *s = open_shelf();
		struct text t = {.shelf = s};

		STORY("%s", rows[i].story);
		while (!text_failed(&t)) {
			if (calls == rows[i].first) {
				answers[0] = rows[i].code;
				answer_count = 1;
			}
			text_add(&t, "0123456789abcdef", 16);
		}
		CHECK(t.bytes > SHELF_MEMORY_BYTES / 2 && !memcmp(t.data + t.bytes - 16, "0123456789abcdef", 17));
		said(s, line, sizeof(line));
		snprintf(want, sizeof(want),
			 "%s: no room for a list of 3 names, which needs a file there: %s; choose another folder with "
			 "--spool DIR\n",
			 folder(), strerror(rows[i].code));
		CHECK(strstr(line, want));
		text_free(&t);
		shelf_close(s);
	}
}

TEST(without_a_folder_it_says_so)
{
	struct shelf *s = shelf_open("/nowhere/at/all");
	char line[4096];
	struct text t;

	CHECK(s != NULL);
	fill(s, &t, SIZE_MAX);
	CHECK_EQ(t.capacity_bytes, SHELF_MEMORY_BYTES);
	said(s, line, sizeof(line));
	CHECK(strstr(line, "/nowhere/at/all: no room for a list of 3 names") && strstr(line, strerror(ENOENT)));
	text_free(&t);
	shelf_close(s);
}

TEST(a_signal_while_blocks_are_taken_is_no_failure)
{
	struct shelf *s = open_shelf();
	struct text t;

	answers[0] = answers[1] = answers[2] = EINTR;
	answer_count = 3;
	fill(s, &t, 8u << 20);
	CHECK(!text_failed(&t) && calls >= 4);
	text_free(&t);
	shelf_close(s);
}

TEST(a_limit_on_the_size_of_files_is_a_refusal)
{
	struct rlimit limit = {10u << 20, 10u << 20};
	pid_t pid;

	for (int limited = 0; limited < 2; limited++) {
		struct shelf *s = open_shelf();
		struct text t;

		STORY("limited %d", limited);
		if (child_begin(&pid, 60)) {
			signal(SIGXFSZ, SIG_IGN); /* as the tools have it */
			if (limited)
				CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
			fill(s, &t, 16u << 20);
			_exit(text_failed(&t) ? 7 : 8);
		}
		CHECK_EQ(WEXITSTATUS(child_end(pid)), limited ? 7 : 8);
		shelf_close(s);
	}
}

static bool write_line(const char *path, const char *line)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool wrote = fd >= 0 && write(fd, line, strlen(line)) == (ssize_t)strlen(line);

	close(fd);
	return wrote;
}

/* A file system of 6 MiB that only this process sees. */
static bool mount_small_disk(const char *dir)
{
	char user[64], group[64];

	snprintf(user, sizeof(user), "0 %u 1", (unsigned)getuid());
	snprintf(group, sizeof(group), "0 %u 1", (unsigned)getgid());
	return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write_line("/proc/self/setgroups", "deny") &&
	       write_line("/proc/self/uid_map", user) && write_line("/proc/self/gid_map", group) &&
	       mount("none", dir, "tmpfs", 0, "size=6m") == 0;
}

/* Fill a text there; 7: it was refused. */
static int fill_small_disk(void)
{
	char dir[4096];
	struct shelf *s;
	struct text t;

	snprintf(dir, sizeof(dir), "%s/t_shelf.%d", folder(), (int)getpid());
	CHECK_EQ(mkdir(dir, 0700), 0);
	if (!mount_small_disk(dir)) {
		rmdir(dir);
		return 77;
	}
	s = shelf_open(dir);
	calls = 0;
	signal(SIGBUS, SIG_DFL);
	fill(s, &t, 16u << 20);
	return text_failed(&t) && calls ? 7 : 8;
}

TEST(a_full_file_system_is_no_signal)
{
	char dir[4096];
	int status = 0;
	pid_t pid;

	for (int i = 0; i < 2; i++) {
		only_longer = i == 1; /* blocks are found when they are written: the disk is full too late */
		if (child_begin(&pid, 60))
			_exit(fill_small_disk());
		status = child_end(pid);
		only_longer = false;
		snprintf(dir, sizeof(dir), "%s/t_shelf.%d", folder(), (int)pid);
		rmdir(dir);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			SKIP("no user namespaces here, so no small disk to fill");
		STORY("blocks %s: status %d", i ? "when written" : "before", status);
		CHECK(i ? WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS
			: WIFEXITED(status) && WEXITSTATUS(status) == 7);
	}
}

TEST(a_child_reads_it_and_the_parent_goes_on)
{
	struct shelf *s = open_shelf();
	struct text t;
	pid_t pid;

	fill(s, &t, 8u << 20);
	if (child_begin(&pid, 20))
		_exit(memcmp(t.data + t.bytes - 16, "0123456789abcdef", 17) ? 1 : 0);
	CHECK_EQ(child_end(pid), 0);
	while (t.bytes < 20u << 20)
		text_add(&t, "fedcba9876543210", 16);
	CHECK(!text_failed(&t) && !memcmp(t.data, "0123456789abcdef", 16));
	text_free(&t);
	shelf_close(s);
}

struct pair {
	uint32_t key, place;
};

struct watch {
	uint64_t compared;
	uint64_t anonymous_kib; /* the most that was seen while it sorted */
};

static uint64_t anonymous_kib(void)
{
	FILE *in = fopen("/proc/self/status", "re");
	char line[256];
	uint64_t kib = 0;

	CHECK(in != NULL);
	while (fgets(line, sizeof(line), in))
		if (!strncmp(line, "RssAnon:", 8))
			kib = strtoull(line + 8, NULL, 10);
	fclose(in);
	return kib;
}

static int by_key(const void *a, const void *b, void *context)
{
	const struct pair *x = a, *y = b;
	struct watch *w = context;

	if (++w->compared % (1u << 18) == 0) {
		uint64_t kib = anonymous_kib();

		w->anonymous_kib = kib > w->anonymous_kib ? kib : w->anonymous_kib;
	}
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

static int by_key_alone(const void *a, const void *b)
{
	return by_key(a, b, &(struct watch){0});
}

static void check_sort(struct shelf *s, uint64_t count, uint32_t keys, struct dice *d)
{
	struct pair *a = calloc(count + 1, sizeof(*a)), *b = calloc(count + 1, sizeof(*b));
	struct watch w = {0};
	uint64_t levels = 4;

	STORY("%" PRIu64 " items of %u keys", count, keys);
	CHECK(a && b);
	for (uint64_t n = count; n; n /= 2)
		levels++;
	for (uint64_t i = 0; i < count; i++)
		a[i] = b[i] = (struct pair){(uint32_t) throw(d, keys), (uint32_t)i};
	CHECK(shelf_sort(s, a, count, sizeof(*a), by_key, &w));
	qsort(b, count, sizeof(*b), by_key_alone);
	CHECK(!memcmp(a, b, count * sizeof(*a)));
	CHECK(w.compared <= count * levels);
	CHECK(shelf_sort(s, a, count, sizeof(*a), by_key, &w));
	CHECK(!memcmp(a, b, count * sizeof(*a)));
	free(a);
	free(b);
}

TEST(its_sort_is_that_of_the_c_library)
{
	static const uint64_t counts[] = {0, 1, 2, 3, 69, (1u << 17) - 1, 1u << 17, (1u << 17) + 1, (1u << 18) + 3};
	struct shelf *s = open_shelf();
	struct dice d = {.seed = 11};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		for (uint32_t keys = 1; keys < 50; keys += 12)
			check_sort(s, counts[i], keys, &d);
	check_sort(NULL, 300001, 1u << 31, &d);
	CHECK_EQ(calls, 0);
	check_sort(s, 1200001, 1u << 31, &d);
	check_sort(s, 1200001, 1000, &d);
	CHECK(calls > 0);
	CHECK_EQ(maps_of(folder()), 0);
	shelf_close(s);
}

TEST(what_is_sorted_is_not_copied_into_plain_memory)
{
	struct shelf *s = open_shelf();
	uint64_t count = 4u << 20, capacity = 0, before;
	struct dice d = {.seed = 12};
	struct watch w = {0};
	struct pair *a = NULL;

	CHECK(grow_on(s, &a, &capacity, count, sizeof(*a)));
	for (uint64_t i = 0; i < count; i++)
		a[i] = (struct pair){(uint32_t) throw(&d, 1u << 31), (uint32_t)i};
	before = anonymous_kib();
	CHECK(shelf_sort(s, a, count, sizeof(*a), by_key, &w));
	STORY("%" PRIu64 " KiB before, %" PRIu64 " KiB meanwhile", before, w.anonymous_kib);
	CHECK(w.anonymous_kib && (SANITIZED || w.anonymous_kib < before + (8u << 10))); /* the items have 32 MiB */
	shelf_close(s);
}

static int by_parity(const void *a, const void *b, void *unused)
{
	uint64_t x = *(const uint64_t *)a % 2, y = *(const uint64_t *)b % 2;

	(void)unused;
	return x < y ? -1 : x > y;
}

TEST(numbers_of_what_is_equal_ascend)
{
	uint64_t count = 300000, *order = shelf_number(NULL, count, by_parity, NULL);

	CHECK(order != NULL);
	for (uint64_t i = 0; i < count; i++)
		CHECK_EQ(order[i], i < count / 2 ? 2 * i : 2 * (i - count / 2) + 1);
	free(order);
}

TEST(a_sort_without_room_leaves_the_items)
{
	struct shelf *s = shelf_open("/nowhere/at/all");
	uint64_t count = 2000000;
	struct pair *a = calloc(count, sizeof(*a));
	struct watch w = {0};

	CHECK(s && a);
	for (uint64_t i = 0; i < count; i++)
		a[i] = (struct pair){(uint32_t)(count - i), (uint32_t)i};
	CHECK(!shelf_sort(s, a, count, sizeof(*a), by_key, &w));
	for (uint64_t i = 0; i < count; i++)
		CHECK_EQ(a[i].place, i);
	free(a);
	shelf_close(s);
}

TEST_MAIN()
