/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_gpu.c - see doctor_gpu.h
 */
#include "libshard/doctor/doctor_gpu.h"

#include <inttypes.h>
#include <stdio.h>

#include "libshard/base/clock.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/cuda/device.h"
#include "libshard/cuda/probe.h"
#include "libshard/doctor/finding.h"
#include "libshard/io/buffer.h"
#include "libshard/io/machine.h"
#include "shard_gpu.h"

#define TRY_BYTES  (UINT64_C(64) << 20)
#define PAGE_BYTES 4096u

/* ---- the driver ---- */

static void say_no_driver(const struct shard_doctor_options *o, bool is_loaded, const struct shard_error *why)
{
	struct finding f = {.name = "GPU driver", .verdict = SHARD_MISSING};
	uint32_t on_bus = machine_nvidia_gpu_count();

	finding_number(&f, "gpus_on_bus", on_bus);
	finding_quote(&f, why->message);
	finding_set(f.so, "no batches can be delivered on a GPU; in host memory everything works");
	if (!on_bus && !is_loaded) {
		finding_set(f.found, "none, and no NVIDIA GPU on the PCI bus");
		finding_set(f.advice, "nothing, if this machine needs no GPU");
	}
	finding_tell(o, &f);
}

/* ---- a device ---- */

static void say_link(uint64_t node_count, struct finding *f, const char *bus_id, const struct machine_link *link)
{
	/* A GPU that idles shows less than the link can do. */
	double gt_per_s = link->most_gt_per_s > link->gt_per_s ? link->most_gt_per_s : link->gt_per_s;

	if (gt_per_s <= 0 || link->width == UINT64_MAX) {
		finding_add(f->found, "; the speed of its PCIe link is unknown");
		return;
	}
	finding_add(f->found, "; PCIe %.1f GT/s x%" PRIu64, gt_per_s, link->width);
	finding_set(f->so, "copies to it are at most %.1f GB/s", machine_link_gb_per_s(gt_per_s, link->width));
	if (link->most_width != UINT64_MAX && link->width < link->most_width) {
		f->verdict = SHARD_SLOWER;
		finding_set(f->advice,
			    "it supports %" PRIu64 " lanes, for %.1f GB/s: try another slot, without a riser card",
			    link->most_width, machine_link_gb_per_s(gt_per_s, link->most_width));
	} else if (link->node != UINT64_MAX && node_count > 1 && node_count != UINT64_MAX) {
		finding_set(f->advice,
			    "run its rank on the same node: numactl --cpunodebind=%" PRIu64 " --membind=%" PRIu64,
			    link->node, link->node);
	}
	finding_text(f, "bus_id", bus_id);
}

static void look_at_gpu(const struct shard_doctor_options *o, uint64_t node_count, uint32_t ordinal)
{
	char name[32], size[SIZE_CHARS];
	struct finding f = {.name = name, .verdict = SHARD_GOOD};
	struct cuda_gpu gpu;
	struct machine_link link;
	struct shard_error err;
	struct shown s;

	snprintf(name, sizeof(name), "GPU %u", ordinal);
	if (cuda_probe_gpu(ordinal, &gpu, &err)) {
		f.verdict = SHARD_UNKNOWN;
		finding_quote(&f, err.message);
		finding_tell(o, &f);
		return;
	}
	machine_link(gpu.bus_id, &link);
	show(&s, gpu.name);
	finding_text(&f, "name", s.text);
	finding_number(&f, "memory_bytes", gpu.memory_bytes);
	finding_number(&f, "capability", gpu.capability_major * 10 + gpu.capability_minor);
	finding_number(&f, "link_mt_per_s",
		       link.most_gt_per_s > 0 ? (uint64_t)(link.most_gt_per_s * 1000) : UINT64_MAX);
	finding_number(&f, "link_width", link.width);
	finding_number(&f, "link_most_width", link.most_width);
	finding_number(&f, "node", link.node);
	finding_set(f.found, "%s, %s, compute capability %u.%u", s.text, size_text(size, gpu.memory_bytes),
		    gpu.capability_major, gpu.capability_minor);
	say_link(node_count, &f, gpu.bus_id, &link);
	finding_tell(o, &f);
}

/* ---- page-locking ---- */

static int try_page_lock(void *memory, uint64_t *ns, struct shard_error *err)
{
	struct cuda_device *gpu;
	uint64_t begin;
	int rc = cuda_open(&gpu, SHARD_GPU_OF_STREAM, NULL, err);

	if (rc)
		return rc;
	rc = cuda_enter(gpu, err);
	if (!rc) {
		begin = clock_now_ns();
		rc = cuda_pin(gpu, memory, TRY_BYTES, err);
		*ns = clock_now_ns() - begin;
		if (!rc)
			cuda_unpin(gpu, memory);
		rc = cuda_leave(gpu, rc, err);
	}
	cuda_close(gpu);
	return rc;
}

static void look_at_page_locking(const struct shard_doctor_options *o)
{
	struct finding f = {.name = "page-locking", .verdict = SHARD_GOOD};
	volatile uint8_t *memory = buffer_open(TRY_BYTES);
	struct shard_error err = {.message = "no memory to try it with"};
	char size[SIZE_CHARS];
	uint64_t ns = 0;
	int rc = SHARD_E_MEMORY;

	for (uint64_t i = 0; memory && i < TRY_BYTES; i += PAGE_BYTES)
		memory[i] = 1; /* pages must exist, as those of slots do */
	if (memory)
		rc = try_page_lock((void *)memory, &ns, &err);
	mem_free((void *)memory);
	size_text(size, TRY_BYTES);
	if (!rc) {
		finding_number(&f, "tried_bytes", TRY_BYTES);
		finding_number(&f, "tried_ns", ns);
		finding_set(f.found, "works; %s took %.1f ms", size, (double)ns / 1e6);
		finding_set(f.so, "the GPU reads batches directly, without another copy");
	} else {
		f.verdict = SHARD_SLOWER;
		finding_quote(&f, err.message);
		finding_number(&f, "refused_with", err.os_code ? (uint64_t)err.os_code : UINT64_MAX);
		finding_set(f.so, "the driver copies each batch once more on its way to the GPU");
		if (!f.advice[0])
			finding_set(f.advice, "free memory, and raise the container's memory limit if the ring exceeds "
					      "it");
	}
	finding_tell(o, &f);
}

/* The driver is too old, or cut down, to say which GPUs there are.  Loaders work with it. */
static void say_silent_driver(const struct shard_doctor_options *o, const struct cuda_driver *driver)
{
	struct finding f = {.name = "GPU driver", .verdict = SHARD_UNKNOWN};

	finding_set(f.found, "has all functions that loaders call, but cannot list the GPUs: it lacks %s",
		    driver->lacks);
	finding_set(f.so, "batches can be delivered on a GPU, if there is one");
	finding_set(f.advice, "update NVIDIA's driver");
	finding_tell(o, &f);
}

void doctor_gpu(const struct shard_doctor_options *o, uint64_t node_count)
{
	struct finding f = {.name = "GPU driver", .verdict = SHARD_GOOD};
	struct cuda_driver driver;
	struct shard_error err = {.status = 0};

	if (cuda_probe(&driver, &err)) {
		say_no_driver(o, driver.is_loaded, &err);
		return;
	}
	if (driver.lacks[0]) {
		say_silent_driver(o, &driver);
		look_at_page_locking(o);
		return;
	}
	finding_number(&f, "cuda_version", driver.major * 1000 + driver.minor * 10);
	finding_number(&f, "device_count", driver.device_count);
	finding_set(f.found, "for CUDA %u.%u, with all functions that libshard calls; %u device%s", driver.major,
		    driver.minor, driver.device_count, driver.device_count == 1 ? "" : "s");
	finding_set(f.so, "batches can be delivered on a GPU");
	finding_tell(o, &f);
	for (uint32_t i = 0; i < driver.device_count; i++)
		look_at_gpu(o, node_count, i);
	if (driver.device_count)
		look_at_page_locking(o);
}
