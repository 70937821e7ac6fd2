/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_package.c - what the Python package costs beside the C library: python/sides.py measures,
 * in one process
 *
 * The figures are made over there; here they are asked for, run by run, so that rows, medians and
 * targets are those of all other benchmarks.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/common/cold.h"
#include "bench/common/data.h"

#define PHOTOS ((struct data_shape){"photos", DATA_IMAGE_BYTES, 8, 1750, SHARD_RAW})
#define SMALL  ((struct data_shape){"small-4096", 4096, 8, 1 << 12, SHARD_RAW})

static struct {
	FILE *to, *from;
	pid_t pid;
} child;

static void start(struct bench *b, const char *photos, const char *small)
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
		execlp(python ? python : "python3", "python3", "bench/python/sides.py", photos, small, library,
		       (char *)NULL);
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

	/* which are differences */
	if (value < 0 && strcmp(word, "step") != 0 && strcmp(word, "cpu") != 0 && strcmp(word, "overhead") != 0)
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

/* In the page cache, as who reads it leaves it there. */
static char *make_hot(struct bench *b, const struct data_shape *shape)
{
	char *dir = data_make(b, shape);

	if (!data_warm_dir(dir))
		bench_die("%s: %s", dir, bench_skip_reason());
	return dir;
}

static const struct bench_row rows[] = {
	{.name = "package/hot/150528",
	 .unit = "GB/s",
	 .warm_up_count = 1,
	 .side = {{.label = "for batch in libshard.Loader", .run = run_python},
		  {.label = "shard_loader_next, release", .run = run_c}}},
	{.name = "package/step/4096",
	 .unit = "us",
	 .less_is_better = true,
	 .context = (void *)(uintptr_t) "step",
	 .side = {{.label = "a step of 16 records, less than the same in C", .run = run_word}}},
	{.name = "package/step-cpu/4096",
	 .unit = "us",
	 .less_is_better = true,
	 .context = (void *)(uintptr_t) "cpu",
	 .side = {{.label = "the same, of all CPUs", .run = run_word}}},
	{.name = "package/overhead/150528",
	 .unit = "us",
	 .less_is_better = true,
	 .context = (void *)(uintptr_t) "overhead",
	 .side = {{.label = "a step with nothing in caches, less than in C", .run = run_word}}},
	{.name = "package/record/150528",
	 .unit = "us",
	 .less_is_better = true,
	 .context = (void *)(uintptr_t) "record",
	 .side = {{.label = "ds[i]", .run = run_word}}},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

int main(int argc, char **argv)
{
	struct bench *b = bench_open(argc, argv);
	char ready[64], *photos, *small;
	bool wanted = false;

	for (size_t i = 0; i < ROWS; i++)
		wanted |= bench_wants(b, rows[i].name);
	if (!wanted)
		return bench_close(b);
	signal(SIGPIPE, SIG_IGN);
	photos = make_hot(b, &PHOTOS);
	small = make_hot(b, &SMALL);
	start(b, photos, small);
	if (ask(NULL, ready, sizeof(ready))) {
		for (size_t i = 0; i < ROWS; i++)
			bench_run(b, &rows[i]);
	} else {
		for (size_t i = 0; i < ROWS; i++)
			bench_skipped(b, rows[i].name, "no Python that takes the package; see above");
	}
	fclose(child.to);
	fclose(child.from);
	waitpid(child.pid, NULL, 0);
	data_remove(small); /* the photos are for other benchmarks, too */
	free(photos);
	return bench_close(b);
}
