// Contract: copies and fills, synchronous and in a stream's order.

#include <algorithm>
#include <cstring>
#include <vector>

#include "contracts/backend_contract.hpp"

namespace tensorpool::testing {

TEST_P(BackendContract, CopiesInAllFourDirections) {
    const std::size_t bytes = 300 * kib + 7;
    const Bytes source = pattern(bytes);
    void* const one = make_memory(bytes);
    void* const two = make_memory(bytes);
    Bytes back(bytes);
    Bytes host(bytes);
    const auto copy = [&](CopyKind kind, void* to, const void* from) {
        return backend().copy(device, kind, to, from, bytes);
    };
    EXPECT_EQ(copy(CopyKind::host_to_device, one, source.data()), DeviceStatus::ok);
    EXPECT_EQ(copy(CopyKind::device_to_device, two, one), DeviceStatus::ok);
    EXPECT_EQ(copy(CopyKind::device_to_host, back.data(), two), DeviceStatus::ok);
    EXPECT_EQ(copy(CopyKind::host_to_host, host.data(), back.data()), DeviceStatus::ok);
    EXPECT_TRUE(host == source);
}

TEST_P(BackendContract, CopiesInAllFourDirectionsInAStreamsOrder) {
    const std::size_t bytes = 300 * kib + 7;
    const Bytes source = pattern(bytes);
    unsigned char* const from = make_pinned(bytes);
    unsigned char* const back = make_pinned(bytes);
    unsigned char* const last = make_pinned(bytes);
    std::memcpy(from, source.data(), bytes);
    void* const one = make_memory(bytes);
    void* const two = make_memory(bytes);
    for (const StreamHandle stream : {make_stream(), StreamHandle(nullptr)}) {
        std::memset(last, 0, bytes);
        const auto copy = [&](CopyKind kind, void* to, const void* what) {
            return backend().copy_async(device, kind, to, what, bytes, stream);
        };
        EXPECT_EQ(copy(CopyKind::host_to_device, one, from), DeviceStatus::ok);
        EXPECT_EQ(copy(CopyKind::device_to_device, two, one), DeviceStatus::ok);
        EXPECT_EQ(copy(CopyKind::device_to_host, back, two), DeviceStatus::ok);
        EXPECT_EQ(copy(CopyKind::host_to_host, last, back), DeviceStatus::ok);
        ASSERT_EQ(backend().synchronize_stream(device, stream), DeviceStatus::ok);
        EXPECT_TRUE(Bytes(last, last + bytes) == source);
    }
}

TEST_P(BackendContract, CopiesFromAndToHostMemoryThatIsNotPinned) {
    const std::size_t bytes = 70 * kib;
    const Bytes source = pattern(bytes);
    Bytes back(bytes);
    void* const memory = make_memory(bytes);
    const StreamHandle stream = make_stream();
    EXPECT_EQ(backend().copy_async(device, CopyKind::host_to_device, memory, source.data(), bytes,
                                   stream),
              DeviceStatus::ok);
    EXPECT_EQ(
        backend().copy_async(device, CopyKind::device_to_host, back.data(), memory, bytes, stream),
        DeviceStatus::ok);
    ASSERT_EQ(backend().synchronize_stream(device, stream), DeviceStatus::ok);
    EXPECT_TRUE(back == source);
}

TEST_P(BackendContract, CopiesOnlyTheRequestedBytes) {
    const Bytes before = pattern(kib, 1);
    const Bytes other = pattern(kib, 2);
    auto* const memory = static_cast<unsigned char*>(make_memory(kib));
    write(memory, before);
    EXPECT_EQ(backend().copy(device, CopyKind::host_to_device, memory + 101, other.data(), 333),
              DeviceStatus::ok);
    EXPECT_EQ(backend().fill(device, memory + 901, 9, 11), DeviceStatus::ok);
    Bytes expected = before;
    std::copy_n(other.begin(), 333, expected.begin() + 101);
    std::fill_n(expected.begin() + 901, 11, static_cast<unsigned char>(9));
    EXPECT_EQ(read(memory, kib), expected);
}

TEST_P(BackendContract, FillsInAStreamsOrder) {
    const std::size_t bytes = 200 * kib;
    void* const memory = make_memory(bytes);
    unsigned char* const first = make_pinned(bytes);
    unsigned char* const second = make_pinned(bytes);
    const StreamHandle stream = make_stream();
    const auto copy_to = [&](void* to) {
        return backend().copy_async(device, CopyKind::device_to_host, to, memory, bytes, stream);
    };
    EXPECT_EQ(backend().fill_async(device, memory, 0x01, bytes, stream), DeviceStatus::ok);
    EXPECT_EQ(copy_to(first), DeviceStatus::ok);
    EXPECT_EQ(backend().fill_async(device, memory, 0xfe, bytes, stream), DeviceStatus::ok);
    EXPECT_EQ(copy_to(second), DeviceStatus::ok);
    ASSERT_EQ(backend().synchronize_stream(device, stream), DeviceStatus::ok);
    EXPECT_EQ(Bytes(first, first + bytes), Bytes(bytes, 0x01));
    EXPECT_EQ(Bytes(second, second + bytes), Bytes(bytes, 0xfe));
}

TEST_P(BackendContract, StreamsHandOverDataWithEvents) {
    const std::size_t bytes = 2 * mib;
    void* const memory = make_memory(bytes);
    unsigned char* const host = make_pinned(bytes);
    const StreamHandle makes = make_stream();
    const StreamHandle takes = make_stream();
    const EventHandle made = make_event();
    const EventHandle taken = make_event();
    for (int round = 1; round <= 10; ++round) {
        const auto byte = static_cast<std::uint8_t>(round);
        ASSERT_EQ(backend().wait_event(device, makes, taken), DeviceStatus::ok);
        ASSERT_EQ(backend().fill_async(device, memory, byte, bytes, makes), DeviceStatus::ok);
        ASSERT_EQ(backend().record_event(device, made, makes), DeviceStatus::ok);
        ASSERT_EQ(backend().wait_event(device, takes, made), DeviceStatus::ok);
        ASSERT_EQ(
            backend().copy_async(device, CopyKind::device_to_host, host, memory, bytes, takes),
            DeviceStatus::ok);
        ASSERT_EQ(backend().record_event(device, taken, takes), DeviceStatus::ok);
        if (round % 5 != 0) continue;
        ASSERT_EQ(backend().synchronize_event(device, taken), DeviceStatus::ok);
        EXPECT_EQ(Bytes(host, host + bytes), Bytes(bytes, byte));
    }
}

// CUDA issues synchronous copies and fills through the default stream ("API synchronization
// behavior"), so programs that were written for it rely on this order.
TEST_P(BackendContract, SynchronousCopiesAndFillsWaitForTheDefaultStream) {
    const std::size_t bytes = mib;
    void* const memory = make_memory(bytes);
    unsigned char* const seen = make_pinned(bytes);
    const auto look = [&] {
        return backend().copy_async(device, CopyKind::device_to_host, seen, memory, bytes, nullptr);
    };
    for (int round = 1; round <= 50; ++round) {
        const auto byte = static_cast<std::uint8_t>(round);
        ASSERT_EQ(backend().fill_async(device, memory, byte, bytes, nullptr), DeviceStatus::ok);
        ASSERT_TRUE(read(memory, bytes) == Bytes(bytes, byte)) << "copy from the device " << round;
        ASSERT_EQ(look(), DeviceStatus::ok);
        write(memory, Bytes(bytes, 0xaa));
        ASSERT_TRUE(Bytes(seen, seen + bytes) == Bytes(bytes, byte)) << "copy to it " << round;
        ASSERT_EQ(look(), DeviceStatus::ok);
        ASSERT_EQ(backend().fill(device, memory, 0xbb, bytes), DeviceStatus::ok);
        ASSERT_TRUE(Bytes(seen, seen + bytes) == Bytes(bytes, 0xaa)) << "fill " << round;
    }
}

TEST_P(BackendWhereFunctionsMayBlock, SynchronousCopyDoesNotWaitForOtherStreams) {
    void* const memory = make_memory(kib);
    const StreamHandle held = make_stream();
    Gate gate;
    ASSERT_EQ(gate.close(backend(), device, held), DeviceStatus::ok);
    write(memory, pattern(kib));
    EXPECT_EQ(read(memory, kib), pattern(kib));
    EXPECT_EQ(backend().fill(device, memory, 3, kib), DeviceStatus::ok);
    EXPECT_EQ(read(memory, kib), Bytes(kib, 3));
    EXPECT_EQ(backend().query_stream(device, held), DeviceStatus::not_ready);
}

TEST_P(BackendContract, CopyToTheDeviceHasTakenPageableMemoryWhenItReturns) {
    void* const busy = make_memory(4 * mib);
    for (const std::size_t bytes : {std::size_t{1}, 64 * kib, 64 * kib + 1, mib}) {
        void* const memory = make_memory(bytes);
        for (const StreamHandle stream : {make_stream(), StreamHandle(nullptr)}) {
            for (std::uint8_t byte = 0; byte < 8; ++byte) {
                ASSERT_EQ(backend().fill_async(device, busy, byte, 4 * mib, stream),
                          DeviceStatus::ok);
            }
            Bytes source = pattern(bytes);
            ASSERT_EQ(backend().copy_async(device, CopyKind::host_to_device, memory, source.data(),
                                           bytes, stream),
                      DeviceStatus::ok);
            std::fill(source.begin(), source.end(), static_cast<unsigned char>(0));
            ASSERT_EQ(backend().synchronize_stream(device, stream), DeviceStatus::ok);
            EXPECT_TRUE(read(memory, bytes) == pattern(bytes)) << bytes;
        }
    }
}

TEST_P(BackendWhereFunctionsMayBlock, CopyToTheDeviceReadsPinnedMemoryInTheStreamsOrder) {
    void* const memory = make_memory(kib);
    unsigned char* const source = make_pinned(kib);
    const StreamHandle stream = make_stream();
    {
        Gate gate;
        ASSERT_EQ(gate.close(backend(), device, stream), DeviceStatus::ok);
        std::memset(source, 1, kib);
        ASSERT_EQ(
            backend().copy_async(device, CopyKind::host_to_device, memory, source, kib, stream),
            DeviceStatus::ok);
        std::memset(source, 2, kib);
    }
    ASSERT_EQ(backend().synchronize_stream(device, stream), DeviceStatus::ok);
    EXPECT_EQ(read(memory, kib), Bytes(kib, 2));
}

TEST_P(BackendContract, ZeroBytesMayBeCopiedWithNullptr) {
    for (const CopyKind kind : {CopyKind::host_to_host, CopyKind::host_to_device,
                                CopyKind::device_to_host, CopyKind::device_to_device}) {
        EXPECT_EQ(backend().copy(device, kind, nullptr, nullptr, 0), DeviceStatus::ok);
        EXPECT_EQ(backend().copy_async(device, kind, nullptr, nullptr, 0, nullptr),
                  DeviceStatus::ok);
    }
    EXPECT_EQ(backend().fill(device, nullptr, 1, 0), DeviceStatus::ok);
    EXPECT_EQ(backend().fill_async(device, nullptr, 1, 0, nullptr), DeviceStatus::ok);
}

TEST_P(BackendContract, RejectsCopiesWithNullptr) {
    unsigned char byte = 5;
    void* const memory = make_memory(256);
    constexpr auto kind = CopyKind::host_to_device;
    expect_refused(backend().copy(device, kind, memory, nullptr, 1));
    expect_refused(backend().copy(device, kind, nullptr, &byte, 1));
    expect_refused(backend().copy(device, static_cast<CopyKind>(77), memory, &byte, 1));
    expect_refused(backend().copy_async(device, kind, memory, nullptr, 1, nullptr));
    expect_refused(backend().copy_async(device, kind, nullptr, &byte, 1, nullptr));
    expect_refused(backend().fill(device, nullptr, 1, 1));
    expect_refused(backend().fill_async(device, nullptr, 1, 1, nullptr));
}

TEST_P(BackendContract, CopiesBetweenPeersIfSupported) {
    if (!backend().can_access_peer(0, 1)) {
        unsigned char byte = 0;
        EXPECT_NE(backend().copy_peer_async(0, &byte, 0, &byte, 1, nullptr), DeviceStatus::ok);
        return;
    }
    ASSERT_EQ(backend().enable_peer_access(0, 1), DeviceStatus::ok);
    constexpr auto kind = StorageKind::private_storage;
    void* const here = make_memory(mib);
    void* there = nullptr;
    ASSERT_EQ(backend().allocate(1, mib, kind, &there), DeviceStatus::ok);
    EXPECT_EQ(backend().fill(1, there, 0x71, mib), DeviceStatus::ok);
    EXPECT_EQ(backend().copy_peer_async(0, here, 1, there, mib, nullptr), DeviceStatus::ok);
    EXPECT_EQ(backend().synchronize_stream(0, nullptr), DeviceStatus::ok);
    EXPECT_EQ(read(here, mib), Bytes(mib, 0x71));
    EXPECT_EQ(backend().deallocate(1, there, mib, kind), DeviceStatus::ok);
}

}  // namespace tensorpool::testing
