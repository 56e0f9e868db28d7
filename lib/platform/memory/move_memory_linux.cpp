// Moves memory between address ranges with mremap(2).

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "platform/platform.hpp"
#include "platform/system_calls.hpp"

namespace tensorpool::platform {
namespace {

// MREMAP_DONTUNMAP of Linux 5.7, from the kernel's mman.h; the system's headers may be older than
// the running kernel. It keeps the old range mapped, so that no other thread can map something
// there.
constexpr int keep_old_range = 4;

/// Whether something is mapped in each of these pages, which are at most a huge page.
bool is_mapped(char* address, std::size_t bytes) noexcept {
    unsigned char in_memory[huge_page_bytes / 4096];
    while (mincore(address, bytes, in_memory) != 0) {
        if (errno != EAGAIN) return errno != ENOMEM;
    }
    return true;
}

/// Copies the pages at `from` that are not zeros to `to`, and makes those at `from` zeros.
void copy_and_clear(char* to, char* from, std::size_t bytes) noexcept {
    const std::size_t page = page_bytes();
    for (std::size_t at = 0; at != bytes; at += page) {
        const char* const source = from + at;
        const bool is_zeros = *source == 0 && std::memcmp(source, source + 1, page - 1) == 0;
        if (!is_zeros) std::memcpy(to + at, source, page);
    }
    if (!decommit(from, bytes)) std::memset(from, 0, bytes);
}

/// Since Linux 6.17 one mremap moves several mappings, one after another. If it fails at one of
/// them, those before it have moved, and what they left reads as zeros. Brings their content back.
/// Returns how many bytes from `to` on are mapped without a gap, all of which are zeros then.
/// REQUIRES: `to` was zeros before the move.
std::size_t undo_move(char* to, char* from, std::size_t bytes) noexcept {
    const std::size_t page = page_bytes();
    std::size_t at = 0;
    while (at != bytes) {
        std::size_t piece = std::min(huge_page_bytes, bytes - at);
        const bool whole = is_mapped(to + at, piece);
        if (!whole) {
            const std::size_t most = piece;
            for (piece = 0; piece != most && is_mapped(to + at + piece, page);) piece += page;
        }
        if (piece != 0) copy_and_clear(from + at, to + at, piece);
        at += piece;
        if (!whole) break;
    }
    return at;
}

}  // namespace

bool move_memory(void* to, void* from, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    // A failed move is undone by what is not zeros there, which needs a target that can be read.
    if (!decommit(to, bytes) || !commit(to, bytes)) return false;
    if (mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | keep_old_range, to) ==
        MAP_FAILED) {
        const std::size_t mapped =
            undo_move(static_cast<char*>(to), static_cast<char*>(from), bytes);
        // Kernels up to 6.16 unmap the target before they look at what is to move. Where nothing is
        // unmapped, it is right without a new mapping, for which there may be no room.
        if (!commit_anew(to, bytes) && mapped != bytes) abort_process();
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
