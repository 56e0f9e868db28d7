#include <tensorpool/eigen.hpp>

#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace tensorpool {
namespace {

using Matrix = PooledMatrix<float>;
using Index = Eigen::Index;

static_assert(std::is_nothrow_move_constructible_v<Matrix>);
static_assert(!std::is_copy_constructible_v<Matrix>);
static_assert(PooledMatrix<float, 1, Eigen::Dynamic>::Matrix::IsRowMajor);

TEST(PooledMatrix, ElementsAreInThePoolUntilItIsDestroyed) {
    MemoryPool pool;
    {
        PooledMatrix<std::complex<double>> matrix(pool, 30, 20);
        EXPECT_TRUE(pool.owns(matrix.data()));
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(matrix.data()) % 64, 0U);
        EXPECT_EQ(matrix.map().data(), matrix.data());
        EXPECT_EQ(matrix.size(), 600);
        EXPECT_EQ(pool.get_total_allocated(), pool.usable_size(matrix.data()));
    }
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(PooledMatrix, DefaultUsesTheGlobalPool) {
    const Matrix matrix(3, 5);
    EXPECT_TRUE(get_global_memory_pool().owns(matrix.data()));
}

TEST(PooledMatrix, ExpressionsReadAndWriteItsMap) {
    Matrix a(20, 30);
    Matrix b(30, 40);
    Matrix c(20, 40);
    a.map().setConstant(2);
    b.map().setOnes();
    c.map().noalias() = a.map() * b.map();
    EXPECT_EQ(std::as_const(c).map()(19, 39), 60.0F);
    EXPECT_EQ(c.map().sum(), 60.0F * 800);
}

TEST(PooledMatrix, CanBeMadeFromAnExpression) {
    MemoryPool pool;
    const Eigen::MatrixXf a = Eigen::MatrixXf::Identity(10, 10);
    const Matrix sum(pool, a + a);
    EXPECT_TRUE(pool.owns(sum.data()));
    EXPECT_EQ(sum.map().trace(), 20.0F);
    const PooledMatrix<float, Eigen::Dynamic, 1> product(a * Eigen::VectorXf::Ones(10));
    EXPECT_EQ(product.map().sum(), 10.0F);
}

TEST(PooledMatrix, KeepsTheOrderOfItsType) {
    PooledMatrix<int, 2, 3, Eigen::RowMajor> matrix(2, 3);
    matrix.map() << 1, 2, 3, 4, 5, 6;
    EXPECT_EQ(matrix.data()[1], 2);
    PooledMatrix<int, 2, 3> columns(matrix.map());
    EXPECT_EQ(columns.data()[1], 4);
}

TEST(PooledMatrix, ResizingAllocatesTheNewSizeAndFreesTheOldBlock) {
    MemoryPool pool;
    Matrix matrix(pool, 10, 10);
    const float* const data = matrix.data();
    matrix.resize(20, 5);
    EXPECT_EQ(matrix.data(), data);
    EXPECT_EQ(matrix.map().rows(), 20);
    matrix.resize(300, 300);
    EXPECT_EQ(pool.get_allocation_count(), pool.get_deallocation_count() + 1);
    EXPECT_GE(pool.usable_size(matrix.data()), 300 * 300 * sizeof(float));
    matrix.resize(0, 300);
    EXPECT_EQ(matrix.data(), nullptr);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(PooledMatrix, MovingTransfersTheBlock) {
    MemoryPool one;
    MemoryPool other;
    Matrix from(one, 10, 20);
    const float* const data = from.data();
    Matrix to(other, 100, 100);
    to = std::move(from);
    EXPECT_EQ(to.data(), data);
    EXPECT_EQ(to.cols(), 20);
    EXPECT_EQ(other.get_total_allocated(), 0U);
    EXPECT_EQ(from.rows(), 0);  // NOLINT: the test checks the moved-from object
    EXPECT_EQ(from.cols(), 0);
    from.resize(2, 2);
    EXPECT_TRUE(one.owns(from.data()));
    to.resize(50, 50);
    EXPECT_TRUE(one.owns(to.data()));
}

TEST(PooledMatrix, MatrixWithoutRowsTakesNoBlock) {
    MemoryPool pool;
    const Matrix empty(pool, 0, 10);
    EXPECT_EQ(pool.get_allocation_count(), 0U);
    EXPECT_EQ(empty.map().sum(), 0.0F);
}

TEST(PooledMatrix, TooLargeARequestThrowsAndChangesNothing) {
    MemoryPool pool(PoolOptions{.max_capacity = 8U << 20});
    Matrix matrix(pool, 10, 10);
    matrix.map().setOnes();
    EXPECT_THROW(matrix.resize(10'000, 10'000), AllocationError);
    EXPECT_THROW(matrix.resize(Index{1} << 32, Index{1} << 32), AllocationError);
    EXPECT_EQ(matrix.map().sum(), 100.0F);
}

template <class Action>
std::string error_of(const Action& action) {
    try {
        action();
        return "";
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
}

TEST(PooledMatrix, RejectsNumbersThatDifferFromTheType) {
    EXPECT_EQ(error_of([] { Matrix(-1, 3); }),
              "tensorpool: PooledMatrix: -1 rows, expected 0 or more");
    EXPECT_EQ((error_of([] { PooledMatrix<float, Eigen::Dynamic, 4>(2, 3); })),
              "tensorpool: PooledMatrix: 3 columns, expected 4");
}

TEST(PooledMatrix, ManyThreadsMakeAndPassMatrices) {
    MemoryPool pool;
    std::vector<Matrix> made;
    for (int t = 0; t < 4; ++t) made.emplace_back(pool, 0, 0);
    std::vector<std::thread> workers;
    for (Matrix& result : made) {
        workers.emplace_back([&pool, &result] {
            for (int round = 0; round < 200; ++round) {
                result = Matrix(pool, Eigen::MatrixXf::Ones(30, 30));
            }
        });
    }
    for (std::thread& worker : workers) worker.join();
    for (const Matrix& result : made) EXPECT_EQ(result.map().sum(), 900.0F);
    made.clear();
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

}  // namespace
}  // namespace tensorpool
