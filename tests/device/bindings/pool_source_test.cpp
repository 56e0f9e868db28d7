#include <tensorpool/device/pool_source.hpp>

#include <gtest/gtest.h>

#include <tensorpool/device/device_allocation.hpp>
#include <tensorpool/device/device_stream.hpp>
#include <tensorpool/device/runtimes.hpp>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "device/runtime/made_bytes.hpp"
#include "device/runtime/put_in_backend.hpp"

namespace tensorpool {
namespace {

/// Makes the CPU's runtime use a pool of the test, and restores the default afterwards.
class PoolSourceTest : public testing::Test {
protected:
    PoolSourceTest() {
        reset_runtimes();
        use_pool_on_cpu(pool_);
    }
    ~PoolSourceTest() override {
        reset_runtimes();
        set_runtime_options(DeviceType::cpu, {});
    }

    MemoryPool pool_;
};

TEST_F(PoolSourceTest, CpuMemoryComesFromThePool) {
    DeviceAllocation memory(get_runtime({DeviceType::cpu, 0}), 1000);
    EXPECT_TRUE(pool_.owns(memory.data()));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 256, 0u);
    memory.set(0, made_bytes(1000));
    EXPECT_EQ(content_of(memory), made_bytes(1000));
    memory.reset();
    EXPECT_EQ(pool_.get_total_allocated(), 0u);
}

TEST_F(PoolSourceTest, BlockIsFreedOnlyAfterTheWorkOfItsStream) {
    const PutInBackend simulated(lazy_devices());
    Runtime& runtime = get_runtime({DeviceType::simulated, 0});
    const DeviceStream stream(runtime);
    DeviceAllocation memory = runtime.allocate_host(100'000, stream);
    stream.launch([] {});
    memory.reset();
    EXPECT_GE(pool_.get_total_allocated(), 100'000u);
    stream.synchronize();
    runtime.trim();
    EXPECT_EQ(pool_.get_total_allocated(), 0u);
}

TEST_F(PoolSourceTest, HostMemoryOfOtherDevicesComesFromThePool) {
    const PutInBackend simulated(lazy_devices());
    const DeviceAllocation host = get_runtime({DeviceType::simulated, 0}).allocate_host(5000);
    EXPECT_TRUE(pool_.owns(host.data()));
}

TEST_F(PoolSourceTest, MustBeSetBeforeTheFirstUseOfTheCpu) {
    (void)get_runtime({DeviceType::cpu, 0});
    EXPECT_THROW(use_pool_on_cpu(), std::logic_error);
}

TEST_F(PoolSourceTest, IsTrimmedWithTheRuntime) {
    Runtime& cpu = get_runtime({DeviceType::cpu, 0});
    { const DeviceAllocation memory(cpu, 8 << 20); }
    EXPECT_GT(cpu.trim(), 0u);
}

TEST(PoolSource, DefaultUsesTheGlobalPool) {
    PoolSource source;
    EXPECT_EQ(&source.pool(), &get_global_memory_pool());
    void* const memory = source.allocate(300, 256);
    EXPECT_TRUE(get_global_memory_pool().owns(memory));
    source.deallocate(memory, 300, 256);
}

}  // namespace
}  // namespace tensorpool
