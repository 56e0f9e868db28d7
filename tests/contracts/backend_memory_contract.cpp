// Contract: memory of a device, of each kind of storage, and in a stream's order.

#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include "contracts/backend_contract.hpp"

namespace tensorpool::testing {

TEST_P(BackendContract, MemoryIsAlignedAndKeepsItsContent) {
    const std::vector<std::size_t> sizes = {1, 256, 4097, 64 * kib, 3 * mib + 1};
    std::vector<void*> blocks;
    for (const std::size_t bytes : sizes) {
        blocks.push_back(make_memory(bytes));
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back()) % 256, 0U);
        write(blocks.back(), pattern(bytes, static_cast<unsigned>(bytes)));
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        EXPECT_TRUE(read(blocks[i], sizes[i]) ==
                    pattern(sizes[i], static_cast<unsigned>(sizes[i])));
    }
}

TEST_P(BackendContract, RejectsZeroBytes) {
    int mine = 0;
    void* memory = &mine;
    expect_refused(backend().allocate(device, 0, StorageKind::private_storage, &memory));
    EXPECT_EQ(memory, &mine);
}

TEST_P(BackendContract, OutOfMemoryChangesNothing) {
    DeviceMemoryInfo info;
    ASSERT_EQ(backend().memory_info(device, info), DeviceStatus::ok);
    int mine = 0;
    void* memory = &mine;
    for (const std::size_t bytes :
         {info.total_bytes + mib, std::numeric_limits<std::size_t>::max() / 2,
          std::numeric_limits<std::size_t>::max()}) {
        expect_refused(backend().allocate(device, bytes, StorageKind::private_storage, &memory),
                       DeviceStatus::out_of_memory);
        EXPECT_EQ(memory, &mine);
    }
    write(make_memory(kib), pattern(kib));  // the device is still usable
}

TEST_P(BackendContract, RejectsFreesOfInvalidMemory) {
    int mine = 0;
    constexpr auto kind = StorageKind::private_storage;
    expect_refused(backend().deallocate(device, &mine, 256, kind));
    void* memory = nullptr;
    ASSERT_EQ(backend().allocate(device, mib, kind, &memory), DeviceStatus::ok);
    expect_refused(backend().deallocate(device, static_cast<char*>(memory) + 256, mib, kind));
    EXPECT_EQ(backend().deallocate(device, memory, mib, kind), DeviceStatus::ok);
    expect_refused(backend().deallocate(device, memory, mib, kind));
}

// CUDA's runtime documents it ("If devPtr is 0, no operation is performed", cudaFree), and ported
// code frees pointers that it never set.
TEST_P(BackendContract, FreeOfNullptrDoesNothing) {
    for (const StorageKind kind : {StorageKind::private_storage, StorageKind::shared}) {
        EXPECT_EQ(backend().deallocate(device, nullptr, 0, kind), DeviceStatus::ok);
        EXPECT_EQ(backend().deallocate(device, nullptr, 256, kind), DeviceStatus::ok);
    }
    EXPECT_EQ(backend().deallocate_pinned(device, nullptr, 256), DeviceStatus::ok);
    EXPECT_EQ(backend().last_error(), "");
}

TEST_P(BackendContract, MemoryMayBeFreedByAnotherThread) {
    void* memory = nullptr;
    constexpr auto kind = StorageKind::private_storage;
    ASSERT_EQ(backend().allocate(device, mib, kind, &memory), DeviceStatus::ok);
    std::thread([&] {
        EXPECT_EQ(backend().deallocate(device, memory, mib, kind), DeviceStatus::ok);
    }).join();
}

TEST_P(BackendContract, HostAccessesPrivateStorageOnlyIfUnified) {
    auto* const memory = static_cast<unsigned char*>(make_memory(64 * kib));
    auto* const host = static_cast<unsigned char*>(backend().host_pointer(device, memory));
    ASSERT_EQ(host != nullptr, abilities().unified_memory);
    if (host == nullptr) return;
    write(memory, pattern(64 * kib));
    EXPECT_EQ(Bytes(host, host + 64 * kib), pattern(64 * kib));
    EXPECT_EQ(backend().host_pointer(device, memory + 1000), host + 1000);
}

TEST_P(BackendContract, HostAccessesSharedAndManagedStorageIfSupported) {
    const std::pair<StorageKind, bool> kinds[] = {
        {StorageKind::shared, abilities().shared_storage},
        {StorageKind::managed, abilities().managed_storage}};
    for (const auto& [kind, is_there] : kinds) {
        if (!is_there) {
            void* memory = this;
            expect_refused(backend().allocate(device, kib, kind, &memory),
                           DeviceStatus::not_supported);
            EXPECT_EQ(memory, this);
            continue;
        }
        auto* const memory = static_cast<unsigned char*>(make_memory(64 * kib, kind));
        auto* const host = static_cast<unsigned char*>(backend().host_pointer(device, memory));
        ASSERT_NE(host, nullptr);
        EXPECT_TRUE(kind == StorageKind::shared || host == memory);
        EXPECT_EQ(backend().host_pointer(device, memory + 1000), host + 1000);
        ASSERT_EQ(backend().fill(device, memory, 0x5a, 64 * kib), DeviceStatus::ok);
        EXPECT_EQ(Bytes(host, host + 64 * kib), Bytes(64 * kib, 0x5a));
        host[77] = 7;
        EXPECT_EQ(read(memory + 77, 1), Bytes{7});
    }
}

TEST_P(BackendContract, AllocatesInStreamOrderIfSupported) {
    const StreamHandle stream = make_stream();
    void* memory = this;
    const DeviceStatus status = backend().allocate_async(device, mib, stream, &memory);
    if (!abilities().stream_ordered_allocation) {
        EXPECT_EQ(status, DeviceStatus::not_supported);
        EXPECT_EQ(memory, this);
        EXPECT_EQ(backend().deallocate_async(device, this, mib, stream),
                  DeviceStatus::not_supported);
        return;
    }
    ASSERT_EQ(status, DeviceStatus::ok) << backend().last_error();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 256, 0U);
    unsigned char* const host = make_pinned(mib);
    EXPECT_EQ(backend().fill_async(device, memory, 0x21, mib, stream), DeviceStatus::ok);
    EXPECT_EQ(backend().copy_async(device, CopyKind::device_to_host, host, memory, mib, stream),
              DeviceStatus::ok);
    // The copy may still be pending, but it is ordered before the free.
    EXPECT_EQ(backend().deallocate_async(device, memory, mib, stream), DeviceStatus::ok);
    ASSERT_EQ(backend().synchronize_stream(device, stream), DeviceStatus::ok);
    EXPECT_EQ(Bytes(host, host + mib), Bytes(mib, 0x21));
}

TEST_P(BackendWithStreamOrder, RejectsInvalidStreamOrderedAllocation) {
    void* memory = this;
    expect_refused(backend().allocate_async(device, 0, nullptr, &memory));
    expect_refused(backend().allocate_async(device, std::numeric_limits<std::size_t>::max() / 2,
                                            nullptr, &memory),
                   DeviceStatus::out_of_memory);
    if (knows_handles()) {
        expect_refused(
            backend().allocate_async(device, kib, nonsense_handle<StreamHandle>(), &memory));
    }
    EXPECT_EQ(memory, this);
    ASSERT_EQ(backend().allocate_async(device, kib, nullptr, &memory), DeviceStatus::ok);
    if (knows_handles()) {
        expect_refused(
            backend().deallocate_async(device, memory, kib, nonsense_handle<StreamHandle>()));
    }
    EXPECT_EQ(backend().deallocate_async(device, memory, kib, nullptr), DeviceStatus::ok);
    expect_refused(backend().deallocate_async(device, memory, kib, nullptr));
}

TEST_P(BackendWithStreamOrder, ReleaseThresholdAndTrimKeepBlocksInUse) {
    const StreamHandle stream = make_stream();
    std::size_t given_back = 7;
    for (const std::size_t threshold : {std::numeric_limits<std::size_t>::max(), std::size_t{0}}) {
        ASSERT_EQ(backend().set_release_threshold(device, threshold), DeviceStatus::ok)
            << backend().last_error();
        void* used = nullptr;
        void* freed = nullptr;
        ASSERT_EQ(backend().allocate_async(device, mib, stream, &used), DeviceStatus::ok);
        ASSERT_EQ(backend().allocate_async(device, mib, stream, &freed), DeviceStatus::ok);
        EXPECT_EQ(backend().fill_async(device, used, 0x42, mib, stream), DeviceStatus::ok);
        EXPECT_EQ(backend().deallocate_async(device, freed, mib, stream), DeviceStatus::ok);
        ASSERT_EQ(backend().synchronize_stream(device, stream), DeviceStatus::ok);
        EXPECT_EQ(backend().trim_stream_ordered(device, given_back), DeviceStatus::ok);
        EXPECT_TRUE(read(used, mib) == Bytes(mib, 0x42));
        EXPECT_EQ(backend().deallocate_async(device, used, mib, stream), DeviceStatus::ok);
        ASSERT_EQ(backend().synchronize_stream(device, stream), DeviceStatus::ok);
        EXPECT_EQ(backend().trim_stream_ordered(device, given_back), DeviceStatus::ok);
    }
}

TEST_P(BackendWithManagedAdvice, AdviceAndPrefetchesKeepTheContent) {
    using enum MemoryAdvice;
    auto* const memory = static_cast<unsigned char*>(make_memory(mib, StorageKind::managed));
    const StreamHandle stream = make_stream();
    write(memory, pattern(mib));
    for (const MemoryAdvice advice : {read_mostly, not_read_mostly, preferred_location,
                                      no_preferred_location, accessed_by, not_accessed_by}) {
        for (const Processor processor : {Processor::device, Processor::host}) {
            EXPECT_EQ(backend().advise_memory(device, memory, mib, advice, processor),
                      DeviceStatus::ok)
                << backend().last_error();
            // A part of the range, in whole pages.
            EXPECT_EQ(backend().prefetch_memory(device, memory + 1000, 8000, processor, stream),
                      DeviceStatus::ok)
                << backend().last_error();
        }
    }
    EXPECT_EQ(backend().prefetch_memory(device, memory, mib, Processor::device, nullptr),
              DeviceStatus::ok);
    ASSERT_EQ(backend().synchronize_device(device), DeviceStatus::ok);
    EXPECT_TRUE(read(memory, mib) == pattern(mib));
}

TEST_P(BackendWithManagedAdvice, RejectsAdviceForNoMemory) {
    constexpr auto advice = MemoryAdvice::read_mostly;
    void* const memory = make_memory(kib, StorageKind::managed);
    expect_refused(backend().advise_memory(device, memory, 0, advice, Processor::device));
    expect_refused(backend().advise_memory(device, nullptr, kib, advice, Processor::device));
    expect_refused(backend().prefetch_memory(device, memory, 0, Processor::host, nullptr));
    expect_refused(backend().prefetch_memory(device, nullptr, kib, Processor::host, nullptr));
    if (!knows_handles()) return;
    expect_refused(backend().prefetch_memory(device, memory, kib, Processor::device,
                                             nonsense_handle<StreamHandle>()));
}

TEST_P(BackendContract, AdviceNeedsTheAbility) {
    if (abilities().managed_advice) return;
    void* const memory = make_memory(kib);
    expect_refused(
        backend().advise_memory(device, memory, kib, MemoryAdvice::read_mostly, Processor::device),
        DeviceStatus::not_supported);
    expect_refused(backend().prefetch_memory(device, memory, kib, Processor::device, nullptr),
                   DeviceStatus::not_supported);
}

}  // namespace tensorpool::testing
