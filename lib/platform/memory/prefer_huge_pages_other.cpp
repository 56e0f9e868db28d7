// macOS does not let programs request huge pages. Windows has large pages only for locked memory,
// which requires a privilege. The Python module compiles this file too.

#include "platform/platform.hpp"

namespace tensorpool::platform {

bool prefer_huge_pages(void*, std::size_t) noexcept {
    return false;
}

}  // namespace tensorpool::platform
