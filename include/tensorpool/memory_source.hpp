#pragma once

/// @file
/// What a handle needs of the memory that it owns a block of: the concept of a source. Sizes are in
/// bytes.
///
/// A class is a source if it has one of these pairs of functions:
///
///     void* allocate(std::size_t bytes, std::size_t alignment);
///     void deallocate(void* p, std::size_t bytes, std::size_t alignment);
///
/// for host memory that stays allocated until `deallocate`, which must not throw; or
///
///     HeldBlock hold(std::size_t bytes, …);
///
/// which returns the block together with the functions that end it. `alignment` is a power of two,
/// and `bytes` is not 0. A source that cannot meet a request throws; if it returns nullptr, the
/// handle throws std::bad_alloc. A handle refers to its source, which must outlive it and must not
/// move.

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include <tensorpool/export.hpp>

namespace tensorpool {

struct HeldBlock;

/// The device that a block belongs to, as DLPack describes it.
struct SourceDevice {
    /// The DLDeviceType; 1 is the CPU.
    std::int32_t type = 1;
    /// The number of the device within its type.
    std::int32_t index = 0;

    /// Returns whether two devices are the same.
    friend bool operator==(const SourceDevice&, const SourceDevice&) = default;
};

/// What handles do with the blocks of one kind of source. Each kind has one constant table, which
/// must exist until the process ends. `source` is the address that the BlockOwner was made with.
struct alignas(64) SourceFunctions {
    /// The name of the kind in messages, such as "arena".
    const char* name;
    /// Ends a block whose handle ends. Must not throw.
    void (*give_back)(void* source, const HeldBlock& block);
    /// Notes that a handle gave up the ownership of its block by `release()`. nullptr: does
    /// nothing. Must not throw.
    void (*give_up)(void* source, const HeldBlock& block) = nullptr;
    /// Returns the address at which the host can access the block; nullptr if it cannot. If the
    /// function is nullptr, the host can access the block at its own address. Must not throw.
    void* (*host_pointer)(void* source, const HeldBlock& block) = nullptr;
    /// Returns the device that the block belongs to. If the function is nullptr, it is the CPU.
    /// Must not throw.
    SourceDevice (*device)(void* source) = nullptr;
};

/// A source and its functions, for sources that count releases. The source keeps the link for as
/// long as it lives.
struct SourceLink {
    /// The table of the kind of source.
    const SourceFunctions* functions;
    /// The source, as the functions get it.
    void* source;
};

/// The source of a block, the block's alignment, and, for sources that count them, the number of
/// releases before the block was allocated.
class BlockOwner {
public:
    /// Makes an owner of no block.
    constexpr BlockOwner() noexcept = default;
    /// Makes the owner for blocks of `source` that are ended by `functions`. `alignment` is a power
    /// of two.
    BlockOwner(void* source, const SourceFunctions& functions, std::size_t alignment) noexcept
        : source_(source),
          word_(reinterpret_cast<std::uintptr_t>(&functions) | logarithm(alignment)) {}
    /// Makes the owner for blocks of a source that counts releases, less than 2^57 of them.
    /// `alignment` is a power of two. A source may also pass another number that tells its blocks
    /// apart; only the source reads it.
    BlockOwner(SourceLink& link, std::uint64_t releases, std::size_t alignment) noexcept
        : source_(&link), word_(counted | releases << logarithm_bits | logarithm(alignment)) {}
    /// Makes the owner for blocks of `pool`, a MemoryPool, which handles end inline. `alignment` is
    /// a power of two.
    static BlockOwner of_pool(void* pool, std::size_t alignment) noexcept {
        BlockOwner owner;
        owner.source_ = pool;
        owner.word_ = logarithm(alignment);
        return owner;
    }

    /// Returns whether the blocks are those of a MemoryPool.
    bool is_pool() const noexcept { return word_ <= logarithm_mask; }
    /// Returns whether the blocks are those of a MemoryPool and their alignment is at most 64.
    bool is_pool_with_default_alignment() const noexcept { return word_ <= 6; }
    /// Returns the alignment that was requested.
    std::size_t alignment() const noexcept { return std::size_t{1} << (word_ & logarithm_mask); }
    /// Returns the number of releases; 0 unless the source counts them.
    std::uint64_t releases() const noexcept {
        return is_counted() ? (word_ & ~counted) >> logarithm_bits : 0;
    }
    /// Returns the pool. REQUIRES: `is_pool()`.
    void* pool() const noexcept { return source_; }
    /// Returns the source, as its functions get it.
    void* source() const noexcept { return is_counted() ? link().source : source_; }
    /// Returns the functions of the source, which must not be a MemoryPool.
    const SourceFunctions& functions() const noexcept {
        if (is_counted()) return *link().functions;
        const std::uint64_t table = word_ & ~logarithm_mask;
        return *reinterpret_cast<const SourceFunctions*>(static_cast<std::uintptr_t>(table));
    }

private:
    // The low bits of the word hold the logarithm of the alignment. The rest is 0 for a pool,
    // otherwise the address of the table, or, with the highest bit, the number of releases.
    static constexpr unsigned logarithm_bits = 6;
    static constexpr std::uint64_t logarithm_mask = (std::uint64_t{1} << logarithm_bits) - 1;
    static constexpr std::uint64_t counted = std::uint64_t{1} << 63;
    static_assert(alignof(SourceFunctions) > logarithm_mask);

    static std::uint64_t logarithm(std::size_t alignment) noexcept {
        return static_cast<std::uint64_t>(std::countr_zero(alignment));
    }
    bool is_counted() const noexcept { return (word_ & counted) != 0; }
    const SourceLink& link() const noexcept { return *static_cast<const SourceLink*>(source_); }

    void* source_ = nullptr;
    std::uint64_t word_ = 0;
};

/// A block that belongs to a handle, with its source.
struct HeldBlock {
    /// The block's address; nullptr for none.
    void* address = nullptr;
    /// The requested bytes.
    std::size_t bytes = 0;
    /// The block's source.
    BlockOwner owner;
};
static_assert(sizeof(void*) != 8 || sizeof(HeldBlock) == 32);

/// A source of host memory whose blocks stay allocated until they are freed.
template <class Source>
concept PlainSource = requires(Source& source, void* block, std::size_t size) {
    { source.allocate(size, size) } -> std::convertible_to<void*>;
    source.deallocate(block, size, size);
};

/// A source that returns blocks together with the functions that end them. `Arguments` are those of
/// `hold` behind the size, such as an alignment or a stream.
template <class Source, class... Arguments>
concept HoldingSource = requires(Source& source, std::size_t bytes, Arguments... arguments) {
    { source.hold(bytes, arguments...) } -> std::same_as<HeldBlock>;
};

/// A class whose memory a handle can own, with a size and an alignment.
template <class Source>
concept MemorySource = HoldingSource<Source, std::size_t> || PlainSource<Source>;

/// A source whose blocks may end before their handles, by a release of many blocks at once: it has
/// a constant `releases_blocks` that is true. Its blocks hold only elements without destructors.
template <class Source>
concept ReleasingSource = requires {
    requires Source::releases_blocks;
};

namespace detail {

/// The functions of a class that has `allocate` and `deallocate`.
template <class Source>
inline constexpr SourceFunctions plain_functions = {
    .name = "plain source",
    .give_back =
        [](void* source, const HeldBlock& block) {
            static_cast<Source*>(source)->deallocate(block.address, block.bytes,
                                                     block.owner.alignment());
        },
};

/// Returns the block that a source returned. Throws std::bad_alloc if it is none.
inline HeldBlock checked(const HeldBlock& block) {
    if (block.address == nullptr) throw std::bad_alloc();
    return block;
}

/// Allocates a block for a handle. Returns none for 0 bytes. Throws what the source throws, and
/// std::invalid_argument unless `alignment` is a power of two.
template <MemorySource Source>
HeldBlock hold(Source& source, std::size_t bytes, std::size_t alignment) {
    if (!std::has_single_bit(alignment)) {
        throw std::invalid_argument("tensorpool: handle: alignment is " +
                                    std::to_string(alignment) + "; expected a power of two");
    }
    if (bytes == 0) return {};
    if constexpr (HoldingSource<Source, std::size_t>) {
        return checked(source.hold(bytes, alignment));
    } else {
        return checked({source.allocate(bytes, alignment), bytes,
                        BlockOwner(std::addressof(source), plain_functions<Source>, alignment)});
    }
}

}  // namespace detail

}  // namespace tensorpool
