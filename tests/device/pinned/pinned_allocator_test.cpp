#include <tensorpool/device/pinned_allocator.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/device/simulated_backend.hpp>

namespace tensorpool {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

SimulationOptions lazy(int devices = 1) {
    SimulationOptions options;
    options.devices = devices;
    options.schedule = Schedule::lazy;
    options.patience = 0;
    return options;
}

/// An allocator on devices whose work waits until the test lets it run.
class PinnedAllocatorTest : public ::testing::Test {
protected:
    StreamHandle make_stream(int device = 0) {
        StreamHandle stream = nullptr;
        EXPECT_EQ(backend_.create_stream(device, &stream), DeviceStatus::ok);
        return stream;
    }
    /// Submits a copy of the block to the device, at most 4 MiB, in the stream.
    void give_copy(const void* block, std::size_t bytes, StreamHandle stream) {
        if (memory_ == nullptr) {
            EXPECT_EQ(backend_.allocate(0, 4 * copy_bytes, StorageKind::private_storage, &memory_),
                      DeviceStatus::ok);
        }
        void* const to = static_cast<char*>(memory_) + copies_++ % 4 * copy_bytes;
        EXPECT_EQ(backend_.copy_async(0, CopyKind::host_to_device, to, block, bytes, stream),
                  DeviceStatus::ok);
    }
    /// Writes the block as a caller on the host does.
    void fill(void* block, std::size_t bytes) {
        backend_.host_write(block, bytes);
        std::memset(block, 1, bytes);
    }
    void let_pass(StreamHandle stream) {
        EXPECT_EQ(backend_.synchronize_stream(0, stream), DeviceStatus::ok);
    }
    std::uint64_t count(SimulatedCall call) { return backend_.calls()[call]; }

    ~PinnedAllocatorTest() override {
        EXPECT_EQ(backend_.synchronize_device(0), DeviceStatus::ok);
        EXPECT_EQ(backend_.hazard_report(), "");
        allocator_.reset();
    }

    SimulatedBackend backend_{lazy(2)};
    std::unique_ptr<PinnedAllocator> allocator_ = std::make_unique<PinnedAllocator>(backend_, 0);
    static constexpr std::size_t copy_bytes = 4 * mib;
    void* memory_ = nullptr;  // room for copies of several streams
    std::size_t copies_ = 0;
};

TEST_F(PinnedAllocatorTest, EndStreamFreesAllBlocksHeldBackByIt) {
    const StreamHandle stream = make_stream();
    void* const first = allocator_->allocate(4096, stream);
    void* const second = allocator_->allocate(4096, stream);
    give_copy(first, 4096, stream);
    SimulationFaults faults;
    faults.slow_event_queries = UINT64_MAX;
    faults.failing = {{SimulatedCall::record_event, 2, 1}};
    backend_.set_faults(faults);
    allocator_->deallocate(first);
    allocator_->deallocate(second);  // no event could be recorded for it
    allocator_->end_stream(stream);
    EXPECT_EQ(allocator_->statistics().deferred_blocks, 0U);
    EXPECT_EQ(backend_.destroy_stream(0, stream), DeviceStatus::ok);
}

TEST_F(PinnedAllocatorTest, BlocksAreAccessibleToTheHost) {
    for (const std::size_t bytes : {std::size_t{1}, 512 * kib, 3 * mib + 1}) {
        void* const block = allocator_->allocate(bytes);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 256, 0U);
        EXPECT_GE(allocator_->usable_size(block), bytes);
        fill(block, bytes);
        allocator_->deallocate(block);
        EXPECT_EQ(allocator_->usable_size(block), 0U);
    }
    EXPECT_EQ(allocator_->device(), (Device{DeviceType::simulated, 0}));
}

TEST_F(PinnedAllocatorTest, ZeroBytesGiveNullptr) {
    EXPECT_EQ(allocator_->allocate(0), nullptr);
    EXPECT_EQ(allocator_->try_allocate(0), nullptr);
    allocator_->deallocate(nullptr);
    allocator_->record_use(nullptr, nullptr);
    EXPECT_EQ(allocator_->statistics().failures, 0U);
}

TEST_F(PinnedAllocatorTest, RoundsTo512BytesAndAbove1MiBTo16KiB) {
    void* const small = allocator_->allocate(513);
    void* const large = allocator_->allocate(5 * mib + 1);
    EXPECT_EQ(allocator_->usable_size(small), 1024U);
    EXPECT_EQ(allocator_->usable_size(large), 5 * mib + 16 * kib);
    allocator_->deallocate(small);
    allocator_->deallocate(large);
}

TEST_F(PinnedAllocatorTest, BlockWithoutAStreamIsReusedAtOnce) {
    void* const block = allocator_->allocate(kib);
    allocator_->deallocate(block);
    const std::uint64_t requests = count(SimulatedCall::allocate_pinned);
    EXPECT_EQ(allocator_->allocate(kib), block);
    EXPECT_EQ(count(SimulatedCall::allocate_pinned), requests);
    EXPECT_EQ(count(SimulatedCall::record_event), 0U);
    EXPECT_EQ(allocator_->statistics().parked_hits, 1U);
    allocator_->deallocate(block);
}

TEST_F(PinnedAllocatorTest, SplitsAndMergesSlabs) {
    void* const one = allocator_->allocate(mib);
    void* const other = allocator_->allocate(mib);
    EXPECT_EQ(allocator_->statistics().slabs, 1U);
    EXPECT_EQ(allocator_->statistics().capacity_bytes, 2 * mib);
    allocator_->deallocate(one);
    allocator_->deallocate(other);
    // Parked blocks are merged when they are needed.
    EXPECT_EQ(allocator_->trim(), 2 * mib);
    EXPECT_EQ(allocator_->statistics().capacity_bytes, 0U);
}

TEST_F(PinnedAllocatorTest, BlockIsReusedAfterItsCopy) {
    const StreamHandle stream = make_stream();
    void* const block = allocator_->allocate(mib, stream);
    fill(block, mib);
    give_copy(block, mib, stream);
    allocator_->deallocate(block);
    EXPECT_EQ(allocator_->statistics().deferred_bytes, mib);

    void* const other = allocator_->allocate(mib);
    EXPECT_NE(other, block);
    fill(other, mib);
    let_pass(stream);
    void* const again = allocator_->allocate(mib, stream);
    EXPECT_EQ(again, block);
    fill(again, mib);
    EXPECT_EQ(allocator_->statistics().deferred_bytes, 0U);
    allocator_->deallocate(again);
    allocator_->deallocate(other);
}

TEST_F(PinnedAllocatorTest, BlockWaitsForEachRecordedStream) {
    const StreamHandle first = make_stream();
    const StreamHandle second = make_stream();
    void* const block = allocator_->allocate(mib);
    fill(block, mib);
    allocator_->record_use(block, first);
    allocator_->record_use(block, second);
    allocator_->record_use(block, second);
    allocator_->record_use(block, nullptr);
    give_copy(block, mib, first);
    give_copy(block, mib, second);
    give_copy(block, mib, nullptr);
    allocator_->deallocate(block);
    EXPECT_EQ(count(SimulatedCall::record_event), 3U);  // one for each use

    std::vector<void*> others;
    for (const StreamHandle stream : {first, second, StreamHandle(nullptr)}) {
        others.push_back(allocator_->allocate(mib));
        EXPECT_NE(others.back(), block);
        let_pass(stream);
    }
    EXPECT_EQ(allocator_->allocate(mib), block);
    allocator_->deallocate(block);
    for (void* const other : others) allocator_->deallocate(other);
}

TEST_F(PinnedAllocatorTest, EventsComeFromAPool) {
    const StreamHandle stream = make_stream();
    for (int step = 0; step < 20; ++step) {
        void* const block = allocator_->allocate(mib, stream);
        fill(block, mib);
        give_copy(block, mib, stream);
        allocator_->deallocate(block);
        let_pass(stream);
    }
    EXPECT_EQ(count(SimulatedCall::record_event), 20U);
    EXPECT_EQ(count(SimulatedCall::create_event), 1U);
    EXPECT_EQ(count(SimulatedCall::allocate_pinned), 1U);
}

TEST_F(PinnedAllocatorTest, HoldsNoMoreThanItsLimit) {
    allocator_ = std::make_unique<PinnedAllocator>(
        backend_, 0, PinnedOptions{.name = "limited", .max_bytes = 8 * mib});
    void* const large = allocator_->allocate(6 * mib);
    void* const small = allocator_->allocate(kib);
    EXPECT_EQ(allocator_->statistics().capacity_bytes, 8 * mib);
    EXPECT_EQ(allocator_->try_allocate(3 * mib), nullptr);
    try {
        (void)allocator_->allocate(3 * mib);
        ADD_FAILURE();
    } catch (const DeviceAllocationError& error) {
        EXPECT_EQ(error.failure().cause, DeviceAllocationFailure::Cause::limit);
        EXPECT_EQ(error.failure().limit, 8 * mib);
        EXPECT_EQ(error.failure().asked, 3 * mib);
        EXPECT_NE(std::string(error.what()).find("limited on simulated:0"), std::string::npos)
            << error.what();
    }
    EXPECT_EQ(allocator_->statistics().failures, 2U);
    // A small block is cut from a slab of large blocks if no other memory is left.
    std::vector<void*> blocks;
    while (void* const block = allocator_->try_allocate(mib)) blocks.push_back(block);
    EXPECT_EQ(blocks.size(), 1U);
    allocator_->deallocate(large);
    blocks.push_back(allocator_->allocate(mib));
    EXPECT_LE(allocator_->statistics().peak_capacity_bytes, 8 * mib);
    for (void* const block : blocks) allocator_->deallocate(block);
    allocator_->deallocate(small);
}

TEST_F(PinnedAllocatorTest, MergesFreeMemoryBeforeItFails) {
    allocator_ = std::make_unique<PinnedAllocator>(
        backend_, 0, PinnedOptions{.name = "limited", .max_bytes = 8 * mib, .pinned_wait = {}});
    const StreamHandle stream = make_stream();
    void* const one = allocator_->allocate(4 * mib, stream);
    void* const other = allocator_->allocate(4 * mib);
    fill(one, 4 * mib);
    give_copy(one, 4 * mib, stream);
    allocator_->deallocate(one);
    allocator_->deallocate(other);
    try {
        (void)allocator_->allocate(8 * mib);
        ADD_FAILURE();
    } catch (const DeviceAllocationError& error) {
        EXPECT_EQ(error.failure().cause, DeviceAllocationFailure::Cause::held_back);
        EXPECT_EQ(error.failure().held_back, 4 * mib);
        ASSERT_EQ(error.failure().holder_count, 1U);
        EXPECT_EQ(error.failure().holders[0].stream, stream);
    }
    let_pass(stream);
    void* const whole = allocator_->allocate(8 * mib);
    EXPECT_EQ(allocator_->statistics().pressures, 1U);
    EXPECT_EQ(allocator_->statistics().capacity_bytes, 8 * mib);
    allocator_->deallocate(whole);
}

TEST_F(PinnedAllocatorTest, ReportsThatTheSystemRefusesPinnedMemory) {
    SimulationFaults faults;
    faults.refuses_pinned = true;
    backend_.set_faults(faults);
    try {
        (void)allocator_->allocate(kib);
        ADD_FAILURE();
    } catch (const DeviceAllocationError& error) {
        EXPECT_EQ(error.failure().cause, DeviceAllocationFailure::Cause::device);
        EXPECT_EQ(error.failure().status, DeviceStatus::out_of_memory);
    }
    backend_.set_faults({});
    void* const block = allocator_->allocate(kib);
    EXPECT_NE(block, nullptr);
    allocator_->deallocate(block);
}

TEST_F(PinnedAllocatorTest, RejectsImpossibleSizes) {
    for (const std::size_t bytes : {~std::size_t{0}, ~std::size_t{0} / 2}) {
        try {
            (void)allocator_->allocate(bytes);
            ADD_FAILURE();
        } catch (const DeviceAllocationError& error) {
            EXPECT_EQ(error.asked(), bytes);
        }
    }
}

TEST_F(PinnedAllocatorTest, RejectsUseOfAddressesNotInUse) {
    int mine = 0;
    EXPECT_THROW(allocator_->record_use(&mine, nullptr), DeviceError);
    void* const block = allocator_->allocate(kib);
    allocator_->deallocate(block);
    EXPECT_THROW(allocator_->record_use(block, nullptr), DeviceError);
}

TEST_F(PinnedAllocatorTest, DropsUsesOfAnEndedStream) {
    const StreamHandle stream = make_stream();
    void* const block = allocator_->allocate(mib, stream);
    fill(block, mib);
    give_copy(block, mib, stream);
    allocator_->end_stream(stream);
    EXPECT_EQ(backend_.destroy_stream(0, stream), DeviceStatus::ok);
    allocator_->deallocate(block);
    EXPECT_EQ(allocator_->statistics().deferred_bytes, 0U);
    EXPECT_EQ(count(SimulatedCall::record_event), 0U);
}

TEST_F(PinnedAllocatorTest, DestructorReleasesAllMemory) {
    void* const block = allocator_->allocate(mib);
    EXPECT_NE(block, nullptr);
    (void)allocator_->allocate(7 * mib);
    allocator_.reset();
    EXPECT_EQ(count(SimulatedCall::deallocate_pinned), count(SimulatedCall::allocate_pinned));
}

TEST_F(PinnedAllocatorTest, BlockMayBeFreedByAThreadOfAnotherDevice) {
    const StreamHandle stream = make_stream();
    const StreamHandle of_other_device = make_stream(1);
    void* const block = allocator_->allocate(mib, stream);
    fill(block, mib);
    give_copy(block, mib, stream);
    std::thread([&] {
        EXPECT_EQ(backend_.fill_async(1, nullptr, 0, 0, of_other_device), DeviceStatus::ok);
        allocator_->deallocate(block);
    }).join();
    let_pass(stream);
    EXPECT_EQ(allocator_->trim(), 2 * mib);
}

TEST(PinnedAllocator, RejectsInvalidOptions) {
    SimulatedBackend backend;
    const auto text_of = [&](int device, const PinnedOptions& options) -> std::string {
        try {
            PinnedAllocator allocator(backend, device, options);
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "";
    };
    EXPECT_EQ(text_of(1, {}),
              "tensorpool: pinned allocator 'pinned': device is 1; there are 1 of type simulated");
    EXPECT_EQ(text_of(0, {.name = "mine", .largest_slab = 3 * mib}),
              "tensorpool: pinned allocator 'mine': largest_slab is 3145728; expected a multiple "
              "of 2 MiB");
}

TEST(PinnedAllocatorDeathTest, FreeOfInvalidAddressTerminatesWithMessage) {
    SimulatedBackend backend;
    PinnedAllocator allocator(backend, 0);
    int mine = 0;
    EXPECT_DEATH(
        allocator.deallocate(&mine),
        "fatal: foreign-free .*\n  pinned on simulated:0: deallocate: 0x.* is not a block of this");
    char* const large = static_cast<char*>(allocator.allocate(2 * mib));
    EXPECT_DEATH(allocator.deallocate(large + 512), "begins elsewhere");
    void* const block = allocator.allocate(kib);
    allocator.deallocate(block);
    EXPECT_DEATH(allocator.deallocate(block), "the block of 1024 B at 0x.* is free already");
    void* const used = allocator.allocate(2 * kib);
    allocator.record_use(used, nullptr);
    allocator.deallocate(used);
    EXPECT_DEATH(allocator.deallocate(used), "was freed already and waits for streams");
}

}  // namespace
}  // namespace tensorpool
