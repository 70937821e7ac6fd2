/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_package.c - what the Python package costs beside the C library: python/sides.py measures, in one process
 *
 * The figures are made over there; here they are asked for, run by run, so that rows, medians and targets are those of all
 * other benchmarks.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/common/data.h"

#define PHOTOS ((struct data_shape){"photos", DATA_IMAGE_BYTES, 8, 1750, SHARD_RAW})

static struct {
	FILE *to, *from;
	pid_t pid;
} child;

static void start(struct bench *b, const char *dataset)
{
	const char *python = getenv("PYTHON");
	char path[4096], library[4096];
	int to[2], from[2];

	snprintf(path, sizeof(path), "%s/python", bench_build(b));
	snprintf(library, sizeof(library), "%s/bench/python/loop.so", bench_build(b));
	if (pipe(to) || pipe(from))
		bench_die("pipe: %s", strerror(errno));
	child.pid = fork();
	if (child.pid < 0)
		bench_die("fork: %s", strerror(errno));
	if (!child.pid) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		close(to[1]);
		close(from[0]);
		setenv("PYTHONPATH", path, 1);
		setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
		execlp(python ? python : "python3", "python3", "bench/python/sides.py", dataset, library, (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	child.to = fdopen(to[1], "w");
	child.from = fdopen(from[0], "r");
}

/* False if there is no answer. */
static bool ask(const char *word, char *answer, int bytes)
{
	if (word && (fprintf(child.to, "%s\n", word) < 0 || fflush(child.to)))
		return false;
	return fgets(answer, bytes, child.from) != NULL;
}

static double number(const char *word)
{
	char answer[64], *end;
	double value = ask(word, answer, sizeof(answer)) ? strtod(answer, &end) : -1;

	if (value < 0 && strcmp(word, "overhead") != 0) /* which is a difference */
		bench_die("python/sides.py gave no answer to '%s'", word);
	return value;
}

static double gigabytes_a_second(double seconds)
{
	return (double)(PHOTOS.shard_count * PHOTOS.shard_records * DATA_IMAGE_BYTES) / seconds * 1e-9;
}

static double run_python(void *context)
{
	(void)context;
	return gigabytes_a_second(number("epoch_python"));
}

static double run_c(void *context)
{
	(void)context;
	return gigabytes_a_second(number("epoch_c"));
}

static double run_word(void *context)
{
	return number(context);
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"package/hot/150528", "package/overhead/150528", "package/record/150528"};
	struct bench *b = bench_open(argc, argv);
	const struct bench_row rows[] = {
		{.name = names[0],
		 .unit = "GB/s",
		 .warm_up_count = 1,
		 .side = {{.label = "for batch in libshard.Loader", .run = run_python}, {.label = "shard_loader_next, release", .run = run_c}}},
		{.name = names[1],
		 .unit = "us",
		 .less_is_better = true,
		 .context = "overhead",
		 .side = {{.label = "a step, less than the same in C", .run = run_word}}},
		{.name = names[2], .unit = "us", .less_is_better = true, .context = "record", .side = {{.label = "ds[i]", .run = run_word}}},
	};
	char ready[64], *dataset;
	bool wanted = false;

	for (size_t i = 0; i < 3; i++)
		wanted |= bench_wants(b, names[i]);
	if (!wanted)
		return bench_close(b);
	signal(SIGPIPE, SIG_IGN);
	dataset = data_make(b, &PHOTOS);
	start(b, dataset);
	if (ask(NULL, ready, sizeof(ready))) {
		for (size_t i = 0; i < 3; i++)
			bench_run(b, &rows[i]);
	} else {
		for (size_t i = 0; i < 3; i++)
			bench_skipped(b, names[i], "no Python that takes the package; see above");
	}
	fclose(child.to);
	fclose(child.from);
	waitpid(child.pid, NULL, 0);
	free(dataset);
	return bench_close(b);
}
