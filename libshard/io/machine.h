/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h - facts about this machine, from the kernel, for shard_doctor()
 *
 * Each call asks the kernel anew.  No fact from here decides how a loader works.  A number that the
 * kernel or a container hides is UINT64_MAX, and such a text is empty.
 */
#ifndef SHARD_IO_MACHINE_H
#define SHARD_IO_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shard.h"

#define MACHINE_TEXT_BYTES 128

struct machine_kernel {
	char release[MACHINE_TEXT_BYTES]; /* "6.1.0-18-amd64" */
	uint32_t major, minor;
};
void machine_kernel(struct machine_kernel *out);

/*
 * Bytes of memory, and pages of the hugetlb pool; the word in force for transparent huge pages:
 * always, madvise, never; or "" where the kernel has none, or, without has_sysfs, does not say.
 */
struct machine_memory {
	uint64_t total_bytes, available_bytes, hugetlb_count, hugetlb_free_count, hugetlb_page_bytes;
	char huge_pages[MACHINE_TEXT_BYTES];
	bool has_sysfs;
};
void machine_memory(struct machine_memory *out);

uint64_t machine_memlock_bytes(void); /* that this process may lock; UINT64_MAX: without limit */

/* CPUs of the machine, and how many of them this process may use. */
struct machine_cpus {
	uint64_t count, allowed_count, node_count;
	char features[MACHINE_TEXT_BYTES]; /* of those that we have code for: "AVX2, AVX-512, SHA" */
};
void machine_cpus(struct machine_cpus *out);

/*
 * io_uring_setup(), tried: 0 or the errno; the sysctl kernel.io_uring_disabled; is this process
 * under a seccomp filter?
 */
struct machine_uring {
	int os_code;
	uint64_t disabled;
	bool is_filtered;
};
void machine_uring(struct machine_uring *out);

/* ---- PCI ---- */

/* NVIDIA's GPUs on the PCI bus, driver or not. */
uint32_t machine_nvidia_gpu_count(void);

struct machine_link {
	double gt_per_s, most_gt_per_s;	  /* 0: not told.  Of a GPU that idles, less than it can */
	uint64_t width, most_width, node; /* lanes; the NUMA node */
};
/* Of the device with that bus id, "0000:65:00.0", in upper or lower case. */
void machine_link(const char *bus_id, struct machine_link *out);

/*
 * The most that so many lanes carry one way, in 10^9 bytes a second, after coding and before
 * packets.
 */
double machine_link_gb_per_s(double gt_per_s, uint64_t width);

#endif
