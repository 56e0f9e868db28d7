#ifndef TENSORPOOL_DEVICE_PLUGGABLE_ALLOCATOR_H
#define TENSORPOOL_DEVICE_PLUGGABLE_ALLOCATOR_H

/// @file
/// Device memory for PyTorch's CUDA tensors: the functions that
/// torch.cuda.memory.CUDAPluggableAllocator loads from a shared library, over the runtimes of CUDA
/// devices. Of PyTorch 2.1 and later; needs tensorpool as a shared library, and nothing of PyTorch
/// or CUDA to build it.
///
///     import ctypes, torch
///     path = "/usr/local/lib/libtensorpool.so"
///     library = ctypes.CDLL(path)
///     def address_of(name):
///         return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
///     allocator = torch.cuda.memory.CUDAPluggableAllocator(
///         path, "tensorpool_torch_malloc", "tensorpool_torch_free")
///     functions = allocator.allocator()
///     functions.set_record_stream_fn(address_of("tensorpool_torch_record_stream"))
///     functions.set_reset_fn(address_of("tensorpool_torch_reset"))
///     functions.set_memory_fraction_fn(address_of("tensorpool_torch_set_memory_fraction"))
///     torch.cuda.memory.change_current_allocator(allocator)  # before the first CUDA tensor
///
/// Afterwards Tensor.record_stream, torch.cuda.empty_cache and
/// torch.cuda.set_per_process_memory_fraction work as they do with PyTorch's own allocator; without
/// these functions PyTorch calls nothing. Figures are not in torch.cuda.memory_stats, which
/// PyTorch refuses for such an allocator, but in ours. Functions for graphs' pools take C++ objects
/// and are left alone: a stream that is captured is seen as such without them. There is nothing to
/// set for set_init_fn: runtimes are made when they are first used.
///
/// Any thread may call any function. No exception gets out; `tensorpool_last_error` of
/// <tensorpool/tensorpool.h> tells why something failed on this thread. Streams are cudaStream_t.

#include <stddef.h>

#include <tensorpool/export.hpp>

#ifdef __cplusplus
extern "C" {
#endif

/// Memory of CUDA device `device` for work given to `stream` (NULL: the default stream). NULL for 0
/// bytes, and when it cannot be had: PyTorch does not look at that, and what it does with such a
/// tensor fails as an illegal access.
TENSORPOOL_API void* tensorpool_torch_malloc(size_t bytes, int device, void* stream);
/// Gives it back; work given to its stream so far, and to those that were recorded, is not waited
/// for, and nobody gets the memory before it may be used. NULL is ignored, and so are `bytes` and
/// `stream`, which were said before. Any other address ends the process with a message that names
/// it.
TENSORPOOL_API void tensorpool_torch_free(void* memory, size_t bytes, int device, void* stream);
/// `stream` uses memory that was made for another. Of PyTorch's set_record_stream_fn.
TENSORPOOL_API void tensorpool_torch_record_stream(void* memory, void* stream);
/// Gives back to the devices what is free. Of PyTorch's set_reset_fn.
TENSORPOOL_API void tensorpool_torch_reset(void);
/// The allocator of `device` never holds more than this part of the device's memory. Fails, and
/// changes nothing, where the device has been used already. Of PyTorch's set_memory_fraction_fn.
TENSORPOOL_API void tensorpool_torch_set_memory_fraction(double fraction, int device);

#ifdef __cplusplus
}
#endif

#endif
