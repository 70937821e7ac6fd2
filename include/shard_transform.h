/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_transform.h - crop, resize, mirror and normalise images, on the CPU or on a GPU
 *
 * Most programs set `transform` in struct shard_loader_options, and get batches of transformed
 * images.  shard_transform_open() is for programs that transform batches themselves.  The first
 * comment of shard.h holds for this header, too.
 */
#ifndef SHARD_TRANSFORM_H
#define SHARD_TRANSFORM_H

#include "shard.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- transform: from the bytes of images to the numbers that a network takes -------------- */

/*
 * Crop or random-resized-crop, flip, normalise, convert and transpose a batch in one pass: on the
 * CPU, or by a kernel on the GPU that the batch is on.  Both give the same bits.  docs/TRANSFORM.md
 * defines them: those of Pillow's crop and resize (bilinear, antialiased) and of torchvision's
 * ToTensor and Normalize.
 */
struct shard_transform;

/* Whose pixels a resize gives: Pillow has had three orders of its passes. */
enum shard_pixels {
	SHARD_PIXELS_RECIPE = 0,     /* as a token says, or the dataset's recipe; else rows first */
	SHARD_PIXELS_ROWS_FIRST = 1, /* Pillow up to 12.1 */
	SHARD_PIXELS_PILLOW_12 = 2,  /* 12.2 and 12.3 */
	SHARD_PIXELS_PILLOW_13 = 3,  /* from 13.0 */
};

enum shard_transform_crop {
	SHARD_CROP_CENTER = 0,	/* the middle, as torchvision's CenterCrop */
	SHARD_CROP_RANDOM = 1,	/* anywhere */
	SHARD_CROP_RESIZED = 2, /* a part of random area and ratio, resized, as torchvision's RandomResizedCrop */
};

struct shard_transform_options {
	size_t size;
	uint32_t height, width;	     /* of the output, in pixels; 0: those of the field, if all are alike */
	uint32_t dtype;		     /* SHARD_U8, SHARD_F16, SHARD_BF16 or SHARD_F32; 0: SHARD_F32 */
	uint32_t layout;	     /* SHARD_CHW or SHARD_HWC; 0: SHARD_CHW */
	uint32_t crop;		     /* enum shard_transform_crop */
	uint32_t pixels;	     /* SHARD_CROP_RESIZED: enum shard_pixels */
	float mean[4], std[4];	     /* per channel, at most 1: x becomes (x / 255 - mean) / std; std 0 means 1 */
	double flip;		     /* probability, 0 to 1, that a row is mirrored left to right */
	double area_min, area_max;   /* SHARD_CROP_RESIZED: part of the image's area; 0: 0.08 and 1 */
	double ratio_min, ratio_max; /* SHARD_CROP_RESIZED: width by height; 0: 3/4 and 4/3 */
};

/* What one row of the output is made of. */
struct shard_transform_row {
	uint32_t from; /* row of the batch */
	uint32_t flip; /* not 0: mirrored left to right */
	/* pixels of the image; any part of it with SHARD_CROP_RESIZED, else of the output's size */
	uint32_t x, y, width, height;
};

/*
 * Prepare to transform batches of this loader, whose rank, world and seed fix what is drawn.
 * `field` has u8 images: [height, width, channels] or [channels, height, width] as its layout says,
 * or [height, width], with 1 to 4 channels.  Or its images differ in size, as
 * shard_image_size_field() knows them.  Then the options name height and width, and each image is
 * transformed with its own size, which is in `size` of struct shard_rows.
 *
 * The loader is not used after this call.  A handle belongs to one thread at a time; several
 * handles of one loader are independent.
 *
 * With SHARD_CROP_RESIZED all handles of a loader give the same `pixels`, and its tokens name them.
 * After shard_loader_resume(), SHARD_PIXELS_RECIPE means those of the token, if it names any.
 * MISMATCH if the pixels are others than those of the token or an earlier handle.  A token whose
 * pixels are others than an earlier handle's cannot be resumed.
 *
 * ARGUMENT if the images are too large for a kernel on the loader's GPU.  If the options of the
 * loader name no GPU, the first shard_transform_launch() tells that.
 */
SHARD_API int shard_transform_open(struct shard_transform **out, struct shard_loader *l, const char *field,
				   const struct shard_transform_options *opt, struct shard_error *err);
/* After a launch: waits until the GPU is done.  In a forked child it frees memory only. */
SHARD_API void shard_transform_close(struct shard_transform *t);

/*
 * Bytes of one row of the output: height x width x channels numbers without gaps.  Rows follow each
 * other.
 */
SHARD_API uint64_t shard_transform_row_bytes(const struct shard_transform *t);

/*
 * Draw at random how each row of this batch is transformed, and write it to row[i] for row i.  The
 * result depends only on seed, epoch, `view`, and the row's position in the epoch.  So a resumed
 * job, and a job in another world, draw the same.  `view` numbers the drawings for a row, from 0.
 * Use the result to treat masks or boxes like their image.  A caller may also change it, and give
 * it to the functions below.
 */
SHARD_API void shard_transform_draw(const struct shard_transform *t, const struct shard_batch *batch, uint32_t view,
				    struct shard_transform_row *row);

/*
 * Transform rows of a batch in host memory.  `to` has room for row_count rows, at any alignment.
 * `rows` NULL: each row of the batch once, as shard_transform_draw() says for view 0; row_count is
 * then the batch's.
 *
 * Of images that differ in size, ARGUMENT if one is smaller than a crop that resizes nothing.
 * UNSUPPORTED if one is longer than 4 times the side of the largest square, which shardpack never
 * writes.
 */
SHARD_API int shard_transform_host(struct shard_transform *t, const struct shard_batch *batch,
				   const struct shard_transform_row *rows, uint64_t row_count, void *to,
				   struct shard_error *err);

/*
 * The same for a batch from shard_loader_next_device(), with a pool or without.  Queues kernels on
 * `stream`, which is the stream given to next_device or one that waits for it, and returns at once.
 * `to` is device memory of the stream's context, which the caller keeps until the kernels are done.
 * Fastest with `to` 16-aligned, as cudaMalloc's memory is, and a width that is a multiple of 8
 * pixels.  Give the batch back with shard_loader_release_after() on the same stream, after this.
 *
 * The first call loads the kernels into the batch's context, where the driver compiles them once
 * per machine, and waits for that.  Later calls neither wait nor allocate.  All batches and streams
 * belong to that context.  A NULL stream is its legacy default stream.  ARGUMENT if `stream` is
 * being captured into a CUDA graph, which would read this batch's memory again and again.  DEVICE
 * if the driver refuses.
 */
SHARD_API int shard_transform_launch(struct shard_transform *t, const struct shard_batch *batch,
				     const struct shard_transform_row *rows, uint64_t row_count, void *stream, void *to,
				     struct shard_error *err);

/* ---- transform in the loader: ahead of the trainer, or with the batch ----------------------- */

#define SHARD_VIEWS_MAX 16

/*
 * For `transform` in struct shard_loader_options: batches have transformed images.  The field has
 * the results in each row, view by view: those of shard_transform_draw() and
 * shard_transform_host(), bit for bit.  A masked row is transformed as a black image.  The options
 * need not outlive shard_loader_open().
 *
 * Masks and boxes follow: fields of semantic SHARD_MASK, of the images' height and width, by the
 * nearest pixel; those of SHARD_BOXES, f32 [n,4] as x, y, x, y in pixels of the image.  They have
 * as many views.  Masks cannot follow images that differ in size: that is UNSUPPORTED.
 *
 * All other fields are delivered as they are stored.  ARGUMENT if one of these looks as if it
 * belonged to the pixels, while the transform crops, resizes or mirrors, or has several views: it
 * has no semantic and rows of 4 numbers, or the images' height and width, or the name of boxes,
 * masks or points; or it has images itself.  `as_stored` names the fields that are right as they
 * are stored.  ARGUMENT if it names one that is not in the dataset, or one that follows.  Fields
 * that are not wanted are not looked at.  docs/TRANSFORM.md has the rules.
 *
 * The pixels of a resize are the ones that the options or the dataset's recipe name.  A token of
 * others is MISMATCH.
 *
 * If the options of the loader name a GPU or a pool, a kernel does it.  shard_loader_next_device()
 * queues it on its stream.  Each device slot has memory of the GPU for the results as well;
 * group[] still has the images as they are stored.  Masks and boxes are done on the CPU and copied.
 * UNSUPPORTED with a pool if there are masks or boxes among the fields that are wanted.
 *
 * Else the threads that fill batches do it, ahead of the trainer, and the ring has the size of the
 * results.  Each thread needs memory for 8 MiB of records, or for 8 records.  In the group of the
 * images each field is an array of its own.
 */
struct shard_loader_transform {
	size_t size;
	uint32_t views;	   /* results of each image, each drawn by itself: up to SHARD_VIEWS_MAX; 0 means 1 */
	const char *field; /* as for shard_transform_open() */
	const struct shard_transform_options *options;
	const char *const *as_stored;	    /* [as_stored_count]: names of fields that need not follow; or NULL */
	uint32_t as_stored_count, reserved; /* reserved: 0 */
};

/*
 * Tell which part of each image was taken, and whether it was mirrored.  Entry i * views + view of
 * `row` is that of row i of the batch.  ARGUMENT if the loader has no transform.
 */
SHARD_API int shard_loader_drawn(const struct shard_loader *l, const struct shard_batch *batch,
				 struct shard_transform_row *row, struct shard_error *err);

#ifdef __cplusplus
}
#endif
#endif
