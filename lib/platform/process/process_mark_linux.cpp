#include <sys/mman.h>

#include <new>

#include "platform/platform.hpp"
#include "platform/system_calls.hpp"

namespace tensorpool::platform {

std::atomic<std::uint32_t>* make_process_mark() noexcept {
    void* const page = map(page_bytes(), page_bytes());
    if (page == nullptr) return nullptr;
    const SystemCalls system_calls;
    if (madvise(page, page_bytes(), MADV_WIPEONFORK) != 0) {
        unmap(page, page_bytes());
        return nullptr;
    }
    return new (page) std::atomic<std::uint32_t>(1);
}

}  // namespace tensorpool::platform
