// The implementation that Linux and macOS share.

#include <sys/mman.h>

#include "platform/files/file_pages.hpp"
#include "platform/platform.hpp"
#include "platform/system_calls.hpp"

namespace tensorpool::platform {
namespace {

Outcome advise(void* address, std::size_t bytes, int advice) noexcept {
    const SystemCalls system_calls;
    return madvise(address, bytes, advice) == 0 ? Outcome::done : Outcome::refused;
}

int advice_for(ReadAhead how_much) noexcept {
    if (how_much == ReadAhead::much) return MADV_SEQUENTIAL;
    return how_much == ReadAhead::none ? MADV_RANDOM : MADV_NORMAL;
}

}  // namespace

Outcome set_read_ahead(void* address, std::size_t bytes, ReadAhead how_much) noexcept {
    return advise(address, bytes, advice_for(how_much));
}

Outcome begin_to_read(void* address, std::size_t bytes) noexcept {
    return advise(address, bytes, MADV_WILLNEED);
}

Outcome drop_file_pages(void* address, std::size_t bytes) noexcept {
    return advise(address, bytes, MADV_DONTNEED);
}

bool bar_file_pages(void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    // One call, so that no mapping of another thread can take these addresses in between.
    return mmap(address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE | MAP_FIXED, -1,
                0) != MAP_FAILED;
}

void unmap_file(void* address, std::size_t bytes) noexcept {
    release(address, bytes);
}

}  // namespace tensorpool::platform
