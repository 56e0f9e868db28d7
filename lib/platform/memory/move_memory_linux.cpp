// Moves memory between address ranges with mremap(2).

#include <sys/mman.h>

#include <cstddef>

#include "platform/platform.hpp"
#include "platform/system_calls.hpp"

namespace tensorpool::platform {
namespace {

// MREMAP_DONTUNMAP of Linux 5.7, from the kernel's mman.h; the system's headers may be older than
// the running kernel. It keeps the old range mapped, so that no other thread can map something
// there.
constexpr int keep_old_range = 4;

}  // namespace

bool move_memory(void* to, void* from, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    if (mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | keep_old_range, to) ==
        MAP_FAILED) {
        // Kernels up to 6.16 unmap the target before they check what is to be moved.
        if (!commit_anew(to, bytes)) abort_process();
        return false;
    }
    // If this fails, the old range stays a mapping of its own, which is also correct.
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
