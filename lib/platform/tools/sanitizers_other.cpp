// Systems without weak undefined symbols: no sanitizer is found, and nothing else is called.

#include "platform/tools/sanitizers.hpp"

namespace tensorpool::platform::sanitizers {

MemoryTool present() noexcept {
    return MemoryTool::none;
}
void open_fresh(const void*, std::size_t) noexcept {}
void close(const void*, std::size_t) noexcept {}
void open(const void*, std::size_t) noexcept {}
void define(const void*, std::size_t) noexcept {}
bool is_closed(const void*) noexcept {
    return false;
}

}  // namespace tensorpool::platform::sanitizers
