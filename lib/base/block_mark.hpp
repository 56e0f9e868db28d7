#pragma once

#include <cstddef>

namespace tensorpool::base {

/// What is to be done when one block in use is freed, such as refunding a budget. A block has at
/// most one mark; a mark that is set on a marked block covers the earlier one. Marks lie out of
/// band, and their objects outlive the blocks.
class BlockMark {
public:
    /// Ends the mark of a block with `bytes` usable bytes, and the mark that it covers. The caller
    /// frees the block next and holds no lock.
    virtual void on_free(std::size_t bytes) noexcept = 0;
    /// Returns the budget that the block is charged to: this mark, or one that it covers. Returns
    /// nullptr if there is none.
    virtual BlockMark* charge() noexcept = 0;

    /// If a watcher set the mark (kinds/watcher.hpp): its number, plus 1. Then the free of the
    /// block counts as its cost.
    unsigned watcher = 0;

protected:
    ~BlockMark() = default;
};

}  // namespace tensorpool::base
