#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <tensorpool/memory_pool.hpp>
#include <tensorpool/pooled_allocation.hpp>

#include "rest/slab.hpp"
#include "rest/spill_store.hpp"

namespace tensorpool::stashing {

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

}  // namespace tensorpool::stashing
