/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quiet.c - what else the machine does, and how far the runs of a side lie apart
 */
#include "bench/common/quiet.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/common/say.h"
#include "bench/common/service.h"

#define SAMPLES	  50
#define SAMPLE_US 20000

/* Threads that run, this one left out, and threads that wait for a disk. */
static unsigned others(void)
{
	FILE *f = fopen("/proc/stat", "re");
	unsigned running = 0, blocked = 0, found = 0;
	char line[4096];

	while (f && fgets(line, sizeof(line), f)) {
		found += sscanf(line, "procs_running %u", &running) == 1;
		found += sscanf(line, "procs_blocked %u", &blocked) == 1;
	}
	if (f)
		fclose(f);
	if (found != 2)
		bench_die("/proc/stat does not say how many threads run");
	return blocked + (running ? running - 1 : 0);
}

double quiet_load(void)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned sum = 0;

	for (int i = 0; i < SAMPLES; i++) {
		usleep(SAMPLE_US);
		sum += others();
	}
	return (double)sum / SAMPLES / (double)(cores > 0 ? cores : 1);
}

double quiet_wait(double seconds_most)
{
	double end = bench_seconds() + seconds_most, load = quiet_load();

	while (load > QUIET_LOAD && bench_seconds() < end)
		load = quiet_load();
	return load;
}

static void say_spread(struct mark *mark, const char *label, const struct figure *f)
{
	size_t used = strlen(mark->why);

	if (f->greatest <= QUIET_SPREAD * f->least)
		return;
	snprintf(mark->why + used, sizeof(mark->why) - used, "%sruns of `%s` spread from %.3g to %.3g",
		 used ? "; " : "", label, f->least, f->greatest);
}

void quiet_judge(struct mark *mark, const struct bench_row *row, const struct figure *f, unsigned bound)
{
	mark->why[0] = 0;
	if (mark->load > QUIET_LOAD)
		snprintf(mark->why, sizeof(mark->why), "it began at a load of %.2f for each core; the limit is %.2f",
			 mark->load, QUIET_LOAD);
	say_spread(mark, row->side[0].label, &f[0]);
	if (bound)
		say_spread(mark, row->side[bound].label, &f[bound]);
}
