#include <tensorpool/device/pluggable_allocator.h>

#include <gtest/gtest.h>

#include <tensorpool/tensorpool.h>
#include <tensorpool/device/runtimes.hpp>

#include <stdexcept>
#include <string>

#include "device/runtime/put_in_backend.hpp"

namespace tensorpool {
namespace {

class PluggableAllocator : public testing::Test {
protected:
    ~PluggableAllocator() override {
        EXPECT_EQ(cuda_->hazard_count(), 0u) << cuda_->hazard_report();
    }
    std::uint64_t in_use(int device) const {
        return get_runtime({DeviceType::cuda, device}).allocator().statistics().in_use_bytes;
    }
    StreamHandle make_stream(int device) {
        StreamHandle stream = nullptr;
        EXPECT_EQ(cuda_->create_stream(device, &stream), DeviceStatus::ok);
        return stream;
    }
    /// Launches a kernel that writes the memory.
    void use(int device, void* memory, std::size_t bytes, StreamHandle stream) {
        SimulatedKernel kernel;
        kernel.label = "kernel";
        kernel.writes = {{memory, bytes}};
        EXPECT_EQ(cuda_->launch(device, stream, kernel), DeviceStatus::ok);
    }

    PutInBackend cuda_{lazy_devices(2), DeviceType::cuda};
};

TEST_F(PluggableAllocator, AllocatesAndFreesMemoryOfTheDevice) {
    void* const memory = tensorpool_torch_malloc(1000, 1, nullptr);
    ASSERT_NE(memory, nullptr);
    EXPECT_GE(in_use(1), 1000u);
    EXPECT_EQ(in_use(0), 0u);
    tensorpool_torch_free(memory, 1000, 1, nullptr);
    EXPECT_EQ(in_use(1), 0u);
}

TEST_F(PluggableAllocator, ReusesABlockOnItsStreamWithoutWaiting) {
    const StreamHandle stream = make_stream(0);
    void* const first = tensorpool_torch_malloc(1000, 0, stream);
    use(0, first, 1000, stream);
    cuda_->reset_calls();
    tensorpool_torch_free(first, 1000, 0, stream);
    void* const second = tensorpool_torch_malloc(1000, 0, stream);
    EXPECT_EQ(second, first);
    use(0, second, 1000, stream);
    EXPECT_EQ(cuda_->calls().waits(), 0u);
    tensorpool_torch_free(second, 1000, 0, stream);
}

TEST_F(PluggableAllocator, KeepsABlockUntilARecordedStreamHasPassed) {
    const StreamHandle own = make_stream(1);
    const StreamHandle other = make_stream(1);
    void* const memory = tensorpool_torch_malloc(1000, 1, own);
    tensorpool_torch_record_stream(memory, other);
    use(1, memory, 1000, other);
    tensorpool_torch_free(memory, 1000, 1, own);
    void* const next = tensorpool_torch_malloc(1000, 1, own);
    EXPECT_NE(next, memory);
    use(1, next, 1000, own);
    tensorpool_torch_free(next, 1000, 1, own);
}

TEST_F(PluggableAllocator, ZeroBytesAndNullAreIgnored) {
    EXPECT_EQ(tensorpool_torch_malloc(0, 0, nullptr), nullptr);
    tensorpool_torch_free(nullptr, 0, 0, nullptr);
    tensorpool_torch_record_stream(nullptr, nullptr);
}

/// Returns the text with which an allocation fails; "" if it does not.
std::string failure_of(std::size_t bytes, int device) {
    try {
        (void)tensorpool_torch_malloc(bytes, device, nullptr);
        return "";
    } catch (const std::runtime_error& error) {
        return error.what();
    }
}

TEST_F(PluggableAllocator, OutOfMemoryThrowsWhatPyTorchMakesARuntimeError) {
    const std::string text = failure_of(2 * device_bytes, 0);
    EXPECT_NE(text.find("2 GiB"), std::string::npos) << text;
    EXPECT_NE(std::string(tensorpool_last_error()).find(text), std::string::npos);
}

TEST_F(PluggableAllocator, FailureSetsTheLastError) {
    EXPECT_NE(failure_of(100, 7).find("there is no device cuda:7"), std::string::npos);
    int nothing = 0;
    tensorpool_torch_record_stream(&nothing, nullptr);
    EXPECT_NE(
        std::string(tensorpool_last_error()).find("no block in use of a CUDA device begins at 0x"),
        std::string::npos);
}

TEST_F(PluggableAllocator, ResetGivesFreeMemoryBack) {
    void* const memory = tensorpool_torch_malloc(1000, 0, nullptr);
    tensorpool_torch_free(memory, 1000, 0, nullptr);
    tensorpool_torch_reset();
    EXPECT_EQ(get_runtime({DeviceType::cuda, 0}).allocator().statistics().capacity_bytes, 0u);
}

TEST_F(PluggableAllocator, FractionLimitsADeviceBeforeItsFirstUse) {
    tensorpool_torch_set_memory_fraction(0.25, 1);
    const std::size_t half = device_bytes / 2;
    EXPECT_NE(failure_of(half, 1), "");
    void* const memory = tensorpool_torch_malloc(half, 0, nullptr);
    EXPECT_NE(memory, nullptr);
    tensorpool_torch_free(memory, half, 0, nullptr);
}

TEST_F(PluggableAllocator, FractionLimitsADeviceThatWasUsed) {
    const std::size_t half = device_bytes / 2;
    void* const memory = tensorpool_torch_malloc(half, 0, nullptr);
    EXPECT_NE(memory, nullptr);
    tensorpool_torch_free(memory, half, 0, nullptr);
    tensorpool_torch_set_memory_fraction(0.25, 0);
    EXPECT_NE(failure_of(half, 0), "");
    tensorpool_torch_set_memory_fraction(0.75, 0);
    void* const again = tensorpool_torch_malloc(half, 0, nullptr);
    EXPECT_NE(again, nullptr) << tensorpool_last_error();
    tensorpool_torch_free(again, half, 0, nullptr);
}

TEST_F(PluggableAllocator, StreamOrderedRuntimeServesBlocksAndRefusesAFraction) {
    RuntimeOptions options;
    options.stream_ordered = StreamOrderedOptions();
    set_runtime_options(Device{DeviceType::cuda, 1}, options);
    void* const memory = tensorpool_torch_malloc(1000, 1, nullptr);
    EXPECT_NE(memory, nullptr);
    tensorpool_torch_free(memory, 1000, 1, nullptr);
    tensorpool_torch_set_memory_fraction(0.5, 1);
    EXPECT_NE(std::string(tensorpool_last_error()).find("expected a caching allocator"),
              std::string::npos)
        << tensorpool_last_error();
}

TEST_F(PluggableAllocator, FractionKeepsTheOtherOptionsOfTheDevice) {
    RuntimeOptions options;
    options.caching.name = "second";
    options.caching.soft_limit = 0.125;
    set_runtime_options(Device{DeviceType::cuda, 1}, options);
    tensorpool_torch_set_memory_fraction(0.25, 1);
    const DeviceStatistics statistics = get_runtime({DeviceType::cuda, 1}).allocator().statistics();
    EXPECT_STREQ(statistics.name, "second");
    EXPECT_EQ(statistics.limit_bytes, device_bytes / 4);
    EXPECT_EQ(statistics.soft_limit_bytes, device_bytes / 8);
}

TEST_F(PluggableAllocator, ImpossibleFractionIsRejected) {
    tensorpool_torch_set_memory_fraction(1.5, 1);
    EXPECT_NE(std::string(tensorpool_last_error())
                  .find("the fraction is 1.5, expected above 0 and at most 1"),
              std::string::npos);
}

}  // namespace
}  // namespace tensorpool
