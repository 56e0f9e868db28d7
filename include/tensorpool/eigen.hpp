#pragma once

/// @file
/// Eigen: a matrix in a block of a pool. Eigen has no hook for the memory of its own types, so this
/// one holds a block and shows it as an Eigen::Map. Needs Eigen 3.4, which the library does not.

#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include <Eigen/Core>

#include <tensorpool/memory_pool.hpp>
#include <tensorpool/pooled_allocation.hpp>

namespace tensorpool {

/// `rows * cols` elements in one block of a pool, aligned to 64 bytes and not initialised, as in
/// Eigen::Matrix, whose template arguments these are. All of Eigen works on `map()`:
/// `c.map().noalias() = a.map() * b.map();`. Temporaries of Eigen's expressions still come from
/// malloc. Move-only; what was moved from has no rows and may be resized, assigned to or destroyed.
/// One thread at a time. The pool must outlive it.
template <class Scalar, int Rows = Eigen::Dynamic, int Cols = Eigen::Dynamic,
          int Options = Eigen::Matrix<Scalar, Rows, Cols>::Options>
class PooledMatrix {
    static_assert(std::is_trivially_copyable_v<Scalar>,
                  "PooledMatrix makes and destroys no objects");

public:
    using Matrix = Eigen::Matrix<Scalar, Rows, Cols, Options>;
    using Map = Eigen::Map<Matrix, Eigen::Aligned64>;
    using ConstMap = Eigen::Map<const Matrix, Eigen::Aligned64>;
    using Index = Eigen::Index;

    /// `rows * cols` elements from the global pool; no block where that is 0. Throws
    /// std::invalid_argument where a number is negative or not that of the type, AllocationError
    /// where the pool does.
    PooledMatrix(Index rows, Index cols) : PooledMatrix(get_global_memory_pool(), rows, cols) {}
    /// From `pool`.
    PooledMatrix(MemoryPool& pool, Index rows, Index cols)
        : pool_(&pool), block_(pool, bytes_of(rows, cols)), rows_(rows), cols_(cols) {}
    /// The values of a matrix or an expression of Eigen (of an array: its `.matrix()`), which goes
    /// straight into a block of the global pool.
    template <class Derived>
    explicit PooledMatrix(const Eigen::MatrixBase<Derived>& values)
        : PooledMatrix(get_global_memory_pool(), values) {}
    /// As above, from `pool`.
    template <class Derived>
    PooledMatrix(MemoryPool& pool, const Eigen::MatrixBase<Derived>& values)
        : PooledMatrix(pool, values.rows(), values.cols()) {
        map().noalias() = values;
    }

    PooledMatrix(PooledMatrix&& other) noexcept
        : pool_(other.pool_),
          block_(std::move(other.block_)),
          rows_(std::exchange(other.rows_, 0)),
          cols_(std::exchange(other.cols_, 0)) {}
    PooledMatrix& operator=(PooledMatrix&& other) noexcept {
        pool_ = other.pool_;
        block_ = std::move(other.block_);
        rows_ = std::exchange(other.rows_, 0);
        cols_ = std::exchange(other.cols_, 0);
        return *this;
    }
    PooledMatrix(const PooledMatrix&) = delete;
    PooledMatrix& operator=(const PooledMatrix&) = delete;

    /// The elements, to read and write; good until the matrix is resized, moved from or gone.
    Map map() noexcept { return Map(data(), rows_, cols_); }
    ConstMap map() const noexcept { return ConstMap(data(), rows_, cols_); }

    Scalar* data() noexcept { return static_cast<Scalar*>(block_.get()); }
    const Scalar* data() const noexcept { return static_cast<const Scalar*>(block_.get()); }
    Index rows() const noexcept { return rows_; }
    Index cols() const noexcept { return cols_; }
    /// Elements.
    Index size() const noexcept { return rows_ * cols_; }

    /// As Eigen's: keeps the elements only where their number stays the same. Throws as the
    /// constructor does, changing nothing.
    void resize(Index rows, Index cols) {
        const std::size_t bytes = bytes_of(rows, cols);
        if (bytes != block_.size()) block_ = PooledAllocation(*pool_, bytes);
        rows_ = rows;
        cols_ = cols;
    }

private:
    static void check(const char* what, Index count, int of_type) {
        if (count >= 0 && (of_type == Eigen::Dynamic || count == of_type)) return;
        throw std::invalid_argument(
            "tensorpool: PooledMatrix: " + std::to_string(count) + " " + what + ", expected " +
            (of_type == Eigen::Dynamic ? "0 or more" : std::to_string(of_type)));
    }

    // What does not fit a size is more than any pool has.
    static std::size_t bytes_of(Index rows, Index cols) {
        check("rows", rows, Rows);
        check("columns", cols, Cols);
        constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max() / sizeof(Scalar);
        if (cols > 0 && static_cast<std::size_t>(rows) > most / static_cast<std::size_t>(cols)) {
            return std::numeric_limits<std::size_t>::max();
        }
        return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols) * sizeof(Scalar);
    }

    MemoryPool* pool_;
    PooledAllocation block_;
    Index rows_;
    Index cols_;
};

}  // namespace tensorpool
