// mlockall with a limit that has room for what the program uses, but not for what pools reserved.

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "interpose/interposed.hpp"
#include "interpose/made_lock_limit.hpp"

using namespace tensorpool::testing;

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

/// Returns a number of KiB of /proc/self/status in bytes.
std::size_t status_bytes(const char* name) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.rfind(name, 0) == 0) return std::stoul(line.substr(line.find(':') + 1)) * 1024;
    return 0;
}

/// Returns whether the page of `p` is locked, as /proc/self/smaps says.
bool is_locked(const void* p) {
    std::ifstream maps("/proc/self/smaps");
    bool is_here = false;
    for (std::string line; std::getline(maps, line);) {
        char* end = nullptr;
        const auto begin = std::strtoul(line.c_str(), &end, 16);
        if (*end == '-') {
            const auto address = reinterpret_cast<std::uintptr_t>(p);
            is_here = begin <= address && address < std::strtoul(end + 1, nullptr, 16);
        } else if (is_here && line.rfind("VmFlags:", 0) == 0) {
            return line.find(" lo") != std::string::npos;
        }
    }
    return false;
}

/// Returns whether the process may lock more than the test does.
bool may_lock() {
    constexpr std::size_t bytes = 64 * mib;
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const bool may = mlock2(memory, bytes, MLOCK_ONFAULT) == 0;
    munmap(memory, bytes);
    return may;
}

}  // namespace

int main() {
    expect_interposed();
    std::vector<char*> blocks;
    for (const std::size_t bytes : {100 * std::size_t{1}, 300'000 * std::size_t{1}, 2 * mib}) {
        blocks.push_back(hidden(static_cast<char*>(std::malloc(bytes))));
        std::memset(blocks.back(), 1, bytes);
    }
    if (!may_lock()) return 77;
    made_lock_limit = 40 * mib;
    expect(status_bytes("VmSize") > 80 * mib, "reserved addresses", status_bytes("VmSize"));

    errno = 0;
    expect(mlockall(MCL_CURRENT) == 0, "success", static_cast<std::size_t>(errno));
    for (const char* const block : blocks) expect(is_locked(block), "a locked block");
    int on_stack = 0;
    expect(is_locked(&on_stack), "a locked stack");
    expect(is_locked(reinterpret_cast<const void*>(&main)), "locked code");
    const std::size_t locked = status_bytes("VmLck");
    expect(locked > 6 * mib && locked <= 40 * mib, "what is used", locked);

    expect(munlockall() == 0, "success");
    // What pools commit later would not be locked.
    expect(mlockall(MCL_CURRENT | MCL_FUTURE) == -1 && errno == ENOMEM, "a refusal",
           static_cast<std::size_t>(errno));
    expect(status_bytes("VmLck") == 0, "nothing locked", status_bytes("VmLck"));
    expect(mlockall(MCL_FUTURE) == 0, "success", static_cast<std::size_t>(errno));
    expect(munlockall() == 0, "success");

    made_lock_limit = 2 * mib;
    errno = 0;
    expect(mlockall(MCL_CURRENT) == -1 && errno == ENOMEM, "a refusal",
           static_cast<std::size_t>(errno));
    expect(status_bytes("VmLck") == 0, "nothing locked", status_bytes("VmLck"));
    errno = 0;
    expect(mlockall(1 << 20) == -1 && errno == EINVAL, "an invalid flag",
           static_cast<std::size_t>(errno));
    for (char* const block : blocks) std::free(block);
    return failures;
}
