#include "statistics/segment/segment_memory.hpp"

#include <cstdlib>
#include <cstring>

#include "statistics/segment/segment.hpp"

namespace tensorpool::statistics {
namespace {

// Registered while the library is loaded. Later, it would be called under the segment's lock, and
// atexit has a lock of its own under which it may call a malloc that a pool serves.
[[maybe_unused]] const bool removes_file_at_exit =
    std::atexit([] { segment().memory().remove_file(); }) == 0;

/// Returns how much of the segment is mapped: under a limit of addresses of which all of it would
/// take more than a twentieth, what has the records of all pools and of two thousand threads.
std::size_t bytes_to_map() noexcept {
    const bool is_small = platform::available_address_space() / 20 < segment_bytes;
    return is_small ? small_segment_bytes : segment_bytes;
}

}  // namespace

platform::SharedMemory SegmentMemory::get() noexcept {
    if (sharing_ == Sharing::unknown) look();
    platform::SharedMemory memory;
    if (sharing_ == Sharing::folder) {
        memory = cut(platform::share_memory_in(folder_, segment_bytes));
        if (memory.address == nullptr) {
            platform::say(
                "TENSORPOOL_STATISTICS_DIR is '%.200s', where no file of %zu MiB named after this "
                "process could be created; expected a folder that it may write to; used instead: "
                "statistics that only processes of this machine can read",
                folder_, segment_bytes >> 20);
            sharing_ = Sharing::memfd;
        }
    }
    return memory.address != nullptr ? memory : get_without_path();
}

platform::SharedMemory SegmentMemory::get_without_path() noexcept {
    platform::SharedMemory memory;
    if (sharing_ == Sharing::memfd)
        memory = cut(platform::share_memory("tensorpool", segment_bytes));
    if (memory.address == nullptr) memory.address = platform::map(bytes_, platform::page_bytes());
    return memory;
}

// The file has its whole size, which other processes map.
platform::SharedMemory SegmentMemory::cut(const platform::SharedMemory& memory) const noexcept {
    if (memory.address != nullptr && bytes_ != segment_bytes) {
        platform::unmap(static_cast<std::byte*>(memory.address) + bytes_, segment_bytes - bytes_);
    }
    return memory;
}

platform::SharedMemory SegmentMemory::get_private_instead(
    const platform::SharedMemory& given) noexcept {
    if (sharing_ == Sharing::folder) platform::remove_shared_file(folder_, given);
    platform::close_shared_memory(given);
    platform::unmap(given.address, bytes_);
    return {.address = platform::map(bytes_, platform::page_bytes())};
}

// Does not use std::string: a pool that waits for the segment may serve malloc.
void SegmentMemory::look() noexcept {
    sharing_ = Sharing::memfd;
    bytes_ = bytes_to_map();
    check_other_settings();
    const char* const statistics = platform::environment_variable("TENSORPOOL_STATISTICS");
    const std::string_view wanted = statistics == nullptr ? "on" : statistics;
    if (wanted == "off") {
        sharing_ = Sharing::none;
        return;
    }
    if (wanted != "on" && !wanted.empty()) {
        platform::say("TENSORPOOL_STATISTICS is '%.60s'; expected on or off; used instead: on",
                      statistics);
    }
    const char* const folder = platform::environment_variable("TENSORPOOL_STATISTICS_DIR");
    if (folder == nullptr || *folder == '\0') return;
    if (std::strlen(folder) >= sizeof folder_) {
        platform::say(
            "TENSORPOOL_STATISTICS_DIR has %zu characters; expected less than %zu; used instead: "
            "statistics that only processes of this machine can read",
            std::strlen(folder), sizeof folder_);
        return;
    }
    // A program may change its working folder before it forks or ends.
    if (*folder != '/') {
        platform::say(
            "TENSORPOOL_STATISTICS_DIR is '%.200s'; expected an absolute path; used instead: "
            "statistics that only processes of this machine can read",
            folder);
        return;
    }
    std::strcpy(folder_, folder);
    sharing_ = Sharing::folder;
}

void SegmentMemory::use(const platform::SharedMemory& memory) noexcept {
    used_ = memory;
}

void SegmentMemory::remove_file() noexcept {
    if (sharing_ == Sharing::folder) platform::remove_shared_file(folder_, used_);
}

}  // namespace tensorpool::statistics
