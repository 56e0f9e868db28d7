#include <tensorpool/armadillo.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

namespace tensorpool {
namespace {

bool is_aligned(const void* p) {
    return reinterpret_cast<std::uintptr_t>(p) % 64 == 0;
}

class Armadillo : public testing::Test {
protected:
    std::size_t blocks_in_use() const {
        return pool_.get_allocation_count() - pool_.get_deallocation_count();
    }
    void expect_in_pool(const void* data) const {
        EXPECT_TRUE(pool_.owns(data));
        EXPECT_TRUE(is_aligned(data));
    }

    MemoryPool& pool_ = get_global_memory_pool();
    std::size_t blocks_before_ = blocks_in_use();
};

TEST_F(Armadillo, ElementsAreInThePoolUntilTheObjectIsDestroyed) {
    {
        const arma::fmat matrix(300, 200, arma::fill::zeros);
        const arma::vec column(100);
        const arma::cx_rowvec row(100);
        expect_in_pool(matrix.memptr());
        expect_in_pool(column.memptr());
        expect_in_pool(row.memptr());
        EXPECT_EQ(blocks_in_use(), blocks_before_ + 3);
        const arma::cube cube(10, 20, 30);
        expect_in_pool(cube.memptr());
    }
    EXPECT_EQ(blocks_in_use(), blocks_before_);
}

TEST_F(Armadillo, SparseMatricesUseThePool) {
    {
        const arma::sp_mat sparse = arma::speye<arma::sp_mat>(100, 100);
        expect_in_pool(sparse.values);
        expect_in_pool(sparse.row_indices);
        EXPECT_EQ(arma::accu(sparse), 100.0);
    }
    EXPECT_EQ(blocks_in_use(), blocks_before_);
}

TEST_F(Armadillo, UpToSixteenElementsTakeNoBlock) {
    const arma::mat small(4, 4, arma::fill::ones);
    EXPECT_FALSE(pool_.owns(small.memptr()));
    EXPECT_EQ(blocks_in_use(), blocks_before_);
    const arma::mat larger(17, 1, arma::fill::ones);
    EXPECT_TRUE(pool_.owns(larger.memptr()));
}

TEST_F(Armadillo, ProductsAndSolutionsUseThePool) {
    const arma::mat a = arma::eye(50, 50) * 2;
    const arma::mat b(50, 50, arma::fill::ones);
    const std::size_t made_before = pool_.get_allocation_count();
    const arma::mat product = a * b;
    const arma::mat solution = arma::solve(a, product);
    expect_in_pool(product.memptr());
    expect_in_pool(solution.memptr());
    EXPECT_TRUE(arma::approx_equal(solution, b, "absdiff", 1e-12));
    EXPECT_GE(pool_.get_allocation_count(), made_before + 2);
}

TEST_F(Armadillo, ResizingKeepsElementsAndFreesTheOldBlock) {
    arma::mat matrix(10, 10, arma::fill::ones);
    matrix.resize(100, 100);
    expect_in_pool(matrix.memptr());
    EXPECT_EQ(arma::accu(matrix), 100.0);
    matrix.insert_cols(0, 50);
    EXPECT_EQ(arma::accu(matrix), 100.0);
    matrix.set_size(20, 20);
    EXPECT_EQ(blocks_in_use(), blocks_before_ + 1);
    matrix.reset();
    EXPECT_EQ(blocks_in_use(), blocks_before_);
}

TEST_F(Armadillo, MovingTransfersTheBlock) {
    arma::mat from(100, 100, arma::fill::ones);
    const double* const data = from.memptr();
    const arma::mat to = std::move(from);
    EXPECT_EQ(to.memptr(), data);
    EXPECT_EQ(blocks_in_use(), blocks_before_ + 1);
}

TEST_F(Armadillo, TooLargeARequestThrowsAllocationError) {
    EXPECT_THROW(arma::mat(1 << 20, 1 << 20), AllocationError);
    EXPECT_EQ(blocks_in_use(), blocks_before_);
}

TEST_F(Armadillo, ManyThreadsMakeAndPassMatrices) {
    std::vector<arma::fmat> made(4);
    std::vector<std::thread> workers;
    for (arma::fmat& result : made) {
        workers.emplace_back([&result] {
            const arma::fmat ones(40, 40, arma::fill::ones);
            for (int round = 0; round < 200; ++round) result = ones + ones % ones;
        });
    }
    for (std::thread& worker : workers) worker.join();
    for (const arma::fmat& result : made) EXPECT_EQ(arma::accu(result), 3200.0F);
    made.clear();
    EXPECT_EQ(blocks_in_use(), blocks_before_);
}

}  // namespace
}  // namespace tensorpool
