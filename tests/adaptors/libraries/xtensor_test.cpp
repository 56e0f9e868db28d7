#include <tensorpool/xtensor.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <xtensor/xarray.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>

namespace tensorpool {
namespace {

using Array = xt::xarray<float>;
template <class T>
using ArrayOfAPool = xt::xarray<T, xt::layout_type::row_major, Allocator<T>>;

static_assert(std::is_same_v<Array, ArrayOfAPool<float>>);

bool is_aligned(const void* p) {
    return reinterpret_cast<std::uintptr_t>(p) % 64 == 0;
}

class Xtensor : public testing::Test {
protected:
    std::size_t blocks_in_use() const {
        return pool_.get_allocation_count() - pool_.get_deallocation_count();
    }

    MemoryPool& pool_ = get_global_memory_pool();
    std::size_t blocks_before_ = blocks_in_use();
};

TEST_F(Xtensor, ElementsAreInThePoolUntilTheArrayIsDestroyed) {
    {
        const Array dynamic = Array::from_shape({100, 70});
        const xt::xtensor<double, 3> fixed = xt::ones<double>({3, 5, 7});
        for (const void* const data :
             {static_cast<const void*>(dynamic.data()), static_cast<const void*>(fixed.data())}) {
            EXPECT_TRUE(pool_.owns(data));
            EXPECT_TRUE(is_aligned(data));
        }
        EXPECT_EQ(blocks_in_use(), blocks_before_ + 2);
    }
    EXPECT_EQ(blocks_in_use(), blocks_before_);
}

TEST_F(Xtensor, ResultsOfExpressionsUseThePool) {
    const xt::xtensor<float, 1> a = xt::arange<float>(0, 1000);
    const xt::xtensor<float, 1> b = xt::ones<float>({1000});
    const std::size_t made_before = pool_.get_allocation_count();
    const auto sum = xt::eval(a + 2 * b);
    EXPECT_TRUE(pool_.owns(sum.data()));
    EXPECT_EQ(sum(999), 1001);
    const Array table = xt::ones<float>({10, 100});
    const Array sums = xt::sum(table + 1, {1});
    EXPECT_TRUE(pool_.owns(sums.data()));
    EXPECT_EQ(sums(9), 200);
    EXPECT_GE(pool_.get_allocation_count(), made_before + 3);
}

TEST_F(Xtensor, TemporaryOfAnAliasedAssignmentUsesThePool) {
    xt::xtensor<float, 1> a = xt::arange<float>(0, 100);
    const std::size_t made_before = pool_.get_allocation_count();
    xt::view(a, xt::range(1, 100)) = xt::view(a, xt::range(0, 99)) + 0.0F;
    EXPECT_EQ(a(1), 0);
    EXPECT_EQ(a(99), 98);
    EXPECT_GT(pool_.get_allocation_count(), made_before);
}

TEST_F(Xtensor, ResizingAllocatesTheNewSizeAndFreesTheOldBlock) {
    Array a = Array::from_shape({10});
    for (std::size_t side : {100U, 1000U, 3U}) {
        a.resize({side, side});
        EXPECT_TRUE(pool_.owns(a.data()));
        EXPECT_GE(pool_.usable_size(a.data()), side * side * sizeof(float));
        EXPECT_EQ(blocks_in_use(), blocks_before_ + 1);
    }
}

TEST_F(Xtensor, MovingTransfersTheBlock) {
    Array from = xt::ones<float>({100});
    const float* const data = from.data();
    const Array to = std::move(from);
    EXPECT_EQ(to.data(), data);
    EXPECT_EQ(blocks_in_use(), blocks_before_ + 1);
}

TEST_F(Xtensor, ArrayWithoutElementsLeavesNoBlock) {
    { const Array empty = Array::from_shape({0, 7}); }
    EXPECT_EQ(blocks_in_use(), blocks_before_);
}

TEST_F(Xtensor, TooLargeARequestThrowsAndKeepsTheElements) {
    Array a = xt::ones<float>({100});
    const float* const data = a.data();
    EXPECT_THROW(a.resize({std::size_t{1} << 20, std::size_t{1} << 20}), AllocationError);
    EXPECT_EQ(a.data(), data);
    EXPECT_EQ(a.storage().size(), 100U);
    EXPECT_EQ(blocks_in_use(), blocks_before_ + 1);
}

TEST_F(Xtensor, ManyThreadsMakeAndPassArrays) {
    constexpr int threads = 4;
    std::vector<Array> made(threads);
    std::vector<std::thread> workers;
    for (int t = 0; t < threads; ++t) {
        workers.emplace_back([&made, t] {
            for (int round = 0; round < 200; ++round) {
                const Array a = static_cast<float>(t) * xt::ones<float>({50, 50});
                made[static_cast<std::size_t>(t)] = a + 1;
            }
        });
    }
    for (std::thread& worker : workers) worker.join();
    for (int t = 0; t < threads; ++t) {
        EXPECT_EQ(xt::sum(made[static_cast<std::size_t>(t)])(),
                  2500.0F * static_cast<float>(t + 1));
    }
    made.clear();
    EXPECT_EQ(blocks_in_use(), blocks_before_);
}

}  // namespace
}  // namespace tensorpool
