// Contract: pinned host memory.

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <thread>

#include "contracts/backend_contract.hpp"

namespace tensorpool::testing {
namespace {

constexpr std::size_t page = 4096;

/// Whole pages owned by the test.
class Pages {
public:
    explicit Pages(std::size_t bytes)
        : memory_(::operator new (bytes, std::align_val_t{page})), bytes_(bytes) {
        std::memset(memory_, 0, bytes);
    }
    ~Pages() { ::operator delete (memory_, std::align_val_t{page}); }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;

    void* data() const { return memory_; }
    std::size_t size() const { return bytes_; }

private:
    void* memory_;
    std::size_t bytes_;
};

}  // namespace

TEST_P(BackendContract, PinnedMemoryIsAccessibleToTheHost) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{5000}, 2 * mib}) {
        unsigned char* const memory = make_pinned(bytes);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 256, 0U);
        std::memset(memory, 0x77, bytes);
        void* const there = make_memory(bytes);
        ASSERT_EQ(backend().copy(device, CopyKind::host_to_device, there, memory, bytes),
                  DeviceStatus::ok);
        EXPECT_EQ(read(there, bytes), Bytes(bytes, 0x77));
    }
}

TEST_P(BackendContract, RejectsPinnedMemoryOfInvalidSize) {
    void* memory = this;
    expect_refused(backend().allocate_pinned(device, 0, &memory));
    expect_refused(
        backend().allocate_pinned(device, std::numeric_limits<std::size_t>::max() / 2, &memory),
        DeviceStatus::out_of_memory);
    EXPECT_EQ(memory, this);
}

TEST_P(BackendContract, PinnedMemoryIsFreedOnceByAnyThread) {
    void* memory = nullptr;
    ASSERT_EQ(backend().allocate_pinned(device, mib, &memory), DeviceStatus::ok);
    std::thread([&] {
        EXPECT_EQ(backend().deallocate_pinned(device, memory, mib), DeviceStatus::ok);
    }).join();
    expect_refused(backend().deallocate_pinned(device, memory, mib));
    expect_refused(backend().deallocate_pinned(device, this, mib));
}

TEST_P(BackendContract, RegistersMemoryOfTheCallerIfSupported) {
    const Pages pages(16 * page);
    const DeviceStatus status = backend().register_pinned(device, pages.data(), pages.size());
    if (status == DeviceStatus::not_supported) {
        EXPECT_EQ(backend().unregister_pinned(device, pages.data()), DeviceStatus::not_supported);
        return;
    }
    ASSERT_EQ(status, DeviceStatus::ok) << backend().last_error();
    void* const there = make_memory(pages.size());
    const StreamHandle stream = make_stream();
    std::memset(pages.data(), 0x66, pages.size());
    EXPECT_EQ(backend().copy_async(device, CopyKind::host_to_device, there, pages.data(),
                                   pages.size(), stream),
              DeviceStatus::ok);
    ASSERT_EQ(backend().synchronize_stream(device, stream), DeviceStatus::ok);
    EXPECT_EQ(read(there, pages.size()), Bytes(pages.size(), 0x66));
    EXPECT_EQ(backend().unregister_pinned(device, pages.data()), DeviceStatus::ok);
    // Registering again must work too.
    EXPECT_EQ(backend().register_pinned(device, pages.data(), pages.size()), DeviceStatus::ok);
    EXPECT_EQ(backend().unregister_pinned(device, pages.data()), DeviceStatus::ok);
}

TEST_P(BackendContract, RejectsRegisteringMemoryTwice) {
    const Pages pages(16 * page);
    const DeviceStatus status = backend().register_pinned(device, pages.data(), pages.size());
    if (status == DeviceStatus::not_supported) return;  // checked by the test above
    ASSERT_EQ(status, DeviceStatus::ok) << backend().last_error();
    expect_refused(backend().register_pinned(device, pages.data(), pages.size()));
    expect_refused(backend().unregister_pinned(device, this));
    EXPECT_EQ(backend().unregister_pinned(device, pages.data()), DeviceStatus::ok);
    expect_refused(backend().unregister_pinned(device, pages.data()));
    expect_refused(backend().register_pinned(device, nullptr, page));
    expect_refused(backend().register_pinned(device, pages.data(), 0));
}

}  // namespace tensorpool::testing
