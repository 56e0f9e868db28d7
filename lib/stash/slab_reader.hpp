#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <tensorpool/memory_pool.hpp>
#include <tensorpool/pooled_allocation.hpp>

#include "stash/slab.hpp"
#include "stash/spill_store.hpp"

namespace tensorpool::stashing {

/// Returns the bytes of slabs one after another. While the caller decodes one from a file, the
/// system reads the next ones.
class SlabReader {
public:
    /// Reads from `store` if that is not nullptr. Throws AllocationError.
    SlabReader(MemoryPool& pool, const SpillStore* store, std::span<const Slab> slabs,
               const std::string& tensor);

    /// Returns the next slab, which is valid until the next call. Throws StashError if the file
    /// cannot be read. REQUIRES: there is one.
    std::span<const std::byte> next();

private:
    /// The slabs that the system reads ahead.
    static constexpr std::size_t ahead = 4;

    const SpillStore* store_;
    std::span<const Slab> left_;
    const std::string& tensor_;
    PooledAllocation buffer_;
};

}  // namespace tensorpool::stashing
