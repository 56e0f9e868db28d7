#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

#include "device/caching/caching_device.hpp"

namespace tensorpool {
namespace {

using test::device_with;
using test::mib;
using test::Slabs;

class ScalarValues : public ::testing::Test {
protected:
    ~ScalarValues() override { EXPECT_EQ(backend.hazard_count(), 0u) << backend.hazard_report(); }

    template <class T>
    T read(const void* scalar, StreamHandle stream) {
        EXPECT_EQ(backend.synchronize_stream(0, stream), DeviceStatus::ok);
        T value{};
        EXPECT_EQ(backend.copy(0, CopyKind::device_to_host, &value, scalar, sizeof value),
                  DeviceStatus::ok);
        return value;
    }
    template <class T>
    void* allocate(const T& value, StreamHandle stream) {
        return allocator.allocate_scalar(std::as_bytes(std::span(&value, 1)), stream);
    }

    test::Device backend{device_with(Slabs::plain, 64 * mib)};
    CachingAllocator allocator{backend, 0};
    const StreamHandle stream = backend.stream();
};

TEST_F(ScalarValues, AreWrittenForEachSize) {
    const double real = 0.1;
    const std::int64_t whole = -3;
    const float one = 1;
    const std::uint8_t byte = 200;
    EXPECT_EQ(read<double>(allocate(real, stream), stream), real);
    EXPECT_EQ(read<std::int64_t>(allocate(whole, stream), stream), whole);
    EXPECT_EQ(read<float>(allocate(one, stream), stream), one);
    EXPECT_EQ(read<std::uint8_t>(allocate(byte, stream), stream), byte);
    const std::array<std::byte, 3> three = {std::byte{1}, std::byte{2}, std::byte{2}};
    EXPECT_EQ((read<std::array<std::byte, 3>>(allocate(three, stream), stream)), three);
}

TEST_F(ScalarValues, DoNotDependOnTheCallersMemoryAfterTheCall) {
    std::uint32_t value = 77;
    void* const scalar = allocate(value, stream);
    value = 0;
    EXPECT_EQ(read<std::uint32_t>(scalar, stream), 77u);
}

// The position of a freed scalar serves the next one before the work that reads the first is done.
TEST_F(ScalarValues, AreWrittenInTheOrderOfTheStream) {
    std::uint32_t* const copied = static_cast<std::uint32_t*>(backend.pinned(sizeof *copied));
    void* const first = allocate(std::uint32_t{1}, stream);
    ASSERT_EQ(backend.copy_async(0, CopyKind::device_to_host, copied, first, 4, stream),
              DeviceStatus::ok);
    allocator.deallocate(first);
    void* const second = allocate(std::uint32_t{2}, stream);
    EXPECT_EQ(second, first);
    EXPECT_EQ(read<std::uint32_t>(second, stream), 2u);
    EXPECT_EQ(*copied, 1u);
}

TEST_F(ScalarValues, OfOtherSizesAreRejected) {
    const std::vector<std::byte> bytes(9);
    EXPECT_THROW((void)allocator.allocate_scalar(bytes), std::invalid_argument);
    EXPECT_THROW((void)allocator.allocate_scalar(std::span<const std::byte>()),
                 std::invalid_argument);
}

TEST_F(ScalarValues, AreFreedIfTheyCannotBeWritten) {
    SimulationFaults faults;
    faults.failing = {{SimulatedCall::fill_async, 2, 1}};
    backend.set_faults(faults);
    const std::uint16_t value = 0x0102;
    EXPECT_THROW((void)allocate(value, stream), DeviceError);
    EXPECT_EQ(allocator.statistics().in_use_bytes, 0u);
}

}  // namespace
}  // namespace tensorpool
