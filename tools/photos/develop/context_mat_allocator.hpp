#pragma once

/// @file
/// Storage of cv::Mat from a Context. Header-only: needs OpenCV's core, which the library does not.

#include <atomic>
#include <cstddef>
#include <memory>

#include <opencv2/core.hpp>

#include <tensorpool/context.hpp>
#include <tensorpool/mat_layout.hpp>

#include "develop/mat_lot.hpp"

namespace tensorpool {

/// Serves the pixels of cv::Mat, as the default allocator or as that of one cv::Mat: inside a
/// MatScope from the scratch of the thread that opened it, otherwise from the arena. That holds for
/// OpenCV's worker threads too: they open no scope, so what they make, be it within another
/// thread's, comes from the arena, which takes any thread, and ends with the MatPhase.
///
/// Memory ends with its MatScope or MatPhase, and all its cv::Mat must be gone by then. To
/// `deallocate` only counts that, and frees the record that OpenCV keeps for each, which comes from
/// `new`.
class ContextMatAllocator final : public cv::MatAllocator {
public:
    /// The context must outlive it. What is made outside of any phase lives as long as it does.
    explicit ContextMatAllocator(Context& context) noexcept : context_(&context) {}

    Context& context() const noexcept { return *context_; }

    /// As PooledMatAllocator::allocate; throws what Context::alloc throws.
    cv::UMatData* allocate(int dims, const int* sizes, int type, void* data, std::size_t* step,
                           cv::AccessFlag, cv::UMatUsageFlags) const override {
        auto record = std::make_unique<cv::UMatData>(this);
        record->size = lay_out_mat(dims, sizes, type, data != nullptr, step);
        if (data != nullptr) {
            record->flags |= cv::UMatData::USER_ALLOCATED;
            record->data = static_cast<uchar*>(data);
        } else {
            take(*record);
        }
        record->origdata = record->data;
        return record.release();
    }

    /// Readies storage for a device; plain memory is always ready. False for nullptr.
    bool allocate(cv::UMatData* record, cv::AccessFlag, cv::UMatUsageFlags) const override {
        return record != nullptr;
    }

    /// Ends a record that nobody refers to any more; nullptr is ignored. Any thread.
    void deallocate(cv::UMatData* record) const override {
        if (record == nullptr) return;
        CV_Assert(record->urefcount == 0 && record->refcount == 0);
        const bool ours = !(record->flags & cv::UMatData::USER_ALLOCATED);
        if (ours) static_cast<MatLot*>(record->userdata)->remove();
        delete record;
    }

private:
    friend class MatPhase;
    friend class MatScope;
    /// The innermost MatScope of a thread; all zero outside of any.
    struct Inside {
        const ContextMatAllocator* memory;
        MatLot* lot;
    };
    static inline thread_local Inside inside_;

    void take(cv::UMatData& record) const {
        const bool inside = inside_.memory == this;
        void* const block =
            inside ? context_->scratch_alloc(record.size) : context_->alloc(record.size);
        MatLot* const lot = inside ? inside_.lot : phase_.load(std::memory_order_acquire);
        lot->add();
        record.data = static_cast<uchar*>(block);
        record.userdata = lot;
    }

    Context* context_;
    MatLot outside_{"the allocator"};
    // That of the innermost phase. Its beginning releases it, so that any thread finds it made.
    std::atomic<MatLot*> phase_ = &outside_;
};

}  // namespace tensorpool
