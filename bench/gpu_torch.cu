/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_torch.cu - beside PyTorch's DataLoader with pin_memory=True: bench/gpu_torch.py, on the same
 * records in the page cache
 *
 * PYTHON names a Python that has PyTorch, as bench/gpu.sh finds one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "bench/gpu_job.h"
#include "shard_gpu.h"

struct torch_job {
	struct job *j;
	char *command;
	unsigned workers;
	double gb_per_s; /* of the run that prepare made; below 0: it did not */
};

/*
 * BATCH BYTES, and for each file its path, where records begin and how many they are; paths are in
 * quotes.
 */
static char *make_command(const struct job *j, const char *python)
{
	char *text = NULL;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);

	if (!f)
		bench_die("out of memory");
	fprintf(f, "'%s' bench/gpu_torch.py %u %llu", python, BATCH, (unsigned long long)j->files.record_bytes);
	for (size_t i = 0; i < j->files.count; i++)
		fprintf(f, " '%s' %llu %llu", j->files.file[i].path, (unsigned long long)j->files.file[i].record_offset,
			(unsigned long long)j->files.file[i].record_count);
	if (fclose(f))
		bench_die("out of memory");
	return text;
}

/* Its figure, or why there is none: then it ends with 77. */
static bool ask(void *context)
{
	struct torch_job *t = (struct torch_job *)context;
	FILE *f = popen(t->command, "r");
	char answer[512] = "";
	int status;

	if (!f)
		bench_die("%s: %s", t->command, strerror(errno));
	while (fgets(answer, sizeof(answer), f)) /* the last line */
		answer[strcspn(answer, "\n")] = 0;
	status = pclose(f);
	if (WIFEXITED(status) && !WEXITSTATUS(status) && sscanf(answer, "%lf %u", &t->gb_per_s, &t->workers) == 2)
		return true;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return bench_skip("not here: %s", answer);
	return bench_skip("bench/gpu_torch.py failed; its last line: %s", answer);
}

static double run_torch(void *context)
{
	return ((struct torch_job *)context)->gb_per_s;
}

void torch_row(struct bench *b, struct job *j)
{
	const char *python = getenv("PYTHON");
	struct bench_row row = {};
	struct torch_job t = {};

	row.name = "gpu/torch/150528";
	if (!bench_wants(b, row.name))
		return;
	if (!python || !*python) {
		bench_skipped(b, row.name, "not here: no Python with PyTorch; PYTHON=/path/to/python names one");
		return;
	}
	t.j = j;
	t.command = make_command(j, python);
	row.unit = "GB/s";
	row.context = &t;
	row.side[0] = {"shard_loader_next_device", job_run_stream, job_open_stream, job_close_stream, 0};
	row.side[1] = {"PyTorch, DataLoader(pin_memory=True)", run_torch, ask, NULL, 0};
	if (bench_run(b, &row) > 0) {
		job_note(j);
		bench_note("PyTorch with %u workers", t.workers);
	}
	free(t.command);
}
