/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_ptx_device.c - loaders on a driver without a GPU that runs the PTX which it was given: batches
 * are the host's, and with a fault in the text they are not
 *
 * The loader loads its text into the fake driver and launches kernels of it.  There the interpreter
 * runs that text, with the launch's own grid, parameters and shared memory, and may touch no more
 * of the device's memory than the launch names.  A kernel behind it on the stream compares.
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full
 * LDFLAGS: -Wl,--wrap=slot_fill
 * TIMEOUT: 600
 * TAKES: 10
 */
#include "shard_transform.h"
#include "tests/cuda/pooling.h"
#include "tests/cuda/transforming.h"
#include "tests/ptx/faults.h"

#define KERNELS (EMULATED_KERNELS + 1) /* the transform's, and gather_rows */

/* ---- a GPU that is an interpreter ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	const void *image;
	struct ptx_program *program;
} loaded[4];			      /* lock */
static unsigned ran[KERNELS], moved;  /* lock: launches of each kernel; texts with a fault */
static const char *kernel_with_fault; /* NULL: texts are taken as they come */
static unsigned fault_at;	      /* in which of its stores */

static const char *kernel_name(size_t k)
{
	return k < EMULATED_KERNELS ? emulated_kernels[k].name : "gather_rows";
}

/* The text with the address of one of the kernel's stores to the device moved by one element. */
static char *with_fault(const char *text, const char *kernel)
{
	char head[100], line[FAULT_LINE] = "", changed[FAULT_LINE], *out;
	const char *at;
	size_t room = strlen(text) + FAULT_LINE;
	unsigned stores = 0;

	snprintf(head, sizeof(head), ".entry %s(", kernel);
	at = strstr(text, head);
	if (!at)
		return NULL;
	while (stores <= fault_at) {
		at = strchr(at, '\n') + 1;
		line_copy(at, line);
		if (line[0] == '}')
			return NULL;
		stores += !strncmp(line, "st.", 3) && strncmp(line, "st.shared", 9);
	}
	move_address(line, access_bytes(line), changed);
	out = malloc(room);
	snprintf(out, room, "%.*s%s%s", (int)(at - text), text, changed, at + strlen(line));
	moved++;
	return out;
}

static struct ptx_program *program_of(const void *image, char error[PTX_ERROR_BYTES])
{
	char *changed;
	size_t i = 0;

	while (i < COUNT(loaded) - 1 && loaded[i].image && loaded[i].image != image)
		i++;
	if (!loaded[i].program) {
		changed = kernel_with_fault ? with_fault(image, kernel_with_fault) : NULL;
		loaded[i].image = image;
		loaded[i].program = ptx_read(changed ? changed : image, error);
		free(changed);
	}
	return loaded[i].program;
}

static void forget_programs(const char *kernel_to_spoil)
{
	for (size_t i = 0; i < COUNT(loaded); i++)
		ptx_free(loaded[i].program);
	memset(loaded, 0, sizeof(loaded));
	memset(ran, 0, sizeof(ran));
	kernel_with_fault = kernel_to_spoil;
	moved = 0;
}

static void grant(struct ptx_launch *l, uint64_t at, uint64_t bytes, bool writable)
{
	l->region[l->region_count++] = (struct ptx_region){at, bytes, fake->at(at), writable, !writable, NULL};
}

static void run_ptx(const struct fake_kernel_call *c)
{
	struct ptx_launch l = {.name = c->name,
			       .grid = {c->grid[0], c->grid[1]},
			       .threads = c->block[0],
			       .shared_bytes = c->shared_bytes,
			       .parameter = c->arguments[0]};
	char error[PTX_ERROR_BYTES] = "";
	struct ptx_program *p;
	size_t k = 0;

	while (strcmp(kernel_name(k), c->name))
		k++;
	if (k < EMULATED_KERNELS) {
		struct transform_call call;

		memcpy(&call, c->arguments[0], sizeof(call));
		grant(&l, call.to, fake->bytes_from(call.to), true);
		grant(&l, call.from, call.from_end - call.from, false);
		grant(&l, call.table, fake->bytes_from(call.table), false);
	} else {
		struct gather_call call;

		memcpy(&call, c->arguments[0], sizeof(call));
		grant(&l, call.to, fake->bytes_from(call.to), true);
		grant(&l, call.from, fake->bytes_from(call.from), false);
	}
	for (uint32_t i = 0; i < l.region_count; i++)
		if (!l.region[i].store || l.region[i].bytes > fake->bytes_from(l.region[i].at)) {
			complain(&gpu, "%s is told of memory that is not there", c->name);
			return;
		}
	pthread_mutex_lock(&lock);
	l.seed = ++ran[k];
	p = program_of(c->image, error);
	if (!p || !ptx_run(p, &l, error))
		complain(&gpu, "%s: %s", c->name, error);
	pthread_mutex_unlock(&lock);
}

/* In the place of the twins in C. */
static void kernels_open(void)
{
	static const size_t transform_bytes[] = {sizeof(struct transform_call)},
			    gather_bytes[] = {sizeof(struct gather_call)};

	for (size_t k = 0; k < KERNELS; k++)
		fake->kernel(kernel_name(k), run_ptx, 1, k < EMULATED_KERNELS ? transform_bytes : gather_bytes);
}

/* ---- a few batches of each kind ---- */

#define KINDS 36u /* of transforms: which kernel runs is the library's to say */

static void transform_batches(unsigned kind, unsigned steps, bool pooled)
{
	static const uint32_t dtypes[] = {SHARD_F16, SHARD_U8, SHARD_F32};
	struct shard_transform_options o = imagenet(kind % 3, dtypes[kind / 3 % 3],
						    kind / 9 % 2 ? SHARD_HWC : SHARD_CHW, kind < KINDS / 2 ? 24 : 17);
	struct shard_loader_options lo = {.batch_records = 5, .tail = SHARD_KEEP, .order.seed = kind};
	struct transforming f;

	STORY("crop %u, dtype %u, layout %u, side %u", o.crop, o.dtype, o.layout, o.height);
	if (pooled) {
		lo.order.shuffle = SHARD_SHUFFLE_WINDOWS;
		lo.order.run_records = 3;
		lo.order.window_runs = 1;
		lo.order.lane_count = 3;
		lo.gpu.pool_bytes = least_pool(lo);
	}
	transforming_open(&f, lo, &o, 5, (enum stream_kind)(kind % STREAM_KINDS), kind);
	kernels_open();
	fake->seed(kind, 300);
	transforming_steps(&f, steps);
	fake->settle();
	if (!kernel_with_fault)
		CHECK_SOUND_TRAINING();
	transforming_close(&f);
	trainer_check_clean();
}

static void gather_batches(unsigned round)
{
	struct training t;

	STORY("round %u", round);
	open_pool(&t, all_in_pool(round), round);
	kernels_open();
	run(&t, calls_of(&t) + 3, 1);
	train_give_all(&t);
	if (!kernel_with_fault)
		CHECK_SOUND_TRAINING();
	training_close(&t);
	trainer_check_clean();
}

TEST(batches_by_the_shipped_ptx_are_the_hosts)
{
	unsigned more = getenv("ALL_N") ? 4 : 1, step = getenv("ALL_N") ? 1 : 5;

	forget_programs(NULL);
	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	for (unsigned kind = 0; kind < KINDS; kind++)
		transform_batches(kind, 2 * more, false);
	for (unsigned kind = 0; kind < KINDS; kind += step)
		transform_batches(kind, 2 * more, true);
	for (unsigned round = 0; round < 2 * more; round++)
		gather_batches(round);
	for (size_t k = 0; k < KERNELS; k++) {
		STORY("%s", kernel_name(k));
		printf("%s: %u launches\n", kernel_name(k), ran[k]);
		CHECK(ran[k] > 0);
	}
}

TEST(a_fault_in_the_text_shows_in_batches)
{
	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	for (size_t k = 0; k < KERNELS; k++)
		/* These batches may not come to one of its stores, but they come to another. */
		for (fault_at = 0, gpu.complaint[0] = 0; !gpu.complaint[0]; fault_at++) {
			forget_programs(kernel_name(k));
			if (k == EMULATED_KERNELS)
				gather_batches(0);
			for (unsigned kind = 0; k < EMULATED_KERNELS && kind < KINDS && !ran[k]; kind++)
				transform_batches(kind, 2, false);
			STORY("%s, store %u", kernel_name(k), fault_at);
			CHECK(ran[k] > 0);
			CHECK_EQ(moved, 1);
		}
	forget_programs(NULL);
}

TEST_MAIN()
