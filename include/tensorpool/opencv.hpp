#pragma once

/// @file
/// An allocator for cv::Mat that takes memory from a pool. Call
/// `cv::Mat::setDefaultAllocator(&tensorpool::global_mat_allocator())` once in a process. This
/// header needs OpenCV 4's core; the library does not.

#include <tensorpool/mat_layout.hpp>
#include <tensorpool/pooled_allocation.hpp>

namespace tensorpool {

/// An allocator for the pixels of cv::Mat that takes memory from a pool.
///
/// It serves every cv::Mat made after `cv::Mat::setDefaultAllocator(&allocator)`, or one cv::Mat
/// after `mat.allocator = &allocator`. OpenCV moves the latter to the default allocator when it
/// grows by push_back or when the pool has no memory. Each block begins at a multiple of 64 bytes.
/// The records that OpenCV keeps for each cv::Mat, and buffers within its functions, still come
/// from `new`. Any thread may use it. The allocator and the pool must outlive each cv::Mat that
/// they served.
///
/// Copying, mapping and uploading use the defaults of cv::MatAllocator, as for plain memory.
class PooledMatAllocator final : public cv::MatAllocator {
public:
    /// Makes an allocator that takes memory from `pool`.
    explicit PooledMatAllocator(MemoryPool& pool) noexcept : pool_(&pool) {}

    /// Allocates contiguous storage for `sizes[0] * … * sizes[dims - 1]` elements of `type` and
    /// stores its strides in `step` (bytes; may be nullptr). With `data` not nullptr, it wraps the
    /// caller's memory with the given strides instead and never frees it. Throws AllocationError if
    /// the pool cannot meet the request.
    cv::UMatData* allocate(int dims, const int* sizes, int type, void* data, std::size_t* step,
                           cv::AccessFlag, cv::UMatUsageFlags) const override {
        const std::size_t bytes = lay_out_mat(dims, sizes, type, data != nullptr, step);
        PooledAllocation block = data ? PooledAllocation() : PooledAllocation(*pool_, bytes);
        auto record = std::make_unique<cv::UMatData>(this);
        if (data) record->flags |= cv::UMatData::USER_ALLOCATED;
        record->data = static_cast<uchar*>(data ? data : block.release());
        record->origdata = record->data;
        record->size = bytes;
        return record.release();
    }

    /// Prepares storage for a device. Plain memory is always ready. Returns false for nullptr.
    bool allocate(cv::UMatData* record, cv::AccessFlag, cv::UMatUsageFlags) const override {
        return record != nullptr;
    }

    /// Frees the storage of a record without references; nullptr is ignored.
    void deallocate(cv::UMatData* record) const override {
        if (record == nullptr) return;
        CV_Assert(record->urefcount == 0 && record->refcount == 0);
        const bool ours = !(record->flags & cv::UMatData::USER_ALLOCATED);
        if (ours) pool_->deallocate(record->origdata, record->size);
        delete record;
    }

private:
    MemoryPool* pool_;
};

/// Returns the allocator that takes memory from the global pool. It is never destroyed, so that it
/// outlives static cv::Mat objects. Any thread may call it.
inline PooledMatAllocator& global_mat_allocator() {
    static PooledMatAllocator& allocator = *new PooledMatAllocator(get_global_memory_pool());
    return allocator;
}

}  // namespace tensorpool
