#pragma once

#include <algorithm>
#include <cstring>

#include <tensorpool/stash.hpp>

#include "rest/spill_store.hpp"

namespace tensorpool::stashing {

/// The bytes of encodings that are stored together, at most.
inline constexpr std::size_t slab_bytes = std::size_t{1} << 20;

/// Returns the bytes of slabs one after another.
class SlabReader {
public:
    /// Reads `from` the disk or its cache if `store` is not nullptr. Throws AllocationError.
    SlabReader(MemoryPool& pool, const SpillStore* store, platform::ReadFrom from,
               std::span<const Slab> slabs, const std::string& tensor)
        : store_(store), from_(from), left_(slabs), tensor_(tensor) {
        if (store == nullptr) return;
        buffer_ = PooledAllocation(pool, std::ranges::max_element(slabs, {}, &Slab::bytes)->bytes);
    }

    /// Returns the next slab, which is valid until the next call. Throws StashError if the file
    /// cannot be read. REQUIRES: there is one.
    std::span<const std::byte> next() {
        const Slab& slab = left_.front();
        left_ = left_.subspan(1);
        if (store_ == nullptr) return slab.memory.as<const std::byte>();
        const auto bytes = buffer_.as<std::byte>().first(slab.bytes);
        if (const auto problem = store_->read(slab.position, bytes, from_))
            throw StashError(tensor_, StashError::no_piece, problem.text);
        return bytes;
    }

private:
    const SpillStore* store_;
    platform::ReadFrom from_;
    std::span<const Slab> left_;
    const std::string& tensor_;
    PooledAllocation buffer_;
};

inline void settle(SpillStore& store, std::span<const Slab> slabs, const std::string& tensor) {
    for (const Slab& slab : slabs) {
        if (const auto problem = store.settle(slab.position, slab.bytes))
            throw StashError(tensor, StashError::no_piece, problem.text);
    }
}

/// Copies slabs from memory to a file, waits for the disk, and returns the copies. Throws
/// StashError; nothing is then left in the file.
inline std::vector<Slab> copy_to_file(std::span<const Slab> slabs, SpillStore& store,
                                      const std::string& tensor) {
    std::vector<Slab> copies;
    copies.reserve(slabs.size());
    try {
        for (const Slab& slab : slabs) {
            Slab copy;
            copy.bytes = slab.bytes;
            copy.pieces = slab.pieces;
            const auto bytes = slab.memory.as<const std::byte>().first(slab.bytes);
            if (const auto problem = store.write(bytes, copy.position))
                throw StashError(tensor, StashError::no_piece, problem.text);
            copies.push_back(std::move(copy));
        }
        settle(store, copies, tensor);
    } catch (...) {
        store.free(copies);
        throw;
    }
    return copies;
}

/// Packs encoded pieces into slabs, in blocks of a pool or in a file. What it has written is freed
/// again unless `finish` returns it.
class SlabWriter {
public:
    /// Writes to `store` if that is not nullptr, otherwise to blocks of `pool`. Its buffer is a
    /// block of `work_pool`. All encodings together have at most `max_bytes` bytes. Throws
    /// AllocationError.
    SlabWriter(MemoryPool& pool, MemoryPool& work_pool, SpillStore* store, std::size_t max_bytes,
               const std::string& tensor)
        : pool_(pool),
          store_(store),
          tensor_(tensor),
          buffer_(work_pool, std::min(max_bytes, slab_bytes)) {}
    ~SlabWriter() {
        if (store_ != nullptr) store_->free(slabs_);
    }

    /// Returns room for the encoding of the next piece of up to `bytes` bytes. Throws
    /// AllocationError or StashError if a full slab cannot be stored.
    std::span<std::byte> room(std::size_t bytes) {
        if (current_.bytes + bytes > buffer_.size()) store_slab();
        return buffer_.as<std::byte>().subspan(current_.bytes);
    }
    /// Takes the first `bytes` bytes of the room as the encoding of a piece.
    void take(std::size_t bytes) noexcept {
        current_.bytes += bytes;
        ++current_.pieces;
    }
    /// Moves all slabs from memory to a file, and writes further ones there. Throws StashError; the
    /// slabs then stay in memory.
    void spill_to(SpillStore& store) {
        slabs_ = copy_to_file(slabs_, store, tensor_);
        store_ = &store;
    }
    /// Stores the last slab, waits for the disk, and returns all slabs.
    std::vector<Slab> finish() {
        if (current_.pieces != 0) store_slab();
        if (store_ != nullptr) settle(*store_, slabs_, tensor_);
        return std::exchange(slabs_, {});
    }

private:
    void store_slab() {
        const auto filled = buffer_.as<std::byte>().first(current_.bytes);
        slabs_.emplace_back();
        try {
            if (store_ != nullptr) {
                if (const auto problem = store_->write(filled, current_.position))
                    throw StashError(tensor_, StashError::no_piece, problem.text);
            } else {
                // A block of just this size: the rest of the buffer would take memory as well.
                current_.memory = PooledAllocation(pool_, filled.size());
                std::memcpy(current_.memory.get(), filled.data(), filled.size());
            }
        } catch (...) {
            slabs_.pop_back();
            throw;
        }
        slabs_.back() = std::exchange(current_, {});
    }

    MemoryPool& pool_;
    SpillStore* store_;
    const std::string& tensor_;
    PooledAllocation buffer_;
    Slab current_;
    std::vector<Slab> slabs_;
};

}  // namespace tensorpool::stashing
