#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "planner/problem.hpp"

namespace tensorpool::planner {

/// Which of the gaps between buffers that are alive with a new one takes it.
enum class Gap {
    first,  ///< the lowest
    best,   ///< the smallest, above all of them where it fits into none
};

/// A buffer that has its place: alive in the slices [begin, end), at the bytes [bottom, top).
struct Placed {
    std::uint32_t begin;
    std::uint32_t end;
    std::uint64_t bottom;
    std::uint64_t top;
    std::uint32_t index;  ///< of the buffer in its problem
};

/// Placed buffers, the lowest first, in blocks of so many that one more moves little.
class OffsetList {
public:
    void add(const Placed& placed);
    /// `placed` is in the list.
    void remove(const Placed& placed);
    /// Calls `visit` for all that are alive with a buffer, the lowest first.
    template <class Visit>
    void visit_alive(const Buffer& buffer, Visit visit) const {
        for (const Entry& entry : blocks_) {
            for (std::size_t i = 0; i < entry.block->count; ++i) {
                const Placed& one = entry.block->placed[i];
                if (one.begin < buffer.end && one.end > buffer.begin) visit(one);
            }
        }
    }
    /// Where the buffer goes among them.
    std::uint64_t offset_for(const Buffer& buffer, Gap gap) const {
        return gap == Gap::first ? first_gap(buffer) : best_gap(buffer);
    }
    std::size_t size() const noexcept { return size_; }

private:
    static constexpr std::size_t block_capacity = 128;
    struct Block {
        std::size_t count = 0;
        std::array<Placed, block_capacity> placed;
    };
    struct Entry {
        std::uint64_t bottom;  ///< no higher than the block's first, and above all of those before
        std::unique_ptr<Block> block;
    };

    std::uint64_t first_gap(const Buffer& buffer) const;
    std::uint64_t best_gap(const Buffer& buffer) const;
    template <class Visit>
    std::uint64_t visit_gaps(const Buffer& buffer, Visit visit) const;
    void split(std::size_t at);

    std::vector<Entry> blocks_;
    std::size_t size_ = 0;
};

}  // namespace tensorpool::planner
