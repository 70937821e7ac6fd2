/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_gpu.c - findings about GPUs: the driver, each device and its link, page-locking, and copies
 */
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libshard/base/clock.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/gpu/gpu.h"
#include "libshard/io/io.h"
#include "shard_gpu.h"
#include "tools/common/human.h"
#include "tools/shardcat/doctor/doctor.h"

#define TRY_BYTES  (UINT64_C(64) << 20)
#define PAGE_BYTES 4096u
#define PATH_BYTES 512
#define PCI	   "/sys/bus/pci/devices"

/* ---- the PCI bus ---- */

struct pcie_link {
	double gt_per_s, most_gt_per_s;	  /* 0: not told.  Of a GPU that idles, less than it can */
	uint64_t width, most_width, node; /* lanes; the NUMA node; UINT64_MAX: not told */
};

static bool pci_text(const char *bus_id, const char *name, char *text, size_t room)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), PCI "/%.64s/%s", bus_id, name);
	return kernel_text(path, text, room);
}

static uint32_t nvidia_gpus_on_bus(void)
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

/* "16.0 GT/s PCIe" */
static double pci_rate(const char *bus_id, const char *name)
{
	char text[64];
	double gt_per_s;

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

static void find_link(const char *bus_id, struct pcie_link *out)
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

double link_gb_per_s(double gt_per_s, uint64_t width)
{
	/* PCIe 1 and 2; 3 to 5; from 6 on in flits */
	double coding = gt_per_s < 6 ? 8.0 / 10 : gt_per_s < 40 ? 128.0 / 130 : 242.0 / 256;

	return gt_per_s * coding * (double)width / 8;
}

/* ---- a device ---- */

static void say_link(uint64_t node_count, struct finding *f, const char *bus_id, const struct pcie_link *link)
{
	/* A GPU that idles shows less than the link can do. */
	double gt_per_s = link->most_gt_per_s > link->gt_per_s ? link->most_gt_per_s : link->gt_per_s;

	if (gt_per_s <= 0 || link->width == UINT64_MAX) {
		finding_add(f->found, "; the speed of its PCIe link is unknown");
		return;
	}
	finding_add(f->found, "; PCIe %.1f GT/s x%" PRIu64, gt_per_s, link->width);
	finding_set(f->so, "copies to it are at most %.1f GB/s", link_gb_per_s(gt_per_s, link->width));
	if (link->most_width != UINT64_MAX && link->width < link->most_width) {
		f->verdict = VERDICT_SLOWER;
		finding_set(f->advice,
			    "it supports %" PRIu64 " lanes, for %.1f GB/s: try another slot, without a riser card",
			    link->most_width, link_gb_per_s(gt_per_s, link->most_width));
	} else if (link->node != UINT64_MAX && node_count > 1 && node_count != UINT64_MAX) {
		finding_set(f->advice,
			    "run its rank on the same node: numactl --cpunodebind=%" PRIu64 " --membind=%" PRIu64,
			    link->node, link->node);
	}
	finding_text(f, "bus_id", bus_id);
}

static void look_at_gpu(const struct doctor *d, uint64_t node_count, uint32_t ordinal)
{
	char name[32], size[HUMAN_CHARS];
	struct finding f = {.name = name, .verdict = VERDICT_GOOD};
	struct cuda_gpu gpu;
	struct pcie_link link;
	struct shard_error err;
	struct shown s;

	snprintf(name, sizeof(name), "GPU %u", ordinal);
	if (cuda_probe_gpu(ordinal, &gpu, &err)) {
		f.verdict = VERDICT_UNKNOWN;
		finding_quote(&f, err.message);
		d->tell(d->context, &f);
		return;
	}
	find_link(gpu.bus_id, &link);
	show(&s, gpu.name);
	finding_text(&f, "name", s.text);
	finding_number(&f, "memory_bytes", gpu.memory_bytes);
	finding_number(&f, "capability", gpu.capability_major * 10 + gpu.capability_minor);
	finding_number(&f, "link_mt_per_s",
		       link.most_gt_per_s > 0 ? (uint64_t)(link.most_gt_per_s * 1000) : UINT64_MAX);
	finding_number(&f, "link_width", link.width);
	finding_number(&f, "link_most_width", link.most_width);
	finding_number(&f, "node", link.node);
	finding_set(f.found, "%s, %s, compute capability %u.%u", s.text, human_bytes(size, gpu.memory_bytes),
		    gpu.capability_major, gpu.capability_minor);
	say_link(node_count, &f, gpu.bus_id, &link);
	d->tell(d->context, &f);
}

/* ---- copies, and page-locking ---- */

static void look_at_batches(const struct doctor *d, const struct cuda_driver *driver)
{
	struct finding f = {.name = "batch copies", .verdict = driver->has_batches ? VERDICT_GOOD : VERDICT_SLOWER};

	if (driver->has_batches) {
		finding_set(f.found, "the driver takes many copies in one call");
	} else {
		finding_set(f.found, "the driver has no call for many copies, which CUDA 12.8 brought");
		finding_set(f.so, "copies of many records to a GPU take more CPU time, and longer");
		finding_set(f.advice, "update NVIDIA's driver");
	}
	d->tell(d->context, &f);
}

static int try_page_lock(const void *memory, uint64_t bytes, bool is_map, uint64_t *ns, struct shard_error *err)
{
	struct cuda_device *gpu;
	uint64_t begin;
	int rc = cuda_open(&gpu, SHARD_GPU_OF_STREAM, NULL, err);

	if (rc)
		return rc;
	rc = cuda_enter(gpu, err);
	if (!rc) {
		begin = clock_now_ns();
		rc = is_map ? cuda_pin_map(gpu, memory, bytes, err)
			    : cuda_pin(gpu, (void *)(uintptr_t)memory, bytes, err);
		*ns = clock_now_ns() - begin;
		if (!rc)
			cuda_unpin(gpu, memory);
		rc = cuda_leave(gpu, rc, err);
	}
	cuda_close(gpu);
	return rc;
}

static void look_at_page_locking(const struct doctor *d)
{
	struct finding f = {.name = "page-locking", .verdict = VERDICT_GOOD};
	volatile uint8_t *memory = buffer_open(TRY_BYTES);
	struct shard_error err = {.message = "no memory to try it with"};
	char size[HUMAN_CHARS];
	uint64_t ns = 0;
	int rc = SHARD_E_MEMORY;

	for (uint64_t i = 0; memory && i < TRY_BYTES; i += PAGE_BYTES)
		memory[i] = 1; /* pages must exist, as those of slots do */
	if (memory)
		rc = try_page_lock((const void *)memory, TRY_BYTES, false, &ns, &err);
	mem_free((void *)memory);
	human_bytes(size, TRY_BYTES);
	if (!rc) {
		finding_number(&f, "tried_bytes", TRY_BYTES);
		finding_number(&f, "tried_ns", ns);
		finding_set(f.found, "works; %s took %.1f ms", size, (double)ns / 1e6);
		finding_set(f.so, "the GPU reads batches directly, without another copy");
	} else {
		f.verdict = VERDICT_SLOWER;
		finding_quote(&f, err.message);
		finding_number(&f, "refused_with", err.os_code ? (uint64_t)err.os_code : UINT64_MAX);
		finding_set(f.so, "the driver copies each batch once more on its way to the GPU");
		if (!f.advice[0])
			finding_set(f.advice, "free memory, and raise the container's memory limit if the ring exceeds "
					      "it");
	}
	d->tell(d->context, &f);
}

static int try_file(const char *path, uint64_t *bytes, uint64_t *ns, struct shard_error *err)
{
	const void *map;
	int fd, rc = file_open(path, &fd, bytes, NULL, err);

	if (rc)
		return rc;
	*bytes = *bytes < TRY_BYTES ? *bytes : TRY_BYTES;
	if (*bytes)
		rc = file_map_part(fd, 0, *bytes, path, &map, err);
	file_close(fd);
	if (rc || !*bytes)
		return rc;
	rc = try_page_lock(map, *bytes, true, ns, err);
	file_unmap(map, *bytes);
	return rc;
}

/* It depends on the file system whether the page cache can be page-locked. */
static void look_at_file(const struct doctor *d)
{
	struct finding f = {.name = "page cache", .verdict = VERDICT_GOOD};
	char *path = d->path ? doctor_file(d->path) : NULL, size[HUMAN_CHARS];
	struct shard_error err;
	uint64_t bytes = 0, ns = 0;
	int rc;

	if (!path)
		return;
	rc = try_file(path, &bytes, &ns, &err);
	mem_free(path);
	if (!rc && !bytes)
		return; /* an empty file has nothing to page-lock */
	human_bytes(size, bytes);
	if (!rc) {
		finding_number(&f, "tried_bytes", bytes);
		finding_number(&f, "tried_ns", ns);
		finding_set(f.found, "can be page-locked; %s of a file took %.1f ms", size, (double)ns / 1e6);
		finding_set(f.so, "the GPU reads records of 64 KiB and more in the page cache, where no thread copies "
				  "them");
	} else {
		f.verdict = VERDICT_SLOWER;
		finding_quote(&f, err.message);
		finding_number(&f, "refused_with", err.os_code ? (uint64_t)err.os_code : UINT64_MAX);
		finding_set(f.so, "threads copy each record to the slots of the loader, from where the GPU reads it");
		if (!f.advice[0] && rc == SHARD_E_DEVICE)
			finding_set(f.advice, "keep the dataset on a local disk, such as ext4, or in tmpfs");
	}
	d->tell(d->context, &f);
}

void doctor_gpu(const struct doctor *d, uint64_t node_count)
{
	struct finding f = {.name = "GPU driver", .verdict = VERDICT_GOOD};
	struct cuda_driver driver;
	struct shard_error err = {.status = 0};

	if (cuda_probe(&driver, &err)) {
		uint32_t on_bus = nvidia_gpus_on_bus();

		f.verdict = VERDICT_MISSING;
		finding_number(&f, "gpus_on_bus", on_bus);
		finding_quote(&f, err.message);
		finding_set(f.so, "no batches can be delivered on a GPU; in host memory everything works");
		if (!on_bus && !driver.is_loaded) {
			finding_set(f.found, "none, and no NVIDIA GPU on the PCI bus");
			finding_set(f.advice, "nothing, if this machine needs no GPU");
		}
		d->tell(d->context, &f);
		return;
	}
	if (driver.lacks[0]) {
		/* It is too old, or cut down, to say which GPUs there are.  Loaders work with it. */
		f.verdict = VERDICT_UNKNOWN;
		finding_set(f.found, "has all functions that loaders need, but cannot list the GPUs: it lacks %s",
			    driver.lacks);
		finding_set(f.so, "batches can be delivered on a GPU, if there is one");
		finding_set(f.advice, "update NVIDIA's driver");
		d->tell(d->context, &f);
		look_at_batches(d, &driver);
		look_at_page_locking(d);
		look_at_file(d);
		return;
	}
	finding_number(&f, "cuda_version", driver.major * 1000 + driver.minor * 10);
	finding_number(&f, "device_count", driver.device_count);
	finding_set(f.found, "for CUDA %u.%u, with all functions that libshard needs; %u device%s", driver.major,
		    driver.minor, driver.device_count, driver.device_count == 1 ? "" : "s");
	finding_set(f.so, "batches can be delivered on a GPU");
	d->tell(d->context, &f);
	look_at_batches(d, &driver);
	for (uint32_t i = 0; i < driver.device_count; i++)
		look_at_gpu(d, node_count, i);
	if (driver.device_count) {
		look_at_page_locking(d);
		look_at_file(d);
	}
}
