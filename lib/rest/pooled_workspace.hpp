#pragma once

#include <cstddef>

#include <tensorpool/memory_pool.hpp>
#include <tensorpool/pooled_allocation.hpp>

#include "rest/pieces/piece_workspace.hpp"

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

}  // namespace tensorpool::stashing
