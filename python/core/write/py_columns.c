/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_columns.c - many records as a mapping of columns, each with a row for every record
 */
#include "python/core/write/py_write.h"

#include <string.h>

#include "python/core/base/py_errors.h"

void columns_close(struct columns *c)
{
	for (uint32_t f = 0; f < SHARD_FIELDS_MAX; f++) {
		if (c->is_open[f])
			source_close(&c->source[f]);
		Py_XDECREF(c->value[f]);
	}
}

bool columns_open(struct columns *c, const struct layout *l, PyObject *dict, uint64_t first, uint64_t count,
		  unsigned long long number)
{
	const struct shard_schema *schema = &l->schema;
	uint32_t fields[SHARD_GROUPS_MAX] = {0};
	Py_ssize_t n;

	memset(c, 0, sizeof(*c));
	c->all_fit = true;
	for (uint32_t f = 0; f < schema->field_count; f++) {
		const struct shard_field *field = &schema->field[f];
		int rc = 0;

		fields[field->group]++;
		c->lead[field->group] = f;
		if (l->is_length[f]) {
			c->value[f] = layout_item_if(l, dict, f);
			if (!c->value[f] && !PyErr_Occurred())
				continue; /* they need not be given */
		} else {
			c->value[f] = layout_item(l, dict, f, number);
		}
		n = c->value[f] ? PySequence_Size(c->value[f]) : -1;
		if (n < 0 || first > (uint64_t)n || count > (uint64_t)n - first) {
			if (c->value[f] && !PyErr_Occurred())
				fail_record(number, field->name,
					    "the column has %zd records, and other columns have more", n);
			return false;
		}
		if (field->kind == SHARD_TENSOR && !l->is_length[f])
			rc = source_open(&c->source[f], c->value[f]);
		if (rc < 0)
			return false;
		c->is_open[f] = rc > 0;
		c->all_fit =
			c->all_fit && rc > 0 && source_is(&c->source[f], field, 1) && c->source[f].as.shape[0] == n;
	}
	for (uint32_t g = 0; c->all_fit && g < schema->group_count; g++) {
		struct view row = view_row(&c->source[c->lead[g]].as, 0);

		c->whole[g] = fields[g] == 1 && view_is_dense(&row);
	}
	return true;
}

void columns_gather(const struct columns *c, const struct layout *l, uint64_t row, char *const *room,
		    const char **group)
{
	const struct shard_schema *schema = &l->schema;

	for (uint32_t g = 0; g < schema->group_count; g++) {
		const struct view *lead = &c->source[c->lead[g]].as;

		group[g] = c->whole[g] ? lead->data + (Py_ssize_t)row * lead->stride[0] : room[g];
	}
	for (uint32_t f = 0; f < schema->field_count; f++) {
		const struct shard_field *field = &schema->field[f];
		struct view part;

		if (c->whole[field->group])
			continue;
		part = view_row(&c->source[f].as, (Py_ssize_t)row);
		view_copy_out(&part, room[field->group] + field->offset);
	}
}
