/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_loop.c - train a classifier of photographs, in plain C
 *
 *   cc -O2 train_loop.c -o train_loop $(pkg-config --cflags --libs libshard) -lm
 *   ./train_loop ds/train ds/val [--epochs N] [--seed S] [--permute-labels]
 *
 * A loader hands out shuffled batches; each image becomes a few numbers (its colours, where they
 * are, and its texture at four scales), and softmax regression learns the class from them.
 * --permute-labels gives every training record the label of another one: what is then learnt says
 * nothing about val, so accuracy must fall to chance.
 */
#include <err.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard_pack.h"

#define BATCH	    12
#define CLASSES_MAX 64
#define COLOURS	    64 /* 4 levels of red, green and blue */
#define GRID	    4  /* mean colour of 4 x 4 tiles */
#define SCALES	    4  /* full size, half, quarter, eighth */
#define PATTERNS    10 /* how a pixel's 8 neighbours compare with it */
#define FEATURES    (COLOURS + GRID * GRID * 3 + SCALES * PATTERNS)

struct data {
	struct shard_dataset *ds;
	const struct shard_field *image, *label;
	char *other; /* the labels' group of other records, in the place of each record's own; or NULL */
};

struct model {
	uint32_t class_count;
	float weight[CLASSES_MAX][FEATURES], bias[CLASSES_MAX];
};

static void open_data(struct data *d, const char *path)
{
	const struct shard_schema *schema;
	struct shard_error err;

	if (shard_dataset_open(&d->ds, path, NULL, &err))
		errx(1, "%s", err.message);
	schema = shard_dataset_schema(d->ds);
	d->image = shard_schema_find(schema, "image");
	d->label = shard_schema_find(schema, "label");
	if (!d->image || d->image->dtype != SHARD_U8 || d->image->layout != SHARD_HWC || d->image->shape[2] != 3 ||
	    d->image->shape[0] % 32 || d->image->shape[1] % 32 || !d->label || d->label->dtype != SHARD_I64)
		errx(1,
		     "needs fields image, u8 hwc with sides that are multiples of 32 and 3 channels, and label, i64");
}

/*
 * Record i gets the label of another record, order[i].  Only the group that has the labels is read.
 */
static void permute_labels(struct data *d, uint64_t seed)
{
	void *dst[SHARD_GROUPS_MAX] = {NULL};
	struct shard_dataset_info info;
	struct shard_error err;
	uint64_t count, *order;

	shard_dataset_info(d->ds, &info);
	count = info.record_count;
	order = malloc(count * sizeof(*order));
	d->other = malloc(count * d->label->stride);
	if (!order || !d->other)
		errx(1, "out of memory");
	dst[d->label->group] = d->other;
	if (shard_pack_order(seed, count, 0, count, order, &err) || shard_dataset_read(d->ds, order, count, dst, &err))
		errx(1, "%s", err.message);
	free(order);
}

/* Square roots of shares: a vector of length 1, in which small shares still count. */
static float *add_histogram(float *x, const uint32_t *bins, uint32_t bin_count, uint32_t total)
{
	for (uint32_t i = 0; i < bin_count; i++)
		*x++ = sqrtf((float)bins[i] / (float)total);
	return x;
}

/* Bright neighbours of a pixel, going around it: how many if they are in one piece, else 9. */
static uint32_t pattern(const float *p, int64_t width)
{
	const int64_t around[8] = {-width - 1, -width, -width + 1, 1, width + 1, width, width - 1, -1};
	uint32_t bright = 0, changes = 0, last = p[-1] > *p + 0.01f;

	for (int i = 0; i < 8; i++) {
		uint32_t now = p[around[i]] > *p + 0.01f;

		bright += now;
		changes += now != last;
		last = now;
	}
	return changes <= 2 ? bright : 9;
}

/* Patterns of a gray picture, which is then halved. */
static float *add_texture(float *x, float *gray, uint32_t width, uint32_t height)
{
	uint32_t patterns[PATTERNS] = {0};

	for (uint32_t j = 1; j + 1 < height; j++)
		for (uint32_t i = 1; i + 1 < width; i++)
			patterns[pattern(gray + j * width + i, width)]++;
	for (uint32_t j = 0; j < height / 2; j++)
		for (uint32_t i = 0; i < width / 2; i++) {
			const float *from = gray + 2 * j * width + 2 * i;

			gray[j * width / 2 + i] = (from[0] + from[1] + from[width] + from[width + 1]) / 4;
		}
	return add_histogram(x, patterns, PATTERNS, (width - 2) * (height - 2));
}

/* An image as FEATURES numbers. */
static void describe(const struct data *d, const unsigned char *image, float *x)
{
	uint32_t height = d->image->shape[0], width = d->image->shape[1], colours[COLOURS] = {0};
	float *gray = malloc((size_t)width * height * sizeof(*gray)), tiles[GRID * GRID * 3] = {0};

	if (!gray)
		errx(1, "out of memory");
	for (uint32_t i = 0; i < width * height; i++) {
		const unsigned char *p = image + 3 * i;
		uint32_t tile = i / width * GRID / height * GRID + i % width * GRID / width;

		colours[p[0] / 64 * 16 + p[1] / 64 * 4 + p[2] / 64]++;
		for (int c = 0; c < 3; c++)
			tiles[tile * 3 + c] += p[c];
		gray[i] = (float)(p[0] + p[1] + p[2]) / (3 * 255.0f);
	}
	x = add_histogram(x, colours, COLOURS, width * height);
	for (uint32_t i = 0; i < GRID * GRID * 3; i++)
		*x++ = tiles[i] * GRID * GRID / (float)(width * height) / 255 / 2 - 0.25f;
	for (int scale = 0; scale < SCALES; scale++)
		x = add_texture(x, gray, width >> scale, height >> scale);
	free(gray);
}

/* Fill p with the probability of each class; returns the most likely one. */
static uint32_t predict(const struct model *m, const float *x, float *p)
{
	uint32_t best = 0;
	float sum = 0;

	for (uint32_t c = 0; c < m->class_count; c++) {
		p[c] = m->bias[c];
		for (uint32_t f = 0; f < FEATURES; f++)
			p[c] += m->weight[c][f] * x[f];
		best = p[c] > p[best] ? c : best;
		sum += expf(p[c]);
	}
	for (uint32_t c = 0; c < m->class_count; c++)
		p[c] = expf(p[c]) / sum;
	return best;
}

/*
 * What is done with a batch: learn from it if rate > 0.  Adds to *loss; returns how many were
 * right.
 */
static uint32_t step(struct model *m, const struct data *d, const struct shard_batch *batch, float rate, double *loss)
{
	const struct shard_field *first = shard_dataset_schema(d->ds)->field;
	const struct shard_rows *images = &batch->field[d->image - first], *labels = &batch->field[d->label - first];
	float x[BATCH][FEATURES], p[BATCH][CLASSES_MAX];
	uint32_t right = 0;

	for (uint32_t row = 0; row < batch->record_count; row++) {
		const char *at = (const char *)labels->data + row * labels->stride;
		int64_t label;

		if (d->other)
			at = d->other + batch->record[row] * d->label->stride + d->label->offset;
		memcpy(&label, at, sizeof(label));
		if (label < 0 || label >= m->class_count)
			errx(1, "a label is not the number of a class");
		describe(d, (const unsigned char *)images->data + row * images->stride, x[row]);
		right += predict(m, x[row], p[row]) == label;
		*loss -= log(p[row][label] + 1e-30);
		p[row][label] -= 1; /* now the gradient of the loss */
	}
	for (uint32_t row = 0; rate > 0 && row < batch->record_count; row++)
		for (uint32_t c = 0; c < m->class_count; c++) {
			m->bias[c] -= rate / BATCH * p[row][c];
			for (uint32_t f = 0; f < FEATURES; f++)
				m->weight[c][f] -= rate / BATCH * p[row][c] * x[row][f];
		}
	return right;
}

/*
 * How fast the loader was since the last call, and how long the model waited for it: a line for the
 * log, not a result.
 */
static void report(struct shard_loader *loader, struct shard_loader_stats *before)
{
	struct shard_loader_stats now;
	char text[SHARD_SUMMARY_BYTES];

	shard_loader_stats(loader, &now);
	shard_stats_summary(&now, before, text);
	fprintf(stderr, "loader: %s\n", text);
	*before = now;
}

/* One epoch of a loader.  Returns the share of records that were right. */
static double run_epoch(struct model *m, const struct data *d, struct shard_loader *loader, float rate, double *loss)
{
	struct shard_batch batch;
	struct shard_error err;
	uint64_t right = 0, seen = 0;
	int rc;

	*loss = 0;
	while ((rc = shard_loader_next(loader, &batch, &err)) == SHARD_OK) { /* SHARD_END ends the epoch */
		right += step(m, d, &batch, rate, loss);
		seen += batch.record_count;
		if (shard_loader_release(loader, &batch, &err))
			errx(1, "%s", err.message);
	}
	if (rc < 0)
		errx(1, "%s", err.message);
	*loss /= (double)seen;
	return (double)right / (double)seen;
}

int main(int argc, char **argv)
{
	struct shard_loader_options o = {
		.size = sizeof(o), .batch_records = BATCH, .order.seed = 1, .tail = SHARD_KEEP};
	unsigned long epochs = 20;
	static struct model model;
	struct shard_loader *batches, *val_batches;
	struct data train = {0}, val = {0};
	struct shard_loader_stats before = {0};
	struct shard_dataset_info info;
	struct shard_error err;
	double loss, val_loss, accuracy = 0;
	int permute = 0;

	for (int i = 3; i < argc; i++)
		if (!strcmp(argv[i], "--permute-labels"))
			permute = 1;
		else if (!strcmp(argv[i], "--epochs") && i + 1 < argc)
			epochs = strtoul(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
			o.order.seed = strtoul(argv[++i], NULL, 10);
		else
			argc = 0;
	if (argc < 3)
		errx(1, "usage: train_loop TRAIN VAL [--epochs N] [--seed S] [--permute-labels]");
	open_data(&train, argv[1]);
	open_data(&val, argv[2]);
	if (permute)
		permute_labels(&train, o.order.seed);
	shard_dataset_info(train.ds, &info);
	if (!info.class_count || info.class_count > CLASSES_MAX)
		errx(1, "needs 1 to 64 named classes");
	model.class_count = (uint32_t)info.class_count;
	if (shard_loader_open(&batches, train.ds, &o, &err) || shard_loader_open(&val_batches, val.ds, &o, &err))
		errx(1, "%s", err.message);
	for (unsigned long e = 0; e < epochs; e++) {
		run_epoch(&model, &train, batches, 3 * (1 - (float)e / (float)epochs), &loss);
		accuracy = run_epoch(&model, &val, val_batches, 0, &val_loss);
		printf("epoch %2lu  loss %.4f  val loss %.4f  val accuracy %.3f\n", e, loss, val_loss, accuracy);
		if ((e + 1) % 10 == 0 || e + 1 == epochs)
			report(batches, &before);
	}
	printf("val accuracy %.3f\n", accuracy);
	shard_loader_close(batches);
	shard_loader_close(val_batches);
	shard_dataset_close(train.ds);
	shard_dataset_close(val.ds);
	free(train.other);
	return 0;
}
