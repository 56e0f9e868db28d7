// Blocks of the caching allocator that other processes open, over the driver.

#include <tensorpool/device/caching_allocator.hpp>

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <future>
#include <string>
#include <vector>

#include "device/cuda/fake_driver.hpp"
#include "support/run_program.hpp"

namespace tensorpool::device::cuda {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t granule = 2 * mib;

CachingOptions exportable() {
    CachingOptions options;
    options.exportable = true;
    return options;
}

class CudaSharing : public FakeDriver {
protected:
    CudaSharing() { EXPECT_EQ(backend_.create_stream(0, &stream_), DeviceStatus::ok); }
    ~CudaSharing() override {
        set_rdma(true, false);
        EXPECT_EQ(backend_.synchronize_device(0), DeviceStatus::ok);
        EXPECT_EQ(backend_.destroy_stream(0, stream_), DeviceStatus::ok);
    }

    void fill(void* memory, std::size_t bytes, std::uint8_t byte) {
        EXPECT_EQ(backend_.fill(0, memory, byte, bytes), DeviceStatus::ok);
    }
    bool holds(const void* memory, std::size_t bytes, unsigned char byte) {
        std::vector<unsigned char> content(bytes);
        EXPECT_EQ(backend_.copy(0, CopyKind::device_to_host, content.data(), memory, bytes),
                  DeviceStatus::ok);
        return content == std::vector<unsigned char>(bytes, byte);
    }
    std::uint64_t capacity() const { return allocator_.statistics().capacity_bytes; }
    template <class Call>
    static std::string error_of(Call call) {
        try {
            call();
        } catch (const std::exception& error) {
            return error.what();
        }
        return "";
    }
    /// Gives the block to another process and waits until that has opened and written it.
    testing::ProgramResult open_elsewhere(const SharedBlock& block) {
        int sockets[2] = {-1, -1};
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
        block.send(sockets[0]);
        testing::ProgramResult result =
            testing::run_program(TENSORPOOL_OPEN_SHARED_BLOCK, {std::to_string(sockets[1]), path});
        for (const int socket : sockets) close(socket);
        return result;
    }

    CudaBackend backend_{path};
    CachingAllocator allocator_{backend_, 0, exportable()};
    StreamHandle stream_ = nullptr;
};

TEST_F(CudaSharing, AnotherProcessReadsAndWritesTheBlock) {
    void* const block = allocator_.allocate_shareable(3 * mib);
    fill(block, 4 * mib, 7);
    const SharedBlock shared = allocator_.share(block);
    EXPECT_EQ(shared.bytes(), 4 * mib);
    EXPECT_EQ(shared.device(), (Device{DeviceType::cuda, 0}));
    const testing::ProgramResult result = open_elsewhere(shared);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_TRUE(holds(block, 4 * mib, 9));
    allocator_.deallocate(block);
}

TEST_F(CudaSharing, MemoryExistsUntilTheBlockWasFreedAndAllHaveClosedIt) {
    void* const block = allocator_.allocate_shareable(granule);
    fill(block, granule, 7);
    const SharedBlock shared = allocator_.share(block);
    {
        const OpenedBlock opened(backend_, 0, shared);
        EXPECT_EQ(opened.device(), allocator_.device());
        EXPECT_EQ(opened.bytes(), granule);
        EXPECT_NE(opened.data(), block);
        allocator_.deallocate(block);
        EXPECT_EQ(capacity(), 0U);
        EXPECT_TRUE(holds(opened.data(), granule, 7));
    }
    const testing::ProgramResult result = open_elsewhere(shared);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
}

TEST_F(CudaSharing, BlockOutlivesThoseWhoOpenedIt) {
    void* const block = allocator_.allocate_shareable(granule);
    {
        const OpenedBlock opened(backend_, 0, allocator_.share(block));
        fill(opened.data(), granule, 5);
    }
    EXPECT_TRUE(holds(block, granule, 5));
    allocator_.deallocate(block);
}

TEST_F(CudaSharing, EachBlockHasASlabOfItsOwn) {
    void* const first = allocator_.allocate_shareable(100);
    void* const second = allocator_.allocate_shareable(100);
    void* const ordinary = allocator_.allocate(100);
    EXPECT_EQ(allocator_.statistics().slabs, 3U);
    EXPECT_EQ(capacity(), 3 * granule);
    EXPECT_EQ(allocator_.usable_size(first), granule);
    struct stat properties {};
    ASSERT_EQ(fstat(allocator_.share(first).file(), &properties), 0);
    EXPECT_EQ(properties.st_size, static_cast<off_t>(granule)) << "a descriptor opens only that";
    EXPECT_NE(error_of([&] {
                  (void)allocator_.share(ordinary);
              }).find("is a block in a slab with others, expected one of allocate_shareable"),
              std::string::npos);
    for (void* const block : {first, second, ordinary}) allocator_.deallocate(block);
}

TEST_F(CudaSharing, FreedBlockReturnsToTheDeviceAndServesNoOtherRequest) {
    void* const ordinary = allocator_.allocate(100);
    const std::uint64_t before = capacity();
    const std::uint64_t addresses = allocator_.statistics().address_bytes;
    allocator_.deallocate(allocator_.allocate_shareable(granule, stream_));
    EXPECT_EQ(capacity(), before);
    EXPECT_EQ(allocator_.statistics().address_bytes, addresses);
    EXPECT_EQ(allocator_.statistics().in_use_bytes, 512U);
    allocator_.deallocate(ordinary);
}

TEST_F(CudaSharing, FreedBlockWaitsForItsWorkAndServesNoOtherRequestMeanwhile) {
    std::promise<void> gate;
    std::shared_future<void> opened = gate.get_future().share();
    void* const block = allocator_.allocate_shareable(granule, stream_);
    ASSERT_EQ(
        backend_.launch_host_function(
            0, stream_,
            [](void* future) { static_cast<std::shared_future<void>*>(future)->wait(); }, &opened),
        DeviceStatus::ok);
    allocator_.deallocate(block);
    EXPECT_EQ(capacity(), granule);
    void* const ordinary = allocator_.allocate(granule, stream_);
    void* const second = allocator_.allocate_shareable(granule, stream_);
    EXPECT_EQ(capacity(), 3 * granule);
    gate.set_value();
    ASSERT_EQ(backend_.synchronize_stream(0, stream_), DeviceStatus::ok);
    allocator_.deallocate(second);
    EXPECT_EQ(capacity(), granule) << "both returned";
    allocator_.deallocate(ordinary);
}

TEST_F(CudaSharing, FreedBlockWaitsForOtherStreamsThatUsedIt) {
    void* const block = allocator_.allocate_shareable(granule, stream_);
    allocator_.record_use(block, nullptr);
    allocator_.deallocate(block);
    ASSERT_EQ(backend_.synchronize_device(0), DeviceStatus::ok);
    allocator_.deallocate(allocator_.allocate(granule));
    EXPECT_EQ(capacity(), granule);
    EXPECT_EQ(allocator_.statistics().deferred_bytes, 0U);
}

TEST_F(CudaSharing, BlockOfAnEndedStreamReturnsToTheDevice) {
    StreamHandle ended = nullptr;
    ASSERT_EQ(backend_.create_stream(0, &ended), DeviceStatus::ok);
    void* const block = allocator_.allocate_shareable(granule, stream_);
    allocator_.record_use(block, ended);
    allocator_.end_stream(ended);
    ASSERT_EQ(backend_.destroy_stream(0, ended), DeviceStatus::ok);
    allocator_.end_stream(stream_);
    allocator_.deallocate(block);
    EXPECT_EQ(capacity(), 0U);
}

TEST_F(CudaSharing, SleepIsRefusedWhileABlockIsInUse) {
    void* const block = allocator_.allocate_shareable(granule);
    EXPECT_EQ(error_of([&] { (void)allocator_.sleep(SleepContent::dropped); }),
              "tensorpool: caching on cuda:0: sleep: 2 MiB of shareable blocks are in use; "
              "expected blocks in expandable slabs only");
    allocator_.deallocate(block);
    EXPECT_NO_THROW((void)allocator_.sleep(SleepContent::dropped));
    allocator_.wake();
}

TEST_F(CudaSharing, SleepingAllocatorWakesWithMemoryForRdma) {
    void* const block = allocator_.allocate(granule);
    (void)allocator_.sleep(SleepContent::dropped);
    set_rdma(true, /*refused=*/true);
    const unsigned long long before = calls("cuMemCreate");
    allocator_.wake();
    EXPECT_EQ(calls("cuMemCreate"), before + 2) << "with RDMA, then without";
    allocator_.deallocate(block);
}

TEST_F(CudaSharing, MemoryIsForRdmaIfTheDeviceReportsItAndAllocatesIt) {
    const unsigned long long before = calls("cuMemCreate");
    allocator_.deallocate(allocator_.allocate_shareable(granule));
    EXPECT_EQ(calls("cuMemCreate"), before + 1);
    set_rdma(true, /*refused=*/true);
    allocator_.deallocate(allocator_.allocate_shareable(granule));
    EXPECT_EQ(calls("cuMemCreate"), before + 3) << "a second call without RDMA";
    allocator_.deallocate(allocator_.allocate(granule));
    EXPECT_EQ(calls("cuMemCreate"), before + 5) << "ordinary blocks too";
    // The fake driver rejects the flag if devices do not report the ability.
    set_rdma(/*reported=*/false, false);
    CudaBackend without(path);
    CachingAllocator allocator(without, 0, exportable());
    allocator.deallocate(allocator.allocate_shareable(granule));
    EXPECT_EQ(calls("cuMemCreate"), before + 6);
}

TEST_F(CudaSharing, FailureOfTheDeviceChangesNothing) {
    for (const char* const call : {"cuMemAddressReserve", "cuMemMap"}) {
        fail_next(call, 1);
        EXPECT_THROW((void)allocator_.allocate_shareable(granule), DeviceError) << call;
        EXPECT_EQ(capacity(), 0U);
    }
    void* const block = allocator_.allocate_shareable(granule);
    fail_next("cuMemExportToShareableHandle", 801);
    EXPECT_NE(error_of([&] { (void)allocator_.share(block); }).find("the memory was not exported"),
              std::string::npos);
    for (const char* const call : {"cuMemImportFromShareableHandle", "cuMemAddressReserve"}) {
        fail_next(call, 1);
        EXPECT_THROW(OpenedBlock(backend_, 0, allocator_.share(block)), DeviceError) << call;
    }
    allocator_.deallocate(block);
}

TEST_F(CudaSharing, BlockThatTheDeviceDoesNotUnmapIsReleasedLater) {
    void* const block = allocator_.allocate_shareable(granule);
    fail_next("cuMemUnmap", 1);
    allocator_.deallocate(block);
    EXPECT_EQ(capacity(), granule);
    EXPECT_EQ(allocator_.trim(), granule);
    EXPECT_EQ(capacity(), 0U);
}

TEST_F(CudaSharing, IsRefusedDuringACaptureOfItsStream) {
    ASSERT_EQ(backend_.begin_capture(0, stream_), DeviceStatus::ok);
    EXPECT_THROW((void)allocator_.allocate_shareable(granule, stream_), DeviceAllocationError);
    GraphHandle graph = nullptr;
    ASSERT_EQ(backend_.end_capture(0, stream_, &graph), DeviceStatus::ok);
    EXPECT_EQ(backend_.destroy_graph(0, graph), DeviceStatus::ok);
}

TEST_F(CudaSharing, KeepsTheLimitOfTheAllocator) {
    CachingOptions options = exportable();
    options.hard_limit = 4.0 / 1024;  // of 1 GiB
    CachingAllocator limited(backend_, 0, options);
    void* const block = limited.allocate_shareable(granule);
    EXPECT_THROW((void)limited.allocate_shareable(4 * mib), DeviceAllocationError);
    EXPECT_THROW((void)limited.allocate_shareable(SIZE_MAX), DeviceAllocationError);
    EXPECT_EQ(limited.allocate_shareable(0), nullptr);
    limited.deallocate(block);
}

TEST_F(CudaSharing, NeedsTheOptionAndTheOptionNeedsADeviceWithIt) {
    CachingAllocator ordinary(backend_, 0);
    EXPECT_EQ(error_of([&] { (void)ordinary.allocate_shareable(100); }),
              "tensorpool: caching: allocate_shareable: found an allocator without, expected one "
              "with the option exportable");
    CudaBackend old(old_path);
    EXPECT_EQ(error_of([&] { CachingAllocator(old, 0, exportable()); }),
              "tensorpool: caching allocator 'caching': exportable is set; expected a device with "
              "exportable memory, found one without");
    CachingOptions plain = exportable();
    plain.expandable = false;
    EXPECT_EQ(error_of([&] { CachingAllocator(backend_, 0, plain); }),
              "tensorpool: caching allocator 'caching': exportable is set; expected expandable "
              "slabs of private storage with it");
}

}  // namespace
}  // namespace tensorpool::device::cuda
