/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_fields.c - a loader with some of the fields delivers these, as the loader with all of them
 * does, and reads no group of the others
 *
 * What is not read is told by damage in it: nobody notices.
 *
 * LDFLAGS: -Wl,--wrap=slot_fill
 */
#include "libshard/feed/feed.h"
#include "tests/load/inject.h"
#include "tests/load/kinds.h"

static const uint64_t sizes[] = {40, 1, 0, 62};
static struct wanted wanted;

static struct shard_loader_options with_fields(size_t kind, uint32_t fields)
{
	struct shard_loader_options o = of_kind(kind);

	o.tail = SHARD_KEEP;
	o.fields = fields;
	return o;
}

/* Rows of the fields that are there: those that are wanted, and no others. */
static void check_batch(const struct shard_batch *b, uint32_t fields)
{
	for (uint32_t f = 0; f < schema.field_count; f++) {
		const struct shard_field *field = &schema.field[f];
		const struct shard_rows *rows = &b->field[f];

		CHECK_EQ(rows->data != NULL, fields >> f & 1);
		for (uint32_t i = 0; rows->data && i < b->record_count; i++)
			CHECK_MEM((const uint8_t *)rows->data + i * rows->stride,
				  content[field->group] + b->record[i] * field->stride + field->offset,
				  (size_t)field->bytes);
	}
	for (uint32_t g = 0; g < schema.group_count; g++) {
		bool has = false;

		for (uint32_t f = 0; f < schema.field_count; f++)
			has |= schema.field[f].group == g && fields >> f & 1;
		CHECK_EQ(b->group[g].data != NULL, has);
	}
}

static void run_epochs(struct shard_loader_options o)
{
	struct shard_loader *l;
	struct shard_batch b;
	struct shard_error err;
	uint64_t at = 0, epochs = 0;

	wanted_open(&wanted, o);
	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	while (epochs < 2) {
		int rc = shard_loader_next(l, &b, &err);

		if (rc == SHARD_END) {
			CHECK_EQ(at, record_total);
			at = 0;
			epochs++;
			continue;
		}
		CHECK_EQ(rc, SHARD_OK);
		for (uint32_t i = 0; i < b.record_count; i++)
			CHECK_EQ(b.record[i], wanted.order[epochs][at + i]);
		at += b.record_count;
		check_batch(&b, o.fields);
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	}
	shard_loader_close(l);
}

TEST(any_fields_in_the_order_of_all_of_them)
{
	for (uint32_t side = 8; side <= 48; side += 40)
		for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++) {
			open_photos(side, codec, sizes, COUNT(sizes));
			for (uint32_t fields = 1; fields < 8; fields++)
				for (size_t kind = 0; kind < KINDS; kind++)
					for (uint32_t path = SHARD_PATH_AUTO; path <= SHARD_PATH_PREAD; path++) {
						struct shard_loader_options o = with_fields(kind, fields);

						STORY("side %u, codec %u, fields %u, order %u, path %u", side, codec,
						      fields, (unsigned)kind, path);
						o.path = path;
						run_epochs(o);
					}
		}
}

/* Of labels, nobody meets a damaged image; of images, nobody meets a damaged label. */
TEST(groups_that_nobody_wants_are_not_read)
{
	struct shard_loader *l;
	struct shard_batch b;

	for (uint32_t damaged = 0; damaged < 2; damaged++)
		for (uint32_t fields = 1; fields < 8; fields++) {
			uint32_t in_group[] = {1, 6}; /* the image; label and weight */
			struct shard_loader_options o = with_fields(GLOBALLY, fields);
			struct shard_error err;
			int rc = SHARD_OK;

			STORY("group %u is damaged, fields %u", damaged, fields);
			open_photos(48, SHARD_RAW, sizes, COUNT(sizes));
			damage_record(&folder, 0, damaged, 5);
			damage_record(&folder, 3, damaged, 5);
			reopen(NULL);
			CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
			while (rc == SHARD_OK) {
				rc = shard_loader_next(l, &b, &err);
				if (!rc)
					CHECK_OK(shard_loader_release(l, &b, &fixture_err));
			}
			CHECK_EQ(rc, fields & in_group[damaged] ? SHARD_E_CORRUPT : SHARD_END);
			shard_loader_close(l);
		}
}

TEST(a_masked_row_has_zeros_in_what_is_wanted)
{
	struct shard_loader_options o = with_fields(GLOBALLY, 1);
	struct shard_loader *l;
	struct shard_batch b;
	bool met = false;

	open_photos(48, SHARD_RAW, sizes, COUNT(sizes));
	damage_record(&folder, 0, 0, 3 * schema.group[0].stride + 70);
	reopen(NULL);
	o.repair.on_corrupt = SHARD_CORRUPT_MASK;
	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	while (shard_loader_next(l, &b, &fixture_err) == SHARD_OK) {
		for (uint32_t i = 0; i < b.record_count; i++)
			if (b.record[i] == 3) {
				const uint8_t *row = (const uint8_t *)b.field[0].data + i * b.field[0].stride;

				met = true;
				CHECK_EQ(b.row_flags[i], SHARD_ROW_MASKED);
				for (uint64_t k = 0; k < schema.field[0].bytes; k++)
					CHECK_EQ(row[k], 0);
			}
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	}
	CHECK(met);
	shard_loader_close(l);
}

TEST(unknown_fields_are_refused)
{
	struct shard_loader_options o = with_fields(GLOBALLY, 8);
	struct shard_loader *l;
	struct shard_error err;

	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	CHECK_EQ(shard_loader_open(&l, ds, &o, &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "options: fields is 0x8; the dataset has 3 fields");
}

TEST_MAIN()
