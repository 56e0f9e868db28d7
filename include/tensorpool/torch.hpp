#pragma once

/// @file
/// PyTorch: the memory of CPU tensors from a pool. Needs PyTorch's C++ headers and the library
/// tensorpool_torch, which is built where libtorch-dev is found.
///
///     tensorpool::enable_torch();  // tensors made from now on come from the global pool
///
/// Buffers that PyTorch's functions and the libraries below them take from malloc stay there. Flags
/// of PyTorch's own allocator, such as caffe2_cpu_allocator_do_zero_fill, do not concern the pool.

#include <c10/core/Allocator.h>

#include <cstddef>
#include <cstdint>

#include <tensorpool/export.hpp>
#include <tensorpool/memory_pool.hpp>

namespace tensorpool {

/// Memory for tensors out of one pool, each block aligned to 64 bytes. To be handed to PyTorch
/// where it takes an allocator, such as `at::detail::empty_generic` or a StorageImpl. Any thread.
/// The allocator and the pool must outlive each tensor they served. There is room for 16 pools at
/// a time: a deleter of PyTorch's gets a pointer and nothing else, so each has a function.
class TENSORPOOL_API PooledTorchAllocator final : public c10::Allocator {
public:
    /// Throws std::length_error beyond the 16th pool.
    explicit PooledTorchAllocator(MemoryPool& pool);
    ~PooledTorchAllocator() override;
    PooledTorchAllocator(const PooledTorchAllocator&) = delete;
    PooledTorchAllocator& operator=(const PooledTorchAllocator&) = delete;

    /// For 0 bytes a null pointer, which is freed as any other. Throws c10::Error, as PyTorch's own
    /// allocator does and with a text that begins as its does, when the memory cannot be had.
    c10::DataPtr allocate(std::size_t bytes) const override;
    /// Never nullptr, so `raw_allocate` and `raw_deallocate` work.
    c10::DeleterFnPtr raw_deleter() const override;

private:
    MemoryPool* pool_;
    std::size_t place_;  // among the pools, which says which deleter
};

/// The one over the global pool. Never destroyed, so that it outlives static tensors.
TENSORPOOL_API PooledTorchAllocator& global_torch_allocator();

/// Registers the one over the global pool as PyTorch's for the CPU (c10::SetCPUAllocator): tensors
/// made from now on, on all threads, come from there. Those made before are resized and freed by
/// whoever made them. False where something of a higher priority is registered, which stays. As
/// PyTorch says, not while other threads make tensors. Called twice, it does nothing.
TENSORPOOL_API bool enable_torch(std::uint8_t priority = 1);
/// Registers again what was there before `enable_torch`. Tensors of the pool stay valid. False, and
/// nothing is done, where the pool's is not what is registered.
TENSORPOOL_API bool disable_torch();
/// Whether a CPU tensor that is made now comes from the global pool.
TENSORPOOL_API bool torch_is_enabled();

}  // namespace tensorpool
