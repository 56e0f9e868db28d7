#include "kinds/tool_marks.hpp"

#include <tensorpool/detail/address_range.hpp>

#include "kinds/reports.hpp"

namespace tensorpool::kinds {

void mark_new(PoolParts& pool, void* block, std::size_t bytes) noexcept {
    std::size_t usable = detail::bytes_of_block_in_use(block);
    if (usable == 0) usable = find(pool, block).usable;  // of a kind that was added
    platform::mark_allocated({block, bytes, usable});
}

// A free that names the wrong block would mark bytes of other blocks, and the tool would report
// accesses to those. So each free is checked, also in pools that check nothing themselves. The tool
// knows a free block better than the pool does, which does not search the caches of other threads.
bool check_and_mark_freed(PoolParts& pool, void* p, const Stated& stated) noexcept {
    const bool is_closed = platform::is_marked_closed(p);
    if (!is_closed && pool.is_checked()) {
        platform::mark_freed({p, 0, stated.as.bytes});
        return true;
    }
    Found found = find(pool, p);
    const bool is_block = found.is_block();
    if (is_block && !is_closed) {
        if (report_size(pool, p, found, stated)) return false;
        platform::mark_freed({p, 0, found.usable});
        return true;
    }
    // memcheck reports this free with the stacks of the block's allocation and of its first free.
    platform::mark_freed({p, 0, 0});
    if (is_block) found.what = Found::What::freed;
    report_pointer(pool, p, found);
    return false;
}

}  // namespace tensorpool::kinds
