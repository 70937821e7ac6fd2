/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_available_memory.c - the limit of a control group counts, wherever in the tree it stands
 *
 * /proc and /sys/fs/cgroup are folders of the test's own.
 *
 * LDFLAGS: -Wl,--wrap=open64,--wrap=access
 */
#include "libshard/io/io.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "tests/test.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static char root[600]; /* "": the machine's own files */

static const char *moved(const char *path, char *to, size_t room)
{
	bool is_ours = root[0] && (!strncmp(path, "/proc/", 6) || !strncmp(path, "/sys/", 5));

	snprintf(to, room, "%s%s", is_ours ? root : "", path);
	return to;
}

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...)
{
	char to[8192];

	return __real_open64(moved(path, to, sizeof(to)), flags, 0600);
}

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
int __wrap_access(const char *path, int mode)
{
	char to[8192];

	return __real_access(moved(path, to, sizeof(to)), mode);
}

static void write_file(const char *path, const char *text)
{
	char full[2048], *at;
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (at = full + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = 0;
		mkdir(full, 0700);
		*at = '/';
	}
	f = fopen(full, "w");
	CHECK(f && fputs(text, f) >= 0 && !fclose(f));
}

/* One group: where it is, and what its files say. */
struct group {
	const char *path;
	uint64_t limit, high, used, inactive; /* 0: no limit */
};

static void write_group(int version, const char *mount, const struct group *g)
{
	char path[1024], text[256];
	const char *limit = version == 1 ? "memory.limit_in_bytes" : "memory.max";

	snprintf(path, sizeof(path), "%s%s/%s", mount, g->path, limit);
	snprintf(text, sizeof(text), version == 1 ? "9223372036854771712\n" : "max\n");
	if (g->limit)
		snprintf(text, sizeof(text), "%" PRIu64 "\n", g->limit);
	write_file(path, text);
	if (version == 2) {
		snprintf(path, sizeof(path), "%s%s/memory.high", mount, g->path);
		snprintf(text, sizeof(text), "max\n");
		if (g->high)
			snprintf(text, sizeof(text), "%" PRIu64 "\n", g->high);
		write_file(path, text);
	}
	snprintf(path, sizeof(path), "%s%s/%s", mount, g->path,
		 version == 1 ? "memory.usage_in_bytes" : "memory.current");
	snprintf(text, sizeof(text), "%" PRIu64 "\n", g->used);
	write_file(path, text);
	/* The number of the group alone is a decoy in version 1, the active pages in both. */
	snprintf(path, sizeof(path), "%s%s/memory.stat", mount, g->path);
	snprintf(text, sizeof(text), "cache 5\n%s 77777777\nactive_file 9\n%s %" PRIu64 "\n",
		 version == 1 ? "inactive_file" : "total", version == 1 ? "total_inactive_file" : "inactive_file",
		 g->inactive);
	write_file(path, text);
}

static void begin(const char *groups)
{
	static unsigned count;

	snprintf(root, sizeof(root), "%s/machine%u", getenv("TMPDIR"), count++);
	CHECK(!mkdir(root, 0700));
	write_file("/proc/meminfo", "MemTotal: 9000000 kB\nMemAvailable:    1000000 kB\n");
	if (groups)
		write_file("/proc/self/cgroup", groups);
}

#define V1	"/sys/fs/cgroup/memory"
#define V2	"/sys/fs/cgroup"
#define MACHINE 1024000000
#define LINE1	"5:freezer:/elsewhere\n4:cpu,memory,blkio:/job/task\n1:name=systemd:/memory\n0::/other\n"

static const struct {
	const char *story;
	const char *groups; /* /proc/self/cgroup */
	int version;
	const char *mount;
	struct group group[4];
	uint64_t want;
} rows[] = {
	{"no group has a limit", LINE1, 1, V1, {{"", 0, 0, 10, 0}, {"/job", 0, 0, 10, 0}}, MACHINE},
	{"v1: the root", LINE1, 1, V1, {{"", 5000, 0, 1000, 0}, {"/job/task", 0, 0, 1, 0}}, 4000},
	{"v1: a parent, as Slurm has it", LINE1, 1, V1, {{"/job", 5000, 0, 1000, 0}, {"/job/task", 0, 0, 1, 0}}, 4000},
	{"v1: the group itself", LINE1, 1, V1, {{"/job", 0, 0, 1000, 0}, {"/job/task", 5000, 0, 1000, 0}}, 4000},
	{"v1: the group of another controller",
	 LINE1,
	 1,
	 V1,
	 {{"/job/task", 0, 0, 1, 0}, {"/elsewhere", 5, 0, 1, 0}},
	 MACHINE},
	{"v1: a brother", LINE1, 1, V1, {{"/job/task", 0, 0, 1, 0}, {"/job/task2", 5, 0, 1, 0}}, MACHINE},
	{"v1: page cache that can be dropped", LINE1, 1, V1, {{"/job/task", 5000, 0, 4500, 4000}}, 4500},
	{"v1: the parent leaves less than the group",
	 LINE1,
	 1,
	 V1,
	 {{"/job", 9000, 0, 8900, 0}, {"/job/task", 5000, 0, 1000, 0}},
	 100},
	{"v1: the group leaves less than the parent",
	 LINE1,
	 1,
	 V1,
	 {{"/job", 9000, 0, 1000, 0}, {"/job/task", 5000, 0, 4900, 0}},
	 100},
	{"v1: a namespace: the path is not below the mount",
	 LINE1,
	 1,
	 V1,
	 {{"", 5000, 0, 1000, 0}, {"/job", 7, 0, 1, 0}},
	 4000},
	{"v1: no /proc/self/cgroup", NULL, 1, V1, {{"", 5000, 0, 1000, 0}}, 4000},
	{"v1: a colon in the path", "4:memory:/a:b\n", 1, V1, {{"/a:b", 5000, 0, 1000, 0}}, 4000},
	{"v2: the root of a container", "0::/\n", 2, V2, {{"", 5000, 0, 1000, 0}}, 4000},
	{"v2: a parent, as systemd has it",
	 "0::/a.slice/b\n",
	 2,
	 V2,
	 {{"/a.slice", 5000, 0, 1000, 0}, {"/a.slice/b", 0, 0, 9, 0}},
	 4000},
	{"v2: the group itself", "0::/a/b\n", 2, V2, {{"/a", 0, 0, 1000, 0}, {"/a/b", 5000, 0, 1000, 0}}, 4000},
	{"v2: page cache that can be dropped", "0::/a\n", 2, V2, {{"/a", 5000, 0, 4500, 4000}}, 4500},
	{"v2: memory.high below memory.max",
	 "0::/a/b\n",
	 2,
	 V2,
	 {{"/a", 5000, 2000, 1000, 0}, {"/a/b", 0, 0, 9, 0}},
	 1000},
	{"v2: memory.high above memory.max",
	 "0::/a/b\n",
	 2,
	 V2,
	 {{"/a", 5000, 8000, 1000, 0}, {"/a/b", 0, 0, 9, 0}},
	 4000},
	{"v2: more is used than the limit", "0::/a\n", 2, V2, {{"/a", 5000, 0, 6000, 0}}, 0},
	{"v2: outside of the namespace", "0::/../a\n", 2, V2, {{"", 5000, 0, 1000, 0}, {"/../a", 7, 0, 1, 0}}, 4000},
	{"v2 beside v1",
	 "3:cpu:/x\n0::/a/b\n",
	 2,
	 V2 "/unified",
	 {{"/a", 5000, 0, 1000, 0}, {"/a/b", 0, 0, 9, 0}},
	 4000},
	{"v2: the machine has less", "0::/a\n", 2, V2, {{"/a", UINT64_C(1) << 50, 0, 1000, 0}}, MACHINE},
};

TEST(the_least_that_a_group_or_a_parent_leaves)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		STORY("%s", rows[i].story);
		begin(rows[i].groups);
		for (size_t g = 0; g < COUNT(rows[i].group) && rows[i].group[g].path; g++)
			write_group(rows[i].version, rows[i].mount, &rows[i].group[g]);
		CHECK_EQ(available_memory_bytes(), rows[i].want);
	}
	root[0] = 0;
}

TEST(limits_count_whoever_uses_the_memory)
{
	begin("0::/a/b\n");
	CHECK_EQ(memory_limit_bytes(), UINT64_C(9000000) * 1024);
	write_file("/proc/meminfo", "MemTotal: 9000000 kB\nMemAvailable: 5 kB\nSwapTotal: 1000000 kB\n");
	CHECK_EQ(memory_limit_bytes(), UINT64_C(10000000) * 1024);
	write_file("/proc/meminfo", "MemTotal: 9000000 kB\nMemAvailable: 5 kB\n");
	write_group(2, V2, &(struct group){"/a", 5000, 0, 4999, 0});
	write_group(2, V2, &(struct group){"/a/b", 0, 0, 4999, 0});
	CHECK_EQ(memory_limit_bytes(), 5000);
	CHECK_EQ(available_memory_bytes(), 1);
	write_group(2, V2, &(struct group){"/a/b", 9000, 2000, 4999, 0});
	CHECK_EQ(memory_limit_bytes(), 2000);
	begin(NULL);
	write_file("/proc/meminfo", "MemAvailable: 5 kB\n");
	CHECK_EQ(memory_limit_bytes(), UINT64_MAX);
	root[0] = 0;
	CHECK(memory_limit_bytes() >= available_memory_bytes());
}

/* How much more than its memory a group may have, of 1,000,000 KiB of swap. */
static const struct {
	const char *story;
	int version;
	const char *mount, *file; /* of the limit of swap; NULL: the kernel has none */
	const char *text;
	uint64_t want; /* beyond the limit of 5000 */
} swaps[] = {
	{"v2: no limit of swap", 2, V2, "memory.swap.max", "max\n", 1024000000},
	{"v2: some swap", 2, V2, "memory.swap.max", "300\n", 300},
	{"v2: no swap", 2, V2, "memory.swap.max", "0\n", 0},
	{"v2: more than the machine has", 2, V2, "memory.swap.max", "9000000000000\n", 1024000000},
	{"v2: swap is not counted", 2, V2, NULL, NULL, 1024000000},
	{"v2 beside v1", 2, V2 "/unified", "memory.swap.max", "300\n", 300},
	{"v1: no limit of both", 1, V1, "memory.memsw.limit_in_bytes", "9223372036854771712\n", 1024000000},
	{"v1: both together", 1, V1, "memory.memsw.limit_in_bytes", "5300\n", 300},
	{"v1: as much as of memory", 1, V1, "memory.memsw.limit_in_bytes", "5000\n", 0},
	{"v1: swap is not counted", 1, V1, NULL, NULL, 1024000000},
};

TEST(swap_is_a_part_of_what_a_process_may_have)
{
	char path[1024];

	for (size_t i = 0; i < COUNT(swaps); i++) {
		STORY("%s", swaps[i].story);
		begin("4:memory:/a\n0::/a\n");
		write_file("/proc/meminfo", "MemTotal: 9000000 kB\nMemAvailable: 1000 kB\nSwapTotal: 1000000 kB\n");
		write_group(swaps[i].version, swaps[i].mount, &(struct group){"/a", 5000, 0, 4999, 0});
		snprintf(path, sizeof(path), "%s/a/%s", swaps[i].mount, swaps[i].file ? swaps[i].file : "");
		if (swaps[i].file)
			write_file(path, swaps[i].text);
		CHECK_EQ(memory_limit_bytes(), 5000 + swaps[i].want);
		CHECK_EQ(available_memory_bytes(), 1); /* swap holds nothing that is page-locked */
	}
	STORY("memory and swap are limited in different groups");
	begin("0::/a/b\n");
	write_file("/proc/meminfo", "MemTotal: 9000000 kB\nSwapTotal: 1000000 kB\n");
	write_group(2, V2, &(struct group){"/a", 5000, 0, 10, 0});
	write_group(2, V2, &(struct group){"/a/b", 0, 0, 10, 0});
	write_file(V2 "/a/memory.swap.max", "900\n");
	write_file(V2 "/a/b/memory.swap.max", "200\n");
	CHECK_EQ(memory_limit_bytes(), 5200);
	STORY("only swap is limited");
	write_file(V2 "/a/memory.max", "max\n");
	CHECK_EQ(memory_limit_bytes(), UINT64_C(9000000) * 1024 + 200);
	root[0] = 0;
}

TEST(nobody_says)
{
	begin(NULL);
	write_file("/proc/meminfo", "MemTotal: 5 kB\n");
	CHECK_EQ(available_memory_bytes(), UINT64_MAX);
	/* Version 1 without a limit, with pages of 4 and of 64 KiB. */
	write_file(V1 "/memory.usage_in_bytes", "1000\n");
	write_file(V1 "/memory.limit_in_bytes", "9223372036854771712\n");
	CHECK_EQ(available_memory_bytes(), UINT64_MAX);
	write_file(V1 "/memory.limit_in_bytes", "9223372036854710272\n");
	CHECK_EQ(available_memory_bytes(), UINT64_MAX);
	write_file(V1 "/memory.limit_in_bytes", "5000\n");
	CHECK_EQ(available_memory_bytes(), 4000);
	root[0] = 0;
	CHECK(available_memory_bytes() > 0);
}

TEST(a_path_as_long_as_they_can_be)
{
	char *line = calloc(1, 8000);

	CHECK(line);
	begin(NULL);
	write_group(2, V2, &(struct group){"", 5000, 0, 1000, 0});
	for (size_t bytes = 3900; bytes < 4200; bytes++) {
		strcpy(line, "0::/");
		memset(line + 4, 'a', bytes);
		strcpy(line + 4 + bytes, "\n");
		write_file("/proc/self/cgroup", line);
		CHECK_EQ(available_memory_bytes(), 4000);
	}
	free(line);
	root[0] = 0;
}

TEST_MAIN()
