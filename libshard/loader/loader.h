/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.h - the public calls of a loader: options, batches, places and resume tokens
 */
#ifndef SHARD_LOADER_LOADER_H
#define SHARD_LOADER_LOADER_H

#include <stdbool.h>

#include "libshard/feed/feed.h"
#include "libshard/gpu/gpu.h"
#include "libshard/order/order.h"
#include "shard.h"

/* ---- token.c ---- */

struct token {
	struct order_params params; /* of the token's epoch */
	uint64_t position;
	bool is_mix;
	char dataset_id[65]; /* or the digest of the mixture */
	char selection[65];  /* its digest; empty: all records */
	uint32_t pixels;     /* enum shard_pixels; SHARD_PIXELS_RECIPE: the token does not say */
};

void token_write(const struct token *t, char text[SHARD_TOKEN_BYTES]);
bool token_read(const char *text, struct token *t); /* false: token_write() has not written this */

/* ---- resume.c ---- */

/* The dataset or mixture, and the selection, that a token must belong to. */
struct owner {
	char id[65];	       /* or the digest of the mixture */
	char selection[65];    /* its digest; empty: all records */
	uint64_t record_count; /* in the order */
};

/* ---- loader.c ---- */

/* A transform of the loader's own that a kernel does. */
struct loader_kernel {
	struct shard_transform *transform;
	struct shard_transform_row *rows; /* [rows of a batch x views] */
	uint64_t slot_bytes, memory;	  /* for the results of a device slot; of all of them, on the GPU */
};

struct shard_loader {
	struct shard_dataset *ds;	      /* const after open, as: */
	struct shard_loader_options asked, o; /* as given, and with defaults filled in */
	struct layout layout;		      /* of batches */
	struct transformed *transformed;      /* NULL: fields are delivered as they are stored */
	struct loader_kernel *kernel;	      /* NULL: the feed transforms, if anything does */
	struct feed *feed;		      /* NULL: there is a pool */
	struct pool *pool;		      /* NULL: there is a feed; a token of another order replaces it */

	struct steps steps;
	int32_t *offset;     /* of windows; NULL: there are none */
	struct owner before; /* whose records the early epochs of the steps have, before others were appended */
	struct cursor cursor;
	/* enum shard_pixels: of the transforms so far, opened in any thread; of the last token */
	_Atomic uint32_t transform_pixels;
	uint32_t token_pixels;
	uint64_t start_ns;
	uint64_t batch_count, record_count, bytes; /* that were delivered */

	struct cuda_device *cuda;	  /* NULL: no option and no call has named a GPU yet */
	struct device_slots device_slots; /* open if batches are delivered on the GPU */
	struct device_copy *copy;	  /* fills the device slots from the feed; or NULL */
	bool awaits_pins;		  /* batches in host memory wait until their slot is page-locked */
};

/* The feed, which may be that of the pool. */
struct feed *loader_feed(const struct shard_loader *l);
/* The copies to the GPU, which may be those of the pool; or NULL. */
struct device_copy *loader_device_copy(const struct shard_loader *l);

/*
 * Take the transform of the options, if there is one.  The options and the steps are settled, and
 * the layout is not planned.
 */
int loader_open_transformed(struct shard_loader *l, struct shard_error *err);

/* If a kernel does it, open that, behind the GPU that the options may name. */
int loader_open_kernel(struct shard_loader *l, struct shard_error *err);
/* Borrowers of device slots are done.  The context is entered, if there is one. */
void loader_close_kernel(struct shard_loader *l, bool inherited);
/* Transform a batch that was lent, and put the results in its place. */
int loader_run_kernel(struct shard_loader *l, struct shard_batch *batch, void *stream, struct shard_error *err);

/* Fails with ARGUMENT if a mixture has no such epoch: format/ORDER.md, part 12. */
int loader_check_epoch(const struct shard_loader *l, uint64_t epoch, struct shard_error *err);
/* Start, or return the error that the loader stopped with, or that the mixture ends here. */
int loader_begin(struct shard_loader *l, struct shard_error *err);
/* Fails with ARGUMENT unless this loader delivers batches in host memory. */
int loader_check_host(const struct shard_loader *l, struct shard_error *err);
/* Is the epoch over?  If so, move on to the next one. */
bool loader_ends_epoch(struct shard_loader *l);
/* A batch was delivered: count it, and move on. */
void loader_count(struct shard_loader *l, const struct shard_batch *batch);

/*
 * Open the GPU of this stream, unless a GPU is open.  Then open the device copy, which copies
 * batches to it.  to_gpu: they are delivered there, and not in host memory.
 */
int loader_open_device(struct shard_loader *l, void *stream, bool to_gpu, struct shard_error *err);

/* ---- loader_options.c ---- */

/*
 * Fails with ARGUMENT if options do not fit together.  The steps of a mixture have no order yet.
 */
int settle_options(struct shard_loader_options *o, const struct shard_dataset *ds, struct steps *out,
		   struct shard_error *err);

#endif
