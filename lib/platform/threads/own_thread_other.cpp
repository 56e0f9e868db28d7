#include "platform/threads/own_thread.hpp"

// No thread is started on these systems, so no thread waits.
namespace tensorpool::platform {

OwnThread start_own_thread(const char*, void (*)(), Priority) noexcept {
    return {};
}
void join_own_thread(OwnThread) noexcept {}
void detach_own_thread(OwnThread) noexcept {}
void wait_on(const std::atomic<std::uint32_t>&, std::uint32_t, std::uint64_t) noexcept {}
void wake_waiter(std::atomic<std::uint32_t>&) noexcept {}

}  // namespace tensorpool::platform
