#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include <tensorpool/device/host_backend.hpp>

namespace tensorpool {
namespace {

constexpr int device = 0;

using Threads = std::set<std::string>;

Threads threads() {
    Threads found;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        found.insert(task.path().filename());
    }
    return found;
}

/// Returns the threads before a test. A sanitizer starts its own thread with the program's first.
Threads threads_before() {
    std::thread([] {}).join();
    return threads();
}

/// Returns the number of threads that were not there before. Some earlier ones may have ended.
std::size_t count_since(const Threads& before) {
    Threads now = threads();
    std::erase_if(now, [&](const std::string& thread) { return before.contains(thread); });
    return now.size();
}

void do_nothing(void*) {}

TEST(HostBackendThreads, NoneIsStarted) {
    const Threads before = threads_before();
    HostBackend backend;
    StreamHandle stream = nullptr;
    void* memory = nullptr;
    ASSERT_EQ(backend.create_stream(device, &stream), DeviceStatus::ok);
    for (const StreamHandle used : {stream, StreamHandle(nullptr)}) {
        ASSERT_EQ(backend.launch_host_function(device, used, do_nothing, nullptr),
                  DeviceStatus::ok);
        ASSERT_EQ(backend.allocate_async(device, 4096, used, &memory), DeviceStatus::ok);
        ASSERT_EQ(backend.fill_async(device, memory, 1, 4096, used), DeviceStatus::ok);
        ASSERT_EQ(backend.deallocate_async(device, memory, 4096, used), DeviceStatus::ok);
    }
    EXPECT_EQ(count_since(before), 0U);
}

}  // namespace
}  // namespace tensorpool
