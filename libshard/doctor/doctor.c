/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor.c - shard_doctor(): what there is for a loader to use, and how it is said
 *
 * Facts come from io/machine.h and cuda/probe.h.  Here they become sentences: what was found, what follows for a loader,
 * what to do.  Nothing is changed, and nothing here decides what a loader does.
 */
#include "libshard/doctor/doctor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libshard/base/error.h"
#include "libshard/base/options.h"
#include "libshard/io/engine.h"
#include "libshard/io/machine.h"
#include "libshard/load/path.h"

#define SMALL_MEMLOCK_BYTES (UINT64_C(1) << 20)

/* ---- saying it ---- */

void finding_set(char text[DOCTOR_TEXT_BYTES], const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, DOCTOR_TEXT_BYTES, fmt, args);
	va_end(args);
}

void finding_number(struct finding *f, const char *name, uint64_t value)
{
	if (value != UINT64_MAX && f->fact_count < DOCTOR_FACTS)
		f->fact[f->fact_count++] = (struct shard_fact){name, NULL, value};
}

void finding_text(struct finding *f, const char *name, const char *text)
{
	if (text[0] && f->fact_count < DOCTOR_FACTS)
		f->fact[f->fact_count++] = (struct shard_fact){name, text, 0};
}

void finding_quote(struct finding *f, const char *message)
{
	const char *end = strstr(message, "; ");

	finding_set(f->found, "%.*s", end ? (int)(end - message) : (int)strlen(message), message);
	if (end)
		finding_set(f->advice, "%.*s", (int)(strcspn(end + 2, ";")), end + 2);
}

void finding_tell(const struct doctor *d, const struct finding *f)
{
	const struct shard_finding out = {
		.name = f->name,
		.found = f->found,
		.so = f->so,
		.advice = f->advice,
		.fact = f->fact,
		.fact_count = f->fact_count,
		.verdict = f->verdict,
	};

	d->o.finding(d->o.context, &out);
}

const char *size_text(char out[SIZE_CHARS], uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes / 1024;
	size_t i = 0;

	while (value >= 1023.95 && i < 5) {
		value /= 1024;
		i++;
	}
	if (bytes < 1024)
		snprintf(out, SIZE_CHARS, "%" PRIu64 " B", bytes);
	else
		snprintf(out, SIZE_CHARS, "%.1f %s", value, units[i]);
	return out;
}

/* ---- CPUs, memory ---- */

static void look_at_cpus(struct doctor *d)
{
	struct finding f = {.name = "CPUs", .verdict = SHARD_GOOD};
	struct machine_cpus cpus;

	machine_cpus(&cpus);
	d->node_count = cpus.node_count;
	finding_number(&f, "count", cpus.count);
	finding_number(&f, "allowed_count", cpus.allowed_count);
	finding_text(&f, "features", cpus.features);
	if (cpus.allowed_count < cpus.count)
		finding_set(f.found, "%" PRIu64 " of %" PRIu64 " CPUs may be used", cpus.allowed_count, cpus.count);
	else
		finding_set(f.found, "%" PRIu64 " CPU%s", cpus.count, cpus.count == 1 ? "" : "s");
	if (cpus.features[0]) {
		strncat(f.found, "; ", sizeof(f.found) - strlen(f.found) - 1);
		strncat(f.found, cpus.features, sizeof(f.found) - strlen(f.found) - 1);
	} else {
		f.verdict = SHARD_SLOWER;
		finding_set(f.so, "hashing and shuffling take portable code");
		finding_set(f.advice, "in a virtual machine, pass the host's CPU model through");
	}
	finding_tell(d, &f);
}

static void look_at_nodes(const struct doctor *d)
{
	struct finding f = {.name = "NUMA", .verdict = SHARD_GOOD};

	if (d->node_count == UINT64_MAX)
		return; /* a kernel built without */
	finding_number(&f, "node_count", d->node_count);
	if (d->node_count == 1) {
		finding_set(f.found, "one node");
		finding_set(f.so, "all memory is equally near");
	} else {
		finding_set(f.found, "%" PRIu64 " nodes", d->node_count);
		finding_set(f.so, "memory, disks and GPUs of another node are further away");
		finding_set(f.advice, "keep each rank on the node of its GPU: numactl --cpunodebind=N --membind=N");
	}
	finding_tell(d, &f);
}

static void look_at_memory(const struct doctor *d, const struct machine_memory *m)
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
		finding_set(f.found, "%s of %s available", size_text(available, m->available_bytes), size_text(total, m->total_bytes));
		finding_set(f.so, "datasets of up to %s are read through the page cache and stay there; larger ones past it",
			    size_text(total, path_fits_bytes()));
	}
	finding_tell(d, &f);
}

static void look_at_huge_pages(const struct doctor *d, const struct machine_memory *m)
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
		finding_set(f.found, "transparent ones: %s%s", m->huge_pages[0] ? m->huge_pages : "not in this kernel", pool);
		finding_set(f.so, "batches lie in small pages: direct reads and page-locking take longer");
		finding_set(f.advice, "%s", m->huge_pages[0] ? "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"
							      : "a kernel with CONFIG_TRANSPARENT_HUGEPAGE");
	}
	finding_tell(d, &f);
}

/* Rings of io_uring are counted against it before Linux 5.12; what NVIDIA's driver locks never is. */
static void look_at_memlock(const struct doctor *d, const struct machine_kernel *k)
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
		finding_set(f.advice, "ulimit -l unlimited (docker run --ulimit memlock=-1; systemd: LimitMEMLOCK=infinity)");
	} else {
		finding_set(f.so, "enough: neither io_uring nor NVIDIA's driver counts what it locks against it");
	}
	finding_tell(d, &f);
}

/* ---- io_uring ---- */

static void uring_refused(struct finding *f, const struct machine_uring *u, const struct machine_kernel *k)
{
	char why[128];

	if (u->os_code == EPERM && u->disabled && u->disabled != UINT64_MAX) {
		finding_set(f->found, "switched off: the sysctl kernel.io_uring_disabled is %" PRIu64, u->disabled);
		finding_set(f->advice, "sudo sysctl kernel.io_uring_disabled=0");
	} else if (u->is_filtered && (u->os_code == EPERM || u->os_code == ENOSYS)) {
		finding_set(f->found, "refused by a seccomp filter, as containers have (%s)", strerrorname_np(u->os_code));
		finding_set(f->advice, "a seccomp profile that allows io_uring_setup, io_uring_enter and io_uring_register");
	} else if (u->os_code == ENOSYS) {
		finding_set(f->found, "not in this kernel, Linux %s", k->release);
		finding_set(f->advice, "a kernel with CONFIG_IO_URING");
	} else {
		finding_set(f->found, "refused: %s", strerror_r(u->os_code, why, sizeof(why)));
		finding_set(f->advice, "%s", u->os_code == ENOMEM ? "ulimit -l unlimited" : "");
	}
}

static void look_at_uring(const struct doctor *d, const struct machine_kernel *k)
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
		finding_set(f.so, "each thread has many direct reads under way");
	} else {
		finding_set(f.so, "direct reads come one after the other in each thread");
		if (u.os_code) {
			uring_refused(&f, &u, k);
		} else {
			finding_set(f.found, "this build of libshard has none");
			finding_set(f.advice, "install liburing's headers (liburing-dev) and build again");
		}
	}
	finding_tell(d, &f);
}

void doctor_machine(struct doctor *d)
{
	struct machine_kernel kernel;
	struct machine_memory memory;

	machine_kernel(&kernel);
	machine_memory(&memory);
	look_at_cpus(d);
	look_at_nodes(d);
	look_at_memory(d, &memory);
	look_at_huge_pages(d, &memory);
	look_at_memlock(d, &kernel);
	look_at_uring(d, &kernel);
}

int shard_doctor(const struct shard_doctor_options *opt, struct shard_error *err)
{
	struct doctor d = {.node_count = UINT64_MAX};
	int rc = options_take(&d.o, sizeof(d.o), opt, err);

	if (rc)
		return rc;
	if (!d.o.finding)
		return error_set(err, SHARD_E_ARGUMENT, "shard_doctor: nobody to tell: finding is NULL");
	doctor_machine(&d);
	if (d.o.path)
		rc = doctor_disk(&d, err);
	if (!rc)
		doctor_gpu(&d);
	return rc;
}
