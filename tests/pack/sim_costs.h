/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_costs.h - the CPU time of the calls that are only counted in a simulation, measured on real
 * files in $TMPDIR
 */
#ifndef TESTS_PACK_SIM_COSTS_H
#define TESTS_PACK_SIM_COSTS_H

#include "tests/pack/sim_folder.h"

#define COSTS_FILES 300

static struct {
	double name, lstat, open, absent, publish, beat, unlink, rename;
} cost; /* seconds of one */

static double costs_cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void costs_need(bool fine, const char *what)
{
	if (fine)
		return;
	perror(what);
	exit(3);
}

static void costs_path(char out[4200], const char *dir, unsigned i)
{
	snprintf(out, 4200, "%s/%05u", dir, i);
}

/* A claim has some 250 bytes. */
static double costs_of(const char *dir, void (*call)(const char *path))
{
	double begin = costs_cpu_seconds();
	char path[4200];

	for (unsigned i = 0; i < COSTS_FILES; i++) {
		costs_path(path, dir, i);
		call(path);
	}
	return (costs_cpu_seconds() - begin) / COSTS_FILES;
}

static void costs_publish(const char *path)
{
	static const char text[250] = "claim";
	struct shard_error err;

	costs_need(shard_publish(path, text, sizeof(text), 1, &err) == SHARD_OK, path);
}

static void costs_open(const char *path)
{
	char text[2048];
	int fd = open(path, O_RDONLY);

	costs_need(fd >= 0 && read(fd, text, sizeof(text)) > 0, path);
	close(fd);
}

static void costs_beat(const char *path)
{
	int fd = open(path, O_RDWR);

	costs_need(fd >= 0 && pwrite(fd, "0000000001 works", 16, 13) == 16 && fsync(fd) == 0, path);
	close(fd);
}

static void costs_lstat(const char *path)
{
	struct stat st;

	costs_need(lstat(path, &st) == 0, path);
}

static void costs_absent(const char *path)
{
	char other[4300];

	snprintf(other, sizeof(other), "%s-", path);
	costs_need(open(other, O_RDONLY) < 0 && errno == ENOENT, other);
}

static void costs_rename(const char *path)
{
	char other[4300];

	snprintf(other, sizeof(other), "%s-", path);
	costs_need(rename(path, other) == 0, path);
	costs_need(rename(other, path) == 0, other);
}

static void costs_unlink(const char *path)
{
	costs_need(unlink(path) == 0, path);
}

static void costs_measure(void)
{
	const char *parent = getenv("TMPDIR");
	char dir[4100];
	double begin;
	DIR *d;

	snprintf(dir, sizeof(dir), "%s/costs.XXXXXX", parent ? parent : "/tmp");
	costs_need(mkdtemp(dir) != NULL, dir);
	cost.publish = costs_of(dir, costs_publish);
	cost.open = costs_of(dir, costs_open);
	cost.absent = costs_of(dir, costs_absent);
	cost.beat = costs_of(dir, costs_beat);
	cost.lstat = costs_of(dir, costs_lstat);
	cost.rename = costs_of(dir, costs_rename) / 2;
	begin = costs_cpu_seconds();
	for (unsigned round = 0; round < 20; round++) {
		d = opendir(dir);
		costs_need(d != NULL, dir);
		while (readdir(d))
			;
		closedir(d);
	}
	cost.name = (costs_cpu_seconds() - begin) / 20 / COSTS_FILES;
	cost.unlink = costs_of(dir, costs_unlink);
	costs_need(rmdir(dir) == 0, dir);
}

/* All of them; prints the share of each kind, in milliseconds of one in `n`. */
static double costs_tell(const struct sim_calls *c, double n)
{
	const struct {
		const char *name;
		double seconds;
	} part[] = {{"names", (double)c->names * cost.name},
		    {"lstats", (double)c->lstats * cost.lstat},
		    {"opens", (double)c->opens * cost.open},
		    {"absent", (double)c->absent * cost.absent},
		    {"publishes", (double)c->publishes * cost.publish},
		    {"beats", (double)c->beats * cost.beat},
		    {"renames", (double)c->renames * cost.rename},
		    {"unlinks", (double)c->unlinks * cost.unlink}};
	double all = 0;

	for (unsigned i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
		printf(" %s_ms %.4f", part[i].name, part[i].seconds / n * 1e3);
		all += part[i].seconds;
	}
	return all;
}

#endif
