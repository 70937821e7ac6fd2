/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_device.c - what the driver says about its devices
 */
#include <stdio.h>

#include "tests/cuda/fake_driver.h"

int fake_cuDriverGetVersion(int *version)
{
	ENTER("cuDriverGetVersion");
	*version = VERSION_NEWEST;
	return call_leave(OK);
}

int fake_cuDeviceGetCount(int *count)
{
	ENTER("cuDeviceGetCount");
	*count = DEVICES;
	return call_leave(OK);
}

int fake_cuDeviceGetName(char *name, int bytes, int device)
{
	ENTER("cuDeviceGetName");
	if (ordinal_of(device) < 0)
		return call_leave(INVALID_DEVICE);
	snprintf(name, (size_t)bytes, "Fake GPU %d", ordinal_of(device));
	return call_leave(OK);
}

int fake_cuDeviceTotalMem(size_t *bytes, int device)
{
	ENTER("cuDeviceTotalMem");
	if (ordinal_of(device) < 0)
		return call_leave(INVALID_DEVICE);
	*bytes = MEMORY_BYTES;
	return call_leave(OK);
}

int fake_cuDeviceGetPCIBusId(char *bus_id, int bytes, int device)
{
	ENTER("cuDeviceGetPCIBusId");
	if (ordinal_of(device) < 0)
		return call_leave(INVALID_DEVICE);
	/* capitals, as the real one's; of no real bus */
	snprintf(bus_id, (size_t)bytes, "FA4E:%02X:00.0", 0xca + ordinal_of(device));
	return call_leave(OK);
}

int fake_cuDeviceGetAttribute(int *out, int attribute, int device)
{
	ENTER("cuDeviceGetAttribute");
	if (ordinal_of(device) < 0)
		return call_leave(INVALID_DEVICE);
	switch (attribute) { /* nothing else was asked for yet; compute capability 8.6 */
	case 16:
		*out = MULTIPROCESSORS;
		break;
	case 75:
		*out = 8;
		break;
	case 76:
		*out = 6;
		break;
	case 91: /* CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM */
		*out = !fake.has_other_addresses;
		break;
	case 97:
		*out = SHARED_MOST;
		break;
	default:
		return call_leave(INVALID_VALUE);
	}
	return call_leave(OK);
}
