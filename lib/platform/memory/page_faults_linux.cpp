#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "platform/files/system_files_linux.hpp"
#include "platform/memory/page_faults.hpp"
#include "platform/platform.hpp"

namespace tensorpool::platform {
namespace {

// A source with protection from writes, which Linux has since 5.7.
bool begin(int file) noexcept {
    uffdio_api api{};
    api.api = UFFD_API;
    api.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP;
    return ioctl(file, UFFDIO_API, &api) == 0;
}

// The right comes from vm.unprivileged_userfaultfd or CAP_SYS_PTRACE, or, since Linux 6.1, from the
// permissions of a device.
int open_all() noexcept {
    const auto file = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC));
    if (file >= 0) return file;
#ifdef USERFAULTFD_IOC_NEW
    const int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
    if (device < 0) return -1;
    const int made = ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC);
    close(device);
    return made;
#else
    return -1;
#endif
}

FaultSource begin(int file, FaultScope scope) noexcept {
    if (file < 0) return {};
    if (!begin(file)) {
        close(file);
        return {};
    }
    return {move_high(file), scope};
}

uffdio_range range_of(const void* address, std::size_t bytes) noexcept {
    return {reinterpret_cast<std::uintptr_t>(address), bytes};
}

}  // namespace

FaultSource open_fault_source(FaultScope at_most) noexcept {
    const SystemCalls system_calls;
    if (at_most == FaultScope::none) return {};
    if (at_most == FaultScope::all) {
        const FaultSource source = begin(open_all(), FaultScope::all);
        if (source.file >= 0) return source;
    }
    return begin(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY)),
                 FaultScope::user_mode);
}

// A source refuses an empty range by another error than other files refuse the request.
bool is_open(const FaultSource& source) noexcept {
    const SystemCalls system_calls;
    uffdio_range none{};
    return ioctl(source.file, UFFDIO_WAKE, &none) != 0 && errno == EINVAL;
}

void close_fault_source(const FaultSource& source) noexcept {
    const SystemCalls system_calls;
    if (is_open(source)) close(source.file);
}

bool watch_faults(const FaultSource& source, void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    uffdio_register request{};
    request.range = range_of(address, bytes);
    request.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP;
    if (ioctl(source.file, UFFDIO_REGISTER, &request) != 0) return false;
    constexpr auto needed = std::uint64_t{1} << _UFFDIO_COPY | std::uint64_t{1} << _UFFDIO_WAKE |
                            std::uint64_t{1} << _UFFDIO_WRITEPROTECT;
    if ((request.ioctls & needed) == needed) return true;
    unwatch_faults(source, address, bytes);
    return false;
}

void unwatch_faults(const FaultSource& source, void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    uffdio_range range = range_of(address, bytes);
    ioctl(source.file, UFFDIO_UNREGISTER, &range);
}

bool fill_missing(const FaultSource& source, void* to, const void* from, std::size_t bytes,
                  Writable writable) noexcept {
    const SystemCalls system_calls;
    const std::size_t page = page_bytes();
    std::size_t done = 0;
    bool is_partly_present = false;
    while (done < bytes) {
        uffdio_copy copy{};
        copy.dst = reinterpret_cast<std::uintptr_t>(to) + done;
        copy.src = reinterpret_cast<std::uintptr_t>(from) + done;
        copy.len = bytes - done;
        copy.mode = writable == Writable::yes ? 0 : UFFDIO_COPY_MODE_WP;
        if (ioctl(source.file, UFFDIO_COPY, &copy) == 0) break;
        if (copy.copy > 0) {
            done += static_cast<std::size_t>(copy.copy);
        } else if (errno == EEXIST) {
            is_partly_present = true;
            done += page;
        } else if (errno != EAGAIN) {
            return false;
        }
    }
    // A request that met a present page woke no thread.
    if (is_partly_present) wake_faults(source, to, bytes);
    return true;
}

bool protect_from_writes(const FaultSource& source, void* address, std::size_t bytes,
                         Writable writable) noexcept {
    const SystemCalls system_calls;
    uffdio_writeprotect request{};
    request.range = range_of(address, bytes);
    request.mode = writable == Writable::yes ? 0 : UFFDIO_WRITEPROTECT_MODE_WP;
    while (ioctl(source.file, UFFDIO_WRITEPROTECT, &request) != 0) {
        if (errno != EAGAIN) return false;
    }
    return true;
}

void wake_faults(const FaultSource& source, void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    uffdio_range range = range_of(address, bytes);
    ioctl(source.file, UFFDIO_WAKE, &range);
}

bool next_fault(const FaultSource& source, PageFault& fault) noexcept {
    const SystemCalls system_calls;
    for (;;) {
        uffd_msg message{};
        const ssize_t got = read(source.file, &message, sizeof message);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got != static_cast<ssize_t>(sizeof message)) return false;
        if (message.event != UFFD_EVENT_PAGEFAULT) continue;
        const auto address = static_cast<std::uintptr_t>(message.arg.pagefault.address);
        constexpr unsigned writes = UFFD_PAGEFAULT_FLAG_WRITE | UFFD_PAGEFAULT_FLAG_WP;
        fault = {reinterpret_cast<void*>(address), (message.arg.pagefault.flags & writes) != 0};
        return true;
    }
}

std::size_t mappings_left() noexcept {
    std::string_view line;
    LineReader limit("/proc/sys/vm/max_map_count");
    const std::size_t allowed = limit.next(line) ? parse_number(line).value_or(0) : 0;
    if (allowed == 0) return SIZE_MAX;
    std::size_t left = allowed / 4 * 3;
    for (LineReader mappings("/proc/self/maps"); left != 0 && mappings.next(line);) --left;
    return left;
}

}  // namespace tensorpool::platform
