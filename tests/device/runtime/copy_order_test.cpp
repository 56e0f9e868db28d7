// The order of copies that code ported from CUDA relies on, on the runtime of the CPU.

#include <tensorpool/device/runtime.hpp>

#include <gtest/gtest.h>

#include <tensorpool/device/device_stream.hpp>
#include <tensorpool/device/host_backend.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/runtime/made_bytes.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t bytes = std::size_t{1} << 20;
constexpr int rounds = 200;

class CopyOrder : public ::testing::Test {
protected:
    using Bytes = std::vector<std::byte>;

    static Bytes all(int round) { return Bytes(bytes, static_cast<std::byte>(round & 0xff)); }
    /// Gives the default stream work, at the end of which each byte of the memory is set.
    void keep_busy(int round) {
        for (const int byte : {round + 1, round + 2, round}) {
            runtime_.fill(memory_.data(), static_cast<std::uint8_t>(byte), bytes, nullptr);
        }
    }

    Runtime runtime_{std::make_shared<HostBackend>(), {DeviceType::cpu, 0}};
    DeviceMemory memory_ = runtime_.allocate(bytes);
    DeviceMemory pinned_ = runtime_.allocate_pinned(bytes);
};

TEST_F(CopyOrder, CopyFromTheDeviceWithoutAStreamWaitsForTheDefaultStream) {
    int stale = 0;
    Bytes found(bytes);
    for (int round = 0; round < rounds; ++round) {
        keep_busy(round);
        runtime_.copy_device_to_host(found.data(), memory_.data(), bytes);
        if (found != all(round)) ++stale;
    }
    EXPECT_EQ(stale, 0) << "of " << rounds;
}

TEST_F(CopyOrder, CopyToTheDeviceWithoutAStreamWaitsForTheDefaultStream) {
    int overwritten = 0;
    const Bytes bytes_after(bytes, std::byte{0xee});
    for (int round = 0; round < rounds; ++round) {
        keep_busy(round);
        runtime_.copy_device_to_host(pinned_.data(), memory_.data(), bytes, nullptr);
        runtime_.copy_host_to_device(memory_.data(), bytes_after.data(), bytes);
        const auto* const seen = static_cast<const std::byte*>(pinned_.data());
        if (Bytes(seen, seen + bytes) != all(round)) ++overwritten;
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
        if (found != Bytes(bytes, std::byte{0xee})) ++lost;
    }
    EXPECT_EQ(lost, 0) << "of " << rounds;
}

TEST_F(CopyOrder, SetAndGetWaitForTheDefaultStreamToo) {
    const DeviceStream stream(runtime_);
    DeviceMemory other(runtime_, bytes, stream);
    int stale = 0;
    for (int round = 0; round < rounds; ++round) {
        keep_busy(round);
        runtime_.copy_device_to_device(other.data(), memory_.data(), bytes, nullptr);
        if (content_of(other) != all(round)) ++stale;
    }
    EXPECT_EQ(stale, 0) << "of " << rounds;
}

}  // namespace
}  // namespace tensorpool
