/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_view.h - memory seen as an n-dimensional array: shape, strides, and the elements
 *
 * A view owns nothing.  It is what arrays of ours and those of other libraries have in common.
 */
#ifndef SHARD_BASE_PY_VIEW_H
#define SHARD_BASE_PY_VIEW_H

#include "python/core/base/py_object.h"

#define VIEW_AXES_MAX (SHARD_DIMS_MAX + 1)

struct view {
	const char *data;
	uint32_t dtype; /* enum shard_dtype */
	int axis_count;
	Py_ssize_t shape[VIEW_AXES_MAX], stride[VIEW_AXES_MAX]; /* strides in bytes */
};

Py_ssize_t view_item_bytes(const struct view *v); /* of one element */
Py_ssize_t view_item_count(const struct view *v);
bool view_is_dense(const struct view *v);

/* Strides of elements that lie one behind the other, for the axes from `axis` on. */
void view_set_dense_strides(struct view *v, int axis);

struct view view_row(const struct view *v, Py_ssize_t i); /* without its first axis */
void view_copy_out(const struct view *v, char *to);	  /* all elements, one behind the other */

/* For Python: tuples of the shape and the strides, and the elements as nested lists. */
PyObject *view_shape(const struct view *v);
PyObject *view_strides(const struct view *v);
PyObject *view_list(const struct view *v);

#endif
