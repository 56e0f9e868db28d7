// For builds without Valgrind's header: memcheck is never found, and nothing else is called.

#include "platform/tools/sanitizers.hpp"

namespace tensorpool::platform::memcheck {

bool is_present() noexcept {
    return false;
}
void allocate(const MarkedBlock&) noexcept {}
void resize(const MarkedBlock&, std::size_t) noexcept {}
void free(const MarkedBlock&) noexcept {}
void free_within(const void*, std::size_t) noexcept {}
void define(const void*, std::size_t) noexcept {}
void close(const void*, std::size_t) noexcept {}
void open(const void*, std::size_t) noexcept {}
bool is_closed(const void*) noexcept {
    return false;
}

}  // namespace tensorpool::platform::memcheck
