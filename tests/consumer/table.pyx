# table.pyx: what an author of a Cython module writes to use hdicore's whole C table
# cython: language_level=3
from libc.stdint cimport int32_t

from hdicore.c_api cimport (
    hdicore_api, hdicore_error, hdicore_hdi, hdicore_index, hdicore_ok, import_c_api, share_index,
)

cdef const hdicore_api *api = import_c_api()


def intervals(index, const int32_t[:, ::1] leaves, double coverage, double[:, ::1] out):
    """Shortest intervals (n, 2) of an index of one output, without the GIL."""
    cdef hdicore_index *handle = share_index(api, index)
    cdef hdicore_error error
    cdef int status
    with nogil:
        status = api.index_intervals(
            handle, &leaves[0, 0], leaves.shape[0], &coverage, 1, hdicore_hdi, 1, &out[0, 0],
            &error)
        api.index_release(handle)
    if status != hdicore_ok:
        raise ValueError(error.message.decode())
