// macOS does not let programs request huge pages. Windows has large pages only for locked memory,
// which requires a privilege.

#include "platform/platform.hpp"

namespace tensorpool::platform {

bool prefer_huge_pages(void*, std::size_t) noexcept {
    return false;
}

FolioSizes folio_sizes() noexcept {
    return {};
}

bool prefer_medium_pages(void*, std::size_t) noexcept {
    return false;
}

bool prefer_small_pages(void*, std::size_t) noexcept {
    return false;
}

}  // namespace tensorpool::platform
