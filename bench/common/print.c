/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.c - rows as JSON and as a table, and the targets that they are compared with
 *
 * A target is a line of bench/TARGETS: `ROW at_least RATIO`, of a row without a bound `ROW at_least
 * FIGURE`; `ROW at_most FIGURE`; or `ROW times_at_most MULTIPLE`, our figure over the bound's.
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

/* Begin a line of JSON. */
static void open_line(const struct printing *p, const char *key)
{
	if (p->process)
		printf("{\"process\": %u, \"%s\": ", p->process, key);
	else
		printf("{\"%s\": ", key);
}

void print_machine(const struct printing *p)
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
	open_line(p, "machine");
	printf("{\"cpu\": \"%s\", \"cores\": %ld, \"cache_mib\": %zu, \"memory_gib\": %.1f, \"kernel\": "
	       "\"%s %s %s\", "
	       "\"load\": %.2f, \"date\": \"%s\"}}\n",
	       cpu, cores, bench_llc_bytes() >> 20, gib, u.sysname, u.release, u.machine, load[0], date);
	fprintf(stderr, "%s, %ld cores, %zu MiB cache, %.1f GiB memory, %s %s %s; load before: %.2f\n", cpu, cores,
		bench_llc_bytes() >> 20, gib, u.sysname, u.release, u.machine, load[0]);
}

/* ---- targets ---- */

enum target_kind { NO_TARGET, AT_LEAST, AT_MOST, TIMES_AT_MOST };
static const char *const target_names[] = {"", "at_least", "at_most", "times_at_most"};
static const char *const target_signs[] = {"", ">=", "<=", "bound x"};

struct target {
	enum target_kind kind;
	double value;
};

static struct target find_target(const char *path, const char *name)
{
	struct target t = {NO_TARGET, 0};
	FILE *f = fopen(path, "re");
	char line[512], row[128], how[32];

	if (!f)
		bench_die("%s: cannot be opened; run from the top of the tree, or name it with --targets", path);
	while (!t.kind && fgets(line, sizeof(line), f)) {
		if (line[0] == '#' || sscanf(line, "%127s %31s %lf", row, how, &t.value) != 3 || strcmp(row, name))
			continue;
		for (t.kind = AT_LEAST; t.kind <= TIMES_AT_MOST && strcmp(how, target_names[t.kind]); t.kind++)
			;
		if (t.kind > TIMES_AT_MOST)
			bench_die("%s: %s: `%s` is none of at_least, at_most and times_at_most", path, name, how);
	}
	fclose(f);
	return t;
}

/* A figure of ours, and of the bound if there is one. */
struct line {
	const char *name, *unit;
	double ours, bound, ratio;
	double cpu_times; /* our CPU seconds over those of the bound; 0: not known */
	bool has_bound;
};

static bool is_missed(const struct target *t, const struct line *l)
{
	switch (t->kind) {
	case AT_LEAST:
		return (l->has_bound ? l->ratio : l->ours) < t->value;
	case AT_MOST:
		return l->ours > t->value;
	case TIMES_AT_MOST:
		return l->has_bound && l->ours > t->value * l->bound;
	case NO_TARGET:
		break;
	}
	return false;
}

/* ---- rows ---- */

static void text(char out[32], double v)
{
	double size = fabs(v);

	snprintf(out, 32, "%.*f",
		 size >= 1000		    ? 0
		 : size >= 100		    ? 1
		 : size >= 1		    ? 2
		 : size >= 0.1 || size == 0 ? 4
					    : 6,
		 v);
}

static void heading(void)
{
	static bool printed;

	if (!printed)
		fprintf(stderr, "\n%-26s %10s %10s %-12s %6s %6s  %-12s %s\n", "row", "ours", "bound", "unit", "ratio",
			"CPU", "target", "runs");
	printed = true;
}

static void put_text(const char *key, const char *value)
{
	printf("\"%s\": \"", key);
	for (const char *c = value; *c; c++)
		putchar(*c == '"' || *c == '\\' || (unsigned char)*c < 32 ? '\'' : *c);
	putchar('"');
}

/* The end of a line of JSON: how often, and what is wrong with it. */
static void close_line(const struct printing *p, const struct mark *mark)
{
	printf(", \"runs\": %u, \"load\": %.2f", p->run_count, mark->load);
	if (mark->why[0]) {
		printf(", ");
		put_text("marked", mark->why);
	}
	printf("}\n");
	fflush(stdout);
}

static void put_range(const char *key, const struct figure *f)
{
	char least[32], greatest[32];

	text(least, f->least);
	text(greatest, f->greatest);
	printf(", \"%s\": [%s, %s]", key, least, greatest);
}

/* One line of JSON and one of the table.  `ours` has our runs, or is NULL. */
static void print_line(const struct printing *p, const struct line *l, const struct figure *ours,
		       const struct mark *mark)
{
	struct target t = find_target(p->targets_path, l->name);
	char a[32], b[32] = "-", r[32] = "-", c[32] = "-", target[64] = "-";

	text(a, l->ours);
	open_line(p, "bench");
	printf("\"%s\", \"ours\": %s, ", l->name, a);
	if (l->has_bound) {
		text(b, l->bound);
		snprintf(r, sizeof(r), "%.3f", l->ratio);
		printf("\"bound\": %s, ", b);
	}
	printf("\"unit\": \"%s\"", l->unit);
	if (l->has_bound)
		printf(", \"ratio\": %.3f", l->ratio);
	if (l->cpu_times > 0) {
		snprintf(c, sizeof(c), "%.2fx", l->cpu_times);
		printf(", \"cpu_times\": %.3f", l->cpu_times);
	}
	if (ours)
		put_range("range", ours);
	if (t.kind) {
		printf(", \"%s\": %g", target_names[t.kind], t.value);
		snprintf(target, sizeof(target), "%s %.2f%s", target_signs[t.kind], t.value,
			 is_missed(&t, l) ? " MISSED" : "");
	}
	close_line(p, mark);
	heading();
	fprintf(stderr, "%-26s %10s %10s %-12s %6s %6s  %-12s %u\n", l->name, a, b, l->unit, r, c, target,
		p->run_count);
}

static void print_sides(const struct printing *p, const struct bench_row *row, const struct figure *f,
			unsigned side_count, unsigned bound, const struct mark *mark)
{
	for (unsigned i = 0; i < side_count; i++) {
		char m[32], least[32], greatest[32], cpu[32] = "";

		text(m, f[i].median);
		text(least, f[i].least);
		text(greatest, f[i].greatest);
		if (row->cpu_unit)
			snprintf(cpu, sizeof(cpu), "  %.4g %s", f[i].cpu, row->cpu_unit);
		fprintf(stderr, "    %-8s%-42s %10s  [%s .. %s]%s\n",
			!i	     ? "ours"
			: i == bound ? "BOUND"
				     : "bound",
			row->side[i].label, m, least, greatest, cpu);
		if (!i)
			continue;
		open_line(p, "bench");
		printf("\"%s\", \"candidate\": \"%s\", \"bound\": %s, \"unit\": \"%s\"", row->name, row->side[i].label,
		       m, row->unit);
		put_range("range", &f[i]);
		if (row->cpu_unit)
			printf(", \"cpu\": %.4g", f[i].cpu);
		close_line(p, mark);
	}
	if (mark->why[0])
		fprintf(stderr, "    MARKED  not to be published: %s\n", mark->why);
}

void print_row(const struct printing *p, const struct bench_row *row, const struct figure *f, unsigned side_count,
	       unsigned bound, double bound_cpu, const struct mark *mark)
{
	struct line l = {.name = row->name, .unit = row->unit, .ours = f[0].median, .has_bound = bound > 0};
	char name[160];

	if (bound) {
		l.bound = f[bound].median;
		l.ratio = row->less_is_better ? l.bound / l.ours : l.ours / l.bound;
		l.cpu_times = row->cpu_unit && bound_cpu > 0 ? f[0].cpu / bound_cpu : 0;
	}
	print_line(p, &l, &f[0], mark);
	print_sides(p, row, f, side_count, bound, mark);
	if (!row->cpu_unit)
		return;
	snprintf(name, sizeof(name), "%s/cpu", row->name);
	l = (struct line){.name = name,
			  .unit = row->cpu_unit,
			  .ours = f[0].cpu,
			  .bound = bound_cpu,
			  .ratio = f[0].cpu > 0 ? bound_cpu / f[0].cpu : 0,
			  .cpu_times = l.cpu_times,
			  .has_bound = bound > 0};
	print_line(p, &l, NULL, mark);
}

void print_figure(const struct printing *p, const char *name, const char *unit, double value, const struct mark *mark)
{
	struct line l = {.name = name, .unit = unit, .ours = value};

	print_line(p, &l, NULL, mark);
}

void print_skipped(const struct printing *p, const char *name, const char *reason)
{
	open_line(p, "bench");
	printf("\"%s\", ", name);
	put_text("skipped", reason);
	printf("}\n");
	fflush(stdout);
	heading();
	fprintf(stderr, "%-26s skipped: %s\n", name, reason);
}
