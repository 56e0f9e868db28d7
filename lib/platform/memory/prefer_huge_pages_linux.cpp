#include <sys/mman.h>

#include "platform/platform.hpp"
#include "platform/system_calls.hpp"

// The Python module compiles this file too, since the library does not export its own copy. So it
// calls nothing else of the platform.
namespace tensorpool::platform {

bool prefer_huge_pages(void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const std::size_t skipped = base::align_up(begin, huge_page_bytes) - begin;
    if (bytes < skipped + huge_page_bytes) return false;
    const std::size_t whole = base::align_down(bytes - skipped, huge_page_bytes);
    return madvise(static_cast<char*>(address) + skipped, whole, MADV_HUGEPAGE) == 0;
}

}  // namespace tensorpool::platform
