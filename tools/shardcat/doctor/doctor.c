/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor.c - findings about the machine: CPUs, NUMA nodes, memory, huge pages, io_uring
 *
 * Here is also what all files of this room share: how findings are put into words, and small files
 * of the kernel.
 */
#include "tools/shardcat/doctor/doctor.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/io_uring.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "libshard/base/cpu.h"
#include "libshard/base/error.h"
#include "libshard/base/thread.h"
#include "libshard/feed/feed.h"
#include "libshard/io/io.h"
#include "tools/common/human.h"

#define FILE_BYTES	    8192 /* of a file of the kernel's; what we look for stands in its front */
#define SMALL_MEMLOCK_BYTES (UINT64_C(1) << 20)

/* ---- findings ---- */

void finding_set(char text[FINDING_TEXT_BYTES], const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, FINDING_TEXT_BYTES, fmt, args);
	va_end(args);
}

void finding_add(char text[FINDING_TEXT_BYTES], const char *fmt, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, fmt);
	vsnprintf(text + used, FINDING_TEXT_BYTES - used, fmt, args);
	va_end(args);
}

void finding_number(struct finding *f, const char *name, uint64_t value)
{
	if (value != UINT64_MAX && f->fact_count < FINDING_FACTS)
		f->fact[f->fact_count++] = (struct fact){name, NULL, value};
}

void finding_text(struct finding *f, const char *name, const char *text)
{
	if (text[0] && f->fact_count < FINDING_FACTS)
		f->fact[f->fact_count++] = (struct fact){name, text, 0};
}

void finding_quote(struct finding *f, const char *message)
{
	const char *end = strstr(message, "; ");

	finding_set(f->found, "%.*s", end ? (int)(end - message) : (int)strlen(message), message);
	if (end)
		finding_set(f->advice, "%.*s", (int)(strcspn(end + 2, ";")), end + 2);
}

/* ---- small files of the kernel ---- */

bool kernel_text(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : pread(fd, text, room - 1, 0);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	return n > 0;
}

uint64_t number_behind(const char *text, const char *word)
{
	const char *at = strstr(text, word);
	unsigned long long value;

	return at && sscanf(at + strlen(word), "%llu", &value) == 1 ? value : UINT64_MAX;
}

/* UINT64_MAX: the kernel was built without NUMA, or hides it. */
static uint64_t node_count(void)
{
	DIR *dir = opendir("/sys/devices/system/node");
	const struct dirent *e;
	uint64_t count = 0;

	if (!dir)
		return UINT64_MAX;
	while ((e = readdir(dir)))
		count += !strncmp(e->d_name, "node", 4) && isdigit((uint8_t)e->d_name[4]);
	closedir(dir);
	return count;
}

/* ---- CPUs, memory ---- */

/*
 * Those that the library uses.  The CPU itself is asked, so /proc may be hidden.  Returns false if it
 * hashes and shuffles by code for any CPU.
 */
static bool cpu_features(char *out, size_t room)
{
#ifdef __aarch64__
	snprintf(out, room, "NEON"); /* every such CPU has it */
	return true;
#else
	const struct {
		bool is_there;
		const char *name;
	} known[] = {{cpu_has_avx2(), "AVX2"}, {cpu_has_avx512f(), "AVX-512"}, {cpu_has_sha(), "SHA"}};
	size_t used = 0;

	out[0] = 0;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && used < room; i++)
		if (known[i].is_there)
			used += (size_t)snprintf(out + used, room - used, "%s%s", used ? ", " : "", known[i].name);
	return cpu_has_avx2();
#endif
}

static void look_at_cpus(const struct doctor *d)
{
	struct finding f = {.name = "CPUs", .verdict = VERDICT_GOOD};
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t count = online > 0 ? (uint64_t)online : 1, allowed_count = thread_cpus_allowed();
	char features[64];
	bool fast = cpu_features(features, sizeof(features));

	if (!allowed_count)
		allowed_count = count; /* the kernel does not say */
	finding_number(&f, "count", count);
	finding_number(&f, "allowed_count", allowed_count);
	finding_text(&f, "features", features);
	if (allowed_count < count)
		finding_set(f.found, "%" PRIu64 " of %" PRIu64 " CPUs may be used", allowed_count, count);
	else
		finding_set(f.found, "%" PRIu64 " CPU%s", count, count == 1 ? "" : "s");
	if (features[0])
		finding_add(f.found, "; %s", features);
	if (!fast) {
		f.verdict = VERDICT_SLOWER;
		finding_set(f.so, "hashing and shuffling use portable code, which is slower");
		finding_set(f.advice, "in a virtual machine, pass the host's CPU model through");
	}
	d->tell(d->context, &f);
}

static void look_at_nodes(const struct doctor *d, uint64_t node_count)
{
	struct finding f = {.name = "NUMA", .verdict = VERDICT_GOOD};

	if (node_count == UINT64_MAX)
		return; /* the kernel was built without NUMA */
	finding_number(&f, "node_count", node_count);
	if (node_count == 1) {
		finding_set(f.found, "one node");
		finding_set(f.so, "all memory is equally near");
	} else {
		finding_set(f.found, "%" PRIu64 " nodes", node_count);
		finding_set(f.so, "memory, disks and GPUs of another node are further away");
		finding_set(f.advice, "keep each rank on the node of its GPU: numactl --cpunodebind=N --membind=N");
	}
	d->tell(d->context, &f);
}

static void look_at_memory(const struct doctor *d)
{
	struct finding f = {.name = "memory", .verdict = VERDICT_GOOD};
	uint64_t total_kib, total_bytes, available_bytes = available_memory_bytes();
	char total[HUMAN_CHARS], available[HUMAN_CHARS], text[FILE_BYTES];

	kernel_text("/proc/meminfo", text, sizeof(text));
	total_kib = number_behind(text, "MemTotal:");
	total_bytes = total_kib > UINT64_MAX / 1024 ? UINT64_MAX : total_kib * 1024;
	finding_number(&f, "total_bytes", total_bytes);
	finding_number(&f, "available_bytes", available_bytes);
	if (available_bytes == UINT64_MAX) {
		f.verdict = VERDICT_UNKNOWN;
		finding_set(f.found, "the system does not say how much is available");
		finding_set(f.advice, "mount /proc");
	} else {
		finding_set(f.found, "%s%s%s available", human_bytes(available, available_bytes),
			    total_bytes == UINT64_MAX ? "" : " of ",
			    total_bytes == UINT64_MAX ? "" : human_bytes(total, total_bytes));
		finding_set(f.so,
			    "datasets of up to %s are read through the page cache and stay there; "
			    "larger ones are read past it",
			    human_bytes(total, path_fits_bytes()));
	}
	d->tell(d->context, &f);
}

static void look_at_huge_pages(const struct doctor *d)
{
	struct finding f = {.name = "huge pages", .verdict = VERDICT_GOOD};
	char text[FILE_BYTES], pool[64] = "";
	char word[33] = ""; /* the kernel has no huge pages, or hides them */
	uint64_t pool_count;
	const char *at;

	/* "always [madvise] never" */
	kernel_text("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof(text));
	at = strchr(text, '[');
	if (at && strchr(at, ']'))
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(at + 1, "]"), at + 1);
	finding_text(&f, "transparent", word);
	kernel_text("/proc/meminfo", text, sizeof(text));
	pool_count = number_behind(text, "HugePages_Total:");
	finding_number(&f, "hugetlb_count", pool_count);
	finding_number(&f, "hugetlb_free_count", number_behind(text, "HugePages_Free:"));
	if (pool_count && pool_count != UINT64_MAX)
		snprintf(pool, sizeof(pool), "; %" PRIu64 " in the hugetlb pool, which is not used", pool_count);
	if (!strcmp(word, "always") || !strcmp(word, "madvise")) {
		finding_set(f.found, "transparent ones: %s%s", word, pool);
		finding_set(f.so, "batches lie in pages of 2 MiB");
	} else if (!word[0] && access("/sys/kernel/mm", F_OK)) {
		f.verdict = VERDICT_UNKNOWN;
		finding_set(f.found, "the system does not say whether it has transparent ones%s", pool);
		finding_set(f.advice, "mount /sys");
	} else {
		f.verdict = VERDICT_SLOWER;
		finding_set(f.found, "transparent ones: %s%s", word[0] ? word : "not in this kernel", pool);
		finding_set(f.so, "batches lie in small pages: direct reads and page-locking take longer");
		finding_set(f.advice, "%s",
			    word[0] ? "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"
				    : "use a kernel with CONFIG_TRANSPARENT_HUGEPAGE");
	}
	d->tell(d->context, &f);
}

/*
 * Before Linux 5.12 the rings of io_uring count against the limit.  Memory that NVIDIA's driver
 * locks never counts.
 */
static void look_at_memlock(const struct doctor *d, const char *release)
{
	struct finding f = {.name = "memlock", .verdict = VERDICT_GOOD};
	unsigned major = 0, minor = 0;
	struct rlimit limit;
	uint64_t bytes = UINT64_MAX;
	char text[HUMAN_CHARS];
	bool counts;

	if (!getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY)
		bytes = (uint64_t)limit.rlim_cur;
	sscanf(release, "%u.%u", &major, &minor);
	counts = major < 5 || (major == 5 && minor < 12);
	finding_number(&f, "limit_bytes", bytes);
	if (bytes == UINT64_MAX)
		finding_set(f.found, "no limit");
	else
		finding_set(f.found, "%s may be locked", human_bytes(text, bytes));
	if (counts && bytes < SMALL_MEMLOCK_BYTES) {
		f.verdict = VERDICT_SLOWER;
		finding_set(f.so, "before Linux 5.12 io_uring's rings count against it, and may be refused");
		finding_set(f.advice, "ulimit -l unlimited (docker run --ulimit memlock=-1; "
				      "systemd: LimitMEMLOCK=infinity)");
	} else {
		finding_set(f.so, "enough: neither io_uring nor NVIDIA's driver counts what it locks against it");
	}
	d->tell(d->context, &f);
}

/* ---- io_uring ---- */

static void uring_refused(struct finding *f, int os_code, uint64_t disabled, bool is_filtered, const char *release)
{
	char why[128];

	if (os_code == EPERM && disabled && disabled != UINT64_MAX) {
		finding_set(f->found, "switched off: the sysctl kernel.io_uring_disabled is %" PRIu64, disabled);
		finding_set(f->advice, "sudo sysctl kernel.io_uring_disabled=0");
	} else if (is_filtered && (os_code == EPERM || os_code == ENOSYS)) {
		finding_set(f->found, "refused by a seccomp filter, as is usual in containers (%s)",
			    error_os_name(os_code));
		finding_set(f->advice, "use a seccomp profile that allows io_uring_setup, io_uring_enter and "
				       "io_uring_register");
	} else if (os_code == ENOSYS) {
		finding_set(f->found, "not in this kernel, Linux %s", release);
		finding_set(f->advice, "use a kernel with CONFIG_IO_URING");
	} else {
		finding_set(f->found, "refused: %s", strerror_r(os_code, why, sizeof(why)));
		finding_set(f->advice, "%s", os_code == ENOMEM ? "ulimit -l unlimited" : "");
	}
}

static void look_at_uring(const struct doctor *d, const char *release)
{
	struct finding f = {.name = "io_uring", .verdict = VERDICT_SLOWER};
	struct io_uring_params params = {.flags = 0};
	struct engine *e = engine_open(1, 1);
	bool ours = e && engine_is_uring(e), is_filtered;
	uint64_t disabled = UINT64_MAX;
	char text[FILE_BYTES];
	int fd, os_code;

	if (e)
		engine_close(e);
	fd = (int)syscall(SYS_io_uring_setup, 4, &params);
	os_code = fd < 0 ? errno : 0;
	if (fd >= 0)
		close(fd);
	if (kernel_text("/proc/sys/kernel/io_uring_disabled", text, sizeof(text))) /* since Linux 6.6 */
		disabled = number_behind(text, "");
	kernel_text("/proc/self/status", text, sizeof(text));
	is_filtered = number_behind(text, "\nSeccomp:") == 2;
	finding_text(&f, "kernel", release);
	finding_text(&f, "refused_with", error_os_name(os_code) ? error_os_name(os_code) : "");
	finding_number(&f, "sysctl_disabled", disabled);
	finding_number(&f, "seccomp", is_filtered);
	if (ours) {
		f.verdict = VERDICT_GOOD;
		finding_set(f.found, "works; Linux %s", release);
		finding_set(f.so, "each thread keeps many direct reads in flight");
	} else {
		finding_set(f.so, "each thread makes one direct read at a time, which is slower");
		if (os_code) {
			uring_refused(&f, os_code, disabled, is_filtered, release);
		} else {
			finding_set(f.found, "this build of libshard has none");
			finding_set(f.advice, "install liburing's headers (liburing-dev) and build again");
		}
	}
	d->tell(d->context, &f);
}

/* ---- all looks ---- */

int doctor_look(const struct doctor *d, struct shard_error *err)
{
	uint64_t nodes = node_count();
	struct utsname kernel;
	int rc = SHARD_OK;

	if (uname(&kernel))
		kernel.release[0] = 0;
	look_at_cpus(d);
	look_at_nodes(d, nodes);
	look_at_memory(d);
	look_at_huge_pages(d);
	look_at_memlock(d, kernel.release);
	look_at_uring(d, kernel.release);
	if (d->path)
		rc = doctor_disk(d, err);
	if (!rc)
		doctor_gpu(d, nodes);
	return rc;
}
