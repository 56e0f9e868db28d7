#pragma once

/// @file
/// A matrix for Eigen in a block of a pool. Eigen has no hook for the memory of its own types, so
/// this matrix owns a block and provides it as an Eigen::Map. This header needs Eigen 3.4; the
/// library does not.

#include <limits>

#include <Eigen/Core>

#include <tensorpool/pooled_allocation.hpp>

namespace tensorpool {

/// A matrix of `rows * cols` elements in one block of a pool, aligned to 64 bytes and not
/// initialised.
///
/// The template arguments are those of Eigen::Matrix. All of Eigen works on `map()`:
/// `c.map().noalias() = a.map() * b.map();`. Temporaries of Eigen's expressions still come from
/// malloc. Move-only. A moved-from matrix has no rows and may be resized, assigned to or destroyed.
/// One thread at a time may use it. The pool must outlive it.
template <class Scalar, int Rows = Eigen::Dynamic, int Cols = Eigen::Dynamic,
          int Options = Eigen::Matrix<Scalar, Rows, Cols>::Options>
class PooledMatrix {
    static_assert(std::is_trivially_copyable_v<Scalar>,
                  "PooledMatrix makes and destroys no objects");

public:
    /// The type of Eigen with the same elements and sizes.
    using Matrix = Eigen::Matrix<Scalar, Rows, Cols, Options>;
    /// A view of the elements.
    using Map = Eigen::Map<Matrix, Eigen::Aligned64>;
    /// A read-only view of the elements.
    using ConstMap = Eigen::Map<const Matrix, Eigen::Aligned64>;
    /// The type of rows, columns and sizes.
    using Index = Eigen::Index;

    /// Allocates `rows * cols` elements from the global pool; no block if there are none. Throws
    /// std::invalid_argument if a number is negative or differs from that of the type, and
    /// AllocationError if the pool cannot meet the request.
    PooledMatrix(Index rows, Index cols) : PooledMatrix(get_global_memory_pool(), rows, cols) {}
    /// Allocates `rows * cols` elements from `pool`; no block if there are none. Throws
    /// std::invalid_argument if a number is negative or differs from that of the type, and
    /// AllocationError if the pool cannot meet the request.
    PooledMatrix(MemoryPool& pool, Index rows, Index cols)
        : pool_(&pool), block_(pool, bytes_of(rows, cols)), rows_(rows), cols_(cols) {}
    /// Allocates from the global pool and assigns a matrix or an expression of Eigen (for an array,
    /// its `.matrix()`), which is evaluated into the block. Throws AllocationError if the pool
    /// cannot meet the request.
    template <class Derived>
    explicit PooledMatrix(const Eigen::MatrixBase<Derived>& values)
        : PooledMatrix(get_global_memory_pool(), values) {}
    /// Allocates from `pool` and assigns a matrix or an expression of Eigen (for an array, its
    /// `.matrix()`), which is evaluated into the block. Throws AllocationError if the pool cannot
    /// meet the request.
    template <class Derived>
    PooledMatrix(MemoryPool& pool, const Eigen::MatrixBase<Derived>& values)
        : PooledMatrix(pool, values.rows(), values.cols()) {
        map().noalias() = values;
    }

    /// Takes the elements of `other`, which then has no rows.
    PooledMatrix(PooledMatrix&& other) noexcept
        : pool_(other.pool_),
          block_(std::move(other.block_)),
          rows_(std::exchange(other.rows_, 0)),
          cols_(std::exchange(other.cols_, 0)) {}
    /// Frees the present elements and takes those of `other`, which then has no rows.
    PooledMatrix& operator=(PooledMatrix&& other) noexcept {
        pool_ = other.pool_;
        block_ = std::move(other.block_);
        rows_ = std::exchange(other.rows_, 0);
        cols_ = std::exchange(other.cols_, 0);
        return *this;
    }
    PooledMatrix(const PooledMatrix&) = delete;
    PooledMatrix& operator=(const PooledMatrix&) = delete;

    /// Returns a view for reading and writing the elements. It is valid until the matrix is
    /// resized, moved from or destroyed.
    Map map() noexcept { return Map(data(), rows_, cols_); }
    /// Returns a view for reading the elements. It is valid until the matrix is resized, moved from
    /// or destroyed.
    ConstMap map() const noexcept { return ConstMap(data(), rows_, cols_); }

    /// Returns the address of the first element; nullptr if there is none.
    Scalar* data() noexcept { return static_cast<Scalar*>(block_.get()); }
    /// Returns the address of the first element; nullptr if there is none.
    const Scalar* data() const noexcept { return static_cast<const Scalar*>(block_.get()); }
    /// Returns the number of rows.
    Index rows() const noexcept { return rows_; }
    /// Returns the number of columns.
    Index cols() const noexcept { return cols_; }
    /// Returns the number of elements.
    Index size() const noexcept { return rows_ * cols_; }

    /// Changes the numbers of rows and columns. As in Eigen, the elements are kept only if their
    /// number stays the same. Throws std::invalid_argument if a number is negative or differs from
    /// that of the type, and AllocationError if the pool cannot meet the request; the matrix is
    /// then unchanged.
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

    // Returns the largest size if the product overflows: no pool can allocate it.
    static std::size_t bytes_of(Index rows, Index cols) {
        check("rows", rows, Rows);
        check("columns", cols, Cols);
        constexpr std::size_t max = std::numeric_limits<std::ptrdiff_t>::max() / sizeof(Scalar);
        if (cols > 0 && static_cast<std::size_t>(rows) > max / static_cast<std::size_t>(cols)) {
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
