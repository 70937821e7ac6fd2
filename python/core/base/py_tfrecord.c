/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_tfrecord.c - records of TFRecord, as long as nothing is wrong with them
 *
 * The fast twin of libshard/_from_tfrecord.py.  It ends at the first record that is not whole, not
 * as its CRCs say, or not written as all writers write an Example.  The code in Python then reads
 * that one, and says what is wrong.
 */
#include "python/core/base/py_base.h"

#include <string.h>

enum { RECORD_HEAD_BYTES = 12, RECORD_CRC_BYTES = 4, RECORDS_AT_ONCE = 256 };

/* What is left of a message. */
struct span {
	const uint8_t *at, *end;
};

/* Bytes of a file, and where in it they begin. */
struct place {
	const uint8_t *data;
	Py_ssize_t base;
};

static uint32_t little(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static bool crc_is(const uint8_t *at, size_t bytes, uint32_t wanted)
{
	uint32_t crc = crc32c_of(at, bytes);

	return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8) == wanted;
}

static bool take_varint(struct span *s, uint64_t *value)
{
	*value = 0;
	for (unsigned int shift = 0; s->at < s->end && shift < 70; shift += 7) {
		*value |= (uint64_t)(*s->at & 127) << shift;
		if (*s->at++ < 128)
			return true;
	}
	return false;
}

/* The message of a field that has this tag and comes next. */
static bool take_message(struct span *s, uint8_t tag, struct span *message)
{
	uint64_t bytes;

	if (s->at == s->end || *s->at != tag)
		return false;
	s->at++;
	if (!take_varint(s, &bytes) || bytes > (uint64_t)(s->end - s->at))
		return false;
	*message = (struct span){s->at, s->at + bytes};
	s->at = message->end;
	return true;
}

/* The next item of a BytesList, FloatList or Int64List; NULL without an exception: it is none. */
static PyObject *take_item(struct span *list, struct span *packed, uint8_t kind, const struct place *file)
{
	struct span *from = packed->at < packed->end ? packed : list;
	struct span part;
	uint32_t bits;
	uint64_t number;
	float single;

	if (kind == 10)
		return take_message(list, 10, &part)
			       ? Py_BuildValue("(nn)", file->base + (part.at - file->data), part.end - part.at)
			       : NULL;
	if (from == list && *list->at++ != (kind == 18 ? 13 : 8))
		return NULL;
	if (kind == 26)
		return take_varint(from, &number) ? PyLong_FromLongLong((long long)number) : NULL;
	if (from->end - from->at < 4)
		return NULL;
	bits = little(from->at);
	from->at += 4;
	memcpy(&single, &bits, 4);
	return PyFloat_FromDouble((double)single);
}

/* One value, a list of several, or None; NULL without an exception: read it in Python. */
static PyObject *feature_value(struct span feature, const struct place *file)
{
	uint8_t kind = feature.at < feature.end ? *feature.at : 0;
	struct span list, packed = {NULL, NULL};
	PyObject *item, *first = NULL, *all = NULL;

	if ((kind != 10 && kind != 18 && kind != 26) || !take_message(&feature, kind, &list) ||
	    feature.at != feature.end)
		return NULL;
	while (list.at < list.end || packed.at < packed.end) {
		if (packed.at == packed.end && kind != 10 && *list.at == 10) { /* numbers, packed */
			if (!take_message(&list, 10, &packed))
				goto fail;
			continue;
		}
		item = take_item(&list, &packed, kind, file);
		if (!item)
			goto fail;
		if (!first) {
			first = item;
			continue;
		}
		if (!all)
			all = Py_BuildValue("[O]", first);
		if (!all || PyList_Append(all, item)) {
			Py_DECREF(item);
			goto fail;
		}
		Py_DECREF(item);
	}
	if (!all)
		return first ? first : Py_NewRef(Py_None);
	Py_DECREF(first);
	return all;
fail:
	Py_XDECREF(first);
	Py_XDECREF(all);
	return NULL;
}

/* The values of an Example by name; NULL without an exception: read it in Python. */
static PyObject *example_values(struct span example, const struct place *file, PyObject *without)
{
	PyObject *values = PyDict_New(), *key = NULL, *value = NULL;
	struct span features, entry, name, feature;
	int unwanted;

	if (!values)
		return NULL;
	if (!take_message(&example, 10, &features) || example.at != example.end)
		goto fail;
	while (features.at < features.end) {
		if (!take_message(&features, 10, &entry) || !take_message(&entry, 10, &name) ||
		    !take_message(&entry, 18, &feature) || entry.at != entry.end)
			goto fail;
		key = PyUnicode_DecodeUTF8((const char *)name.at, name.end - name.at, NULL);
		if (!key) {
			PyErr_Clear(); /* Python says so again */
			goto fail;
		}
		unwanted = PySet_Contains(without, key);
		if (unwanted < 0)
			goto fail;
		if (!unwanted) {
			value = feature_value(feature, file);
			if (!value || PyDict_SetItem(values, key, value))
				goto fail;
			Py_CLEAR(value);
		}
		Py_CLEAR(key);
	}
	return values;
fail:
	Py_DECREF(values);
	Py_XDECREF(key);
	Py_XDECREF(value);
	return NULL;
}

PyObject *tfrecords(PyObject *Py_UNUSED(self), PyObject *args)
{
	PyObject *all = PyList_New(0), *without, *values, *result;
	Py_ssize_t first;
	struct span block, example;
	struct place file;
	uint64_t bytes;
	Py_buffer in;

	if (!all || !PyArg_ParseTuple(args, "y*nnO!", &in, &first, &file.base, &PyFrozenSet_Type, &without)) {
		Py_XDECREF(all);
		return NULL;
	}
	first = first < 0 || first > in.len ? in.len : first;
	file.data = in.buf;
	block = (struct span){file.data + first, file.data + in.len};
	while (PyList_Size(all) < RECORDS_AT_ONCE && block.end - block.at >= RECORD_HEAD_BYTES + RECORD_CRC_BYTES) {
		bytes = little(block.at) | (uint64_t)little(block.at + 4) << 32;
		if (bytes > (uint64_t)(block.end - block.at) - RECORD_HEAD_BYTES - RECORD_CRC_BYTES ||
		    !crc_is(block.at, 8, little(block.at + 8)))
			break;
		example = (struct span){block.at + RECORD_HEAD_BYTES, block.at + RECORD_HEAD_BYTES + bytes};
		if (!crc_is(example.at, (size_t)bytes, little(example.end)))
			break;
		values = example_values(example, &file, without);
		if (!values || PyList_Append(all, values)) {
			Py_XDECREF(values);
			break;
		}
		Py_DECREF(values);
		block.at = example.end + RECORD_CRC_BYTES;
	}
	first = block.at - file.data;
	PyBuffer_Release(&in);
	result = PyErr_Occurred() ? NULL : Py_BuildValue("(On)", all, first);
	Py_DECREF(all);
	return result;
}
