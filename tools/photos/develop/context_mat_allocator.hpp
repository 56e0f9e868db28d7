#pragma once

/// @file
/// Storage of cv::Mat from a Context. Header-only, because it needs OpenCV's core, which the
/// library does not.

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <opencv2/core.hpp>

#include <tensorpool/context.hpp>
#include <tensorpool/mat_layout.hpp>

namespace tensorpool {

/// When it is destroyed, none of its cv::Mat may be left, because their memory is reused. If one is
/// left, the program stops with a message that names the lot. Any thread may call add and remove.
class MatLot {
public:
    explicit MatLot(std::string_view name) : name_(name) {}
    ~MatLot() {
        if (living() == 0) return;
        std::fprintf(stderr,
                     "tensorpool: the memory of %zu cv::Mat ends with '%s'; expected none\n",
                     living(), name_.c_str());
        std::abort();
    }
    MatLot(const MatLot&) = delete;
    MatLot& operator=(const MatLot&) = delete;

    // Relaxed: the count orders nothing. The thread that destroys the lot has waited for the
    // others.
    void add() noexcept { living_.fetch_add(1, std::memory_order_relaxed); }
    void remove() noexcept { living_.fetch_sub(1, std::memory_order_relaxed); }
    std::size_t living() const noexcept { return living_.load(std::memory_order_relaxed); }

private:
    std::string name_;
    std::atomic<std::size_t> living_ = 0;
};

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

/// Frees the arena memory allocated since it began. Phases nest. They must begin and end while no
/// other thread allocates.
class MatPhase {
public:
    MatPhase(ContextMatAllocator& memory, std::string_view name)
        : memory_(memory),
          mark_(memory.context().mark()),
          lot_(name),
          outer_(memory.phase_.exchange(&lot_, std::memory_order_release)) {}
    ~MatPhase() {
        memory_.phase_.store(outer_, std::memory_order_release);
        // If a cv::Mat is left, the destructor of `lot_` stops the program next.
        memory_.context().release_to(mark_);
    }
    MatPhase(const MatPhase&) = delete;
    MatPhase& operator=(const MatPhase&) = delete;

private:
    ContextMatAllocator& memory_;
    std::size_t mark_;
    MatLot lot_;
    MatLot* outer_;
};

/// While it exists, new cv::Mat of this thread use its scratch, and end with it. Scopes nest.
class MatScope {
public:
    /// Begins an operator, listed under this name in scratch_report().
    MatScope(const ContextMatAllocator& memory, std::string_view name)
        : scope_(memory.context().scratch(), name), lot_(name), outer_(enter(&memory)) {}
    /// Begins a part of this thread's innermost MatScope, which must exist.
    MatScope()
        : scope_(innermost().context().scratch()),
          lot_("a part of an operator"),
          outer_(enter(&innermost())) {}
    /// Whether this thread has a MatScope.
    static bool is_open() noexcept { return ContextMatAllocator::inside_.memory != nullptr; }
    ~MatScope() { ContextMatAllocator::inside_ = outer_; }
    MatScope(const MatScope&) = delete;
    MatScope& operator=(const MatScope&) = delete;

private:
    using Inside = ContextMatAllocator::Inside;
    static const ContextMatAllocator& innermost() {
        CV_Assert(is_open());
        return *ContextMatAllocator::inside_.memory;
    }
    Inside enter(const ContextMatAllocator* memory) noexcept {
        return std::exchange(ContextMatAllocator::inside_, {memory, &lot_});
    }

    ScratchScope scope_;
    MatLot lot_;
    Inside outer_;
};

}  // namespace tensorpool
