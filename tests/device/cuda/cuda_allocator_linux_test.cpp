// The caching allocator over the driver, where the program uses the driver beside it.

#include <tensorpool/device/caching_allocator.hpp>

#include <barrier>
#include <set>
#include <thread>
#include <vector>

#include "device/cuda/fake_driver.hpp"

namespace tensorpool::device::cuda {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

/// A program whose streams and captures are the driver's, as those of PyTorch are.
class CudaAllocator : public FakeDriver {
protected:
    CudaAllocator() {
        find<Result (*)(CUctx_st**, int)>("cuDevicePrimaryCtxRetain")(&context_, 0);
        find<Result (*)(CUctx_st*)>("cuCtxPushCurrent_v2")(context_);
        allocator_.emplace(backend_, 0);
    }
    ~CudaAllocator() override {
        allocator_.reset();
        for (CUstream_st* const stream : streams_) destroy_now(stream);
        CUctx_st* popped = nullptr;
        find<Result (*)(CUctx_st**)>("cuCtxPopCurrent_v2")(&popped);
        find<Result (*)(int)>("cuDevicePrimaryCtxRelease")(0);
    }

    static StreamHandle handle_of(CUstream_st* stream) {
        return reinterpret_cast<StreamHandle>(stream);
    }
    static StreamHandle handle_of(std::uintptr_t number) {
        return reinterpret_cast<StreamHandle>(number);
    }
    CUstream_st* make_stream() {
        CUstream_st* stream = nullptr;
        EXPECT_EQ(find<Result (*)(CUstream_st**, unsigned)>("cuStreamCreate")(&stream,
                                                                              stream_non_blocking),
                  Result::success);
        streams_.insert(stream);
        return stream;
    }
    void destroy(CUstream_st* stream) {
        streams_.erase(stream);
        destroy_now(stream);
    }
    void begin_capture(CUstream_st* stream) {
        using Begin = Result (*)(CUstream_st*, CaptureMode);
        ASSERT_EQ(find<Begin>("cuStreamBeginCapture_v2")(stream, CaptureMode::global),
                  Result::success);
    }
    /// Returns whether the capture was valid.
    bool end_capture(CUstream_st* stream) {
        CUgraph_st* graph = nullptr;
        using End = Result (*)(CUstream_st*, CUgraph_st**);
        if (find<End>("cuStreamEndCapture")(stream, &graph) != Result::success) return false;
        return find<Result (*)(CUgraph_st*)>("cuGraphDestroy")(graph) == Result::success;
    }
    std::uint64_t captured_bytes() const { return allocator_->statistics().captured_bytes; }

    CudaBackend backend_{path};
    std::optional<CachingAllocator> allocator_;

private:
    void destroy_now(CUstream_st* stream) {
        find<Result (*)(CUstream_st*)>("cuStreamDestroy_v2")(stream);
    }

    CUctx_st* context_ = nullptr;
    std::set<CUstream_st*> streams_;
};

TEST_F(CudaAllocator, HitCallsNoFunctionOfTheDriver) {
    for (const StreamHandle stream :
         {StreamHandle{nullptr}, handle_of(make_stream()), handle_of(legacy_stream_handle),
          handle_of(per_thread_stream_handle)}) {
        allocator_->deallocate(allocator_->allocate(4096, stream));
        const unsigned long long before = calls();
        for (int i = 0; i < 10; ++i) allocator_->deallocate(allocator_->allocate(4096, stream));
        EXPECT_EQ(calls(), before);
    }
}

// Captures --------------------------------------------------------------------------------------

TEST_F(CudaAllocator, GrowsInPrivateMemoryDuringACaptureThatSomebodyElseBegan) {
    CUstream_st* const stream = make_stream();
    begin_capture(stream);
    void* const block = allocator_->allocate(10 * mib, handle_of(stream));
    EXPECT_GE(captured_bytes(), 10 * mib);
    allocator_->deallocate(block);
    EXPECT_EQ(allocator_->allocate(10 * mib, handle_of(stream)), block);
    std::thread([&] { allocator_->deallocate(allocator_->allocate(20 * mib)); }).join();
    EXPECT_TRUE(end_capture(stream));
    EXPECT_NE(allocator_->allocate(10 * mib, handle_of(stream)), block)
        << "the graph may be launched";
}

TEST_F(CudaAllocator, WaitsForNothingWhileACaptureThatWasFoundIsUnderWay) {
    CUstream_st* const stream = make_stream();
    begin_capture(stream);
    allocator_->deallocate(allocator_->allocate(4096, handle_of(stream)));
    EXPECT_EQ(allocator_->try_allocate(std::size_t{2} << 30), nullptr);
    EXPECT_EQ(allocator_->try_allocate(std::size_t{1} << 30), nullptr) << "and no memory is left";
    EXPECT_EQ(allocator_->trim(), 0U);
    EXPECT_TRUE(end_capture(stream));
}

TEST_F(CudaAllocator, AnnouncedCaptureGetsNoBlockThatWasFreedBefore) {
    CUstream_st* const stream = make_stream();
    void* const before = allocator_->allocate(4096, handle_of(stream));
    allocator_->deallocate(before);
    allocator_->begin_capture();
    begin_capture(stream);
    EXPECT_NE(allocator_->allocate(4096, handle_of(stream)), before);
    EXPECT_TRUE(end_capture(stream));
    allocator_->end_capture();
    EXPECT_EQ(allocator_->allocate(4096, handle_of(stream)), before);
}

TEST_F(CudaAllocator, CapturesShareThePoolThatTheyName) {
    CUstream_st* const one = make_stream();
    CUstream_st* const two = make_stream();
    const CapturePool pool = {1, 7};
    const auto capture = [&](CUstream_st* stream) {
        allocator_->begin_capture_pool(pool,
                                       [=](StreamHandle of) { return of == handle_of(stream); });
        begin_capture(stream);
        void* const block = allocator_->allocate(4096, handle_of(stream));
        allocator_->deallocate(block);
        EXPECT_TRUE(end_capture(stream));
        allocator_->end_capture_pool(pool);
        return block;
    };
    void* const block = capture(one);
    EXPECT_EQ(capture(one), block) << "the memory of the first graph";
    (void)capture(two);
    EXPECT_NE(allocator_->allocate(4096, handle_of(one)), block) << "outside the captures";
    const std::uint64_t captured = captured_bytes();
    EXPECT_GT(captured, 0U);
    allocator_->release_capture_pool(pool);
    allocator_->release_capture_pool(pool);
    EXPECT_EQ(captured_bytes(), captured) << "the third graph still uses it";
    allocator_->release_capture_pool(pool);
    allocator_->release_capture_pool(pool);  // unknown by now
    const unsigned long long before = calls("cuCtxSynchronize");
    (void)allocator_->allocate(3000, handle_of(two));  // a size that is not parked
    EXPECT_EQ(calls("cuCtxSynchronize"), before + 1);
    EXPECT_EQ(captured_bytes(), 0U);
}

TEST_F(CudaAllocator, UnknownPoolIsRefusedByName) {
    try {
        allocator_->end_capture_pool({3, 4});
        ADD_FAILURE();
    } catch (const std::invalid_argument& error) {
        EXPECT_NE(std::string(error.what()).find("(3, 4)"), std::string::npos) << error.what();
    }
}

// Default streams -------------------------------------------------------------------------------

TEST_F(CudaAllocator, HandleOneNamesTheDefaultStream) {
    void* const block = allocator_->allocate(4096);
    allocator_->deallocate(block);
    EXPECT_EQ(allocator_->allocate(4096, handle_of(legacy_stream_handle)), block);
}

TEST_F(CudaAllocator, DefaultStreamsOfThreadsShareNoBlock) {
    const StreamHandle own = handle_of(per_thread_stream_handle);
    void* const block = allocator_->allocate(4096, own);
    allocator_->deallocate(block);
    std::thread([&] { EXPECT_NE(allocator_->allocate(4096, own), block); }).join();
    EXPECT_EQ(allocator_->allocate(4096, own), block);
}

TEST_F(CudaAllocator, MemoryOfAnEndedThreadIsTakenAfterOneWait) {
    const StreamHandle own = handle_of(per_thread_stream_handle);
    void* block = nullptr;
    std::thread([&] {
        block = allocator_->allocate(4096, own);
        allocator_->deallocate(block);
    }).join();
    const unsigned long long before = calls("cuCtxSynchronize");
    std::thread([&] { EXPECT_EQ(allocator_->allocate(4096, own), block); }).join();
    EXPECT_EQ(calls("cuCtxSynchronize"), before + 1);
}

TEST_F(CudaAllocator, UseByAnotherThreadsDefaultStreamIsWaitedForByTheDevice) {
    const StreamHandle own = handle_of(per_thread_stream_handle);
    void* const block = allocator_->allocate(4096);
    // The work of this thread's own default stream is done; that of the other is not known to be.
    EXPECT_EQ(backend_.synchronize_stream(0, own), DeviceStatus::ok);
    std::thread([&] { allocator_->record_use(block, own); }).join();
    const unsigned long long before = calls("cuEventRecord");
    allocator_->deallocate(block);
    EXPECT_EQ(calls("cuEventRecord"), before) << "it would be recorded on this thread's stream";
    EXPECT_NE(allocator_->allocate(4096), block);
    EXPECT_EQ(allocator_->try_allocate(std::size_t{1} << 30), nullptr);
    EXPECT_EQ(allocator_->statistics().deferred_blocks, 0U) << "after pressure waited";
}

// Streams that their owners destroyed -----------------------------------------------------------

TEST_F(CudaAllocator, DestroyedStreamIsNeverUsed) {
    CUstream_st* const stream = make_stream();
    void* const used = allocator_->allocate(4096);
    allocator_->record_use(used, handle_of(stream));
    allocator_->deallocate(allocator_->allocate(100 * mib, handle_of(stream)));
    allocator_->deallocate(used);
    destroy(stream);
    (void)allocator_->trim();
    (void)allocator_->allocate(10 * mib);
    EXPECT_EQ(allocator_->try_allocate(std::size_t{1} << 30), nullptr);
    EXPECT_EQ(violation(), "");
}

TEST_F(CudaAllocator, StreamWithAHandleOfAFormerOneGetsItsMemoryAfterOneWait) {
    CUstream_st* const former = make_stream();
    void* const block = allocator_->allocate(10 * mib, handle_of(former));
    allocator_->deallocate(block);
    destroy(former);
    // The driver gives the handle out again once the work is done.
    EXPECT_EQ(find<Result (*)()>("cuCtxSynchronize")(), Result::success);
    CUstream_st* const again = make_stream();
    ASSERT_EQ(again, former);
    const unsigned long long before = calls("cuCtxSynchronize");
    EXPECT_EQ(allocator_->allocate(9 * mib, handle_of(again)), block);
    EXPECT_EQ(calls("cuCtxSynchronize"), before + 1);
    const StreamHandle other = handle_of(make_stream());
    begin_capture(again);
    (void)allocator_->allocate(4096, handle_of(again));
    (void)allocator_->allocate(9 * mib, other);
    EXPECT_EQ(calls("cuCtxSynchronize"), before + 1);
    EXPECT_TRUE(end_capture(again));
}

// Growth ----------------------------------------------------------------------------------------

TEST_F(CudaAllocator, SetsAccessOnceForALargeBlock) {
    const unsigned long long before = calls("cuMemSetAccess");
    allocator_->deallocate(allocator_->allocate(100 * mib));
    EXPECT_EQ(calls("cuMemSetAccess"), before + 1);
}

TEST_F(CudaAllocator, RequestBeyondTheFreeMemoryIsRefusedWithoutTakingWhatIsFree) {
    (void)allocator_->allocate(4096);
    const unsigned long long before = calls("cuMemCreate");
    EXPECT_EQ(allocator_->try_allocate(std::size_t{1} << 30), nullptr);
    EXPECT_LE(calls("cuMemCreate"), before + 16) << "one or two for each step of pressure";
}

}  // namespace
}  // namespace tensorpool::device::cuda
