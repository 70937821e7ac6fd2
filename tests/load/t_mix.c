/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_mix.c - a loader of a mixture delivers what format/ORDER.md, part 12, says: on every path, for
 * any world, behind ends of epochs, resumed in other worlds, and where records are damaged
 *
 * The slow twin asks libshard/order for one position at a time.
 *
 * LDFLAGS: -Wl,--wrap=mix_block
 * TIMEOUT: 300
 */
#include "libshard/dataset/dataset.h"
#include "libshard/loader/loader.h"
#include "libshard/order/order.h"
#include "shard_transform.h"
#include "tests/load/kinds.h"
#include "tests/store/fixture.h"

#define PARTS	   2u
#define COMPONENTS 3u

static const uint64_t sizes[PARTS][3] = {{40, 1, 62}, {9, 8, 0}};
static const uint64_t first_photo[PARTS] = {0, 5000};
static const uint32_t weights[COMPONENTS] = {3, 1, 2};
static const uint32_t part_of[COMPONENTS] = {0, 1, 0};

static struct path folder[PARTS];
static struct shard_schema schema;
static struct shard_dataset *part[PARTS];
static struct shard_selection *selection;
static struct shard_mix *mix;
static bool forgets; /* a broken library: each block is the first one */

void __real_mix_block(const struct mix *m, uint64_t lane, uint64_t block, struct mix_slot *slot, uint16_t *scratch);
void __wrap_mix_block(const struct mix *m, uint64_t lane, uint64_t block, struct mix_slot *slot, uint16_t *scratch);

void __wrap_mix_block(const struct mix *m, uint64_t lane, uint64_t block, struct mix_slot *slot, uint16_t *scratch)
{
	__real_mix_block(m, lane, forgets ? 0 : block, slot, scratch);
}

static void open_part(uint32_t p)
{
	shard_dataset_close(part[p]);
	part[p] = NULL;
	CHECK_OK(shard_dataset_open(&part[p], folder[p].text, NULL, &fixture_err));
}

static void make_part(uint32_t p, uint32_t side, uint32_t codec)
{
	schema = photo_schema(side, codec);
	new_folder(&folder[p], p ? "two" : "one");
	fixture_first = first_photo[p];
	write_dataset(folder[p].text, &schema, sizes[p], 3);
	fixture_first = 0;
	open_part(p);
}

static void sources_of(struct shard_mix_source s[COMPONENTS])
{
	for (uint32_t d = 0; d < COMPONENTS; d++)
		s[d] = (struct shard_mix_source){
			.ds = part[part_of[d]], .selection = d == 2 ? selection : NULL, .weight = weights[d]};
}

static struct shard_mix *mix_of(uint64_t epoch_records)
{
	struct shard_mix_options o = {.size = sizeof(o), .epoch_records = epoch_records};
	struct shard_mix_source s[COMPONENTS];
	struct shard_mix *m;

	sources_of(s);
	CHECK_OK(shard_mix_open(&m, s, COMPONENTS, &o, &fixture_err));
	return m;
}

static void drop_all(void)
{
	shard_mix_close(mix);
	shard_selection_close(selection);
	mix = NULL;
	selection = NULL;
	for (uint32_t p = 0; p < PARTS; p++) {
		shard_dataset_close(part[p]);
		part[p] = NULL;
	}
}

/* Two datasets, and a selection of the first one. */
static void make_all(uint32_t side, uint32_t codec, uint64_t epoch_records)
{
	drop_all();
	for (uint32_t p = 0; p < PARTS; p++)
		make_part(p, side, codec);
	CHECK_OK(shard_select_fraction(&selection, part[0], NULL, 0.25, 0.5, 3, &fixture_err));
	mix = mix_of(epoch_records);
}

/* ---- the twin ---- */

static struct shard_loader_options mixed(size_t kind)
{
	struct shard_loader_options o = of_kind(kind);

	o.mix = mix;
	return o;
}

struct found {
	uint32_t component;
	uint64_t pass, record;
};

static struct found twin(const struct shard_loader_options *o, uint64_t position)
{
	static struct mix_slot slots[8];
	static uint16_t scratch[32], table[ORDER_TABLE_ENTRIES_MAX];
	struct order_params p = params_of_kind(o, 0, 0);
	struct found found;
	struct mix_place at;
	struct order order;
	struct mix m;
	uint64_t own;

	p.lane_count = p.lane_count ? p.lane_count : 64;
	mix_init(&m, weights, COMPONENTS, p.lane_count, o->order.seed);
	at = mix_place_of(&m, position);
	__real_mix_block(&m, at.lane, at.block, slots, scratch);
	found.component = slots[at.slot].component;
	own = mix_own_position(&m, &at, &slots[at.slot]);
	CHECK_OK(shard_mix_component(mix, found.component, NULL, &p.record_count, &fixture_err));
	p.seed = mix_component_seed(&m, found.component);
	p.epoch = found.pass = own / p.record_count;
	CHECK_EQ(order_init(&order, &p, table), SHARD_OK);
	found.record = order_at(&order, own % p.record_count);
	if (found.component == 2)
		found.record = selection_at(selection, found.record);
	return found;
}

static char complaint[200];

__attribute__((format(printf, 1, 2))) static void complain(const char *fmt, ...)
{
	va_list ap;

	if (complaint[0])
		return;
	va_start(ap, fmt);
	vsnprintf(complaint, sizeof(complaint), fmt, ap);
	va_end(ap);
}

static void check_bytes(const struct shard_batch *b, uint32_t row, uint32_t component)
{
	static uint8_t want[2][48 * 48 * 3 + 4096];

	for (uint32_t g = 0; g < 2; g++)
		photo_record(&schema, g, first_photo[part_of[component]] + b->record[row], want[g]);
	for (uint32_t f = 0; f < schema.field_count; f++) {
		const struct shard_field *field = &schema.field[f];
		const struct shard_rows *got = &b->field[f];

		if (memcmp((const uint8_t *)got->data + row * got->stride, want[field->group] + field->offset,
			   (size_t)field->bytes))
			complain("row %u: %s is not that of record %" PRIu64 " of component %u", row, field->name,
				 b->record[row], component);
	}
}

/* A batch of a step of all ranks that begins at this position of the mixture. */
static void check_batch(const struct shard_loader_options *o, const struct shard_batch *b, uint64_t position)
{
	uint32_t world = o->world ? o->world : 1;
	uint64_t own = position + (o->rank + world - position % world) % world;

	if (b->record_count != o->batch_records || b->epoch != position / mix->epoch_records ||
	    b->position != position % mix->epoch_records)
		complain("a batch of %u rows of epoch %" PRIu64 ", position %" PRIu64 " came for position %" PRIu64,
			 b->record_count, b->epoch, b->position, position);
	for (uint32_t i = 0; i < b->record_count; i++) {
		struct found want = twin(o, own + (uint64_t)i * world);

		if (b->component[i] != want.component || b->record[i] != want.record || b->row_flags[i])
			complain("position %" PRIu64 ": record %" PRIu64 " of component %u came instead of record "
				 "%" PRIu64 " of %u",
				 own + (uint64_t)i * world, b->record[i], b->component[i], want.record, want.component);
		else
			check_bytes(b, i, want.component);
	}
}

/* `steps` of them from a position on, with an END behind each epoch. */
static uint64_t run(const struct shard_loader_options *o, struct shard_loader *l, uint64_t position, unsigned steps)
{
	uint64_t epoch = position / mix->epoch_records;
	struct shard_batch b;

	while (steps && !complaint[0]) {
		bool over = position / mix->epoch_records != epoch;
		int rc = shard_loader_next(l, &b, &fixture_err);

		CHECK_EQ(rc, over ? SHARD_END : SHARD_OK);
		epoch += over;
		if (rc)
			continue;
		check_batch(o, &b, position);
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
		position += (uint64_t)(o->world ? o->world : 1) * o->batch_records;
		steps--;
	}
	return position;
}

/* ---- what comes ---- */

TEST(every_path_codec_and_rank)
{
	for (uint32_t side = 8; side <= 48; side += 40)
		for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++) {
			make_all(side, codec, 100);
			for (size_t kind = 0; kind < KINDS; kind++)
				for (uint32_t rank = 0; rank < 4; rank++) {
					struct shard_loader_options o = mixed(kind);
					struct shard_loader *l;

					o.world = rank < 3 ? 3 : 1;
					o.rank = rank < 3 ? rank : 0;
					o.path = rank;
					STORY("side %u, codec %u, order %u, rank %u of %u", side, codec, (unsigned)kind,
					      o.rank, o.world);
					CHECK_OK(shard_loader_open(&l, NULL, &o, &fixture_err));
					run(&o, l, 0, 60);
					shard_loader_close(l);
					CHECK_STR(complaint, "");
				}
		}
	drop_all();
}

/* mix_order_fill() works on 512 rows at once: a batch of 1100 has a rest, too. */
TEST(batches_of_many_rows)
{
	make_all(8, SHARD_RAW, 3000);
	for (size_t kind = 0; kind < KINDS; kind++)
		for (uint32_t world = 1; world <= 2; world++) {
			struct shard_loader_options o = mixed(kind);
			struct shard_loader *l;

			o.batch_records = 1100;
			o.world = world;
			o.rank = world - 1;
			STORY("order %u, world %u", (unsigned)kind, world);
			CHECK_OK(shard_loader_open(&l, NULL, &o, &fixture_err));
			run(&o, l, 0, 4);
			shard_loader_close(l);
			CHECK_STR(complaint, "");
		}
	drop_all();
}

/* The control: a library whose blocks are all alike is noticed. */
TEST(blocks_that_repeat_are_noticed)
{
	struct shard_loader_options o;
	struct shard_loader *l;

	make_all(8, SHARD_RAW, 100);
	o = mixed(IN_WINDOWS);
	CHECK_OK(shard_loader_open(&l, NULL, &o, &fixture_err));
	forgets = true;
	run(&o, l, 0, 60);
	shard_loader_close(l);
	forgets = false;
	CHECK(complaint[0]);
	complaint[0] = 0;
	drop_all();
}

TEST(steps_longer_than_an_epoch_leave_nothing_out)
{
	struct shard_loader_options o;
	struct shard_loader *l;
	struct shard_batch b;
	unsigned ends = 0;

	make_all(8, SHARD_RAW, 5);
	o = mixed(IN_WINDOWS);
	CHECK_OK(shard_loader_open(&l, NULL, &o, &fixture_err));
	for (uint64_t position = 0; position < 70;) {
		int rc = shard_loader_next(l, &b, &fixture_err);

		ends += rc == SHARD_END;
		if (rc)
			continue;
		check_batch(&o, &b, position);
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
		position += 7;
	}
	CHECK_STR(complaint, "");
	CHECK_EQ(ends, 63 / 5); /* before the batch at position 63 */
	shard_loader_close(l);
	drop_all();
}

TEST(the_order_can_be_asked_for)
{
	struct shard_loader_options o;
	struct shard_loader *l;
	uint16_t component[50];
	uint64_t idx[50], again[50];

	make_all(8, SHARD_RAW, 100);
	for (uint32_t rank = 0; rank < 3; rank++) {
		o = mixed(IN_WINDOWS);
		o.world = 3;
		o.rank = rank;
		CHECK_OK(shard_loader_open(&l, NULL, &o, &fixture_err));
		for (uint64_t epoch = 0; epoch < 4; epoch++) {
			uint64_t first = epoch * 100 + (rank + 3 - epoch * 100 % 3) % 3,
				 n = (epoch * 100 + 102 - first) / 3;

			CHECK_OK(shard_loader_order(l, epoch, 2, n - 2, component, idx, &fixture_err));
			CHECK_OK(shard_loader_order(l, epoch, 2, n - 2, NULL, again, &fixture_err));
			for (uint64_t i = 0; i < n - 2; i++) {
				struct found want = twin(&o, first + (i + 2) * 3);

				CHECK_EQ(component[i], want.component);
				CHECK_EQ(idx[i], want.record);
				CHECK_EQ(again[i], want.record);
			}
			CHECK_EQ(shard_loader_order(l, epoch, 2, n - 1, component, idx, NULL), SHARD_E_ARGUMENT);
			CHECK_EQ(shard_loader_order(l, epoch, n + 1, 0, NULL, again, NULL), SHARD_E_ARGUMENT);
		}
		shard_loader_close(l);
	}
	drop_all();
}

/* ---- tokens ---- */

/* Worlds 8, 3, 16, with other batch sizes and epochs: what all ranks get is the order, once. */
TEST(a_job_goes_on_in_other_worlds)
{
	static const uint32_t worlds[] = {8, 3, 16, 1}, batches[] = {4, 9, 2, 11};
	static const uint64_t epochs[] = {100, 37, 1000, 64};

	for (size_t kind = 0; kind < KINDS; kind++) {
		char token[SHARD_TOKEN_BYTES] = "";
		uint64_t position = 0, behind = 0;

		for (size_t i = 0; i < COUNT(worlds); i++) {
			make_all(8, SHARD_RAW, epochs[i]);
			for (uint32_t rank = 0; rank < worlds[i]; rank++) {
				struct shard_loader_options o = mixed(kind);
				struct shard_loader *l;
				char now[SHARD_TOKEN_BYTES];

				o.world = worlds[i];
				o.rank = rank;
				o.batch_records = batches[i];
				CHECK_OK(shard_loader_open(&l, NULL, &o, &fixture_err));
				if (i)
					CHECK_OK(shard_loader_resume(l, token, &fixture_err));
				behind = run(&o, l, position, 5);
				CHECK_STR(complaint, "");
				shard_loader_token(l, now);
				CHECK(strstr(now, mix->digest));
				if (rank == worlds[i] - 1)
					memcpy(token, now, sizeof(token));
				shard_loader_close(l);
			}
			position = behind;
		}
	}
	drop_all();
}

TEST(a_token_brings_its_order_and_fits_no_other_mixture)
{
	struct shard_loader_options o;
	char token[SHARD_TOKEN_BYTES], plain[SHARD_TOKEN_BYTES];
	struct shard_mix_source s[COMPONENTS];
	struct shard_loader *l;
	struct shard_mix *other;
	struct shard_error err;

	make_all(8, SHARD_RAW, 100);
	o = mixed(IN_WINDOWS);
	CHECK_OK(shard_loader_open(&l, NULL, &o, &fixture_err));
	run(&o, l, 0, 3);
	shard_loader_token(l, token);
	CHECK(!strncmp(token, "mix-v1 two_levels N 100 ", 24));
	shard_loader_close(l);

	o.order.shuffle = SHARD_SHUFFLE_BY_SIZE;
	o.order.run_records = o.order.phase_unit_records = 0;
	o.order.window_runs = o.order.lane_count = 0;
	CHECK_OK(shard_loader_open(&l, NULL, &o, &fixture_err));
	CHECK_OK(shard_loader_seek(l, 3, 10, &fixture_err));
	CHECK_OK(shard_loader_resume(l, token, &fixture_err));
	o = mixed(IN_WINDOWS);
	run(&o, l, 21, 30);
	CHECK_STR(complaint, "");
	shard_loader_close(l);

	sources_of(s);
	s[0].weight = 4;
	CHECK_OK(shard_mix_open(&other, s, COMPONENTS, NULL, &fixture_err));
	o.mix = other;
	CHECK_OK(shard_loader_open(&l, NULL, &o, &fixture_err));
	CHECK_EQ(shard_loader_resume(l, token, &err), SHARD_E_MISMATCH);
	CHECK(strstr(err.message, "the token belongs to mixture "));
	shard_loader_close(l);
	shard_mix_close(other);

	o.mix = NULL;
	CHECK_OK(shard_loader_open(&l, part[0], &o, &fixture_err));
	shard_loader_token(l, plain);
	CHECK_EQ(shard_loader_resume(l, token, &err), SHARD_E_MISMATCH);
	CHECK(strstr(err.message, "and this is dataset "));
	shard_loader_close(l);
	o.mix = mix;
	CHECK_OK(shard_loader_open(&l, NULL, &o, &fixture_err));
	CHECK_EQ(shard_loader_resume(l, plain, &err), SHARD_E_MISMATCH);
	for (size_t cut = 0; token[cut]; cut++) {
		char less[SHARD_TOKEN_BYTES];

		memcpy(less, token, sizeof(less));
		less[cut] = 0;
		CHECK_EQ(shard_loader_resume(l, less, NULL), SHARD_E_ARGUMENT);
	}
	shard_loader_close(l);
	drop_all();
}

/* An epoch may be as long as all positions, and none may lie beyond. */
TEST(epochs_without_an_end)
{
	struct token t = {.is_mix = true, .params = {.kind = ORDER_ONE_LEVEL, .record_count = 100, .seed = 5}};
	struct shard_loader_options o;
	char token[SHARD_TOKEN_BYTES];
	struct shard_loader *l;
	struct shard_error err;
	struct shard_batch b;

	make_all(8, SHARD_RAW, MIX_POSITIONS_MAX);
	o = mixed(GLOBALLY);
	CHECK_OK(shard_loader_open(&l, NULL, &o, &fixture_err));
	CHECK_OK(shard_loader_seek(l, 0, 700, &fixture_err));
	CHECK_EQ(shard_loader_seek(l, 1, 0, NULL), SHARD_E_ARGUMENT);
	run(&o, l, 700, 3);
	shard_loader_token(l, token);
	CHECK_OK(shard_loader_resume(l, token, &fixture_err));
	run(&o, l, 721, 3);
	CHECK_STR(complaint, "");

	/* Tokens that nobody was given. */
	memcpy(t.dataset_id, mix->digest, sizeof(t.dataset_id));
	token_write(&t, token);
	CHECK_EQ(shard_loader_resume(l, token, &err), SHARD_E_ARGUMENT); /* L is 0 */
	t.params.lane_count = 64;
	t.params.epoch = (MIX_POSITIONS_MAX + ORDER_STEP_RECORDS_MAX) / 100 + 1; /* no step ends so late */
	token_write(&t, token);
	CHECK_EQ(shard_loader_resume(l, token, &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "the token names an impossible order");
	CHECK_OK(shard_loader_next(l, &b, &fixture_err)); /* it goes on where it was */
	CHECK_EQ(b.position, 742);
	shard_loader_close(l);
	drop_all();
}

static struct shard_loader *open_at(const struct shard_loader_options *o, const char *token)
{
	struct shard_loader *l;

	CHECK_OK(shard_loader_open(&l, NULL, o, &fixture_err));
	if (token)
		CHECK_OK(shard_loader_resume(l, token, &fixture_err));
	return l;
}

/* Each call says that the mixture is at its end, and none waits. */
static void check_ended(struct shard_loader *l)
{
	struct shard_batch b;

	for (int i = 0; i < 2; i++) {
		struct shard_error err = {.message = ""};

		CHECK_EQ(shard_loader_next(l, &b, &err), SHARD_E_ARGUMENT);
		CHECK(strstr(err.message, " would end behind position 2^62, where mixtures end; the last epoch of "));
		CHECK_OK(shard_loader_wait(l, 0, &fixture_err));
	}
}

/* The last steps begin in the last epoch.  Behind them are END and an error, which tokens keep. */
TEST(a_mixture_ends_with_its_last_epoch)
{
	static const uint64_t lengths[] = {1, 5, 7, 1000, (UINT64_C(1) << 61) + 1, MIX_POSITIONS_MAX};

	for (size_t i = 0; i < COUNT(lengths); i++) {
		uint64_t length = lengths[i], end = MIX_POSITIONS_MAX / length * length, at = end - 100;
		char token[SHARD_TOKEN_BYTES];
		struct shard_loader_options o;
		struct shard_loader *l;
		struct shard_batch b;

		STORY("epochs of %" PRIu64, length);
		make_all(8, SHARD_RAW, length);
		o = mixed(IN_WINDOWS);
		l = open_at(&o, NULL);
		CHECK_EQ(shard_loader_seek(l, end / length, 0, NULL), SHARD_E_ARGUMENT);
		CHECK_OK(shard_loader_seek(l, at / length, at % length, &fixture_err));
		at = run(&o, l, at, 15); /* 14 x 7 positions, and a step across the end */
		CHECK_STR(complaint, "");
		CHECK_EQ(at, end + 5);
		for (uint64_t epoch = (at - 7) / length; epoch < end / length; epoch++)
			CHECK_EQ(shard_loader_next(l, &b, &fixture_err), SHARD_END);
		check_ended(l);
		shard_loader_token(l, token);
		shard_loader_close(l);

		l = open_at(&o, token);
		check_ended(l);
		CHECK_OK(shard_loader_seek(l, end / length - 1, 0, &fixture_err));
		run(&o, l, end - length, 1);
		shard_loader_close(l);

		/* Longer epochs may go on there, and the position is the same. */
		shard_mix_close(mix);
		mix = mix_of(MIX_POSITIONS_MAX);
		o = mixed(IN_WINDOWS);
		l = open_at(&o, token);
		if (at < MIX_POSITIONS_MAX)
			run(&o, l, at, 1);
		else
			check_ended(l);
		CHECK_STR(complaint, "");
		shard_loader_close(l);
	}
	drop_all();
}

/* Of a token that was given behind the last epoch of a loader with other epochs. */
TEST(a_token_may_name_an_epoch_that_does_not_exist)
{
	char token[SHARD_TOKEN_BYTES];
	struct shard_loader_options o;
	struct shard_loader *l;

	make_all(8, SHARD_RAW, MIX_POSITIONS_MAX);
	o = mixed(IN_WINDOWS);
	l = open_at(&o, NULL);
	CHECK_OK(shard_loader_seek(l, 0, MIX_POSITIONS_MAX - 100, &fixture_err));
	shard_loader_token(l, token);
	shard_loader_close(l);
	shard_mix_close(mix);
	mix = mix_of((UINT64_C(1) << 61) + 1);
	o = mixed(IN_WINDOWS);
	l = open_at(&o, token);
	check_ended(l);
	CHECK_OK(shard_loader_seek(l, 0, 70, &fixture_err));
	run(&o, l, 70, 3);
	CHECK_STR(complaint, "");
	shard_loader_close(l);
	drop_all();
}

/* ---- transforms ---- */

#define DRAWN 150u /* positions */

/* What is drawn for the positions of a job: crops, as one number each. */
static void draw_all(uint32_t world, uint32_t batch, uint64_t epoch_records, uint32_t drawn[DRAWN])
{
	struct shard_transform_options to = {
		.size = sizeof(to), .height = 3, .width = 3, .crop = SHARD_CROP_RANDOM, .flip = 0.5};
	struct shard_transform_row row[16];

	shard_mix_close(mix);
	mix = mix_of(epoch_records);
	for (uint32_t rank = 0; rank < world; rank++) {
		struct shard_loader_options o = mixed(IN_WINDOWS);
		struct shard_transform *t;
		struct shard_loader *l;
		struct shard_batch b;

		o.world = world;
		o.rank = rank;
		o.batch_records = batch;
		CHECK_OK(shard_loader_open(&l, NULL, &o, &fixture_err));
		CHECK_OK(shard_transform_open(&t, l, "image", &to, &fixture_err));
		for (uint64_t position = 0; position < DRAWN; position += (uint64_t)world * batch) {
			while (shard_loader_next(l, &b, &fixture_err) == SHARD_END)
				;
			shard_transform_draw(t, &b, 0, row);
			for (uint32_t i = 0; i < batch; i++) {
				uint64_t at = position + (rank + world - position % world) % world + i * world;

				if (at < DRAWN)
					drawn[at] = row[i].x | row[i].y << 8 | (uint32_t)row[i].flip << 16;
			}
			CHECK_OK(shard_loader_release(l, &b, &fixture_err));
		}
		shard_transform_close(t);
		shard_loader_close(l);
	}
}

/* A job that goes on in another world, or with other epochs, sees the same crops. */
TEST(what_is_drawn_depends_on_the_position_of_the_mixture_alone)
{
	uint32_t drawn[DRAWN], again[DRAWN];

	make_all(8, SHARD_RAW, 100);
	draw_all(1, 12, 100, drawn);
	draw_all(3, 5, 37, again);
	CHECK_MEM(drawn, again, sizeof(drawn));
	draw_all(4, 7, 1000, again);
	CHECK_MEM(drawn, again, sizeof(drawn));
	drop_all();
}

/* ---- damage ---- */

TEST(a_substitute_is_of_the_same_component)
{
	struct shard_loader_options o;
	struct shard_loader *l;
	struct shard_batch b;
	unsigned substituted[COMPONENTS] = {0};

	make_all(48, SHARD_RAW, 100);
	for (uint64_t i = 0; i < 9; i++) /* the first shard of the second dataset; and record 41 of the first */
		damage_record(&folder[1], 0, 0, i * schema.group[0].stride + 9);
	for (uint64_t i = 0; i < 20; i++)
		damage_record(&folder[0], 0, 0, i * schema.group[0].stride + 9);
	shard_mix_close(mix);
	open_part(0);
	open_part(1);
	mix = mix_of(100);
	o = mixed(IN_SEQUENCE);
	o.repair.on_corrupt = SHARD_CORRUPT_SUBSTITUTE;
	CHECK_OK(shard_loader_open(&l, NULL, &o, &fixture_err));
	for (uint64_t position = 0; position < 105; position += 7) {
		if (shard_loader_next(l, &b, &fixture_err) == SHARD_END)
			CHECK_OK(shard_loader_next(l, &b, &fixture_err));
		for (uint32_t i = 0; i < b.record_count; i++) {
			struct found want = twin(&o, position + i);
			uint64_t bad = want.component == 1 ? 9 : 20;

			CHECK_EQ(b.component[i], want.component);
			if (want.record >= bad) {
				CHECK_EQ(b.record[i], want.record);
			} else {
				CHECK_EQ(b.record[i], want.component == 2 ? selection_next(selection, bad) : bad);
				CHECK_EQ(b.row_flags[i], SHARD_ROW_SUBSTITUTED);
				substituted[want.component]++;
			}
			check_bytes(&b, i, want.component);
		}
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	}
	CHECK_STR(complaint, "");
	CHECK(substituted[0] && substituted[1] && substituted[2]);
	shard_loader_close(l);
	drop_all();
}

/* ---- parts with other room for values that vary in length ---- */

/* What lies in front of others, a list, a text, a grid of which two axes vary; their lengths. */
enum { FRONT, LIST, TEXT, GRID, LIST_COUNT, TEXT_COUNT, GRID_COUNT, WIDE_FIELDS };

static const struct wide_row {
	const char *story;
	struct shape {
		uint32_t front, list, text, grid[2], codec, list_group;
	} of[PARTS];
} wide_rows[] = {
	{"as much room in both: the control", {{8, 5, 3, {2, 3}, SHARD_RAW, 0}, {8, 5, 3, {2, 3}, SHARD_RAW, 0}}},
	{"more in the second", {{8, 5, 3, {2, 3}, SHARD_RAW, 0}, {8, 9, 30, {4, 6}, SHARD_RAW, 0}}},
	{"more in the first", {{8, 9, 30, {4, 6}, SHARD_RAW, 0}, {8, 5, 3, {2, 3}, SHARD_RAW, 0}}},
	{"some more in each", {{8, 5, 30, {2, 6}, SHARD_RAW, 0}, {8, 9, 3, {4, 3}, SHARD_RAW, 0}}},
	{"only the last axis differs", {{8, 5, 3, {4, 3}, SHARD_RAW, 0}, {8, 5, 3, {4, 5}, SHARD_RAW, 0}}},
	{"records that are read alone", {{5000, 5, 3, {2, 3}, SHARD_RAW, 0}, {5000, 9, 30, {4, 6}, SHARD_RAW, 0}}},
	{"pages of the same stride", {{8132, 5, 3, {2, 3}, SHARD_RAW, 0}, {8132, 6, 3, {2, 3}, SHARD_RAW, 0}}},
	{"a large group beside the list", {{5000, 5, 3, {2, 3}, SHARD_RAW, 2}, {5000, 9, 3, {2, 3}, SHARD_RAW, 2}}},
	{"the list in another group", {{5000, 5, 3, {2, 3}, SHARD_RAW, 0}, {5000, 5, 3, {2, 3}, SHARD_RAW, 2}}},
	{"a list of large records", {{8, 5, 3, {2, 3}, SHARD_RAW, 2}, {8, 1500, 3, {2, 3}, SHARD_RAW, 2}}},
	{"chunks", {{8, 5, 3, {2, 3}, SHARD_LZ4, 0}, {8, 9, 30, {4, 6}, SHARD_LZ4, 0}}},
	{"chunks of large records", {{5000, 9, 3, {2, 3}, SHARD_LZ4, 0}, {5000, 5, 30, {4, 6}, SHARD_LZ4, 0}}},
	{"chunks, and plain records", {{8, 5, 3, {2, 3}, SHARD_LZ4, 0}, {8, 5, 3, {2, 3}, SHARD_RAW, 0}}},
	{"large chunks, and plain records", {{5000, 5, 3, {2, 3}, SHARD_RAW, 0}, {5000, 5, 3, {2, 3}, SHARD_LZ4, 0}}},
};

static struct shard_schema wide[PARTS];

static struct shard_schema wide_schema(const struct shape *of)
{
	struct shard_schema s = {
		.group_count = of->list_group ? 3 : 2,
		.field_count = WIDE_FIELDS,
		.group = {{.codec = of->codec}},
		.field = {{.name = "front", .dtype = SHARD_U8, .ndim = 1, .shape = {of->front}},
			  {.name = "list",
			   .dtype = SHARD_I32,
			   .kind = SHARD_RAGGED,
			   .group = of->list_group,
			   .ndim = 1,
			   .shape = {of->list},
			   .ragged_axes = 1,
			   .length_field = LIST_COUNT},
			  {.name = "text",
			   .dtype = SHARD_U8,
			   .kind = SHARD_STRING,
			   .ndim = 1,
			   .shape = {of->text},
			   .ragged_axes = 1,
			   .length_field = TEXT_COUNT},
			  {.name = "grid",
			   .dtype = SHARD_U16,
			   .kind = SHARD_RAGGED,
			   .ndim = 3,
			   .shape = {of->grid[0], 2, of->grid[1]},
			   .ragged_axes = 5,
			   .length_field = GRID_COUNT}},
	};
	static const char *const names[] = {"list_count", "text_count", "grid_count"};

	for (uint32_t f = LIST_COUNT; f < WIDE_FIELDS; f++) {
		s.field[f] = (struct shard_field){.dtype = SHARD_U32,
						  .semantic = SHARD_LENGTH,
						  .group = 1,
						  .ndim = 1,
						  .shape = {1 + (f == GRID_COUNT)}};
		strcpy(s.field[f].name, names[f - LIST_COUNT]);
	}
	CHECK_OK(shard_schema_lay_out(&s, 0, &fixture_err));
	return s;
}

/* Element `at` of a field: a length, or what a list, a text or a grid has there. */
static uint32_t wide_value(uint32_t p, uint32_t field, uint64_t idx, uint32_t at)
{
	struct prng g = {((p * WIDE_FIELDS + field) * 1000 + idx) * 10000 + at};
	static const uint32_t of[] = {LIST, TEXT, GRID};

	if (field < LIST_COUNT)
		return (uint32_t)prng_next(&g) | 1;
	return (uint32_t)(prng_next(&g) % (wide[p].field[of[field - LIST_COUNT]].shape[2 * at] + 1));
}

/* What a record holds there: [i], or [i][j][k] of a grid. */
static uint32_t wide_element(uint32_t p, uint32_t field, uint64_t idx, uint32_t i, uint32_t j, uint32_t k)
{
	bool is_there = true;

	if (field == LIST || field == TEXT)
		is_there = i < wide_value(p, field + LIST_COUNT - LIST, idx, 0);
	else if (field == GRID)
		is_there = i < wide_value(p, GRID_COUNT, idx, 0) && k < wide_value(p, GRID_COUNT, idx, 1);
	return is_there ? wide_value(p, field, idx, field == GRID ? (i * 2 + j) * 100 + k : i) : 0;
}

/* The slow twin: field of record `idx` of part `p`, in the shape that `as` has. */
static void wide_field(uint32_t p, uint32_t field, uint64_t idx, const struct shard_field *as, uint8_t *out)
{
	uint32_t shape[3] = {1, 1, 1};
	size_t item = shard_dtype_bytes(as->dtype);

	for (uint32_t i = 0; i < as->ndim; i++)
		shape[i] = as->shape[i];
	for (uint32_t i = 0; i < shape[0]; i++)
		for (uint32_t j = 0; j < shape[1]; j++)
			for (uint32_t k = 0; k < shape[2]; k++, out += item) {
				uint32_t value = wide_element(p, field, idx, i, j, k);

				memcpy(out, &value, item);
			}
}

static void write_wide(uint32_t p)
{
	struct shard_seal_options o = {.size = sizeof(o), .replace = 1};
	static uint8_t record[3][16384];
	struct shard_seal *seal;
	uint64_t idx = 0;

	new_folder(&folder[p], p ? "two" : "one");
	CHECK_OK(shard_seal_open(&seal, folder[p].text, &o, &fixture_err));
	for (uint32_t i = 0; i < 3 && sizes[p][i]; i++) {
		struct shard_writer_options w_o = {
			.size = sizeof(w_o), .planned_records = sizes[p][i], .plan_shard = i, .skip_read_back = 1};
		const void *const group[] = {record[0], record[1], record[2]};
		struct shard_written written;
		struct shard_writer *w;
		char path[600], name[32];

		snprintf(name, sizeof(name), "%u.shard", i);
		snprintf(path, sizeof(path), "%s/%s", folder[p].text, name);
		CHECK_OK(shard_writer_open(&w, path, &wide[p], &w_o, &fixture_err));
		for (uint64_t n = 0; n < sizes[p][i]; n++, idx++) {
			for (uint32_t f = 0; f < WIDE_FIELDS; f++) {
				const struct shard_field *field = &wide[p].field[f];

				wide_field(p, f, idx, field, record[field->group] + field->offset);
			}
			CHECK_OK(shard_writer_append(w, group, NULL, 0, &fixture_err));
		}
		CHECK_OK(shard_writer_finish(w, &written, &fixture_err));
		shard_writer_close(w);
		CHECK_OK(shard_seal_add(seal, name, NULL, written.sha256, &fixture_err));
	}
	CHECK_OK(shard_seal_finish(seal, &fixture_err));
	shard_seal_close(seal);
	open_part(p);
}

static void make_wide(const struct wide_row *row)
{
	drop_all();
	for (uint32_t p = 0; p < PARTS; p++) {
		wide[p] = wide_schema(&row->of[p]);
		write_wide(p);
	}
	CHECK_OK(shard_select_fraction(&selection, part[0], NULL, 0.25, 0.5, 3, &fixture_err));
	mix = mix_of(300);
}

/* The shape of a field in batches: the larger one on each axis. */
static struct shard_field widest(uint32_t f)
{
	struct shard_field out = wide[0].field[f];

	for (uint32_t i = 0; i < out.ndim; i++)
		if (wide[1].field[f].shape[i] > out.shape[i])
			out.shape[i] = wide[1].field[f].shape[i];
	return out;
}

/* Rows that came: how many had other bytes than the twin says, or were masked. */
static void check_wide(const struct shard_loader_options *o, struct shard_loader *l, unsigned steps, unsigned *masked)
{
	static uint8_t want[16384];
	struct shard_field field[WIDE_FIELDS], told;
	struct shard_batch b;
	uint64_t position = 0;

	for (uint32_t f = 0; f < WIDE_FIELDS; f++) {
		field[f] = widest(f);
		shard_loader_field(l, f, &told);
		CHECK(!memcmp(told.shape, field[f].shape, sizeof(told.shape)));
	}
	for (unsigned i = 0; i < steps && !complaint[0]; i++) {
		while (shard_loader_next(l, &b, &fixture_err) == SHARD_END)
			;
		for (uint32_t row = 0; row < b.record_count; row++) {
			struct found found = twin(o, position + row);
			bool is_masked = b.row_flags[row] & SHARD_ROW_MASKED;

			*masked += is_masked;
			CHECK_EQ(b.component[row], found.component);
			CHECK_EQ(b.record[row], found.record);
			for (uint32_t f = 0; f < WIDE_FIELDS; f++) {
				const struct shard_rows *got = &b.field[f];
				size_t bytes = shard_dtype_bytes(field[f].dtype);

				for (uint32_t axis = 0; axis < field[f].ndim; axis++)
					bytes *= field[f].shape[axis];
				CHECK_EQ(!!got->data, !o->fields || o->fields >> f & 1);
				if (!got->data)
					continue;
				if (is_masked)
					memset(want, 0, sizeof(want));
				else
					wide_field(part_of[found.component], f, found.record, &field[f], want);
				if (memcmp((const uint8_t *)got->data + row * got->stride, want, bytes))
					complain("position %" PRIu64 ": %s of record %" PRIu64 " of component %u",
						 position + row, field[f].name, found.record, found.component);
			}
		}
		position += b.record_count;
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	}
	CHECK_STR(complaint, "");
}

TEST(values_of_other_room_are_padded_to_the_widest)
{
	static const uint32_t fields[] = {0, 1 << FRONT, 1 << LIST | 1 << LIST_COUNT};

	for (size_t r = 0; r < COUNT(wide_rows); r++) {
		make_wide(&wide_rows[r]);
		for (size_t kind = 0; kind < KINDS; kind++)
			for (uint32_t path = 0; path < 4; path++)
				for (size_t k = 0; k < (path ? 1 : COUNT(fields)); k++) {
					struct shard_loader_options o = mixed(kind);
					struct shard_loader *l;
					unsigned masked = 0;

					o.path = path;
					o.fields = fields[k];
					o.batch_records = path % 2 ? 7 : 150;
					STORY("%s, order %u, path %u, fields %#x", wide_rows[r].story, (unsigned)kind,
					      path, o.fields);
					CHECK_OK(shard_loader_open(&l, NULL, &o, &fixture_err));
					check_wide(&o, l, path % 2 ? 40 : 4, &masked);
					CHECK_EQ(masked, 0);
					shard_loader_close(l);
				}
	}
	drop_all();
}

/* Damage is found where the records lie, and leaves zeros as wide as the batch. */
TEST(damage_in_parts_of_other_room_is_found)
{
	for (size_t r = 0; r < COUNT(wide_rows); r++) {
		struct shard_loader_options o;
		struct shard_loader *l;

		make_wide(&wide_rows[r]);
		damage_record(&folder[1], 0, 0, 9);
		open_part(1);
		shard_mix_close(mix);
		mix = mix_of(300);
		for (uint32_t path = 0; path < 4; path++) {
			unsigned masked = 0;

			STORY("%s, path %u", wide_rows[r].story, path);
			o = mixed(IN_WINDOWS);
			o.path = path;
			o.repair.on_corrupt = SHARD_CORRUPT_MASK;
			CHECK_OK(shard_loader_open(&l, NULL, &o, &fixture_err));
			check_wide(&o, l, 40, &masked);
			CHECK(masked);
			shard_loader_close(l);
		}
	}
	drop_all();
}

/* ---- what is refused ---- */

static void check_mix_refused(const struct shard_mix_source *s, uint32_t count, const struct shard_mix_options *o,
			      int status, const char *words)
{
	struct shard_error err = {.message = ""};
	struct shard_mix *m;

	CHECK_EQ(shard_mix_open(&m, s, count, o, &err), status);
	if (!strstr(err.message, words))
		CHECK_STR(err.message, words);
}

TEST(mixtures_that_cannot_be_are_refused)
{
	struct shard_mix_options o = {.size = sizeof(o), .stop = 2};
	struct shard_mix_source s[COMPONENTS];

	make_all(8, SHARD_RAW, 100);
	sources_of(s);
	check_mix_refused(s, 0, NULL, SHARD_E_ARGUMENT, "1 to 4096 sources, not 0");
	check_mix_refused(s, 3, &o, SHARD_E_ARGUMENT, "stop is 2");
	o = (struct shard_mix_options){.size = sizeof(o), .epoch_records = MIX_POSITIONS_MAX + 1};
	check_mix_refused(s, 3, &o, SHARD_E_ARGUMENT, "epoch_records is 4611686018427387905; must be at most 2^62");
	s[1].weight = 0;
	check_mix_refused(s, 3, NULL, SHARD_E_ARGUMENT, "source 1 of the mixture has weight 0");
	s[1].weight = 4092;
	check_mix_refused(s, 3, NULL, SHARD_E_ARGUMENT, "add up to 4097");
	s[1].weight = 4091;
	{
		struct shard_mix *m;

		CHECK_OK(shard_mix_open(&m, s, 3, NULL, &fixture_err));
		shard_mix_close(m);
	}
	s[1].selection = selection;
	check_mix_refused(s, 3, NULL, SHARD_E_MISMATCH, "the selection of source 1");
	s[1].ds = NULL;
	check_mix_refused(s, 3, NULL, SHARD_E_ARGUMENT, "source 1 of the mixture has no dataset");
	drop_all();
}

static void check_loader_refused(const struct shard_loader_options *o, struct shard_dataset *ds, int status,
				 const char *words)
{
	struct shard_error err = {.message = ""};
	struct shard_loader *l;

	CHECK_EQ(shard_loader_open(&l, ds, o, &err), status);
	if (!strstr(err.message, words))
		CHECK_STR(err.message, words);
}

TEST(loaders_that_cannot_be_are_refused)
{
	struct shard_loader_options o;

	make_all(8, SHARD_RAW, 100);
	o = mixed(IN_WINDOWS);
	check_loader_refused(&o, part[0], SHARD_E_ARGUMENT, "a dataset and, in the options, a mixture");
	o.mix = NULL;
	check_loader_refused(&o, NULL, SHARD_E_ARGUMENT, "there is no dataset");
	o = mixed(IN_WINDOWS);
	o.selection = selection;
	check_loader_refused(&o, NULL, SHARD_E_ARGUMENT, "a mixture and a selection");
	o = mixed(IN_WINDOWS);
	o.tail = SHARD_PAD;
	check_loader_refused(&o, NULL, SHARD_E_ARGUMENT, "leave tail at 0");
	o = mixed(IN_WINDOWS);
	o.gpu.pool_bytes = 1 << 20;
	check_loader_refused(&o, NULL, SHARD_E_UNSUPPORTED, "a pool cannot hold a mixture");
	o = mixed(IN_WINDOWS);
	o.order.lane_count = 1u << 20;
	check_loader_refused(&o, NULL, SHARD_E_ARGUMENT, "1048576 lanes");
	drop_all();
}

/* A label is a number of a class, so the classes must be the same; the other fields do not care. */
TEST(datasets_that_differ_are_refused)
{
	struct shard_dataset_options always = {.size = sizeof(always), .check = SHARD_CHECK_ALWAYS};
	struct shard_mix_source s[COMPONENTS];
	struct shard_loader_options o;
	struct shard_loader *l;

	drop_all();
	make_part(0, 8, SHARD_RAW);
	fixture_class = "another";
	make_part(1, 8, SHARD_RAW);
	fixture_class = "a";
	sources_of(s);
	CHECK_OK(shard_mix_open(&mix, s, 2, NULL, &fixture_err));
	o = mixed(IN_WINDOWS);
	check_loader_refused(&o, NULL, SHARD_E_MISMATCH, "class 0 is 'a' in ");
	o.fields = 1;
	CHECK_OK(shard_loader_open(&l, NULL, &o, &fixture_err));
	shard_loader_close(l);

	drop_all();
	make_part(0, 8, SHARD_RAW);
	make_part(1, 9, SHARD_RAW);
	sources_of(s);
	CHECK_OK(shard_mix_open(&mix, s, 2, NULL, &fixture_err));
	o = mixed(IN_WINDOWS);
	check_loader_refused(&o, NULL, SHARD_E_MISMATCH, "field 'image' is tensor u8 [8,8,3] hwc image in ");
	o.fields = 6;
	CHECK_OK(shard_loader_open(&l, NULL, &o, &fixture_err));
	shard_loader_close(l);

	shard_dataset_close(part[1]);
	shard_mix_close(mix);
	mix = NULL;
	CHECK_OK(shard_dataset_open(&part[1], folder[1].text, &always, &fixture_err));
	sources_of(s);
	check_mix_refused(s, 2, NULL, SHARD_E_ARGUMENT, "different options check or guard");
	drop_all();
}

/* ---- weights and epochs ---- */

TEST(weights_and_epochs_by_size)
{
	struct shard_mix_options o = {.size = sizeof(o)};
	struct shard_mix_source s[COMPONENTS];
	struct shard_mix_info info;
	struct shard_mix *m;
	double share = -1;
	static const struct {
		double share;
		int status;
		const char *words;
	} small[] = {
		{1e-6, SHARD_E_ARGUMENT,
		 "share 1 is 1e-06 of 1; rounded to a sum of 4096 the weights would be 4095, 1, so its "
		 "records would come 244 times as often; give it 0.000123 or more and leave the others"},
		{0.000122, SHARD_E_ARGUMENT, "come 2 times as often"},
		{0.000123, SHARD_OK, ""},
		{0.000245, SHARD_OK, ""},
	};
	uint64_t records;
	uint32_t rounded[2];
	uint32_t weight;

	make_all(8, SHARD_RAW, 100);
	sources_of(s);
	CHECK_OK(shard_mix_open(&m, s, 3, &o, &fixture_err));
	shard_mix_info(m, &info);
	CHECK_EQ(info.component_count, 3);
	CHECK_EQ(info.weight_sum, 6);
	CHECK_EQ(info.epoch_records, 206); /* 103 x 6 / 3; the second has 17 x 6 */
	shard_mix_close(m);
	o.stop = SHARD_MIX_SHORTEST;
	CHECK_OK(shard_mix_open(&m, s, 3, &o, &fixture_err));
	shard_mix_info(m, &info);
	CHECK_EQ(info.epoch_records, selection->count * 6 / 2);
	shard_mix_close(m);
	for (uint32_t d = 0; d < 3; d++)
		s[d].weight = 0;
	CHECK_OK(shard_mix_open(&m, s, 2, NULL, &fixture_err));
	CHECK_OK(shard_mix_component(m, 0, &weight, NULL, &fixture_err));
	CHECK_EQ(weight, 3516); /* 4096 x 103 / 120 is 3515.7 */
	CHECK_OK(shard_mix_component(m, 1, &weight, &records, &fixture_err));
	CHECK_EQ(weight, 580);
	CHECK_EQ(records, 17);
	CHECK_EQ(shard_mix_component(m, 2, &weight, &records, &fixture_err), SHARD_E_ARGUMENT);
	CHECK_STR(fixture_err.message, "no component 2; the mixture has 2");
	CHECK_EQ(weight, 580);
	shard_mix_close(m);
	CHECK_EQ(shard_mix_round(&share, 1, &weight, NULL), SHARD_E_ARGUMENT);
	for (size_t i = 0; i < COUNT(small); i++) {
		STORY("a share of %g", small[i].share);
		CHECK_EQ(shard_mix_round((double[]){1 - small[i].share, small[i].share}, 2, rounded, &fixture_err),
			 small[i].status);
		if (small[i].status)
			CHECK(strstr(fixture_err.message, small[i].words) != NULL);
		else
			CHECK_EQ(rounded[1], 1);
	}
	share = 0.2;
	CHECK_OK(shard_mix_round(&share, 1, &weight, &fixture_err));
	CHECK_EQ(weight, 4096);
	drop_all();
}

TEST_MAIN()
