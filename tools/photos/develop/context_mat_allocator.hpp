#pragma once

/// @file
/// Storage of cv::Mat from a Context. Header-only, because it needs OpenCV's core, which the
/// library does not.

#include <atomic>
#include <cstddef>
#include <memory>

#include <opencv2/core.hpp>

#include <tensorpool/context.hpp>
#include <tensorpool/mat_layout.hpp>

#include "develop/mat_lot.hpp"

namespace tensorpool {

/// Provides the pixels of cv::Mat, as the default allocator or as that of one cv::Mat. Inside a
/// MatScope they come from the scratch of the thread that opened it, otherwise from the arena.
/// OpenCV's worker threads open no scope, so their memory comes from the arena, which any thread
/// may use, and ends with the MatPhase. This applies even within another thread's scope. Memory
/// ends with its MatScope or MatPhase, and all its cv::Mat must have been destroyed by then.
/// `deallocate` only counts them, and frees the record that OpenCV keeps for each, which comes from
/// `new`.
class ContextMatAllocator final : public cv::MatAllocator {
public:
    /// The context must outlive this object. Memory allocated outside any phase lives as long as
    /// this object.
    explicit ContextMatAllocator(Context& context) noexcept : context_(&context) {}

    Context& context() const noexcept { return *context_; }

    /// Like PooledMatAllocator::allocate; throws the exceptions of Context::alloc.
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

    /// Prepares storage for a device. Plain memory is always ready, so this returns false only for
    /// nullptr.
    bool allocate(cv::UMatData* record, cv::AccessFlag, cv::UMatUsageFlags) const override {
        return record != nullptr;
    }

    /// Destroys a record that is no longer referenced; nullptr is ignored. May be called from any
    /// thread.
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
    /// The innermost MatScope of a thread; null outside any.
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
    // The lot of the innermost phase. Stores release the new lot, so that other threads that load
    // it (acquire) see it constructed.
    std::atomic<MatLot*> phase_ = &outside_;
};

}  // namespace tensorpool
