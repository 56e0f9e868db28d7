// Systems on which other processes cannot read the statistics: they are private memory.

#include "platform/platform.hpp"

namespace tensorpool::platform {

SharedMemory share_memory(const char*, std::size_t, Writers) noexcept {
    return {};
}
void keep_from_forks(void*, std::size_t) noexcept {}
bool hand_files_over(const char*, const int*, unsigned) noexcept {
    return false;
}
bool send_note(const char*, const char*) noexcept {
    return false;
}
SharedMemory share_memory_in(const char*, std::size_t) noexcept {
    return {};
}
bool get_shared_pages(void*, std::size_t) noexcept {
    return true;
}
void remove_shared_file(const char*, const SharedMemory&) noexcept {}
void close_shared_memory(const SharedMemory&) noexcept {}
bool replace_mapping(void*, void*, std::size_t) noexcept {
    return false;
}
bool make_private(void*, const SharedMemory&, std::size_t) noexcept {
    return false;
}
ProcessIdentity identify_process() noexcept {
    return {};
}

}  // namespace tensorpool::platform
