#pragma once

/// @file
/// OpenCV: storage of cv::Mat from a pool, once for the process,
/// `cv::Mat::setDefaultAllocator(&tensorpool::global_mat_allocator())`. Needs OpenCV 4's core,
/// which the library does not.

#include <cstddef>
#include <memory>

#include <opencv2/core.hpp>

#include <tensorpool/mat_layout.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/pooled_allocation.hpp>

namespace tensorpool {

/// Serves the pixels of every cv::Mat made after `cv::Mat::setDefaultAllocator(&allocator)`, or of
/// one by `mat.allocator = &allocator`; that one OpenCV takes to the default allocator when it
/// grows by push_back or when the pool has no memory. Each begins at a multiple of 64 bytes. The
/// records that OpenCV keeps for each cv::Mat, and buffers within its functions, still come from
/// `new`. Any thread. The allocator and the pool must outlive each cv::Mat they served.
///
/// Copying, mapping and uploading are what cv::MatAllocator does by default: plain memory.
class PooledMatAllocator final : public cv::MatAllocator {
public:
    explicit PooledMatAllocator(MemoryPool& pool) noexcept : pool_(&pool) {}

    /// Continuous storage for `sizes[0] * … * sizes[dims - 1]` elements of `type`, its strides put
    /// into `step` (bytes; may be nullptr). With `data`, wraps the caller's memory in the strides
    /// given and never frees it. Throws what MemoryPool::allocate throws.
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

    /// Readies storage for a device; plain memory is always ready. False for nullptr.
    bool allocate(cv::UMatData* record, cv::AccessFlag, cv::UMatUsageFlags) const override {
        return record != nullptr;
    }

    /// Ends a record that nobody refers to any more; nullptr is ignored.
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

/// The one over the global pool. Never destroyed, so that it outlives static cv::Mat objects.
inline PooledMatAllocator& global_mat_allocator() {
    static PooledMatAllocator& allocator = *new PooledMatAllocator(get_global_memory_pool());
    return allocator;
}

}  // namespace tensorpool
