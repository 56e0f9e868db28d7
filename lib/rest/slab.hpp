#pragma once

#include "rest/spill_store.hpp"

namespace tensorpool::stashing {

/// The bytes of encodings that are stored together, at most.
inline constexpr std::size_t slab_bytes = std::size_t{1} << 20;

/// Returns the bytes of slabs one after another.
class SlabReader {
public:
    /// Reads `from` the disk or its cache if `store` is not nullptr. Throws AllocationError.
    SlabReader(MemoryPool& pool, const SpillStore* store, platform::ReadFrom from,
               std::span<const Slab> slabs, const std::string& tensor);

    /// Returns the next slab, which is valid until the next call. Throws StashError if the file
    /// cannot be read. REQUIRES: there is one.
    std::span<const std::byte> next();

private:
    const SpillStore* store_;
    platform::ReadFrom from_;
    std::span<const Slab> left_;
    const std::string& tensor_;
    PooledAllocation buffer_;
};

/// Packs encoded pieces into slabs, in blocks of a pool or in a file. What it has written is freed
/// again unless `finish` returns it.
class SlabWriter {
public:
    /// Writes to `store` if that is not nullptr, otherwise to blocks of `pool`. Its buffer is a
    /// block of `work_pool`. All encodings together have at most `max_bytes` bytes. Throws
    /// AllocationError.
    SlabWriter(MemoryPool& pool, MemoryPool& work_pool, SpillStore* store, std::size_t max_bytes,
               const std::string& tensor);
    ~SlabWriter();

    /// Returns room for the encoding of the next piece of up to `bytes` bytes. Throws
    /// AllocationError or StashError if a full slab cannot be stored.
    std::span<std::byte> room(std::size_t bytes);
    /// Takes the first `bytes` bytes of the room as the encoding of a piece.
    void take(std::size_t bytes) noexcept;
    /// Moves all slabs from memory to a file, and writes further ones there. Throws StashError; the
    /// slabs then stay in memory.
    void spill_to(SpillStore& store);
    /// Stores the last slab, waits for the disk, and returns all slabs.
    std::vector<Slab> finish();

private:
    void store_slab();

    MemoryPool& pool_;
    SpillStore* store_;
    const std::string& tensor_;
    PooledAllocation buffer_;
    Slab current_;
    std::vector<Slab> slabs_;
};

/// Copies slabs from memory to a file, waits for the disk, and returns the copies. Throws
/// StashError; nothing is then left in the file.
std::vector<Slab> copy_to_file(std::span<const Slab> slabs, SpillStore& store,
                               const std::string& tensor);

}  // namespace tensorpool::stashing
