/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.c - see machine.h: files of the kernel that hold a word or a number, and system calls
 * that are tried
 */
#include "libshard/io/machine.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "libshard/base/bytes.h"
#include "libshard/base/thread.h"
#include "libshard/io/available_memory.h"

#define FILE_BYTES 8192 /* of a file of the kernel's; what we look for stands in its front */
#define PATH_BYTES 512
#define PCI	   "/sys/bus/pci/devices"

/* ---- small files ---- */

static bool read_text(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : pread(fd, text, room - 1, 0);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	return n > 0;
}

/* The number behind `word`, or at the front if that is empty. */
static uint64_t number_behind(const char *text, const char *word)
{
	const char *at = strstr(text, word);
	unsigned long long value;

	return at && sscanf(at + strlen(word), "%llu", &value) == 1 ? value : UINT64_MAX;
}

static uint64_t number_in(const char *path)
{
	char text[FILE_BYTES];

	return read_text(path, text, sizeof(text)) ? number_behind(text, "") : UINT64_MAX;
}

/* Names in a folder that are `prefix` and digits. */
static uint64_t numbered_in(const char *folder, const char *prefix)
{
	DIR *dir = opendir(folder);
	uint64_t count = 0;
	const struct dirent *e;
	size_t n = strlen(prefix);

	if (!dir)
		return UINT64_MAX;
	while ((e = readdir(dir)))
		count += !strncmp(e->d_name, prefix, n) && isdigit((uint8_t)e->d_name[n]);
	closedir(dir);
	return count;
}

/* ---- kernel, memory, CPUs ---- */

void machine_kernel(struct machine_kernel *out)
{
	struct utsname u;

	*out = (struct machine_kernel){.major = 0};
	if (uname(&u))
		return;
	snprintf(out->release, sizeof(out->release), "%.*s", MACHINE_TEXT_BYTES - 1, u.release);
	sscanf(u.release, "%u.%u", &out->major, &out->minor);
}

static uint64_t kib_behind(const char *text, const char *word)
{
	uint64_t kib = number_behind(text, word);

	return kib > UINT64_MAX / 1024 ? UINT64_MAX : kib * 1024;
}

void machine_memory(struct machine_memory *out)
{
	char text[FILE_BYTES];
	const char *open, *end;

	*out = (struct machine_memory){.available_bytes = available_memory_bytes()};
	read_text("/proc/meminfo", text, sizeof(text));
	out->total_bytes = kib_behind(text, "MemTotal:");
	out->hugetlb_count = number_behind(text, "HugePages_Total:");
	out->hugetlb_free_count = number_behind(text, "HugePages_Free:");
	out->hugetlb_page_bytes = kib_behind(text, "Hugepagesize:");
	out->has_sysfs = !access("/sys/kernel/mm", F_OK);
	if (!read_text("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof(text)))
		return;
	open = strchr(text, '['); /* always [madvise] never */
	end = open ? strchr(open, ']') : NULL;
	if (end)
		snprintf(out->huge_pages, sizeof(out->huge_pages), "%.*s", (int)min_u64((uint64_t)(end - open - 1), 32),
			 open + 1);
}

uint64_t machine_memlock_bytes(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX
										    : (uint64_t)limit.rlim_cur;
}

/* Of the words that the kernel lists for the first CPU, on x86-64 and on aarch64. */
static void cpu_features(char *out, size_t room)
{
	static const struct {
		const char *word, *name;
	} known[] = {{" avx2 ", "AVX2"},
		     {" avx512f ", "AVX-512"},
		     {" sha_ni ", "SHA"},
		     {" asimd ", "NEON"},
		     {" sha2 ", "SHA-2"}};
	char text[FILE_BYTES], *line;
	size_t used = 0;

	out[0] = 0;
	read_text("/proc/cpuinfo", text, sizeof(text));
	line = strstr(text, "\nflags");
	line = line ? line : strstr(text, "\nFeatures");
	if (!line)
		return;
	line++;
	line[strcspn(line, "\n")] = ' '; /* so that the last word ends in a blank, as others do */
	line[strcspn(line, "\n")] = 0;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && used < room; i++)
		if (strstr(line, known[i].word))
			used += (size_t)snprintf(out + used, room - used, "%s%s", used ? ", " : "", known[i].name);
}

void machine_cpus(struct machine_cpus *out)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t allowed = thread_cpus_allowed();

	*out = (struct machine_cpus){.count = online > 0 ? (uint64_t)online : 1};
	out->allowed_count = allowed ? allowed : out->count;
	out->node_count = numbered_in("/sys/devices/system/node", "node");
	cpu_features(out->features, sizeof(out->features));
}

/* ---- io_uring ---- */

void machine_uring(struct machine_uring *out)
{
	struct io_uring_params p = {.flags = 0};
	char text[FILE_BYTES];
	int fd = (int)syscall(SYS_io_uring_setup, 4, &p);

	*out = (struct machine_uring){.os_code = fd < 0 ? errno : 0};
	if (fd >= 0)
		close(fd);
	out->disabled = number_in("/proc/sys/kernel/io_uring_disabled"); /* since Linux 6.6 */
	read_text("/proc/self/status", text, sizeof(text));
	out->is_filtered = number_behind(text, "\nSeccomp:") == 2;
}

/* ---- PCI ---- */

static bool pci_text(const char *bus_id, const char *name, char *text, size_t room)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), PCI "/%.64s/%s", bus_id, name);
	return read_text(path, text, room);
}

uint32_t machine_nvidia_gpu_count(void)
{
	DIR *dir = opendir(PCI);
	const struct dirent *e;
	uint32_t count = 0;
	char text[64];

	while (dir && (e = readdir(dir)))
		if (e->d_name[0] != '.' && pci_text(e->d_name, "vendor", text, sizeof(text)) &&
		    !strncmp(text, "0x10de", 6) && pci_text(e->d_name, "class", text, sizeof(text)) &&
		    !strncmp(text, "0x03", 4)) /* 0300: VGA, 0302: 3D controller */
			count++;
	if (dir)
		closedir(dir);
	return count;
}

static double pci_rate(const char *bus_id, const char *name)
{
	char text[64];
	double gt_per_s;

	/* "16.0 GT/s PCIe" */
	return pci_text(bus_id, name, text, sizeof(text)) && sscanf(text, "%lf GT/s", &gt_per_s) == 1 ? gt_per_s : 0;
}

static uint64_t pci_number(const char *bus_id, const char *name)
{
	char text[64];
	uint64_t value;

	if (!pci_text(bus_id, name, text, sizeof(text)) || text[0] == '-') /* a node of -1: there is only one */
		return UINT64_MAX;
	value = number_behind(text, "");
	/* 0 lanes: a machine that only pretends to have a bus */
	return value == 0 && strcmp(name, "numa_node") ? UINT64_MAX : value;
}

void machine_link(const char *bus_id, struct machine_link *out)
{
	char id[32] = "";

	for (size_t i = 0; bus_id[i] && i < sizeof(id) - 1; i++)
		id[i] = (char)tolower((uint8_t)bus_id[i]);
	out->gt_per_s = pci_rate(id, "current_link_speed");
	out->most_gt_per_s = pci_rate(id, "max_link_speed");
	out->width = pci_number(id, "current_link_width");
	out->most_width = pci_number(id, "max_link_width");
	out->node = pci_number(id, "numa_node");
}

double machine_link_gb_per_s(double gt_per_s, uint64_t width)
{
	/* PCIe 1 and 2; 3 to 5; from 6 on in flits */
	double coding = gt_per_s < 6 ? 8.0 / 10 : gt_per_s < 40 ? 128.0 / 130 : 242.0 / 256;

	return gt_per_s * coding * (double)width / 8;
}
