#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include <tensorpool/device/host_backend.hpp>

#include "support/wait_until.hpp"

#include "support/child_process.hpp"

namespace tensorpool {
namespace {

using testing::holds_in_child;

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

TEST(HostBackendThreads, NoneIsStartedBeforeTheFirstAsynchronousWork) {
    const Threads before = threads_before();
    HostBackend backend;
    StreamHandle stream = nullptr;
    EventHandle event = nullptr;
    void* memory = nullptr;
    ASSERT_EQ(backend.create_stream(device, &stream), DeviceStatus::ok);
    ASSERT_EQ(backend.create_event(device, EventFlags::timing, &event), DeviceStatus::ok);
    for (const StreamHandle idle : {stream, StreamHandle(nullptr)}) {
        ASSERT_EQ(backend.record_event(device, event, idle), DeviceStatus::ok);
        ASSERT_EQ(backend.query_event(device, event), DeviceStatus::ok);
        ASSERT_EQ(backend.wait_event(device, idle, event), DeviceStatus::ok);
        ASSERT_EQ(backend.synchronize_stream(device, idle), DeviceStatus::ok);
        ASSERT_EQ(backend.allocate_async(device, 4096, idle, &memory), DeviceStatus::ok);
        ASSERT_EQ(backend.fill(device, memory, 1, 4096), DeviceStatus::ok);
        ASSERT_EQ(backend.deallocate_async(device, memory, 4096, idle), DeviceStatus::ok);
        ASSERT_EQ(backend.fill_async(device, nullptr, 1, 0, idle), DeviceStatus::ok);
    }
    ASSERT_EQ(backend.synchronize_device(device), DeviceStatus::ok);
    EXPECT_EQ(count_since(before), 0U);
}

TEST(HostBackendThreads, EachStreamWithWorkHasOneUntilItIsDestroyed) {
    const Threads before = threads_before();
    {
        HostBackend backend;
        StreamHandle stream = nullptr;
        ASSERT_EQ(backend.create_stream(device, &stream), DeviceStatus::ok);
        for (int turn = 0; turn < 3; ++turn) {
            ASSERT_EQ(backend.launch_host_function(device, stream, do_nothing, nullptr),
                      DeviceStatus::ok);
        }
        EXPECT_EQ(count_since(before), 1U);
        ASSERT_EQ(backend.launch_host_function(device, nullptr, do_nothing, nullptr),
                  DeviceStatus::ok);
        EXPECT_EQ(count_since(before), 2U);
        ASSERT_EQ(backend.synchronize_device(device), DeviceStatus::ok);
        ASSERT_EQ(backend.destroy_stream(device, stream), DeviceStatus::ok);
    }
    // The system may list a thread for a moment after it was joined.
    testing::wait_until("the threads have ended", [&] { return count_since(before) == 0; });
}

TEST(HostBackendThreads, ChildOfAForkHasItsOwnCopyOfMappedMemory) {
    HostBackend backend;
    if (!backend.abilities(0).virtual_memory) GTEST_SKIP() << "no virtual memory";
    const std::size_t granule = backend.abilities(0).granularity;
    void* address = nullptr;
    MemoryHandle memory = nullptr;
    ASSERT_EQ(backend.reserve_addresses(device, granule, &address), DeviceStatus::ok);
    ASSERT_EQ(backend.create_memory(device, granule, &memory), DeviceStatus::ok);
    ASSERT_EQ(backend.map_memory(device, address, granule, memory), DeviceStatus::ok);
    auto* const bytes = static_cast<unsigned char*>(address);
    bytes[0] = 1;
    EXPECT_TRUE(holds_in_child([&] { return bytes[0]++ == 1 && bytes[0] == 2; }));
    EXPECT_EQ(bytes[0], 1);
}

}  // namespace
}  // namespace tensorpool
