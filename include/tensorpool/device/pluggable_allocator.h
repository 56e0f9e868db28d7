#ifndef TENSORPOOL_DEVICE_PLUGGABLE_ALLOCATOR_H
#define TENSORPOOL_DEVICE_PLUGGABLE_ALLOCATOR_H

/// @file
/// Device memory for PyTorch's CUDA tensors.
///
/// These are the functions that torch.cuda.memory.CUDAPluggableAllocator loads from a shared
/// library, over the runtimes of CUDA devices. They need PyTorch 2.1 or later and tensorpool as a
/// shared library; building them needs neither PyTorch nor CUDA.
///
///    import ctypes, torch
///    path = "/usr/local/lib/libtensorpool.so"
///    library = ctypes.CDLL(path)
///    def address_of(name):
///        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
///    allocator = torch.cuda.memory.CUDAPluggableAllocator(
///        path, "tensorpool_torch_malloc", "tensorpool_torch_free")
///    functions = allocator.allocator()
///    functions.set_record_stream_fn(address_of("tensorpool_torch_record_stream"))
///    functions.set_reset_fn(address_of("tensorpool_torch_reset"))
///    functions.set_memory_fraction_fn(address_of("tensorpool_torch_set_memory_fraction"))
///    functions.set_begin_allocate_to_pool(address_of("tensorpool_torch_begin_allocate_to_pool"))
///    functions.set_end_allocate_to_pool_fn(address_of("tensorpool_torch_end_allocate_to_pool"))
///    functions.set_release_pool(address_of("tensorpool_torch_release_pool"))
///    torch.cuda.memory.change_current_allocator(allocator)  # before the first CUDA tensor
///
/// With these functions set, Tensor.record_stream, torch.cuda.empty_cache,
/// torch.cuda.set_per_process_memory_fraction and torch.cuda.graph work as with PyTorch's own
/// allocator; without them PyTorch calls nothing. Statistics are not in torch.cuda.memory_stats,
/// which PyTorch refuses for such an allocator, but in tensorpool's. set_init_fn needs no function:
/// runtimes are made when they are first used.
///
/// Any thread may call any function. Only `tensorpool_torch_malloc` throws; no exception leaves the
/// others, and `tensorpool_last_error` of <tensorpool/tensorpool.h> returns why a call on this
/// thread failed. Streams are cudaStream_t.

#include <stddef.h>

#include <tensorpool/export.hpp>

#ifdef __cplusplus
#include <cstdint>
#include <functional>
#include <utility>

extern "C" {
#endif

/// Allocates memory of CUDA device `device` for work submitted to `stream` (NULL: the default
/// stream).
///
/// Returns NULL for 0 bytes. Throws std::runtime_error if the memory is unavailable, with a text
/// that says why: PyTorch does not check the result, and makes the exception Python's RuntimeError.
TENSORPOOL_API void* tensorpool_torch_malloc(size_t bytes, int device, void* stream);
/// Frees memory without waiting for work submitted to its stream, or to recorded streams; it is not
/// reused before that is safe. NULL is ignored, and so are `bytes` and `stream`, which are known
/// from the allocation. Any other address ends the process with a message that names it.
TENSORPOOL_API void tensorpool_torch_free(void* memory, size_t bytes, int device, void* stream);
/// Records that `stream` uses memory that was allocated for another stream, for PyTorch's
/// set_record_stream_fn.
TENSORPOOL_API void tensorpool_torch_record_stream(void* memory, void* stream);
/// Gives free memory back to the devices, for PyTorch's set_reset_fn.
TENSORPOOL_API void tensorpool_torch_reset(void);
/// Limits the memory that the allocator of `device` holds to this part of the device's memory,
/// above 0 and at most 1, for PyTorch's set_memory_fraction_fn. If the allocator holds more, free
/// memory is given back.
TENSORPOOL_API void tensorpool_torch_set_memory_fraction(double fraction, int device);

#ifdef __cplusplus
/// Serves the streams for which `takes_part(stream)` returns true from the memory of `pool` (a
/// MempoolId_t of PyTorch), for set_begin_allocate_to_pool. PyTorch calls it before it captures a
/// graph.
TENSORPOOL_API void tensorpool_torch_begin_allocate_to_pool(
    int device, std::pair<std::uint64_t, std::uint64_t> pool,
    std::function<bool(void*)> takes_part);
/// Ends what the latest such call for `pool` began, for set_end_allocate_to_pool_fn.
TENSORPOOL_API void tensorpool_torch_end_allocate_to_pool(
    int device, std::pair<std::uint64_t, std::uint64_t> pool);
/// Gives up `pool` for one graph, which was destroyed, for set_release_pool.
TENSORPOOL_API void tensorpool_torch_release_pool(int device,
                                                  std::pair<std::uint64_t, std::uint64_t> pool);
}
#endif

#endif
