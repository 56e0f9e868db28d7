#include <tensorpool/device/cuda_backend.hpp>
#include <tensorpool/device/stream_ordered_allocator.hpp>

#include <thread>

#include "device/cuda/fake_driver.hpp"

namespace tensorpool::device::cuda {
namespace {

class CudaBackendWithFakeDriver : public FakeDriver {};

bool has(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

TEST_F(CudaBackendWithFakeDriver, HasNoDevicesWithoutADriverAndReportsWhy) {
    CudaBackend backend("libno_such_driver.so.1");
    EXPECT_EQ(backend.device_count(), 0);
    EXPECT_TRUE(has(backend.last_error(), "no libno_such_driver.so.1 on this machine"))
        << backend.last_error();
    void* memory = nullptr;
    EXPECT_EQ(backend.allocate(0, 512, StorageKind::private_storage, &memory),
              DeviceStatus::invalid_argument);
    EXPECT_TRUE(has(backend.last_error(), "no device cuda:0; there are 0: no libno_such_driver"))
        << backend.last_error();
    EXPECT_EQ(backend.device_name(0), "");
    EXPECT_FALSE(backend.abilities(0).virtual_memory);
}

TEST_F(CudaBackendWithFakeDriver, NamesTheFunctionThatALibraryLacks) {
    CudaBackend backend(broken_path);
    EXPECT_EQ(backend.device_count(), 0);
    EXPECT_TRUE(has(backend.last_error(), "_broken.so has no cu")) << backend.last_error();
    EXPECT_TRUE(has(backend.last_error(), "expected the driver of CUDA 10.0 or newer"));
}

TEST_F(CudaBackendWithFakeDriver, ReportsTheDriversTextIfThereIsNoDevice) {
    set_init_result(100);
    CudaBackend backend(path);
    set_init_result(0);
    EXPECT_EQ(backend.device_count(), 0);
    EXPECT_TRUE(
        has(backend.last_error(), "cuInit: no CUDA-capable device is detected (CUresult 100)"))
        << backend.last_error();
}

TEST_F(CudaBackendWithFakeDriver, HasNoDevicesIfTheDriverCountsNone) {
    set_device_count(0);
    CudaBackend backend(path);
    set_device_count(fake_cuda::first_devices);
    EXPECT_EQ(backend.device_count(), 0);
    EXPECT_EQ(backend.last_error(), "the CUDA driver found no device");
}

TEST_F(CudaBackendWithFakeDriver, CreatesContextsOnDemand) {
    CudaBackend backend(path);
    EXPECT_EQ(backend.device_count(), fake_cuda::first_devices);
    EXPECT_EQ(backend.device_name(1), "Fake CUDA device");
    EXPECT_TRUE(backend.abilities(1).virtual_memory);
    EXPECT_EQ(held(), 0);
    DeviceMemoryInfo info;
    EXPECT_EQ(backend.memory_info(1, info), DeviceStatus::ok);
    EXPECT_EQ(held(), 1);
}

TEST_F(CudaBackendWithFakeDriver, GivesStreamsTheirPriority) {
    CudaBackend backend(path);
    StreamPriorities range;
    ASSERT_EQ(backend.stream_priorities(0, range), DeviceStatus::ok);
    EXPECT_EQ(range.lowest, 0);
    EXPECT_EQ(range.highest, -5);
    StreamHandle stream = nullptr;
    ASSERT_EQ(backend.create_stream(0, &stream, -3), DeviceStatus::ok);
    int priority = 0;
    EXPECT_EQ(in_context(0,
                         [&] {
                             return find<Result (*)(StreamHandle, int*)>("cuStreamGetPriority")(
                                 stream, &priority);
                         }),
              Result::success);
    EXPECT_EQ(priority, -3);
    EXPECT_EQ(backend.create_stream(0, &stream, -6), DeviceStatus::invalid_argument);
    EXPECT_TRUE(has(backend.last_error(), "priority -6, expected -5 (the highest) to 0"))
        << backend.last_error();
}

TEST_F(CudaBackendWithFakeDriver, PassesTheFlagsOfEventsOn) {
    CudaBackend backend(path);
    const auto flags_of = find<fake_cuda::EventFlags>("fake_cuda_event_flags");
    const std::pair<EventFlags, unsigned> cases[] = {
        {EventFlags::none, 2},         {EventFlags::timing, 0},
        {EventFlags::blocking, 3},     {EventFlags::blocking | EventFlags::timing, 1},
        {EventFlags::interprocess, 6}, {EventFlags::interprocess | EventFlags::blocking, 7},
    };
    for (const auto& [flags, expected] : cases) {
        EventHandle event = nullptr;
        ASSERT_EQ(backend.create_event(0, flags, &event), DeviceStatus::ok);
        EXPECT_EQ(flags_of(reinterpret_cast<CUevent_st*>(event)), expected);
    }
}

// The numbers are those of CUmem_range_attribute; -1 is the host, and -2 no processor.
TEST_F(CudaBackendWithFakeDriver, PassesAdviceAndPrefetchesOn) {
    using enum MemoryAdvice;
    CudaBackend backend(path);
    void* memory = nullptr;
    constexpr std::size_t bytes = 4096;
    ASSERT_EQ(backend.allocate(0, bytes, StorageKind::managed, &memory), DeviceStatus::ok);
    const auto attribute = [&](int number) {
        int found = -7;
        const auto call =
            find<Result (*)(int*, std::size_t, int, void*, std::size_t)>("cuMemRangeGetAttribute");
        EXPECT_EQ(in_context(0, [&] { return call(&found, sizeof found, number, memory, bytes); }),
                  Result::success);
        return found;
    };
    const auto advise = [&](int device, MemoryAdvice advice, Processor processor) {
        EXPECT_EQ(backend.advise_memory(device, memory, bytes, advice, processor),
                  DeviceStatus::ok);
    };
    advise(0, read_mostly, Processor::device);
    EXPECT_EQ(attribute(1), 1);
    advise(0, not_read_mostly, Processor::device);
    EXPECT_EQ(attribute(1), 0);
    advise(0, preferred_location, Processor::host);
    EXPECT_EQ(attribute(2), -1);
    advise(1, preferred_location, Processor::device);
    EXPECT_EQ(attribute(2), 1);
    advise(0, no_preferred_location, Processor::device);
    EXPECT_EQ(attribute(2), -2);
    advise(1, accessed_by, Processor::device);
    EXPECT_EQ(attribute(3), 1);
    advise(1, not_accessed_by, Processor::device);
    EXPECT_EQ(attribute(3), -2);
    for (const Processor processor : {Processor::device, Processor::host}) {
        EXPECT_EQ(backend.prefetch_memory(1, memory, bytes, processor, nullptr), DeviceStatus::ok);
        EXPECT_EQ(backend.synchronize_device(1), DeviceStatus::ok);
        EXPECT_EQ(attribute(4), processor == Processor::host ? -1 : 1);
    }
    EXPECT_EQ(backend.deallocate(0, memory, bytes, StorageKind::managed), DeviceStatus::ok);
}

TEST_F(CudaBackendWithFakeDriver, RejectsAdviceForMemoryThatIsNotManaged) {
    CudaBackend backend(path);
    void* memory = nullptr;
    constexpr auto kind = StorageKind::private_storage;
    ASSERT_EQ(backend.allocate(0, 512, kind, &memory), DeviceStatus::ok);
    EXPECT_EQ(backend.advise_memory(0, memory, 512, MemoryAdvice::read_mostly, Processor::device),
              DeviceStatus::invalid_argument);
    EXPECT_EQ(backend.prefetch_memory(0, memory, 512, Processor::device, nullptr),
              DeviceStatus::invalid_argument);
    EXPECT_EQ(backend.deallocate(0, memory, 512, kind), DeviceStatus::ok);
}

TEST_F(CudaBackendWithFakeDriver, KeepsFreedStreamOrderedMemoryUpToTheThreshold) {
    CudaBackend backend(path);
    constexpr std::size_t bytes = std::size_t{1} << 20;
    const auto used = [&] {
        DeviceMemoryInfo info;
        EXPECT_EQ(backend.memory_info(0, info), DeviceStatus::ok);
        return info.total_bytes - info.free_bytes;
    };
    const auto allocate_and_free = [&] {
        void* memory = nullptr;
        EXPECT_EQ(backend.allocate_async(0, bytes, nullptr, &memory), DeviceStatus::ok);
        EXPECT_EQ(backend.deallocate_async(0, memory, bytes, nullptr), DeviceStatus::ok);
        EXPECT_EQ(backend.synchronize_stream(0, nullptr), DeviceStatus::ok);
    };
    allocate_and_free();
    EXPECT_EQ(used(), 0u) << "initially the threshold is 0";
    EXPECT_EQ(backend.set_release_threshold(0, bytes / 2), DeviceStatus::ok);
    allocate_and_free();
    EXPECT_EQ(used(), bytes / 2);
    EXPECT_EQ(backend.set_release_threshold(0, 10 * bytes), DeviceStatus::ok);
    allocate_and_free();
    allocate_and_free();
    EXPECT_EQ(used(), bytes);
    std::size_t given_back = 0;
    EXPECT_EQ(backend.trim_stream_ordered(0, given_back), DeviceStatus::ok);
    EXPECT_EQ(given_back, bytes);
    EXPECT_EQ(used(), 0u);
}

TEST_F(CudaBackendWithFakeDriver, MemoryFreedOnAStreamIsAllocatedAgainBeforeItsWorkIsDone) {
    CudaBackend backend(path);
    DeviceMemoryInfo info;
    ASSERT_EQ(backend.memory_info(0, info), DeviceStatus::ok);
    const std::size_t bytes = info.total_bytes / 5 * 3;
    for (int i = 0; i < 100; ++i) {
        void* memory = nullptr;
        ASSERT_EQ(backend.allocate_async(0, bytes, nullptr, &memory), DeviceStatus::ok) << i;
        ASSERT_EQ(backend.deallocate_async(0, memory, bytes, nullptr), DeviceStatus::ok);
    }
}

TEST_F(CudaBackendWithFakeDriver, StreamOrderedAllocatorKeepsFreeMemoryUntilItIsTrimmed) {
    CudaBackend backend(path);
    constexpr std::size_t bytes = std::size_t{1} << 20;
    StreamOrderedAllocator allocator(backend, 0);
    allocator.deallocate(allocator.allocate(bytes));
    EXPECT_EQ(backend.synchronize_device(0), DeviceStatus::ok);
    EXPECT_EQ(allocator.trim(), bytes);
    StreamOrderedAllocator without(backend, 0, {.release_threshold = 0});
    without.deallocate(without.allocate(bytes));
    EXPECT_EQ(backend.synchronize_device(0), DeviceStatus::ok);
    EXPECT_EQ(without.trim(), 0u);
}

TEST_F(CudaBackendWithFakeDriver, ReleasesContextsAndTheirObjects) {
    {
        CudaBackend backend(path);
        StreamHandle stream = nullptr;
        EventHandle event = nullptr;
        char from = 1;
        char to = 0;
        EXPECT_EQ(backend.create_stream(0, &stream), DeviceStatus::ok);
        EXPECT_EQ(backend.create_event(1, EventFlags::none, &event), DeviceStatus::ok);
        EXPECT_EQ(backend.copy(1, CopyKind::host_to_host, &to, &from, 1), DeviceStatus::ok);
        // Two contexts, the stream, the event, and a stream and an event for copies.
        EXPECT_EQ(held(), 6);
    }
    EXPECT_EQ(held(), 0);
}

TEST_F(CudaBackendWithFakeDriver, RestoresTheThreadsContext) {
    CudaBackend backend(path);
    DeviceMemoryInfo info;
    EXPECT_EQ(backend.memory_info(0, info), DeviceStatus::ok);
    EXPECT_EQ(current_context(), nullptr);

    CUctx_st* own = nullptr;
    find<int (*)(CUctx_st**, int)>("cuDevicePrimaryCtxRetain")(&own, 1);
    find<int (*)(CUctx_st*)>("cuCtxPushCurrent_v2")(own);
    EXPECT_EQ(backend.memory_info(0, info), DeviceStatus::ok);
    void* memory = nullptr;
    EXPECT_EQ(backend.allocate(0, std::size_t{1} << 40, StorageKind::private_storage, &memory),
              DeviceStatus::out_of_memory);
    EXPECT_EQ(current_context(), own);
    CUctx_st* popped = nullptr;
    find<int (*)(CUctx_st**)>("cuCtxPopCurrent_v2")(&popped);
    find<int (*)(int)>("cuDevicePrimaryCtxRelease")(1);
}

TEST_F(CudaBackendWithFakeDriver, ReportsTheLastErrorOfTheCallingThread) {
    CudaBackend backend(path);
    DeviceMemoryInfo info;
    EXPECT_EQ(backend.last_error(), "");
    EXPECT_EQ(backend.memory_info(7, info), DeviceStatus::invalid_argument);
    std::thread([&] { EXPECT_EQ(backend.last_error(), ""); }).join();
    EXPECT_EQ(backend.last_error(), "cuda: no device cuda:7; there are 2");
}

TEST_F(CudaBackendWithFakeDriver, ErrorNamesTheCallAndTheDriversText) {
    CudaBackend backend(path);
    void* memory = nullptr;
    fail_next("cuMemAlloc", 2);
    EXPECT_EQ(backend.allocate(0, 512, StorageKind::private_storage, &memory),
              DeviceStatus::out_of_memory);
    EXPECT_EQ(backend.last_error(), "cuda: cuMemAlloc: out of memory (CUresult 2)");
    fail_next("cuMemAlloc", 999);
    EXPECT_EQ(backend.allocate(0, 512, StorageKind::private_storage, &memory),
              DeviceStatus::failed);
    EXPECT_EQ(backend.last_error(), "cuda: cuMemAlloc: an error without a text (CUresult 999)");
    EXPECT_EQ(memory, nullptr);
}

TEST_F(CudaBackendWithFakeDriver, ReportsALostDeviceForEveryCall) {
    CudaBackend backend(path);
    DeviceMemoryInfo info;
    StreamHandle stream = nullptr;
    EXPECT_EQ(backend.memory_info(0, info), DeviceStatus::ok);
    lose_device(0, 700);
    EXPECT_EQ(backend.create_stream(0, &stream), DeviceStatus::device_lost);
    EXPECT_EQ(backend.synchronize_device(0), DeviceStatus::device_lost);
    EXPECT_EQ(backend.memory_info(1, info), DeviceStatus::ok);
    lose_device(0, 0);
}

TEST_F(CudaBackendWithFakeDriver, FailsWithoutAContextAndTriesAgain) {
    CudaBackend backend(path);
    DeviceMemoryInfo info;
    fail_next("cuDevicePrimaryCtxRetain", 2);
    EXPECT_EQ(backend.memory_info(0, info), DeviceStatus::out_of_memory);
    fail_next("cuCtxPushCurrent", 201);
    EXPECT_EQ(backend.memory_info(0, info), DeviceStatus::invalid_argument);
    EXPECT_EQ(backend.memory_info(0, info), DeviceStatus::ok);
    EXPECT_EQ(current_context(), nullptr);
}

TEST_F(CudaBackendWithFakeDriver, RejectsHandlesOfAnotherDevice) {
    CudaBackend backend(path);
    StreamHandle stream = nullptr;
    EventHandle event = nullptr;
    EXPECT_EQ(backend.create_stream(0, &stream), DeviceStatus::ok);
    EXPECT_EQ(backend.create_event(1, EventFlags::none, &event), DeviceStatus::ok);
    EXPECT_EQ(backend.synchronize_stream(1, stream), DeviceStatus::invalid_argument);
    EXPECT_EQ(backend.record_event(0, event, stream), DeviceStatus::invalid_argument);
    EXPECT_EQ(backend.wait_event(0, stream, event), DeviceStatus::ok);
}

TEST_F(CudaBackendWithFakeDriver, ReportsTheToolkitsStub) {
    set_init_result(34);
    CudaBackend backend(path);
    EXPECT_EQ(backend.device_count(), 0);
    EXPECT_TRUE(has(backend.last_error(),
                    "cuInit: it is the toolkit's stub for linking; "
                    "expected the driver's own library (CUresult 34)"))
        << backend.last_error();
    set_init_result(0);
}

// An old driver ---------------------------------------------------------------------------------

TEST_F(CudaBackendWithFakeDriver, OldDriverHasFewerAbilities) {
    CudaBackend backend(old_path);
    ASSERT_EQ(backend.device_count(), fake_cuda::first_devices) << backend.last_error();
    const DeviceAbilities abilities = backend.abilities(0);
    EXPECT_FALSE(abilities.virtual_memory);
    EXPECT_EQ(abilities.granularity, 0u);
    EXPECT_FALSE(abilities.stream_ordered_allocation);
    EXPECT_FALSE(abilities.managed_storage);
    EXPECT_FALSE(abilities.graph_capture);
    EXPECT_TRUE(abilities.shared_storage);
}

TEST_F(CudaBackendWithFakeDriver, ErrorNamesTheFunctionThatAnOldDriverLacks) {
    CudaBackend backend(old_path);
    void* memory = nullptr;
    EXPECT_EQ(backend.reserve_addresses(0, std::size_t{2} << 20, &memory),
              DeviceStatus::not_supported);
    EXPECT_TRUE(has(backend.last_error(), "has no cuMemAddressReserve; it came with CUDA 10.2"))
        << backend.last_error();
    EXPECT_EQ(backend.allocate_async(0, 512, nullptr, &memory), DeviceStatus::not_supported);
    EXPECT_EQ(backend.allocate(0, 512, StorageKind::managed, &memory), DeviceStatus::not_supported);
    EXPECT_EQ(backend.begin_capture(0, nullptr), DeviceStatus::not_supported);
    EXPECT_FALSE(backend.can_access_peer(0, 1));
    EXPECT_EQ(backend.enable_peer_access(0, 1), DeviceStatus::not_supported);
    EXPECT_EQ(backend.register_pinned(0, &memory, sizeof memory), DeviceStatus::not_supported);
}

TEST_F(CudaBackendWithFakeDriver, WorksWithADriverWithoutGetProcAddress) {
    CudaBackend backend(old_path);
    void* memory = nullptr;
    char from[] = "round and back";
    char to[sizeof from] = {};
    ASSERT_EQ(backend.allocate(0, sizeof from, StorageKind::private_storage, &memory),
              DeviceStatus::ok);
    EXPECT_EQ(backend.copy(0, CopyKind::host_to_device, memory, from, sizeof from),
              DeviceStatus::ok);
    EXPECT_EQ(backend.copy(0, CopyKind::device_to_host, to, memory, sizeof from), DeviceStatus::ok);
    EXPECT_STREQ(to, from);
    EXPECT_EQ(backend.deallocate(0, memory, sizeof from, StorageKind::private_storage),
              DeviceStatus::ok);
}

// Virtual memory and peers ----------------------------------------------------------------------

class CudaVirtualMemory : public FakeDriver {
protected:
    static constexpr std::size_t bytes = std::size_t{2} << 20;

    void reserve() {
        ASSERT_EQ(backend_.reserve_addresses(0, 2 * bytes, &address_), DeviceStatus::ok);
        for (MemoryHandle& memory : memory_) {
            ASSERT_EQ(backend_.create_memory(0, bytes, &memory), DeviceStatus::ok);
        }
    }
    void release() {
        for (const MemoryHandle memory : memory_) {
            EXPECT_EQ(backend_.destroy_memory(0, memory), DeviceStatus::ok);
        }
        EXPECT_EQ(backend_.release_addresses(0, address_, 2 * bytes), DeviceStatus::ok);
    }
    DeviceStatus map(std::size_t part) {
        return backend_.map_memory(0, part_at(part), bytes, memory_[part]);
    }
    void* part_at(std::size_t part) { return static_cast<char*>(address_) + part * bytes; }

    CudaBackend backend_{path};
    void* address_ = nullptr;
    MemoryHandle memory_[2] = {};
};

TEST_F(CudaVirtualMemory, UnmapsSeveralMappingsInOneCall) {
    reserve();
    EXPECT_EQ(map(0), DeviceStatus::ok);
    EXPECT_EQ(map(1), DeviceStatus::ok);
    EXPECT_EQ(backend_.fill(0, address_, 7, 2 * bytes), DeviceStatus::ok);
    EXPECT_EQ(backend_.unmap_memory(0, address_, 2 * bytes), DeviceStatus::ok);
    EXPECT_EQ(backend_.fill(0, address_, 7, 1), DeviceStatus::invalid_argument);
    release();
}

TEST_F(CudaVirtualMemory, RejectsUnmappingAnythingButWholeMappings) {
    reserve();
    EXPECT_EQ(map(0), DeviceStatus::ok);
    EXPECT_EQ(backend_.unmap_memory(0, address_, bytes / 2), DeviceStatus::invalid_argument);
    EXPECT_EQ(backend_.unmap_memory(0, address_, 2 * bytes), DeviceStatus::invalid_argument);
    EXPECT_EQ(backend_.unmap_memory(0, part_at(1), bytes), DeviceStatus::invalid_argument);
    EXPECT_TRUE(has(backend_.last_error(), "are not one or more whole mappings"));
    EXPECT_EQ(backend_.unmap_memory(0, address_, bytes), DeviceStatus::ok);
    release();
}

TEST_F(CudaVirtualMemory, IsUnmappedIfAccessCannotBeSet) {
    reserve();
    fail_next("cuMemSetAccess", 2);
    EXPECT_EQ(map(0), DeviceStatus::out_of_memory);
    EXPECT_EQ(map(0), DeviceStatus::ok);
    EXPECT_EQ(backend_.unmap_memory(0, address_, bytes), DeviceStatus::ok);
    release();
}

TEST_F(CudaVirtualMemory, IsAccessibleToAllPeersThatAllowIt) {
    reserve();
    EXPECT_TRUE(backend_.can_access_peer(1, 0));
    EXPECT_EQ(map(0), DeviceStatus::ok);
    EXPECT_EQ(map(1), DeviceStatus::ok);
    EXPECT_EQ(backend_.fill(1, address_, 7, 2 * bytes), DeviceStatus::ok);
    EXPECT_EQ(backend_.unmap_memory(0, address_, 2 * bytes), DeviceStatus::ok);
    release();
}

TEST_F(CudaVirtualMemory, WorksWherePeersAreNotAllowed) {
    set_peers(false);
    CudaBackend backend(path);
    set_peers(true);
    void* address = nullptr;
    MemoryHandle memory = nullptr;
    ASSERT_EQ(backend.reserve_addresses(0, bytes, &address), DeviceStatus::ok);
    ASSERT_EQ(backend.create_memory(0, bytes, &memory), DeviceStatus::ok);
    EXPECT_EQ(backend.map_memory(0, address, bytes, memory), DeviceStatus::ok);
    EXPECT_EQ(backend.fill(0, address, 7, bytes), DeviceStatus::ok);
    EXPECT_EQ(backend.fill(1, address, 7, bytes), DeviceStatus::invalid_argument);
    EXPECT_EQ(backend.unmap_memory(0, address, bytes), DeviceStatus::ok);
    EXPECT_EQ(backend.destroy_memory(0, memory), DeviceStatus::ok);
    EXPECT_EQ(backend.release_addresses(0, address, bytes), DeviceStatus::ok);
}

TEST_F(CudaVirtualMemory, SetsAccessOnceForARun) {
    reserve();
    const unsigned long long before = calls("cuMemSetAccess");
    EXPECT_EQ(backend_.map_memories(0, address_, bytes, memory_), DeviceStatus::ok);
    EXPECT_EQ(calls("cuMemSetAccess"), before + 1);
    EXPECT_EQ(backend_.fill(0, address_, 7, 2 * bytes), DeviceStatus::ok);
    EXPECT_EQ(backend_.unmap_memory(0, address_, 2 * bytes), DeviceStatus::ok);
    release();
}

TEST_F(CudaVirtualMemory, RunIsMappedAsAWholeOrNotAtAll) {
    reserve();
    EXPECT_EQ(map(1), DeviceStatus::ok);
    EXPECT_EQ(backend_.map_memories(0, address_, bytes, memory_), DeviceStatus::invalid_argument);
    EXPECT_EQ(map(0), DeviceStatus::ok) << "nothing was mapped there";
    EXPECT_EQ(backend_.unmap_memory(0, address_, 2 * bytes), DeviceStatus::ok);
    release();
}

// Capture ---------------------------------------------------------------------------------------

class CudaCapture : public FakeDriver {
protected:
    CudaCapture() { EXPECT_EQ(backend_.create_stream(0, &stream_), DeviceStatus::ok); }

    CudaBackend backend_{path};
    StreamHandle stream_ = nullptr;
    GraphHandle graph_ = nullptr;
};

TEST_F(CudaCapture, AllowsMemoryCallsAndQueriesOnAnyThread) {
    // torch.cuda.graph captures in the global mode, which forbids them unless each thread opts out.
    const auto use_memory = [&] {
        void* memory = nullptr;
        EventHandle event = nullptr;
        ASSERT_EQ(backend_.allocate(0, 512, StorageKind::private_storage, &memory),
                  DeviceStatus::ok)
            << backend_.last_error();
        EXPECT_EQ(backend_.deallocate(0, memory, 512, StorageKind::private_storage),
                  DeviceStatus::ok);
        EXPECT_EQ(backend_.create_event(0, EventFlags::none, &event), DeviceStatus::ok);
        EXPECT_EQ(backend_.record_event(0, event, nullptr), DeviceStatus::ok);
        EXPECT_NE(backend_.query_event(0, event), DeviceStatus::in_capture);
        EXPECT_NE(backend_.query_stream(0, nullptr), DeviceStatus::in_capture);
        EXPECT_EQ(backend_.destroy_event(0, event), DeviceStatus::ok);
    };
    CUctx_st* context = nullptr;
    find<int (*)(CUctx_st**, int)>("cuDevicePrimaryCtxRetain")(&context, 0);
    find<int (*)(CUctx_st*)>("cuCtxPushCurrent_v2")(context);
    const auto captured = reinterpret_cast<CUstream_st*>(stream_);
    using Begin = Result (*)(CUstream_st*, CaptureMode);
    ASSERT_EQ(find<Begin>("cuStreamBeginCapture_v2")(captured, CaptureMode::global),
              Result::success);
    use_memory();
    std::thread(use_memory).join();
    CUgraph_st* graph = nullptr;
    EXPECT_EQ(find<Result (*)(CUstream_st*, CUgraph_st**)>("cuStreamEndCapture")(captured, &graph),
              Result::success);
    find<Result (*)(CUgraph_st*)>("cuGraphDestroy")(graph);
    find<int (*)(CUctx_st**)>("cuCtxPopCurrent_v2")(&context);
    find<int (*)(int)>("cuDevicePrimaryCtxRelease")(0);
}

TEST_F(CudaCapture, SurvivesCallsThatAreNotAllowedDuringIt) {
    ASSERT_EQ(backend_.begin_capture(0, stream_), DeviceStatus::ok);
    EXPECT_EQ(backend_.synchronize_stream(0, stream_), DeviceStatus::in_capture);
    EXPECT_EQ(backend_.synchronize_device(0), DeviceStatus::in_capture);
    EXPECT_EQ(backend_.synchronize_device(1), DeviceStatus::in_capture);
    EXPECT_EQ(backend_.end_capture(0, stream_, &graph_), DeviceStatus::ok);
    EXPECT_EQ(backend_.synchronize_stream(0, stream_), DeviceStatus::ok);
    EXPECT_EQ(backend_.destroy_graph(0, graph_), DeviceStatus::ok);
}

TEST_F(CudaCapture, LetsOtherThreadsAllocate) {
    void* memory = nullptr;
    ASSERT_EQ(backend_.begin_capture(0, stream_), DeviceStatus::ok);
    std::thread([&] {
        EXPECT_EQ(backend_.allocate(0, 512, StorageKind::private_storage, &memory),
                  DeviceStatus::ok);
        EXPECT_EQ(backend_.fill(0, memory, 1, 512), DeviceStatus::ok);
    }).join();
    EXPECT_EQ(backend_.end_capture(0, stream_, &graph_), DeviceStatus::ok);
    EXPECT_EQ(backend_.destroy_graph(0, graph_), DeviceStatus::ok);
    EXPECT_EQ(backend_.deallocate(0, memory, 512, StorageKind::private_storage), DeviceStatus::ok);
}

TEST_F(CudaCapture, LeaksNoGraphIfInstantiationFails) {
    ASSERT_EQ(backend_.begin_capture(0, stream_), DeviceStatus::ok);
    fail_next("cuGraphInstantiate", 2);
    const int before = held();
    EXPECT_EQ(backend_.end_capture(0, stream_, &graph_), DeviceStatus::out_of_memory);
    EXPECT_EQ(held(), before);
    EXPECT_EQ(graph_, nullptr);
    EXPECT_EQ(backend_.synchronize_stream(0, stream_), DeviceStatus::ok);
}

TEST_F(CudaCapture, IsRejectedIfAStreamWasNotJoinedAgain) {
    StreamHandle other = nullptr;
    EventHandle event = nullptr;
    EXPECT_EQ(backend_.create_stream(0, &other), DeviceStatus::ok);
    EXPECT_EQ(backend_.create_event(0, EventFlags::none, &event), DeviceStatus::ok);
    ASSERT_EQ(backend_.begin_capture(0, stream_), DeviceStatus::ok);
    EXPECT_EQ(backend_.record_event(0, event, stream_), DeviceStatus::ok);
    EXPECT_EQ(backend_.wait_event(0, other, event), DeviceStatus::ok);
    EXPECT_EQ(backend_.launch_host_function(
                  0, other, [](void*) {}, nullptr),
              DeviceStatus::ok);
    EXPECT_EQ(backend_.end_capture(0, stream_, &graph_), DeviceStatus::in_capture);
    EXPECT_TRUE(has(backend_.last_error(), "CUresult 904")) << backend_.last_error();
}

// Storage ---------------------------------------------------------------------------------------

TEST_F(CudaBackendWithFakeDriver, FindsHostPointersInSharedAndManagedStorageOnly) {
    CudaBackend backend(path);
    for (const StorageKind kind :
         {StorageKind::shared, StorageKind::managed, StorageKind::private_storage}) {
        void* memory = nullptr;
        ASSERT_EQ(backend.allocate(0, 4096, kind, &memory), DeviceStatus::ok);
        const bool for_host = kind != StorageKind::private_storage;
        char* const inside = static_cast<char*>(memory) + 100;
        EXPECT_EQ(backend.host_pointer(0, inside), for_host ? inside : nullptr);
        EXPECT_EQ(backend.deallocate(0, memory, 4096, kind), DeviceStatus::ok);
    }
    EXPECT_EQ(backend.last_error(), "");
}

}  // namespace
}  // namespace tensorpool::device::cuda
