"""Sub-groups of a device: work-items that run together, and read each other's variables.

Which work-item is in which of them is up to the device, but for how many of them there are: kernels ask for a size that
branches of a sum fit into, and number their work-items by sub-groups and lanes. A device that says that it can is asked
to do so once, by a small kernel, for drivers do not say all sizes that they know, and some say more than they can.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyopencl as cl

from harp.backends.opencl.buffers import ClMemory
from harp.backends.opencl.build import program, whole
from harp.backends.opencl.devices import OpenCLDevice
from harp.config import log
from harp.errors import DeviceError
from harp.lower.device.groups import EACH, ITEMS

_SIZE = "cl_intel_required_subgroup_size"
_EXCHANGES = {"cl_khr_subgroup_shuffle", "cl_intel_subgroups"}
# The smallest first: it needs the fewest registers.
_SIZES = (EACH, 2 * EACH)


@lru_cache(maxsize=1 << 6)
def size(device: OpenCLDevice) -> int:
    """How many work-items of a sub-group kernels are to ask for; 0 where they cannot."""
    extensions = set(device.device.extensions.split())
    if _SIZE not in extensions or not extensions & _EXCHANGES or device.device.max_work_group_size < ITEMS:
        return 0
    return next((lanes for lanes in _SIZES if works(device, lanes)), 0)


def works(device: OpenCLDevice, lanes: int) -> bool:
    """Whether its sub-groups can be of this size, and exchange what they have."""
    queue = device.queue  # in a child of a process that has used it, that is an error
    macros = f"#define HARP_TRIAL\n#define HARP_ITEMS {ITEMS}\n#define HARP_LANES {lanes}\n"
    found = np.zeros((ITEMS // lanes, lanes, 2), np.int64)
    try:
        built = program(device, whole(f'{macros}#include "sub_group.h"\n'), doubles=False)
        kernel = cl.Kernel(built, "harp_neighbours")
        memory: ClMemory = device.pool.allocate(found.nbytes)
        kernel.set_args(memory)
        cl.enqueue_nd_range_kernel(queue, kernel, (ITEMS,), (ITEMS,))
        cl.enqueue_copy(queue, found, memory)
    except (DeviceError, cl.Error) as error:
        log.debug("%r has no sub-groups of %d: %s", device, lanes, error)
        return False
    wanted = np.roll(np.arange(ITEMS).reshape(ITEMS // lanes, lanes), -1, axis=1)
    return bool((found == wanted[..., None]).all())
