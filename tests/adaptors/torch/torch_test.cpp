#include <tensorpool/torch.hpp>

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <list>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tensorpool {
namespace {

bool is_aligned(const void* p) {
    return reinterpret_cast<std::uintptr_t>(p) % 64 == 0;
}

std::size_t blocks_in_use(const MemoryPool& pool) {
    return pool.get_allocation_count() - pool.get_deallocation_count();
}

TEST(PooledTorchAllocator, BlocksAreInThePoolUntilTheyAreFreed) {
    MemoryPool pool;
    const PooledTorchAllocator allocator(pool);
    {
        const c10::DataPtr small = allocator.allocate(100), large = allocator.allocate(1 << 20);
        EXPECT_TRUE(pool.owns(small.get()));
        EXPECT_TRUE(pool.owns(large.get()));
        EXPECT_TRUE(is_aligned(small.get()) && is_aligned(large.get()));
        EXPECT_TRUE(small.device().is_cpu());
    }
    EXPECT_EQ(blocks_in_use(pool), 0U);
    EXPECT_EQ(pool.get_allocation_count(), 2U);
}

TEST(PooledTorchAllocator, ZeroBytesAreNullAndMayBeFreed) {
    MemoryPool pool;
    const PooledTorchAllocator allocator(pool);
    const c10::DataPtr nothing = allocator.allocate(0);
    EXPECT_EQ(nothing.get(), nullptr);
    EXPECT_EQ(nothing.get_deleter(), allocator.raw_deleter());
    allocator.raw_deleter()(nullptr);
    EXPECT_EQ(pool.get_allocation_count(), 0U);
}

TEST(PooledTorchAllocator, RawBlocksAreFreedByTheDeleter) {
    MemoryPool pool;
    PooledTorchAllocator allocator(pool);
    void* const block = allocator.raw_allocate(5000);
    EXPECT_TRUE(pool.owns(block));
    allocator.raw_deallocate(block);
    EXPECT_EQ(blocks_in_use(pool), 0U);
}

TEST(PooledTorchAllocator, BlocksAreFreedInTheirPool) {
    MemoryPool pools[2];
    const PooledTorchAllocator first(pools[0]), second(pools[1]);
    EXPECT_NE(first.raw_deleter(), second.raw_deleter());
    c10::DataPtr one = first.allocate(1000), other = second.allocate(1000);
    std::swap(one, other);
    one.clear();
    EXPECT_EQ(blocks_in_use(pools[0]), 1U);
    EXPECT_EQ(blocks_in_use(pools[1]), 0U);
}

TEST(PooledTorchAllocator, SixteenPoolsMayHaveAnAllocator) {
    MemoryPool pool;
    std::list<PooledTorchAllocator> allocators;
    // The global pool may have one allocator.
    for (int i = 0; i < 15; ++i) allocators.emplace_back(pool);
    global_torch_allocator();
    EXPECT_THROW(PooledTorchAllocator{pool}, std::length_error);
    allocators.pop_front();
    allocators.emplace_back(pool);
    allocators.back().allocate(100);
    EXPECT_EQ(blocks_in_use(pool), 0U);
}

TEST(PooledTorchAllocator, TooLargeARequestThrowsPyTorchsErrorWithDetails) {
    PoolOptions options;
    options.name = "small";
    options.max_capacity = 1 << 20;
    MemoryPool pool(options);
    const PooledTorchAllocator allocator(pool);
    try {
        allocator.allocate(2 << 20);
        FAIL() << "2 MiB from a pool of 1 MiB";
    } catch (const c10::Error& error) {
        EXPECT_EQ(std::string(error.what_without_backtrace())
                      .find("DefaultCPUAllocator: can't allocate memory: you tried to allocate "
                            "2097152 bytes. tensorpool: small: allocate: "),
                  0U)
            << error.what_without_backtrace();
    }
}

class EnableTorchTest : public testing::Test {
protected:
    ~EnableTorchTest() override { disable_torch(); }

    const MemoryPool& pool_ = get_global_memory_pool();
};

TEST_F(EnableTorchTest, TensorsComeFromTheGlobalPoolWhileItIsEnabled) {
    const at::Tensor before = at::ones({1000});
    EXPECT_FALSE(torch_is_enabled());
    EXPECT_TRUE(enable_torch());
    EXPECT_TRUE(enable_torch());
    EXPECT_TRUE(torch_is_enabled());
    at::Tensor ours = at::ones({1000});
    EXPECT_TRUE(pool_.owns(ours.data_ptr()));
    EXPECT_TRUE(disable_torch());
    EXPECT_FALSE(disable_torch());
    ours.resize_({100'000});
    EXPECT_TRUE(pool_.owns(ours.data_ptr()));
    EXPECT_FALSE(pool_.owns(before.data_ptr()));
    EXPECT_FALSE(pool_.owns(at::ones({1000}).data_ptr()));
}

TEST_F(EnableTorchTest, CanBeToggledWithTensorsInUse) {
    const std::size_t before = blocks_in_use(pool_);
    std::vector<at::Tensor> tensors;
    for (int i = 0; i < 50; ++i) {
        EXPECT_TRUE(i % 2 == 0 ? enable_torch() : disable_torch());
        tensors.push_back(at::full({1 + i * 997}, i));
    }
    EXPECT_EQ(blocks_in_use(pool_), before + 25);
    EXPECT_EQ(tensors[49].sum().item<std::int64_t>(), 49 * (1 + 49 * 997));
    tensors.clear();
    EXPECT_EQ(blocks_in_use(pool_), before);
}

TEST_F(EnableTorchTest, ThreadsFreeEachOthersTensors) {
    enable_torch();
    const std::size_t before = blocks_in_use(pool_);
    std::vector<at::Tensor> tensors(200);
    std::thread([&] {
        for (at::Tensor& tensor : tensors) tensor = at::ones({3000});
    }).join();
    tensors.clear();
    EXPECT_EQ(blocks_in_use(pool_), before);
}

// The last test that registers an allocator: PyTorch never lowers the priority again.
TEST_F(EnableTorchTest, AllocatorOfHigherPriorityStays) {
    MemoryPool pool;
    PooledTorchAllocator others(pool);
    c10::Allocator* const before = c10::GetCPUAllocator();
    c10::SetCPUAllocator(&others, 5);
    EXPECT_FALSE(enable_torch());
    EXPECT_FALSE(disable_torch());
    EXPECT_EQ(c10::GetCPUAllocator(), &others);
    EXPECT_TRUE(enable_torch(5));
    EXPECT_TRUE(disable_torch());
    EXPECT_EQ(c10::GetCPUAllocator(), &others);
    c10::SetCPUAllocator(before, 5);
}

}  // namespace
}  // namespace tensorpool
