/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.c - rows as JSON and as a table, and the targets that they are compared with
 *
 * A target is a line of bench/TARGETS: `ROW at_least RATIO`, of a row without a bound `ROW at_least
 * FIGURE`, or `ROW at_most FIGURE`.
 */
#include "bench/common/print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "bench/common/say.h"
#include "bench/common/service.h"

/* ---- the machine ---- */

static void read_cpu_name(char *out, size_t bytes)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[512];

	snprintf(out, bytes, "unknown CPU");
	while (f && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');

		if (!strncmp(line, "model name", 10) && colon) {
			line[strcspn(line, "\n\"\\")] = 0;
			snprintf(out, bytes, "%s", colon + 2);
			break;
		}
	}
	if (f)
		fclose(f);
}

void print_machine(void)
{
	struct utsname u;
	struct sysinfo s;
	char cpu[256], date[16];
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	double gib, load[1] = {0};
	time_t now = time(NULL);

	if (!strftime(date, sizeof(date), "%Y-%m-%d", gmtime(&now)) || uname(&u) || sysinfo(&s) ||
	    getloadavg(load, 1) != 1)
		bench_die("the system does not say what it is");
	read_cpu_name(cpu, sizeof(cpu));
	gib = (double)s.totalram * s.mem_unit / (1 << 30);
	printf("{\"machine\": {\"cpu\": \"%s\", \"cores\": %ld, \"cache_mib\": %zu, \"memory_gib\": %.1f, \"kernel\": "
	       "\"%s %s %s\", "
	       "\"load\": %.2f, \"date\": \"%s\"}}\n",
	       cpu, cores, bench_llc_bytes() >> 20, gib, u.sysname, u.release, u.machine, load[0], date);
	fprintf(stderr, "%s, %ld cores, %zu MiB cache, %.1f GiB memory, %s %s %s; load before: %.2f\n", cpu, cores,
		bench_llc_bytes() >> 20, gib, u.sysname, u.release, u.machine, load[0]);
}

/* ---- targets ---- */

struct target {
	bool found, at_most;
	double value;
};

static struct target find_target(const char *path, const char *name)
{
	struct target t = {false, false, 0};
	FILE *f = fopen(path, "re");
	char line[512], row[128], how[32];

	if (!f)
		bench_die("%s: cannot be opened; run from the top of the tree, or name it with --targets", path);
	while (!t.found && fgets(line, sizeof(line), f)) {
		double value;

		if (line[0] == '#' || sscanf(line, "%127s %31s %lf", row, how, &value) != 3 || strcmp(row, name))
			continue;
		t = (struct target){true, !strcmp(how, "at_most"), value};
		if (!t.at_most && strcmp(how, "at_least"))
			bench_die("%s: %s: `%s` is neither at_least nor at_most", path, name, how);
	}
	fclose(f);
	return t;
}

/* ---- rows ---- */

static void text(char out[32], double v)
{
	double size = fabs(v);

	snprintf(out, 32, "%.*f", size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 4, v);
}

static void heading(void)
{
	static bool printed;

	if (!printed)
		fprintf(stderr, "\n%-26s %10s %10s %-12s %6s  %-12s %s\n", "row", "ours", "bound", "unit", "ratio",
			"target", "runs");
	printed = true;
}

/* One line of JSON and one of the table.  `bound` may be NULL. */
static void print_line(const char *name, const char *unit, double ours, const double *bound, double ratio,
		       const struct target *t, unsigned run_count)
{
	char a[32], b[32] = "-", r[32] = "-", target[64] = "-";
	bool missed = t->found && (t->at_most ? ours > t->value : (bound ? ratio : ours) < t->value);

	text(a, ours);
	printf("{\"bench\": \"%s\", \"ours\": %s, ", name, a);
	if (bound) {
		text(b, *bound);
		snprintf(r, sizeof(r), "%.3f", ratio);
		printf("\"bound\": %s, ", b);
	}
	printf("\"unit\": \"%s\"", unit);
	if (bound)
		printf(", \"ratio\": %.3f", ratio);
	if (t->found) {
		printf(", \"%s\": %.2f", t->at_most ? "at_most" : "at_least", t->value);
		snprintf(target, sizeof(target), "%s %.2f%s", t->at_most ? "<=" : ">=", t->value,
			 missed ? " MISSED" : "");
	}
	printf(", \"runs\": %u}\n", run_count);
	fflush(stdout);
	heading();
	fprintf(stderr, "%-26s %10s %10s %-12s %6s  %-12s %u\n", name, a, b, unit, r, target, run_count);
}

static void print_sides(const struct bench_row *row, const struct figure *f, unsigned side_count, unsigned bound,
			unsigned run_count)
{
	for (unsigned i = 0; i < side_count; i++) {
		char m[32], least[32], greatest[32];

		text(m, f[i].median);
		text(least, f[i].least);
		text(greatest, f[i].greatest);
		fprintf(stderr, "    %-8s%-42s %10s  [%s .. %s]\n",
			!i	     ? "ours"
			: i == bound ? "BOUND"
				     : "bound",
			row->side[i].label, m, least, greatest);
		if (i)
			printf("{\"bench\": \"%s\", \"candidate\": \"%s\", \"bound\": %s, \"unit\": \"%s\", \"runs\": "
			       "%u}\n",
			       row->name, row->side[i].label, m, row->unit, run_count);
	}
}

void print_row(const struct bench_row *row, const struct figure *f, unsigned side_count, unsigned bound,
	       unsigned run_count, const char *targets_path)
{
	struct target t = find_target(targets_path, row->name);
	double ratio = 0;
	char name[160];

	if (bound)
		ratio = row->less_is_better ? f[bound].median / f[0].median : f[0].median / f[bound].median;
	print_line(row->name, row->unit, f[0].median, bound ? &f[bound].median : NULL, ratio, &t, run_count);
	print_sides(row, f, side_count, bound, run_count);
	if (!row->cpu_unit)
		return;
	snprintf(name, sizeof(name), "%s/cpu", row->name);
	t = find_target(targets_path, name);
	print_line(name, row->cpu_unit, f[0].cpu, bound ? &f[bound].cpu : NULL,
		   bound && f[0].cpu > 0 ? f[bound].cpu / f[0].cpu : 0, &t, run_count);
}

void print_figure(const char *name, const char *unit, double value, unsigned run_count, const char *targets_path)
{
	struct target t = find_target(targets_path, name);

	print_line(name, unit, value, NULL, 0, &t, run_count);
}

void print_skipped(const char *name, const char *reason)
{
	printf("{\"bench\": \"%s\", \"skipped\": \"", name);
	for (const char *c = reason; *c; c++)
		putchar(*c == '"' || *c == '\\' || (unsigned char)*c < 32 ? '\'' : *c);
	printf("\"}\n");
	fflush(stdout);
	heading();
	fprintf(stderr, "%-26s skipped: %s\n", name, reason);
}
