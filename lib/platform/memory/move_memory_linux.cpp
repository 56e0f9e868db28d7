// Memory that moves from one range of addresses to another, by mremap(2).

#include <sys/mman.h>

#include <cstddef>

#include "platform/platform.hpp"
#include "platform/system_calls.hpp"

namespace tensorpool::platform {
namespace {

// Of Linux 5.7, from the kernel's uapi headers, which may be older than the kernel that runs:
// mman.h. The range that is left stays ours; otherwise another thread could map something there.
constexpr int keep_old_range = 4;

}  // namespace

bool move_memory(void* to, void* from, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    if (mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | keep_old_range, to) ==
        MAP_FAILED) {
        // Kernels up to 6.16 unmap the target before they look at what is to move.
        if (!commit_anew(to, bytes)) abort_process();
        return false;
    }
    // Where the system has no room to note this, the old range is a mapping of its own, which is
    // right too.
    (void)commit_anew(from, bytes);
    return true;
}

bool can_move_memory() noexcept {
    const std::size_t page = page_bytes();
    auto* const pages = static_cast<char*>(reserve(2 * page, page));
    if (pages == nullptr) return false;
    const bool moved = commit(pages, page) && move_memory(pages + page, pages, page);
    release(pages, 2 * page);
    return moved;
}

}  // namespace tensorpool::platform
