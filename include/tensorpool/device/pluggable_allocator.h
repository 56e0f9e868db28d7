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
///    torch.cuda.memory.change_current_allocator(allocator)  # before the first CUDA tensor
///
/// With these functions set, Tensor.record_stream, torch.cuda.empty_cache and
/// torch.cuda.set_per_process_memory_fraction work as with PyTorch's own allocator; without them
/// PyTorch calls nothing. Statistics are not in torch.cuda.memory_stats, which PyTorch refuses for
/// such an allocator, but in tensorpool's. The functions for graphs' pools take C++ objects and are
/// not provided: a captured stream is detected without them. set_init_fn needs no function:
/// runtimes are made when they are first used.
///
/// Any thread may call any function. No exception leaves them; `tensorpool_last_error` of
/// <tensorpool/tensorpool.h> returns why a call on this thread failed. Streams are cudaStream_t.

#include <stddef.h>

#include <tensorpool/export.hpp>

#ifdef __cplusplus
extern "C" {
#endif

/// Allocates memory of CUDA device `device` for work submitted to `stream` (NULL: the default
/// stream).
///
/// Returns NULL for 0 bytes and if the memory is unavailable. PyTorch does not check the result,
/// and work with such a tensor then fails as an illegal access.
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
/// Limits the memory that the allocator of `device` holds to this part of the device's memory, for
/// PyTorch's set_memory_fraction_fn. Fails, and changes nothing, if the device was used already.
TENSORPOOL_API void tensorpool_torch_set_memory_fraction(double fraction, int device);

#ifdef __cplusplus
}
#endif

#endif
