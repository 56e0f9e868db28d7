// Contract: the number of devices, their names and abilities, and the error texts of calls.

#include <bit>
#include <string>
#include <thread>

#include "contracts/backend_contract.hpp"

namespace tensorpool::testing {

TEST_P(BackendContract, DeviceCountIsConstant) {
    EXPECT_EQ(backend().device_count(), backend().device_count());
}

TEST_P(BackendContract, NamesOnlyExistingDevices) {
    const int count = backend().device_count();
    for (int index = 0; index < count; ++index) EXPECT_NE(backend().device_name(index), "");
    EXPECT_EQ(backend().device_name(count), "");
    EXPECT_EQ(backend().device_name(-1), "");
}

TEST_P(BackendContract, MissingDeviceHasNoAbilities) {
    for (const int index : {-1, backend().device_count()}) {
        const DeviceAbilities none = backend().abilities(index);
        EXPECT_FALSE(none.unified_memory || none.shared_storage || none.managed_storage);
        EXPECT_FALSE(none.virtual_memory || none.stream_ordered_allocation || none.graph_capture);
        EXPECT_EQ(none.granularity, 0U);
        EXPECT_EQ(none.largest_allocation, 0U);
    }
}

TEST_P(BackendContract, GranularityIsAPowerOfTwoWithVirtualMemoryAndZeroWithout) {
    if (abilities().virtual_memory) {
        EXPECT_TRUE(std::has_single_bit(abilities().granularity));
    } else {
        EXPECT_EQ(abilities().granularity, 0U);
    }
}

TEST_P(BackendContract, FreeMemoryIsAtMostTotalMemory) {
    DeviceMemoryInfo info;
    ASSERT_EQ(backend().memory_info(device, info), DeviceStatus::ok);
    EXPECT_GT(info.total_bytes, 0U);
    EXPECT_LE(info.free_bytes, info.total_bytes);
    EXPECT_LE(abilities().recommended_bytes, info.total_bytes);
}

TEST_P(BackendContract, SettledMemoryIncludesFreedMemory) {
    DeviceMemoryInfo before;
    ASSERT_EQ(backend().memory_info(device, before), DeviceStatus::ok);
    const std::size_t half = before.free_bytes / 2;
    // Three times half of the memory: each must be free again before the next.
    for (int turn = 0; turn < 3; ++turn) {
        void* memory = nullptr;
        ASSERT_EQ(backend().allocate(device, half, StorageKind::private_storage, &memory),
                  DeviceStatus::ok)
            << backend().last_error();
        ASSERT_EQ(backend().deallocate(device, memory, half, StorageKind::private_storage),
                  DeviceStatus::ok);
        ASSERT_EQ(backend().settle_memory(device), DeviceStatus::ok);
    }
}

TEST_P(BackendContract, SynchronizesADeviceWithoutWork) {
    EXPECT_EQ(backend().synchronize_device(device), DeviceStatus::ok);
}

TEST_P(BackendContract, RejectsEveryCallForAMissingDevice) {
    const StreamHandle stream = make_stream();
    const EventHandle event = make_event();
    constexpr auto refused = DeviceStatus::invalid_argument;
    for (const int none : {-1, backend().device_count()}) {
        DeviceMemoryInfo info{1, 2};
        EXPECT_EQ(backend().memory_info(none, info), refused);
        EXPECT_EQ(info.free_bytes, 1U);
        EXPECT_EQ(backend().synchronize_device(none), refused);
        void* memory = &info;
        EXPECT_EQ(backend().allocate(none, 256, StorageKind::private_storage, &memory), refused);
        EXPECT_EQ(backend().allocate_pinned(none, 256, &memory), refused);
        EXPECT_EQ(memory, &info);
        EXPECT_EQ(backend().host_pointer(none, memory), nullptr);
        StreamHandle made_stream = stream;
        EXPECT_EQ(backend().create_stream(none, &made_stream), refused);
        EXPECT_EQ(made_stream, stream);
        EventHandle made_event = event;
        EXPECT_EQ(backend().create_event(none, EventFlags::none, &made_event), refused);
        EXPECT_EQ(made_event, event);
        EXPECT_EQ(backend().synchronize_stream(none, stream), refused);
        EXPECT_EQ(backend().query_stream(none, stream), refused);
        EXPECT_EQ(backend().record_event(none, event, stream), refused);
        EXPECT_EQ(backend().query_event(none, event), refused);
        EXPECT_EQ(backend().wait_event(none, stream, event), refused);
        EXPECT_EQ(backend().launch_host_function(
                      none, stream, [](void*) {}, nullptr),
                  refused);
        EXPECT_EQ(backend().copy(none, CopyKind::host_to_host, &info, &none, 1), refused);
        EXPECT_EQ(backend().fill(none, &info, 0, 1), refused);
        EXPECT_FALSE(backend().can_access_peer(device, none));
        EXPECT_FALSE(backend().can_access_peer(none, device));
    }
}

TEST_P(BackendContract, LastErrorIsPerThread) {
    EXPECT_EQ(backend().synchronize_device(-7), DeviceStatus::invalid_argument);
    const std::string text = backend().last_error();
    EXPECT_NE(text.find("-7"), std::string::npos) << text;
    std::thread([this] { EXPECT_EQ(backend().last_error(), ""); }).join();
    // Successful calls and not_ready leave the text unchanged.
    EXPECT_EQ(backend().synchronize_device(device), DeviceStatus::ok);
    EXPECT_EQ(backend().query_stream(device, nullptr), DeviceStatus::ok);
    EXPECT_EQ(backend().last_error(), text);
}

TEST_P(BackendContract, RejectsAccessForNonPeers) {
    const int count = backend().device_count();
    for (int peer = 1; peer < count; ++peer) {
        const bool can = backend().can_access_peer(0, peer);
        const DeviceStatus expected = can ? DeviceStatus::ok : DeviceStatus::not_supported;
        EXPECT_EQ(backend().enable_peer_access(0, peer), expected);
        EXPECT_EQ(backend().enable_peer_access(0, peer), expected);
    }
}

}  // namespace tensorpool::testing
