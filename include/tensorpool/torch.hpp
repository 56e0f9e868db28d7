#pragma once

/// @file
/// An allocator for PyTorch's CPU tensors that takes memory from a pool. It needs PyTorch's C++
/// headers and the library tensorpool_torch, which is built if libtorch-dev is found.
///
///    tensorpool::enable_torch();  // tensors made from now on come from the global pool
///
/// Buffers that PyTorch's functions and the libraries below them take from malloc are not affected.
/// Flags of PyTorch's own allocator, such as caffe2_cpu_allocator_do_zero_fill, do not apply to the
/// pool.

#include <c10/core/Allocator.h>

#include <tensorpool/memory_pool.hpp>

namespace tensorpool {

/// An allocator of PyTorch that takes memory from one pool, each block aligned to 64 bytes.
///
/// Pass it where PyTorch accepts an allocator, such as `at::detail::empty_generic` or a
/// StorageImpl. Any thread may use it. The allocator and the pool must outlive each tensor that
/// they served. Up to 16 pools can have an allocator at a time: a deleter of PyTorch receives only
/// a pointer, so each pool has a deleter of its own.
class TENSORPOOL_API PooledTorchAllocator final : public c10::Allocator {
public:
    /// Makes an allocator that takes memory from `pool`. Throws std::length_error if 16 pools have
    /// one already.
    explicit PooledTorchAllocator(MemoryPool& pool);
    /// Gives up the pool's deleter. No tensor of the allocator may be left.
    ~PooledTorchAllocator() override;
    PooledTorchAllocator(const PooledTorchAllocator&) = delete;
    PooledTorchAllocator& operator=(const PooledTorchAllocator&) = delete;

    /// Allocates `bytes` bytes. Returns a null pointer for 0, which may be freed like any other.
    /// Throws c10::Error if the memory is unavailable, as PyTorch's own allocator does, with a text
    /// that begins alike.
    c10::DataPtr allocate(std::size_t bytes) const override;
    /// Returns the pool's deleter, never nullptr, so that `raw_allocate` and `raw_deallocate` work.
    c10::DeleterFnPtr raw_deleter() const override;

private:
    MemoryPool* pool_;
    std::size_t index_;  // the index of the pool and its deleter
};

/// Returns the allocator that takes memory from the global pool. It is never destroyed, so that it
/// outlives static tensors. Any thread may call it.
TENSORPOOL_API PooledTorchAllocator& global_torch_allocator();

/// Registers the allocator of the global pool as PyTorch's for the CPU (c10::SetCPUAllocator).
///
/// Tensors made from now on, on all threads, come from the pool. Older tensors are resized and
/// freed by the allocator that made them. Returns false if an allocator of a higher priority is
/// registered, which stays. As PyTorch requires, no other thread may make tensors during the call.
/// A second call does nothing.
TENSORPOOL_API bool enable_torch(std::uint8_t priority = 1);
/// Registers the allocator again that was registered before `enable_torch`. Tensors of the pool
/// stay valid. Returns false, and does nothing, if the pool's allocator is not the registered one.
TENSORPOOL_API bool disable_torch();
/// Returns whether a CPU tensor that is made now comes from the global pool.
TENSORPOOL_API bool torch_is_enabled();

}  // namespace tensorpool
