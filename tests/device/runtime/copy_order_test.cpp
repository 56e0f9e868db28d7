// The order of copies that code ported from CUDA relies on, on a device that works only when it
// must.

#include <tensorpool/device/runtime.hpp>

#include <gtest/gtest.h>

#include <tensorpool/device/device_stream.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "device/runtime/made_bytes.hpp"
#include "device/runtime/put_in_backend.hpp"
#include "support/all_bytes.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t bytes = 100'000;
constexpr int rounds = 5;

class CopyOrder : public ::testing::Test {
protected:
    using Bytes = std::vector<std::byte>;

    static Bytes all(int round) {
        Bytes made(bytes);
        std::memset(made.data(), round & 0xff, bytes);
        return made;
    }
    static bool is_all(const void* found, int round) {
        return testing::all_bytes_are(static_cast<unsigned char>(round), found, bytes);
    }
    /// Gives the default stream work, at the end of which each byte of the memory is set.
    void keep_busy(int round) {
        for (const int byte : {round + 1, round + 2, round}) {
            runtime_.fill(memory_.data(), static_cast<std::uint8_t>(byte), bytes, nullptr);
        }
    }

    Runtime runtime_{std::make_shared<SimulatedBackend>(lazy_devices()),
                     {DeviceType::simulated, 0}};
    DeviceAllocation memory_ = runtime_.allocate(bytes);
    DeviceAllocation pinned_ = runtime_.allocate_pinned(bytes);
};

TEST_F(CopyOrder, CopyFromTheDeviceWithoutAStreamWaitsForTheDefaultStream) {
    int stale = 0;
    Bytes found(bytes);
    for (int round = 0; round < rounds; ++round) {
        keep_busy(round);
        runtime_.copy_device_to_host(found.data(), memory_.data(), bytes);
        if (!is_all(found.data(), round)) ++stale;
    }
    EXPECT_EQ(stale, 0) << "of " << rounds;
}

TEST_F(CopyOrder, CopyToTheDeviceWithoutAStreamWaitsForTheDefaultStream) {
    int overwritten = 0;
    const Bytes bytes_after = all(0xee);
    for (int round = 0; round < rounds; ++round) {
        keep_busy(round);
        runtime_.copy_device_to_host(pinned_.data(), memory_.data(), bytes, nullptr);
        runtime_.copy_host_to_device(memory_.data(), bytes_after.data(), bytes);
        if (!is_all(pinned_.data(), round)) ++overwritten;
    }
    EXPECT_EQ(overwritten, 0) << "of " << rounds;
}

TEST_F(CopyOrder, FillWithoutAStreamWaitsForTheDefaultStream) {
    int lost = 0;
    Bytes found(bytes);
    for (int round = 0; round < rounds; ++round) {
        keep_busy(round);
        runtime_.fill(memory_.data(), 0xee, bytes);
        runtime_.synchronize();
        runtime_.copy_device_to_host(found.data(), memory_.data(), bytes);
        if (!is_all(found.data(), 0xee)) ++lost;
    }
    EXPECT_EQ(lost, 0) << "of " << rounds;
}

TEST_F(CopyOrder, SetAndGetWaitForTheDefaultStreamToo) {
    const DeviceStream stream(runtime_);
    DeviceAllocation other(runtime_, bytes, stream);
    int stale = 0;
    for (int round = 0; round < rounds; ++round) {
        keep_busy(round);
        runtime_.copy_device_to_device(other.data(), memory_.data(), bytes, nullptr);
        if (!is_all(content_of(other).data(), round)) ++stale;
    }
    EXPECT_EQ(stale, 0) << "of " << rounds;
}

// The size is one for which CUDA does not wait for the stream.
TEST_F(CopyOrder, SourceOfACopyToTheDeviceMayBeOverwrittenAtOnce) {
    const DeviceStream stream(runtime_);
    for (const StreamHandle in : {stream.handle(), StreamHandle(nullptr)}) {
        const std::size_t small = 65536;
        Bytes source = made_bytes(small);
        runtime_.copy_host_to_device(memory_.data(), source.data(), small, in);
        std::fill(source.begin(), source.end(), std::byte{0});
        runtime_.synchronize_stream(in);
        Bytes found(small);
        runtime_.copy_device_to_host(found.data(), memory_.data(), small);
        EXPECT_EQ(found, made_bytes(small));
    }
}

TEST_F(CopyOrder, SourceOfACopyToTheDeviceMayBeFreedAtOnce) {
    int wrong = 0;
    Bytes found(bytes);
    for (int round = 0; round < rounds; ++round) {
        keep_busy(0);
        {
            Bytes source = all(round);
            runtime_.copy_host_to_device(memory_.data(), source.data(), bytes, nullptr);
            std::memset(source.data(), 0xee, bytes);
        }
        runtime_.copy_device_to_host(found.data(), memory_.data(), bytes);
        if (!is_all(found.data(), round)) ++wrong;
    }
    EXPECT_EQ(wrong, 0) << "of " << rounds;
}

// A graph reads the memory at each launch, so nothing may be taken while it is captured.
TEST_F(CopyOrder, CapturedCopyReadsItsSourceAtEachLaunch) {
    const DeviceStream stream(runtime_);
    Bytes source(bytes);
    Bytes found(bytes);
    ASSERT_EQ(runtime_.backend().begin_capture(0, stream), DeviceStatus::ok);
    runtime_.copy_host_to_device(memory_.data(), source.data(), bytes, stream);
    runtime_.copy_device_to_host(found.data(), memory_.data(), bytes, stream);
    GraphHandle graph = nullptr;
    ASSERT_EQ(runtime_.backend().end_capture(0, stream, &graph), DeviceStatus::ok);
    for (int round = 1; round < 4; ++round) {
        std::fill(source.begin(), source.end(), static_cast<std::byte>(round));
        ASSERT_EQ(runtime_.backend().launch_graph(0, graph, stream), DeviceStatus::ok);
        runtime_.synchronize_stream(stream);
        EXPECT_EQ(found, source);
    }
    EXPECT_EQ(runtime_.backend().destroy_graph(0, graph), DeviceStatus::ok);
}

}  // namespace
}  // namespace tensorpool
