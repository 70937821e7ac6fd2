/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_machine.c - see doctor_machine.h
 */
#include "libshard/doctor/doctor_machine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libshard/doctor/finding.h"
#include "libshard/feed/path.h"
#include "libshard/io/engine.h"
#include "shard_gpu.h"

#define SMALL_MEMLOCK_BYTES (UINT64_C(1) << 20)

/* ---- CPUs, memory ---- */

static void look_at_cpus(const struct shard_doctor_options *o, const struct machine_cpus *cpus)
{
	struct finding f = {.name = "CPUs", .verdict = SHARD_GOOD};

	finding_number(&f, "count", cpus->count);
	finding_number(&f, "allowed_count", cpus->allowed_count);
	finding_text(&f, "features", cpus->features);
	if (cpus->allowed_count < cpus->count)
		finding_set(f.found, "%" PRIu64 " of %" PRIu64 " CPUs may be used", cpus->allowed_count, cpus->count);
	else
		finding_set(f.found, "%" PRIu64 " CPU%s", cpus->count, cpus->count == 1 ? "" : "s");
	if (cpus->features[0]) {
		finding_add(f.found, "; %s", cpus->features);
	} else {
		f.verdict = SHARD_SLOWER;
		finding_set(f.so, "hashing and shuffling use portable code, which is slower");
		finding_set(f.advice, "in a virtual machine, pass the host's CPU model through");
	}
	finding_tell(o, &f);
}

static void look_at_nodes(const struct shard_doctor_options *o, uint64_t node_count)
{
	struct finding f = {.name = "NUMA", .verdict = SHARD_GOOD};

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
	finding_tell(o, &f);
}

static void look_at_memory(const struct shard_doctor_options *o, const struct machine_memory *m)
{
	struct finding f = {.name = "memory", .verdict = SHARD_GOOD};
	char total[SIZE_CHARS], available[SIZE_CHARS];

	finding_number(&f, "total_bytes", m->total_bytes);
	finding_number(&f, "available_bytes", m->available_bytes);
	if (m->available_bytes == UINT64_MAX) {
		f.verdict = SHARD_UNKNOWN;
		finding_set(f.found, "the system does not say how much is available");
		finding_set(f.advice, "mount /proc");
	} else {
		finding_set(f.found, "%s of %s available", size_text(available, m->available_bytes),
			    size_text(total, m->total_bytes));
		finding_set(f.so,
			    "datasets of up to %s are read through the page cache and stay there; "
			    "larger ones are read past it",
			    size_text(total, path_fits_bytes()));
	}
	finding_tell(o, &f);
}

static void look_at_huge_pages(const struct shard_doctor_options *o, const struct machine_memory *m)
{
	struct finding f = {.name = "huge pages", .verdict = SHARD_GOOD};
	char pool[64] = "";

	finding_text(&f, "transparent", m->huge_pages);
	finding_number(&f, "hugetlb_count", m->hugetlb_count);
	finding_number(&f, "hugetlb_free_count", m->hugetlb_free_count);
	if (m->hugetlb_count && m->hugetlb_count != UINT64_MAX)
		snprintf(pool, sizeof(pool), "; %" PRIu64 " in the hugetlb pool, which is not used", m->hugetlb_count);
	if (!strcmp(m->huge_pages, "always") || !strcmp(m->huge_pages, "madvise")) {
		finding_set(f.found, "transparent ones: %s%s", m->huge_pages, pool);
		finding_set(f.so, "batches lie in pages of 2 MiB");
	} else if (!m->huge_pages[0] && !m->has_sysfs) {
		f.verdict = SHARD_UNKNOWN;
		finding_set(f.found, "the system does not say whether it has transparent ones%s", pool);
		finding_set(f.advice, "mount /sys");
	} else {
		f.verdict = SHARD_SLOWER;
		finding_set(f.found, "transparent ones: %s%s", m->huge_pages[0] ? m->huge_pages : "not in this kernel",
			    pool);
		finding_set(f.so, "batches lie in small pages: direct reads and page-locking take longer");
		finding_set(f.advice, "%s",
			    m->huge_pages[0] ? "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"
					     : "use a kernel with CONFIG_TRANSPARENT_HUGEPAGE");
	}
	finding_tell(o, &f);
}

/*
 * Before Linux 5.12 the rings of io_uring count against the limit.  Memory that NVIDIA's driver
 * locks never counts.
 */
static void look_at_memlock(const struct shard_doctor_options *o, const struct machine_kernel *k)
{
	struct finding f = {.name = "memlock", .verdict = SHARD_GOOD};
	uint64_t bytes = machine_memlock_bytes();
	bool counts = k->major < 5 || (k->major == 5 && k->minor < 12);
	char text[SIZE_CHARS];

	finding_number(&f, "limit_bytes", bytes);
	if (bytes == UINT64_MAX)
		finding_set(f.found, "no limit");
	else
		finding_set(f.found, "%s may be locked", size_text(text, bytes));
	if (counts && bytes < SMALL_MEMLOCK_BYTES) {
		f.verdict = SHARD_SLOWER;
		finding_set(f.so, "before Linux 5.12 io_uring's rings count against it, and may be refused");
		finding_set(f.advice, "ulimit -l unlimited (docker run --ulimit memlock=-1; "
				      "systemd: LimitMEMLOCK=infinity)");
	} else {
		finding_set(f.so, "enough: neither io_uring nor NVIDIA's driver counts what it locks against it");
	}
	finding_tell(o, &f);
}

/* ---- io_uring ---- */

static void uring_refused(struct finding *f, const struct machine_uring *u, const struct machine_kernel *k)
{
	char why[128];

	if (u->os_code == EPERM && u->disabled && u->disabled != UINT64_MAX) {
		finding_set(f->found, "switched off: the sysctl kernel.io_uring_disabled is %" PRIu64, u->disabled);
		finding_set(f->advice, "sudo sysctl kernel.io_uring_disabled=0");
	} else if (u->is_filtered && (u->os_code == EPERM || u->os_code == ENOSYS)) {
		finding_set(f->found, "refused by a seccomp filter, as is usual in containers (%s)",
			    strerrorname_np(u->os_code));
		finding_set(f->advice, "use a seccomp profile that allows io_uring_setup, io_uring_enter and "
				       "io_uring_register");
	} else if (u->os_code == ENOSYS) {
		finding_set(f->found, "not in this kernel, Linux %s", k->release);
		finding_set(f->advice, "use a kernel with CONFIG_IO_URING");
	} else {
		finding_set(f->found, "refused: %s", strerror_r(u->os_code, why, sizeof(why)));
		finding_set(f->advice, "%s", u->os_code == ENOMEM ? "ulimit -l unlimited" : "");
	}
}

static void look_at_uring(const struct shard_doctor_options *o, const struct machine_kernel *k)
{
	struct finding f = {.name = "io_uring", .verdict = SHARD_SLOWER};
	struct machine_uring u;
	struct engine *e = engine_open(1);
	bool ours = e && engine_is_uring(e);

	if (e)
		engine_close(e);
	machine_uring(&u);
	finding_text(&f, "kernel", k->release);
	finding_text(&f, "refused_with", u.os_code ? strerrorname_np(u.os_code) : "");
	finding_number(&f, "sysctl_disabled", u.disabled);
	finding_number(&f, "seccomp", u.is_filtered);
	if (ours) {
		f.verdict = SHARD_GOOD;
		finding_set(f.found, "works; Linux %s", k->release);
		finding_set(f.so, "each thread keeps many direct reads in flight");
	} else {
		finding_set(f.so, "each thread makes one direct read at a time, which is slower");
		if (u.os_code) {
			uring_refused(&f, &u, k);
		} else {
			finding_set(f.found, "this build of libshard has none");
			finding_set(f.advice, "install liburing's headers (liburing-dev) and build again");
		}
	}
	finding_tell(o, &f);
}

void doctor_machine(const struct shard_doctor_options *o, const struct machine_cpus *cpus)
{
	struct machine_kernel kernel;
	struct machine_memory memory;

	machine_kernel(&kernel);
	machine_memory(&memory);
	look_at_cpus(o, cpus);
	look_at_nodes(o, cpus->node_count);
	look_at_memory(o, &memory);
	look_at_huge_pages(o, &memory);
	look_at_memlock(o, &kernel);
	look_at_uring(o, &kernel);
}
