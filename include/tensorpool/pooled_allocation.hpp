#pragma once

/// @file
/// A handle that owns a block of memory of a pool, an arena, a device or any other source.

#include <span>
#include <type_traits>
#include <utility>

#include <tensorpool/memory_pool.hpp>
#include <tensorpool/memory_source.hpp>

namespace tensorpool {

/// A class other than MemoryPool whose memory a handle can own, with a size and an alignment.
template <class Source>
concept OtherSource = !std::derived_from<Source, MemoryPool> && MemorySource<Source>;

/// A class whose memory a handle can own, with a size and further arguments that are no alignment,
/// such as the stream of a device allocator.
template <class Source, class... Arguments>
concept StreamSource = !std::derived_from<Source, MemoryPool> && !MemorySource<Source> &&
                       HoldingSource<Source, Arguments...>;

/// Owns one block of a source and ends it when destroyed. Move-only, 32 bytes. One thread at a time
/// may use a handle. The source must outlive it.
///
/// A source is a MemoryPool, an Arena, a Context, a Scratch, a PlannedArena, a DeviceAllocator, or
/// any class that satisfies `MemorySource` (memory_source.hpp). What the end of a handle does
/// depends on the source:
///
/// - pool, planned arena: the block is freed, on any thread;
/// - arena: the block at the top is returned; another one stays until a release;
/// - context: as for the pool, the arena or the scratch that the context took the block from;
/// - scratch: the block is returned once nothing above it is in use; handles must end on their
///   thread, before the scope in which they were made;
/// - device allocator: the block is freed, and reused after the streams that use it have passed.
class PooledAllocation {
public:
    /// Makes a handle that owns nothing.
    PooledAllocation() noexcept = default;
    /// Allocates `bytes` bytes from the global pool, aligned to 64; owns nothing for 0. Throws
    /// AllocationError if the pool cannot meet the request.
    explicit PooledAllocation(std::size_t bytes)
        : PooledAllocation(get_global_memory_pool(), bytes) {}
    /// Allocates `bytes` bytes from `pool`, aligned to `alignment`, a power of two; owns nothing
    /// for 0. Throws AllocationError if the pool cannot meet the request, and std::invalid_argument
    /// for any other alignment.
    PooledAllocation(MemoryPool& pool, std::size_t bytes, std::size_t alignment = 64)
        : block_{alignment == 64 ? pool.allocate(bytes) : pool.allocate(bytes, alignment), bytes,
                 BlockOwner::of_pool(&pool, alignment)} {}
    /// Allocates `bytes` bytes from `source`, aligned to `alignment`, a power of two; owns nothing
    /// for 0. Throws what the source throws, and std::invalid_argument for any other alignment.
    template <OtherSource Source>
    PooledAllocation(Source& source, std::size_t bytes, std::size_t alignment = 64)
        : block_(detail::hold(source, bytes, alignment)) {}
    /// Allocates `bytes` bytes from `source`, which gets the further arguments, such as a device
    /// allocator its stream; owns nothing for 0. Throws what the source throws.
    template <class Source, class... Arguments>
    requires StreamSource<Source, Arguments...> PooledAllocation(Source& source, std::size_t bytes,
                                                                 Arguments... arguments)
        : block_(bytes == 0 ? HeldBlock{} : detail::checked(source.hold(bytes, arguments...))) {}
    /// Takes over a block that `detach` returned. The handle then ends it.
    explicit PooledAllocation(const HeldBlock& block) noexcept : block_(block) {}
    /// Ends the block.
    ~PooledAllocation() { reset(); }

    /// Takes the block of `other`, which then owns nothing.
    PooledAllocation(PooledAllocation&& other) noexcept : block_(other.block_) { other.forget(); }
    /// Ends the present block and takes the block of `other`, which then owns nothing.
    PooledAllocation& operator=(PooledAllocation&& other) noexcept {
        PooledAllocation moved(std::move(other));
        swap(moved);
        return *this;
    }
    PooledAllocation(const PooledAllocation&) = delete;
    PooledAllocation& operator=(const PooledAllocation&) = delete;

    /// Returns the block's address, which for memory of a device may be one of the device; nullptr
    /// if the handle owns nothing.
    void* get() const noexcept { return block_.address; }
    /// Returns the requested bytes; 0 if the handle owns nothing.
    std::size_t size() const noexcept { return block_.bytes; }
    /// Returns whether the handle owns a block.
    explicit operator bool() const noexcept { return block_.address != nullptr; }
    /// Returns the address at which the host can access the block: `get()` for memory of the host.
    /// Returns nullptr if the host cannot access it, and if the handle owns nothing.
    void* host_pointer() const noexcept {
        return block_.owner.is_pool() ? block_.address : host_pointer_of_source();
    }
    /// Returns the device that the block belongs to, as DLPack describes it: the CPU unless a
    /// source names another one.
    TENSORPOOL_API SourceDevice device() const noexcept;

    /// Returns the block as `size() / sizeof(T)` elements, at the address at which the host can
    /// access them. The caller must have written them before reading them. Throws
    /// std::invalid_argument if the host cannot access the block.
    template <class T>
    std::span<T> as() const {
        static_assert(std::is_trivially_copyable_v<T>, "PooledArray holds other types");
        void* const address = host_pointer();
        if (address == nullptr && block_.address != nullptr) refuse_host("as");
        return {static_cast<T*>(address), block_.bytes / sizeof(T)};
    }

    /// Returns the block and gives up its ownership. The caller ends it as its source requires: by
    /// `deallocate(p)` of the same pool, planned arena or device allocator. A block of an arena or
    /// a scratch stays until a release. A block of a context is one of its pool, its arena or its
    /// scratch; if `context.pool().owns(p)`, it is freed by `context.pool().deallocate(p)`.
    [[nodiscard]] void* release() noexcept {
        if (!block_.owner.is_pool()) give_up();
        void* const address = block_.address;
        forget();
        return address;
    }
    /// Returns the block with its source, for an owner of another type, and gives up its
    /// ownership. The caller must pass it to a new handle, which ends it.
    [[nodiscard]] HeldBlock detach() noexcept {
        const HeldBlock block = block_;
        forget();
        return block;
    }
    /// Returns the block with its source. The handle stays the owner.
    const HeldBlock& held() const noexcept { return block_; }
    /// Ends the block now.
    void reset() noexcept {
        if (block_.address == nullptr) return;
        if (block_.owner.is_pool_with_default_alignment()) [[likely]] {
            static_cast<MemoryPool*>(block_.owner.pool())->deallocate(block_.address, block_.bytes);
        } else {
            give_back();
        }
        forget();
    }
    /// Exchanges the blocks of two handles.
    void swap(PooledAllocation& other) noexcept { std::swap(block_, other.block_); }

private:
    template <class T>
    friend class PooledArray;

    void forget() noexcept {
        block_.address = nullptr;
        block_.bytes = 0;
    }
    TENSORPOOL_API void give_back() noexcept;
    TENSORPOOL_API void give_up() noexcept;
    TENSORPOOL_API void* host_pointer_of_source() const noexcept;
    [[noreturn]] TENSORPOOL_API void refuse_host(const char* call) const;

    HeldBlock block_;
};
static_assert(sizeof(PooledAllocation) == sizeof(HeldBlock));

}  // namespace tensorpool
