#include <tensorpool/tensor_allocation.hpp>

#include <gtest/gtest.h>

#include <tensorpool/arena.hpp>
#include <tensorpool/memory_pool.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace tensorpool {
namespace {

const DataType f32 = DataType::of<float>();
const DataType q4_k = *find_ggml_type("Q4_K");

/// Returns the message of the std::invalid_argument that `call` throws.
template <class Call>
std::string refusal_of(Call call) {
    try {
        call();
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "nothing was thrown";
}

TEST(TensorAllocation, HoldsMemoryForItsShapeAndType) {
    MemoryPool pool;
    {
        const TensorAllocation tensor = empty(pool, {3, 5}, f32);
        EXPECT_EQ(tensor.bytes(), 60U);
        EXPECT_EQ(tensor.shape(), (std::vector<std::int64_t>{3, 5}));
        EXPECT_EQ(tensor.type(), f32);
        EXPECT_TRUE(pool.owns(tensor.get()));
        EXPECT_EQ(tensor.device(), SourceDevice{});
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.get()) % 64, 0U);
        EXPECT_EQ(tensor.as<float>().size(), 15U);
        tensor.as<float>()[14] = 1.0F;
    }
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(TensorAllocation, ComesFromTheGlobalPoolByDefault) {
    const TensorAllocation tensor = empty({7}, DataType::of<std::int8_t>());
    EXPECT_TRUE(get_global_memory_pool().owns(tensor.get()));
    EXPECT_EQ(tensor.bytes(), 7U);
}

TEST(TensorAllocation, ComesFromAnySourceOfHandles) {
    Arena arena;
    const TensorAllocation tensor = empty(arena, {1000}, f32);
    EXPECT_EQ(arena.used(), 4032U);
    MemoryPool pool;
    const TensorAllocation aligned = empty(pool, {1000}, f32, std::size_t{4096});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned.get()) % 4096, 0U);
}

TEST(TensorAllocation, TakesBlockTypesOfGgml) {
    const TensorAllocation tensor = empty({2, 512}, q4_k);
    EXPECT_EQ(tensor.bytes(), 2U * 2 * 144);
    EXPECT_EQ(refusal_of([] { (void)empty({2, 100}, q4_k); }).find("tensorpool: "), 0U);
}

TEST(TensorAllocation, NoDimensionsAreOneElement) {
    EXPECT_EQ(empty({}, f32).bytes(), 4U);
}

TEST(TensorAllocation, AnExtentOf0TakesNoMemory) {
    const TensorAllocation tensor = empty({4, 0, 5}, f32);
    EXPECT_EQ(tensor.get(), nullptr);
    EXPECT_EQ(tensor.bytes(), 0U);
    EXPECT_TRUE(tensor.as<float>().empty());
}

TEST(TensorAllocation, RejectsWhatIsNoTensor) {
    EXPECT_THROW((void)empty({-1}, f32), std::invalid_argument);
    EXPECT_THROW((void)empty({1}, DataType{}), std::invalid_argument);
    EXPECT_THROW((void)empty({INT64_MAX, 2}, f32), std::invalid_argument);
}

TEST(TensorAllocation, RejectsMemoryThatIsTooSmall) {
    MemoryPool pool;
    EXPECT_EQ(refusal_of([&] {
                  TensorAllocation(PooledAllocation(pool, 59), {3, 5}, f32);
              }),
              "tensorpool: TensorAllocation: 59 B of memory; expected 60 B of float32");
    EXPECT_EQ(pool.get_total_allocated(), 0U);
    EXPECT_EQ(TensorAllocation(PooledAllocation(pool, 60), {3, 5}, f32).bytes(), 60U);
}

TEST(TensorAllocation, LeavesOutMemoryBeyondItsElements) {
    MemoryPool pool;
    TensorAllocation tensor(PooledAllocation(pool, 4096), {3, 5}, f32);
    EXPECT_EQ(tensor.bytes(), 60U);
    EXPECT_EQ(tensor.as<float>().size(), 15U);
    EXPECT_EQ(tensor.memory().size(), 4096U);
    const TensorAllocation none(PooledAllocation(pool, 64), {0, 5}, f32);
    EXPECT_EQ(none.bytes(), 0U);
    EXPECT_TRUE(none.as<float>().empty());
    (void)tensor.release();
    EXPECT_EQ(tensor.bytes(), 0U);
    EXPECT_TRUE(tensor.as<float>().empty());
}

TEST(TensorAllocation, ElementsAreOfItsTypeOnly) {
    const TensorAllocation tensor = empty({2}, f32);
    EXPECT_EQ(refusal_of([&] { (void)tensor.as<double>(); }),
              "tensorpool: TensorAllocation: as<float64>: expected its own type, float32");
}

TEST(TensorAllocation, MovesAndGivesUpItsMemory) {
    static_assert(std::is_nothrow_move_constructible_v<TensorAllocation>);
    static_assert(!std::is_copy_constructible_v<TensorAllocation>);
    MemoryPool pool;
    TensorAllocation one = empty(pool, {2, 2}, f32);
    void* const address = one.get();
    TensorAllocation other = std::move(one);
    EXPECT_EQ(other.get(), address);
    const PooledAllocation memory = other.release();
    EXPECT_EQ(memory.get(), address);
    EXPECT_EQ(memory.size(), 16U);
    EXPECT_EQ(TensorAllocation().get(), nullptr);
}

}  // namespace
}  // namespace tensorpool
