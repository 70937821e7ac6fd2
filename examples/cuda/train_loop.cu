/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_loop.cu - train a small convolutional network on a GPU, and see how long the GPU waits for
 * data
 *
 *   nvcc -O3 train_loop.cu -o train_loop $(pkg-config --cflags --libs libshard)
 *   ./train_loop ds/train [--epochs N] [--seed S] [--batch N]
 *
 * Batches come to the GPU as one large copy each, from memory that this program has page-locked,
 * while the network is at work on those before them.  One kernel of libshard's makes of them what
 * the network takes: a part of each picture, of random size and mirrored by chance, as 32 x 32
 * normalised numbers in planes.  The host queues work and waits once an epoch.  The network halves
 * that three times (3 x 3 convolutions of 16, 32 and 64 channels) and ends in a softmax; it is
 * trained by gradient descent with momentum.  Its kernels are meant to be read: a real trainer has
 * better ones, and its data comes as this does.
 *
 * "idle" is the share of the time between the first and the last step of an epoch in which the GPU
 * had nothing to do because the next batch was not there yet.
 */
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shard.h"
#include "shard_gpu.h"
#include "shard_transform.h"

#define SIDE	    32 /* of what the network sees of a picture */
#define LAYERS	    3
#define CLASSES_MAX 64
#define FEATURES    64 /* channels of the last layer; their means go into the softmax */
#define THREADS	    128

static const int channels[LAYERS + 1] = {3, 16, 32, FEATURES};

#define die(...) (fprintf(stderr, "train_loop: " __VA_ARGS__), fputc('\n', stderr), exit(1))
#define CUDA(call)                                                         \
	do {                                                               \
		cudaError_t failed_ = (call);                              \
		if (failed_ != cudaSuccess)                                \
			die("%s: %s", #call, cudaGetErrorString(failed_)); \
	} while (0)

/* ---- the network, on the GPU: a thread for each element of what a kernel makes ---- */

#define EACH(i, count)                                        \
	long i = (long)blockIdx.x * blockDim.x + threadIdx.x; \
	if (i >= (count))                                     \
	return

/*
 * 3 x 3 with stride 2, then the greater of it and 0: x [n][in][2s][2s] to y [n][out][s][s].  Biases
 * lie behind w.
 */
__global__ void convolve(const float *x, const float *w, float *y, int n, int in, int out, int s)
{
	EACH(i, (long)n * out * s * s);
	int column = i % s * 2, row = i / s % s * 2, o = i / (s * s) % out;
	const float *image = x + i / ((long)out * s * s) * in * 4 * s * s;
	float sum = w[out * in * 9 + o];

	for (int c = 0; c < in; c++)
		for (int k = 0; k < 9; k++) {
			int h = row + k / 3 - 1, v = column + k % 3 - 1;

			if (h >= 0 && h < 2 * s && v >= 0 && v < 2 * s)
				sum += w[(o * in + c) * 9 + k] * image[(c * 2 * s + h) * 2 * s + v];
		}
	y[i] = sum > 0 ? sum : 0;
}

/* Gradient of what went into convolve(), 0 where that was cut off at 0. */
__global__ void convolve_back(const float *dy, const float *w, const float *x, float *dx, int n, int in, int out, int s)
{
	EACH(i, (long)n * in * 4 * s * s);
	int v = i % (2 * s), h = i / (2 * s) % (2 * s), c = i / (4 * s * s) % in;
	const float *image = dy + i / ((long)in * 4 * s * s) * out * s * s;
	float sum = 0;

	for (int k = 0; k < 9; k++) {
		int row = h - k / 3 + 1, column = v - k % 3 + 1;

		if (row < 0 || column < 0 || row % 2 || column % 2 || row >= 2 * s || column >= 2 * s)
			continue;
		for (int o = 0; o < out; o++)
			sum += w[(o * in + c) * 9 + k] * image[(o * s + row / 2) * s + column / 2];
	}
	dx[i] = x[i] > 0 ? sum : 0;
}

/* Gradient of the weights of convolve(), biases behind them. */
__global__ void convolve_learn(const float *x, const float *dy, float *dw, int n, int in, int out, int s)
{
	EACH(i, (long)out * in * 9 + out);
	int is_bias = i >= (long)out * in * 9;
	int o = is_bias ? i - (long)out * in * 9 : i / (9 * in), c = i / 9 % in, k = i % 9;
	float sum = 0;

	for (int j = 0; j < n * s * s; j++) {
		int b = j / (s * s), row = j / s % s, column = j % s, h = 2 * row + k / 3 - 1,
		    v = 2 * column + k % 3 - 1;
		float d = dy[((long)(b * out + o) * s + row) * s + column];

		if (is_bias)
			sum += d;
		else if (h >= 0 && h < 2 * s && v >= 0 && v < 2 * s)
			sum += d * x[((long)(b * in + c) * 2 * s + h) * 2 * s + v];
	}
	dw[i] = sum;
}

/*
 * Means of FEATURES channels of `area`, softmax, loss; a thread for each picture.  delta: the
 * gradient of the sums.
 */
__global__ void judge(const float *x, int area, const float *w, const int64_t *label, float *feature, float *delta,
		      int n, int classes, double *loss, unsigned *right, unsigned *unlike)
{
	EACH(i, n);
	float *f = feature + i * FEATURES, *p = delta + i * CLASSES_MAX, most = -1e30f, total = 0;
	int64_t best = 0, want = label[i];

	if (want < 0 || want >= classes) {
		atomicAdd(unlike, 1u);
		want = 0;
	}
	for (int c = 0; c < FEATURES; c++) {
		f[c] = 0;
		for (int a = 0; a < area; a++)
			f[c] += x[(i * FEATURES + c) * area + a] / area;
	}
	for (int k = 0; k < classes; k++) {
		p[k] = w[classes * FEATURES + k];
		for (int c = 0; c < FEATURES; c++)
			p[k] += w[k * FEATURES + c] * f[c];
		if (p[k] > most) {
			most = p[k];
			best = k;
		}
	}
	for (int k = 0; k < classes; k++)
		total += expf(p[k] - most);
	atomicAdd(loss, (double)(logf(total) + most - p[want]));
	atomicAdd(right, best == want ? 1u : 0u);
	for (int k = 0; k < classes; k++)
		p[k] = (expf(p[k] - most) / total - (k == want)) / n;
}

/* From judge() back into the last layer, [n][FEATURES][area]. */
__global__ void judge_back(const float *delta, const float *w, const float *x, float *dx, int area, int n, int classes)
{
	EACH(i, (long)n * FEATURES * area);
	int c = i / area % FEATURES;
	const float *p = delta + i / ((long)area * FEATURES) * CLASSES_MAX;
	float sum = 0;

	for (int k = 0; k < classes; k++)
		sum += w[k * FEATURES + c] * p[k] / area;
	dx[i] = x[i] > 0 ? sum : 0;
}

__global__ void judge_learn(const float *feature, const float *delta, float *dw, int n, int classes)
{
	EACH(i, (long)classes * FEATURES + classes);
	int is_bias = i >= (long)classes * FEATURES, k = is_bias ? i - (long)classes * FEATURES : i / FEATURES;
	float sum = 0;

	for (int b = 0; b < n; b++)
		sum += delta[b * CLASSES_MAX + k] * (is_bias ? 1 : feature[b * FEATURES + i % FEATURES]);
	dw[i] = sum;
}

__global__ void descend(float *w, float *speed, const float *dw, long count, float rate)
{
	EACH(i, count);
	speed[i] = 0.9f * speed[i] - rate * dw[i];
	w[i] += speed[i];
}

/* ---- the host: what is where, and what is queued ---- */

struct weights {
	long count;
	float *w, *speed, *gradient;
};

struct network {
	struct weights layer[LAYERS], last;
	float *x[LAYERS + 1], *dx[LAYERS + 1]; /* what goes from layer to layer, and its gradient */
	float *feature, *delta;
	int classes;
	struct result {
		double loss;
		unsigned right, unlike; /* labels that are not a class */
	} * result;
};

template <class T> static T *get(long count)
{
	void *memory;

	CUDA(cudaMalloc(&memory, count * sizeof(T)));
	CUDA(cudaMemset(memory, 0, count * sizeof(T)));
	return (T *)memory;
}

/* Weights of variance 2 / inputs; biases behind them are 0. */
static void make_weights(struct weights *v, int inputs, int outputs, uint64_t *state)
{
	v->count = (long)inputs * outputs + outputs;
	float *w = (float *)calloc(v->count, sizeof(*w));

	for (long i = 0; w && i < (long)inputs * outputs; i++) {
		*state = *state * 6364136223846793005u + 1442695040888963407u;
		/* of a range of that variance */
		w[i] = ((float)(*state >> 40) / (1 << 24) * 2 - 1) * sqrtf(6.0f / inputs);
	}
	v->w = get<float>(v->count);
	v->speed = get<float>(v->count);
	v->gradient = get<float>(v->count);
	CUDA(cudaMemcpy(v->w, w, v->count * sizeof(*w), cudaMemcpyHostToDevice));
	free(w);
}

static void make_network(struct network *net, int batch, int classes, uint64_t seed)
{
	net->classes = classes;
	for (int l = 0; l <= LAYERS; l++) {
		net->x[l] = get<float>((long)batch * channels[l] * (SIDE >> l) * (SIDE >> l));
		net->dx[l] = get<float>((long)batch * channels[l] * (SIDE >> l) * (SIDE >> l));
		if (l < LAYERS)
			make_weights(&net->layer[l], channels[l] * 9, channels[l + 1], &seed);
	}
	make_weights(&net->last, FEATURES, classes, &seed);
	net->feature = get<float>((long)batch * FEATURES);
	net->delta = get<float>((long)batch * CLASSES_MAX);
	net->result = get<struct network::result>(1);
}

static unsigned blocks(long count)
{
	return (unsigned)((count + THREADS - 1) / THREADS);
}

/* One step with the n pictures that are in x[0], and their labels; queued, not waited for. */
static void queue_step(struct network *net, const struct shard_rows *label, int n, float rate, cudaStream_t stream)
{
	int area = (SIDE >> LAYERS) * (SIDE >> LAYERS);
	struct network::result *r = net->result;

	for (int l = 0; l < LAYERS; l++) {
		int s = SIDE >> (l + 1), in = channels[l], out = channels[l + 1];

		convolve<<<blocks((long)n * out * s * s), THREADS, 0, stream>>>(net->x[l], net->layer[l].w,
										net->x[l + 1], n, in, out, s);
	}
	judge<<<blocks(n), THREADS, 0, stream>>>(net->x[LAYERS], area, net->last.w, (const int64_t *)label->data,
						 net->feature, net->delta, n, net->classes, &r->loss, &r->right,
						 &r->unlike);
	judge_back<<<blocks((long)n * FEATURES * area), THREADS, 0, stream>>>(net->delta, net->last.w, net->x[LAYERS],
									      net->dx[LAYERS], area, n, net->classes);
	judge_learn<<<blocks(net->last.count), THREADS, 0, stream>>>(net->feature, net->delta, net->last.gradient, n,
								     net->classes);
	descend<<<blocks(net->last.count), THREADS, 0, stream>>>(net->last.w, net->last.speed, net->last.gradient,
								 net->last.count, rate);
	for (int l = LAYERS - 1; l >= 0; l--) {
		struct weights *v = &net->layer[l];
		int s = SIDE >> (l + 1), in = channels[l], out = channels[l + 1];

		convolve_learn<<<blocks(v->count), THREADS, 0, stream>>>(net->x[l], net->dx[l + 1], v->gradient, n, in,
									 out, s);
		if (l > 0)
			convolve_back<<<blocks((long)n * in * 4 * s * s), THREADS, 0, stream>>>(
				net->dx[l + 1], v->w, net->x[l], net->dx[l], n, in, out, s);
		descend<<<blocks(v->count), THREADS, 0, stream>>>(v->w, v->speed, v->gradient, v->count, rate);
	}
	CUDA(cudaGetLastError());
}

/* ---- data ---- */

struct data {
	struct shard_dataset *ds;
	struct shard_loader *loader;
	struct shard_transform *transform;
	int label_idx, classes;
};

/*
 * What the network takes of a picture: another part of it in each epoch, and the same ones when
 * this program runs again.
 */
static void open_transform(struct data *d)
{
	struct shard_transform_options o = {};
	struct shard_error why;

	o.size = sizeof(o);
	o.height = o.width = SIDE;
	o.dtype = SHARD_F32;
	o.layout = SHARD_CHW;
	o.crop = SHARD_CROP_RESIZED;
	o.area_min = 0.5;
	o.flip = 0.5;
	for (int c = 0; c < 3; c++) {
		o.mean[c] = 0.45f;
		o.std[c] = 0.25f;
	}
	if (shard_transform_open(&d->transform, d->loader, "image", &o, &why))
		die("%s", why.message);
	if (shard_transform_row_bytes(d->transform) != 3 * SIDE * SIDE * sizeof(float))
		die("needs pictures of 3 channels");
}

static void open_data(struct data *d, const char *path, struct shard_loader_options *o)
{
	struct shard_dataset_info info;
	const struct shard_field *label;
	struct shard_error why;

	if (shard_dataset_open(&d->ds, path, NULL, &why) || shard_loader_open(&d->loader, d->ds, o, &why))
		die("%s", why.message);
	label = shard_schema_find(shard_dataset_schema(d->ds), "label");
	shard_dataset_info(d->ds, &info);
	if (!label || label->dtype != SHARD_I64)
		die("%s: needs a field label, i64", path);
	if (!info.class_count || info.class_count > CLASSES_MAX)
		die("%s: needs 1 to %d named classes", path, CLASSES_MAX);
	d->classes = (int)info.class_count;
	d->label_idx = (int)(label - shard_dataset_schema(d->ds)->field);
	open_transform(d);
}

/*
 * The ring in memory of our own, page-locked: copies from there run beside all else.  Without this
 * libshard does it.
 */
static void *lend_memory(struct shard_loader *loader, uint64_t *bytes)
{
	struct shard_error why;
	void *memory;

	*bytes = shard_loader_ring_bytes(loader);
	memory = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || madvise(memory, *bytes, MADV_DONTFORK))
		die("%llu bytes for the ring: %m", (unsigned long long)*bytes);
	CUDA(cudaHostRegister(memory, *bytes, cudaHostRegisterDefault));
	if (shard_loader_lend(loader, memory, *bytes, &why))
		die("%s", why.message);
	return memory;
}

/* ---- training ---- */

struct clock {
	cudaEvent_t *begin, *end; /* of each step's work; an event is behind all that was queued before it */
	uint64_t most;
};

static void make_clock(struct clock *c, uint64_t steps)
{
	c->most = steps;
	c->begin = (cudaEvent_t *)calloc(steps, sizeof(*c->begin));
	c->end = (cudaEvent_t *)calloc(steps, sizeof(*c->end));
	if (!c->begin || !c->end)
		die("out of memory");
	for (uint64_t i = 0; i < steps; i++) {
		CUDA(cudaEventCreate(&c->begin[i]));
		CUDA(cudaEventCreate(&c->end[i]));
	}
}

static void free_clock(struct clock *c)
{
	for (uint64_t i = 0; i < c->most; i++) {
		CUDA(cudaEventDestroy(c->begin[i]));
		CUDA(cudaEventDestroy(c->end[i]));
	}
	free(c->begin);
	free(c->end);
}

/* Per cent of the time from the first step to the last in which the GPU was between two steps. */
static double idle(const struct clock *c, uint64_t steps)
{
	float gap, all = 0;
	double idle_ms = 0;

	for (uint64_t i = 1; i < steps; i++) {
		CUDA(cudaEventElapsedTime(&gap, c->end[i - 1], c->begin[i]));
		idle_ms += gap;
	}
	if (steps)
		CUDA(cudaEventElapsedTime(&all, c->begin[0], c->end[steps - 1]));
	return all > 0 ? 100 * idle_ms / all : 0;
}

static void train_epoch(struct network *net, struct data *d, struct clock *clock, float rate, cudaStream_t stream)
{
	struct network::result r;
	struct shard_batch batch;
	struct shard_error why;
	uint64_t steps = 0, seen = 0, epoch = 0;
	int rc;

	CUDA(cudaMemsetAsync(net->result, 0, sizeof(r), stream));
	while ((rc = shard_loader_next_device(d->loader, stream, &batch, &why)) == SHARD_OK) {
		CUDA(cudaEventRecord(clock->begin[steps], stream)); /* the batch is there from here on */
		if (shard_transform_launch(d->transform, &batch, NULL, 0, stream, net->x[0], &why))
			die("%s", why.message);
		queue_step(net, &batch.field[d->label_idx], (int)batch.record_count, rate, stream);
		CUDA(cudaEventRecord(clock->end[steps++], stream));
		seen += batch.record_count;
		epoch = batch.epoch;
		/* when that step is done; returns at once */
		if (shard_loader_release_after(d->loader, &batch, stream, &why))
			die("%s", why.message);
	}
	if (rc < 0)
		die("%s", why.message);
	CUDA(cudaMemcpyAsync(&r, net->result, sizeof(r), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	if (r.unlike)
		die("%u labels are not the number of a class", r.unlike);
	printf("epoch %2llu  loss %.4f  accuracy %.3f  GPU idle %.1f %%\n", (unsigned long long)epoch,
	       r.loss / (double)seen, r.right / (double)seen, idle(clock, steps));
}

int main(int argc, char **argv)
{
	struct shard_loader_options o = {};
	unsigned long epochs = 20;
	struct network net;
	struct clock clock;
	struct data train;
	cudaStream_t stream;
	uint64_t bytes;
	void *memory;

	o.size = sizeof(o);
	o.batch_records = 16;
	o.order.seed = 1;
	o.tail = SHARD_KEEP;
	for (int i = 2; i < argc; i++)
		if (strcmp(argv[i], "--epochs") == 0 && i + 1 < argc)
			epochs = strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
			o.order.seed = strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--batch") == 0 && i + 1 < argc)
			o.batch_records = (uint32_t)strtoul(argv[++i], NULL, 10);
		else
			argc = 0;
	if (argc < 2)
		die("usage: train_loop DATASET [--epochs N] [--seed S] [--batch N]");
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	open_data(&train, argv[1], &o);
	memory = lend_memory(train.loader, &bytes);
	make_network(&net, (int)o.batch_records, train.classes, o.order.seed);
	make_clock(&clock, shard_loader_step_count(train.loader));
	CUDA(cudaDeviceSynchronize()); /* what was done on other streams so far */
	for (unsigned long e = 0; e < epochs; e++)
		train_epoch(&net, &train, &clock, 0.03f * (1 - (float)e / (float)epochs), stream);
	free_clock(&clock);
	shard_transform_close(train.transform);
	shard_loader_close(train.loader); /* before its memory goes */
	CUDA(cudaHostUnregister(memory));
	munmap(memory, bytes);
	shard_dataset_close(train.ds);
	return 0; /* what else is on the GPU goes with the process */
}
