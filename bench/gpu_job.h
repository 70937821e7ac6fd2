/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_job.h - what the rows of bench/gpu share: a dataset in the page cache, a loader, a stream,
 * memory to copy from and to
 *
 * What goes wrong ends the program.
 */
#ifndef BENCH_GPU_JOB_H
#define BENCH_GPU_JOB_H

#include <cuda_runtime.h>

#include "bench/common/data.h"
#include "bench/common/trainer.h"

#define BATCH 256u

#define CUDA(call)                                                               \
	do {                                                                     \
		cudaError_t failed_ = (call);                                    \
		if (failed_ != cudaSuccess)                                      \
			bench_die("%s: %s", #call, cudaGetErrorString(failed_)); \
	} while (0)

struct job {
	struct trainer trainer;
	struct data_files files;
	cudaStream_t stream, other;
	uint64_t batch_bytes, epoch_bytes;
	char *locked, *plain, *device; /* a batch each, page-locked, pageable and on the GPU */
	uint64_t cache_bytes;	       /* of the GPU */
	int blocks;		       /* that keep all multiprocessors at work */
	int full_blocks;	       /* of FULL_THREADS, that leave no multiprocessor any room */
	long long ticks;	       /* of a step's kernel; 0: none */
	bool is_full;		       /* a step's kernel leaves no room beside it */
	double ticks_per_second;
	cudaEvent_t *begin, *end; /* [steps_most] */
	uint64_t steps_most;
	struct shard_loader_stats stats; /* of the loader that was closed last */
	struct shard_error problem;	 /* why its bytes took a slower way, if they did */
	bool has_problem;
};

void job_open(struct bench *b, struct job *j);
void job_close(struct job *j);

double job_elapsed_seconds(cudaEvent_t begin, cudaEvent_t end); /* waits for the second */

/*
 * Queue an epoch, a step's kernel behind each batch if steps take any time.  Returns their number;
 * they may not be done yet.
 */
uint64_t job_queue_epoch(struct job *j);
double job_run_epoch(struct job *j); /* and wait until all is done; GB/s */
double job_run_anew(struct job *j);  /* likewise, behind a seek: nothing was prepared for it */

/* An epoch that nobody measures, which locks the ring's pages and ends behind all its work. */
bool job_open_warm(void *context);
bool job_close_loader(void *context);

/* The three of a row whose context begins with a `struct job *`. */
bool job_open_stream(void *context);
double job_run_stream(void *context);
bool job_close_stream(void *context);

/*
 * Say how the batches of the loader came that was closed last: all of them, since it was opened.
 * A driver may refuse to page-lock memory, as maps that cannot be written.  Then the figure is of a
 * slower way.
 */
void job_note(const struct job *j);
/* As a row of its own, `row`/waits: how many waits for a check came on 100 batches. */
void job_tell_waits(struct bench *b, const char *row, const struct job *j);

void job_queue_step(struct job *j, uint64_t step); /* the kernel, between the events of this step */

/* Copies as large as a batch, one behind the other, as many as an epoch has; GB/s. */
double job_copy_batches(struct job *j, const void *from, enum cudaMemcpyKind kind);
/* The same from page-locked memory.  The context of the row begins with a `struct job *`. */
double job_run_link(void *context);

/* A row of GB/s, and of CPU seconds for each GB, whose runs are an epoch. */
struct bench_row job_row(const struct job *j, const char *name, void *context);

/* ---- rows ---- */

void transform_rows(struct bench *b, struct job *j);
void small_rows(struct bench *b, struct job *j);
void pool_rows(struct bench *b, struct job *j); /* leaves the page cache empty */
void torch_row(struct bench *b, struct job *j);

#endif
