/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc.c - what the kernel says in small files of /proc and /sys.  The tools link this file, too.
 */
#include "libshard/io/io.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libshard/base/bytes.h"

bool proc_read(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t have = 0;
	ssize_t n = 1;

	for (; fd >= 0 && n > 0 && have<room - 1; have += n> 0 ? (size_t)n : 0)
		n = pread(fd, text + have, room - 1 - have, (off_t)have);
	if (fd >= 0)
		close(fd);
	text[have] = 0;
	return have > 0;
}

uint64_t proc_number(const char *path, const char *word)
{
	char text[PROC_BYTES];
	const char *at;
	unsigned long long value;

	if (!proc_read(path, text, sizeof(text)))
		return UINT64_MAX;
	at = strstr(text, word);
	return at && sscanf(at + strlen(word), "%llu", &value) == 1 ? value : UINT64_MAX;
}

uint64_t memory_maps_most(void)
{
	uint64_t most = proc_number("/proc/sys/vm/max_map_count", "");

	return most == UINT64_MAX ? 65530 : most; /* the kernel's default */
}

/*
 * ---- the memory that is left: /proc/meminfo, and the files of control groups ----
 *
 * A limit may stand on any parent of the group: Slurm limits a job and runs its tasks in groups
 * below, systemd limits slices.  So each folder from the group up to the mount is looked at.
 */

#define PATH_BYTES 4096
/* Version 1 says "no limit" by the most bytes that it can count, a number that depends on the size of pages. */
#define NO_LIMIT (UINT64_C(1) << 62)

/* How the kernel shows groups: where they are mounted, and what the files in each are called. */
static const struct hierarchy {
	const char *controller; /* in /proc/self/cgroup; version 2 names none */
	const char *mount;
	const char *limit[2], *used, *reclaimable;
	const char *swap, *both; /* limits of swap, and of memory and swap together; NULL: there is none */
} hierarchies[] = {
	{"memory",
	 "/sys/fs/cgroup/memory",
	 {"memory.limit_in_bytes"},
	 "memory.usage_in_bytes",
	 "\ntotal_inactive_file ",
	 NULL,
	 "memory.memsw.limit_in_bytes"},
	/* Above memory.high a process is held up until its pages are reclaimed: a limit for us. */
	{"",
	 "/sys/fs/cgroup",
	 {"memory.max", "memory.high"},
	 "memory.current",
	 "\ninactive_file ",
	 "memory.swap.max",
	 NULL},
	{"",
	 "/sys/fs/cgroup/unified",
	 {"memory.max", "memory.high"},
	 "memory.current",
	 "\ninactive_file ",
	 "memory.swap.max",
	 NULL},
};

/* In a file of the folder of a group. */
static uint64_t number_in(const char *folder, const char *name, const char *word)
{
	char path[PATH_BYTES + 64];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return proc_number(path, word);
}

static uint64_t limit_in(const struct hierarchy *h, const char *folder)
{
	uint64_t limit = UINT64_MAX;

	for (size_t i = 0; i < 2 && h->limit[i]; i++) {
		uint64_t one = number_in(folder, h->limit[i], "");

		limit = one < NO_LIMIT && one < limit ? one : limit;
	}
	return limit;
}

static uint64_t swap_in(const struct hierarchy *h, const char *folder)
{
	return h->swap ? number_in(folder, h->swap, "") : UINT64_MAX;
}

static uint64_t both_in(const struct hierarchy *h, const char *folder)
{
	return h->both ? number_in(folder, h->both, "") : UINT64_MAX;
}

/* What the limits of one group leave. */
static uint64_t left_in(const struct hierarchy *h, const char *folder)
{
	uint64_t limit = limit_in(h, folder), used, reclaimable;

	used = limit == UINT64_MAX ? limit : number_in(folder, h->used, "");
	if (used == UINT64_MAX)
		return UINT64_MAX;
	reclaimable = number_in(folder, "memory.stat", h->reclaimable);
	used -= reclaimable < used ? reclaimable : 0;
	return limit > used ? limit - used : 0;
}

/* The group's path in a text of lines "4:cpu,memory:/path"; false if there is no line for it. */
static bool find_path(const struct hierarchy *h, const char *text, char *path, size_t room)
{
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *names = strchr(line, ':'), *end = names ? strchr(names + 1, ':') : NULL;
		size_t n = strlen(h->controller);

		for (const char *at = names; end && at < end; at += 1 + strcspn(at + 1, ",:"))
			if (!strncmp(at + 1, h->controller, n) && (at[1 + n] == ',' || at[1 + n] == ':')) {
				size_t bytes = strcspn(end + 1, "\n");

				if (bytes >= room || end[1] != '/')
					return false;
				memcpy(path, end + 1, bytes);
				path[bytes] = 0;
				return true;
			}
	}
	return false;
}

/* The least that of() says of the groups of this process in one hierarchy. */
static uint64_t least_of_groups(const struct hierarchy *h, const char *groups,
				uint64_t (*of)(const struct hierarchy *h, const char *folder))
{
	char folder[PATH_BYTES], *path;
	size_t mount_bytes = strlen(h->mount);
	uint64_t least = UINT64_MAX;

	memcpy(folder, h->mount, mount_bytes + 1);
	path = folder + mount_bytes;
	/* In a namespace the path may begin above the mount; then the mount's root is our group. */
	if (!find_path(h, groups, path, sizeof(folder) - mount_bytes) || !path[1] || strstr(path, "/..") ||
	    access(folder, F_OK))
		*path = 0;
	for (;;) {
		uint64_t one = of(h, folder);

		least = one < least ? one : least;
		path = strrchr(folder + mount_bytes, '/');
		if (!path)
			return least;
		*path = 0;
	}
}

/* The least that of() says of a group, and the system's KiB. */
static uint64_t least_of_all(uint64_t kib, uint64_t (*of)(const struct hierarchy *h, const char *folder))
{
	uint64_t least = kib > UINT64_MAX / 1024 ? UINT64_MAX : kib * 1024;
	char groups[PROC_BYTES];

	proc_read("/proc/self/cgroup", groups, sizeof(groups));
	for (size_t i = 0; i < sizeof(hierarchies) / sizeof(hierarchies[0]); i++) {
		uint64_t one = least_of_groups(&hierarchies[i], groups, of);

		least = one < least ? one : least;
	}
	return least;
}

uint64_t available_memory_bytes(void)
{
	return least_of_all(proc_number("/proc/meminfo", "MemAvailable:"), left_in);
}

uint64_t memory_limit_bytes(void)
{
	uint64_t memory = least_of_all(proc_number("/proc/meminfo", "MemTotal:"), limit_in);
	uint64_t swap = least_of_all(proc_number("/proc/meminfo", "SwapTotal:"), swap_in);

	if (memory == UINT64_MAX)
		return memory;
	return min_u64(memory + (swap == UINT64_MAX ? 0 : swap), least_of_all(UINT64_MAX, both_in));
}

uint32_t gpu_count_of_host(void)
{
	DIR *gpus = opendir("/proc/driver/nvidia/gpus");
	uint32_t count = 0;

	for (struct dirent *e = gpus ? readdir(gpus) : NULL; e; e = readdir(gpus))
		count += e->d_name[0] != '.';
	if (gpus)
		closedir(gpus);
	return count;
}
