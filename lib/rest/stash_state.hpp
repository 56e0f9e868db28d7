#pragma once

#include <vector>

#include <tensorpool/pooled_array.hpp>
#include <tensorpool/stash.hpp>

#include "rest/pieces/piece_workspace.hpp"
#include "rest/spill_store.hpp"

namespace tensorpool::stashing {

/// A workspace in a block of a pool.
class PooledWorkspace {
public:
    /// Throws AllocationError.
    PooledWorkspace(MemoryPool& pool, std::size_t piece_bytes)
        : block_(pool, PieceWorkspace::bytes_for(piece_bytes)),
          workspace_(block_.as<std::byte>(), piece_bytes) {}

    PieceWorkspace& get() noexcept { return workspace_; }

private:
    PooledAllocation block_;
    PieceWorkspace workspace_;
};

/// Returns a block for callers that write all of it. Throws AllocationError.
inline PooledAllocation restored_block(MemoryPool& pool, std::size_t bytes, std::size_t alignment) {
    if (alignment > 64) return PooledAllocation(pool, bytes, alignment);
    void* const address = pool.allocate_prefaulted(bytes);
    return PooledAllocation(HeldBlock{address, bytes, BlockOwner::of_pool(&pool, alignment)});
}

/// Returns which part of the bytes their encoding takes, by encoding a few pieces of them. 0 for no
/// bytes. Throws AllocationError if `pool` has no memory for that.
double estimate_ratio(std::span<const std::byte> bytes, const DataType& type, MemoryPool& pool);

/// The content of a stash: the slabs that hold its encoded pieces, and the size of each encoding.
class StashState {
public:
    /// Where the content came from, and returns to by default.
    struct Origin {
        MemoryPool* pool = nullptr;
        std::size_t alignment = 64;
    };

    /// Encodes the bytes. Throws what the constructor of Stash does for the options, for memory and
    /// for the disk; nothing is then left behind. `work_pool` has the memory that encoding and
    /// decoding need meanwhile; nullptr: the pool of the options.
    StashState(std::span<const std::byte> bytes, const Origin& origin, StashOptions options,
               MemoryPool* work_pool = nullptr);
    /// Gives space in files back. Blocks return to their pool by themselves.
    ~StashState();
    StashState& operator=(const StashState&) = delete;

    /// Decodes all pieces into memory of `size()` bytes. Throws StashError for damage and for
    /// errors of the file, and AllocationError; the content stays.
    void decode_to(std::span<std::byte> memory) const;
    /// Lets the system read what is in a file into its cache, from where it is then decoded.
    void read_ahead() const noexcept;
    /// Returns a copy in a file in the folder of the options. Copies the encodings as they are.
    /// Throws StashError or AllocationError. REQUIRES: the content is in memory, and there is a
    /// folder.
    std::unique_ptr<StashState> copy_in_file() const;

    const Origin& origin() const noexcept { return origin_; }
    const std::string& name() const noexcept { return options_.name; }
    std::size_t size() const noexcept { return size_; }
    std::size_t bytes_in_memory() const noexcept;
    std::size_t bytes_in_file() const noexcept;
    /// The slabs, for tests that damage them.
    std::span<Slab> slabs() noexcept { return slabs_; }

private:
    explicit StashState(const StashState& in_memory);
    void encode(std::span<const std::byte> bytes);
    bool is_to_spill(std::span<const std::byte> bytes) const;

    StashOptions options_;
    MemoryPool& pool_;
    MemoryPool& work_pool_;
    Origin origin_;
    std::size_t size_;
    PooledArray<std::uint32_t> encoded_bytes_;  // of each piece
    std::shared_ptr<SpillStore> store_;         // nullptr if the content is in memory
    std::vector<Slab> slabs_;
    mutable std::atomic<bool> was_read_ahead_ = false;  // relaxed: a hint
};

}  // namespace tensorpool::stashing
