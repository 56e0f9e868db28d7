// What AddressSanitizer, MemorySanitizer and Valgrind see of a pool (platform/process/
// memory_tools.hpp). Nothing here runs without such a tool.

#include <algorithm>

#include <tensorpool/detail/address_range.hpp>

#include "blocks/thread_registry.hpp"
#include "platform/tools/memory_tools.hpp"
#include "pool/pool.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {

// At the place of pools without caches, the short paths for large and for checked blocks find no
// cache. The slow paths use the thread's cache as usual.
blocks::OwnPlace Pool::place_of(unsigned number) noexcept {
    if (platform::has_memory_tool()) return blocks::OwnPlace(cached_pool_count);
    return blocks::OwnPlace(std::min(number, cached_pool_count));
}

void Pool::hide_caches_from_tools() noexcept {
    if (platform::has_memory_tool()) blocks::thread_registry().hide_caches();
}

void Pool::mark_new(void* block, std::size_t bytes) noexcept {
    platform::mark_allocated({block, bytes, bytes_of_block_in_use(block)});
}

// A free that names the wrong block would mark bytes of other blocks, and the tool would report
// accesses to those. So each free is checked, also in pools that check nothing themselves. The tool
// knows a free block better than the pool does, which does not search the caches of other threads.
bool Pool::check_and_mark_freed(void* p, StatedSize stated) noexcept {
    const bool is_closed = platform::is_marked_closed(p);
    if (!is_closed && checked()) {
        platform::mark_freed({p, 0, stated.bytes});
        return true;
    }
    Finding found = find(p);
    const bool is_block = found.what == Finding::What::block;
    if (is_block && !is_closed) {
        if (is_refused(p, found, stated)) return false;
        platform::mark_freed({p, 0, found.usable});
        return true;
    }
    // memcheck reports this free with the stacks of the block's allocation and of its first free.
    platform::mark_freed({p, 0, 0});
    if (is_block) found.what = Finding::What::freed;
    misused(p, found);
    return false;
}

}  // namespace abi_2
}  // namespace tensorpool::detail
