// Contract: reserved addresses, physical memory, and mappings.

#include <vector>

#include "contracts/backend_contract.hpp"

namespace tensorpool::testing {
namespace {

/// Reserved addresses for some granules. The destructor unmaps, destroys and releases everything.
class Space {
public:
    static constexpr int device = 0;

    Space(Backend& backend, std::size_t granules)
        : granule(backend.abilities(device).granularity),
          bytes_(granules * granule),
          backend_(backend),
          is_mapped_(granules) {
        void* address = nullptr;
        EXPECT_EQ(backend_.reserve_addresses(device, bytes_, &address), DeviceStatus::ok)
            << backend_.last_error();
        begin_ = static_cast<unsigned char*>(address);
    }
    ~Space() {
        for (std::size_t i = 0; i < is_mapped_.size(); ++i) {
            if (!is_mapped_[i]) continue;
            EXPECT_EQ(unmap(i), DeviceStatus::ok) << backend_.last_error();
        }
        for (const MemoryHandle memory : memories_) {
            EXPECT_EQ(backend_.destroy_memory(device, memory), DeviceStatus::ok);
        }
        EXPECT_EQ(backend_.release_addresses(device, begin_, bytes_), DeviceStatus::ok);
    }
    Space(const Space&) = delete;
    Space& operator=(const Space&) = delete;

    unsigned char* at(std::size_t index) const { return begin_ + index * granule; }
    std::size_t bytes() const { return bytes_; }

    MemoryHandle make() {
        MemoryHandle memory = nullptr;
        EXPECT_EQ(backend_.create_memory(device, granule, &memory), DeviceStatus::ok)
            << backend_.last_error();
        memories_.push_back(memory);
        return memory;
    }
    DeviceStatus map(std::size_t index, MemoryHandle memory) {
        const DeviceStatus status = backend_.map_memory(device, at(index), granule, memory);
        if (status == DeviceStatus::ok) is_mapped_[index] = true;
        return status;
    }
    DeviceStatus unmap(std::size_t index, std::size_t count = 1) {
        const DeviceStatus status = backend_.unmap_memory(device, at(index), count * granule);
        for (std::size_t i = 0; status == DeviceStatus::ok && i < count; ++i) {
            is_mapped_[index + i] = false;
        }
        return status;
    }

    const std::size_t granule;

private:
    std::size_t bytes_;
    Backend& backend_;
    unsigned char* begin_ = nullptr;
    std::vector<MemoryHandle> memories_;
    std::vector<bool> is_mapped_;
};

}  // namespace

TEST_P(BackendWithoutVirtualMemory, ReportsThatItHasNoVirtualMemory) {
    constexpr auto expected = DeviceStatus::not_supported;
    void* address = this;
    EXPECT_EQ(backend().reserve_addresses(device, mib, &address), expected);
    EXPECT_EQ(backend().release_addresses(device, address, mib), expected);
    EXPECT_EQ(address, this);
    const auto nonsense = nonsense_handle<MemoryHandle>();
    MemoryHandle memory = nonsense;
    EXPECT_EQ(backend().create_memory(device, mib, &memory), expected);
    EXPECT_EQ(memory, nonsense);
    EXPECT_EQ(backend().destroy_memory(device, memory), expected);
    EXPECT_EQ(backend().map_memory(device, address, mib, memory), expected);
    EXPECT_EQ(backend().unmap_memory(device, address, mib), expected);
}

TEST_P(BackendWithVirtualMemory, AdjacentMappingsFormOneRange) {
    Space space(backend(), 4);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(space.at(0)) % space.granule, 0U);
    // The last first, because the order of mappings does not matter.
    for (const std::size_t index : {3U, 1U, 0U, 2U}) {
        ASSERT_EQ(space.map(index, space.make()), DeviceStatus::ok) << backend().last_error();
    }
    const Bytes written = pattern(space.bytes());
    write(space.at(0), written);
    EXPECT_TRUE(read(space.at(0), space.bytes()) == written);
    ASSERT_EQ(backend().fill(device, space.at(1) - 100, 0x33, 200), DeviceStatus::ok);
    EXPECT_EQ(read(space.at(1) - 100, 200), Bytes(200, 0x33));
}

TEST_P(BackendWithVirtualMemory, MemoryKeepsItsContentWhenRemapped) {
    Space space(backend(), 2);
    const MemoryHandle memory = space.make();
    const Bytes written = pattern(space.granule);
    ASSERT_EQ(space.map(0, memory), DeviceStatus::ok) << backend().last_error();
    write(space.at(0), written);
    ASSERT_EQ(space.unmap(0), DeviceStatus::ok) << backend().last_error();
    ASSERT_EQ(space.map(1, memory), DeviceStatus::ok) << backend().last_error();
    EXPECT_TRUE(read(space.at(1), space.granule) == written);
    // Writes to memory mapped at the former address do not affect it.
    ASSERT_EQ(space.map(0, space.make()), DeviceStatus::ok) << backend().last_error();
    ASSERT_EQ(backend().fill(device, space.at(0), 0x11, space.granule), DeviceStatus::ok);
    EXPECT_TRUE(read(space.at(1), space.granule) == written);
}

TEST_P(BackendWithVirtualMemory, UnmapsSeveralMappingsInOneCall) {
    Space space(backend(), 4);
    for (std::size_t index = 0; index < 4; ++index) {
        ASSERT_EQ(space.map(index, space.make()), DeviceStatus::ok) << backend().last_error();
    }
    write(space.at(3), pattern(kib));
    EXPECT_EQ(space.unmap(0, 3), DeviceStatus::ok) << backend().last_error();
    EXPECT_EQ(read(space.at(3), kib), pattern(kib));
    EXPECT_EQ(space.map(1, space.make()), DeviceStatus::ok) << backend().last_error();
}

TEST_P(BackendWithVirtualMemory, MapsMemoryOfSeveralGranules) {
    Space space(backend(), 3);
    const std::size_t bytes = 2 * space.granule;
    MemoryHandle memory = nullptr;
    ASSERT_EQ(backend().create_memory(device, bytes, &memory), DeviceStatus::ok);
    ASSERT_EQ(backend().map_memory(device, space.at(1), bytes, memory), DeviceStatus::ok);
    ASSERT_EQ(backend().fill(device, space.at(1), 0x44, bytes), DeviceStatus::ok);
    EXPECT_EQ(read(space.at(2), kib), Bytes(kib, 0x44));
    // Only whole mappings can be unmapped; the mapping is intact after the rejected calls.
    expect_refused(backend().unmap_memory(device, space.at(1), space.granule));
    expect_refused(backend().unmap_memory(device, space.at(2), space.granule));
    EXPECT_EQ(read(space.at(1), kib), Bytes(kib, 0x44));
    ASSERT_EQ(backend().unmap_memory(device, space.at(1), bytes), DeviceStatus::ok);
    EXPECT_EQ(backend().destroy_memory(device, memory), DeviceStatus::ok);
}

TEST_P(BackendWithVirtualMemory, RejectsMemoryOfOtherSizesThanMultiplesOfTheGranularity) {
    const std::size_t granule = abilities().granularity;
    for (const std::size_t bytes : {std::size_t{0}, granule / 2, granule + 1}) {
        const auto nonsense = nonsense_handle<MemoryHandle>();
        MemoryHandle memory = nonsense;
        expect_refused(backend().create_memory(device, bytes, &memory));
        EXPECT_EQ(memory, nonsense);
    }
}

// CUDA reserves any multiple of the host's page: "The size and address parameters must be a
// multiple of the host page size" (CUDA Driver API, cuMemAddressReserve). Other backends may reject
// all but multiples of the granularity.
TEST_P(BackendWithVirtualMemory, RejectsReservationsThatAreNoWholePages) {
    const std::size_t granule = abilities().granularity;
    for (const std::size_t bytes : {std::size_t{0}, granule + 1}) {
        void* address = this;
        expect_refused(backend().reserve_addresses(device, bytes, &address));
        EXPECT_EQ(address, this);
    }
    void* address = this;
    if (backend().reserve_addresses(device, granule / 2, &address) == DeviceStatus::ok) {
        EXPECT_EQ(backend().release_addresses(device, address, granule / 2), DeviceStatus::ok);
    } else {
        EXPECT_EQ(address, this);
    }
}

TEST_P(BackendWithVirtualMemory, RejectsInvalidMappings) {
    Space space(backend(), 2);
    const MemoryHandle memory = space.make();
    const MemoryHandle other = space.make();
    ASSERT_EQ(space.map(0, memory), DeviceStatus::ok) << backend().last_error();
    write(space.at(0), pattern(kib));
    expect_refused(space.map(0, other));  // already mapped
    expect_refused(backend().map_memory(device, space.at(1) + 1, space.granule, other));
    if (knows_handles()) {
        expect_refused(backend().map_memory(device, space.at(1), space.granule,
                                            nonsense_handle<MemoryHandle>()));
    }
    // Outside the reserved range.
    expect_refused(backend().map_memory(device, nullptr, space.granule, other));
    EXPECT_EQ(read(space.at(0), kib), pattern(kib));
    EXPECT_EQ(space.map(1, other), DeviceStatus::ok) << backend().last_error();
}

TEST_P(BackendWithVirtualMemory, RejectsReleaseOfInvalidMemory) {
    Space space(backend(), 2);
    expect_refused(space.unmap(0));
    // The driver may do anything with handles that it did not give out, 0 included (CUDA Driver
    // API, cuMemRelease).
    if (knows_handles()) {
        expect_refused(backend().destroy_memory(device, nonsense_handle<MemoryHandle>()));
        expect_refused(backend().destroy_memory(device, nullptr));
    }
    expect_refused(backend().release_addresses(device, this, space.granule));
    ASSERT_EQ(space.map(0, space.make()), DeviceStatus::ok) << backend().last_error();
    expect_refused(space.unmap(0, 2));  // the second half is not mapped
    expect_refused(backend().release_addresses(device, space.at(0), space.bytes()));  // mapped
    write(space.at(0), pattern(kib));
    EXPECT_EQ(read(space.at(0), kib), pattern(kib));
}

TEST_P(BackendWithVirtualMemory, OutOfVirtualMemoryChangesNothing) {
    DeviceMemoryInfo info;
    ASSERT_EQ(backend().memory_info(device, info), DeviceStatus::ok);
    const std::size_t granule = abilities().granularity;
    const std::size_t bytes = (info.total_bytes / granule + 2) * granule;
    const auto nonsense = nonsense_handle<MemoryHandle>();
    MemoryHandle memory = nonsense;
    expect_refused(backend().create_memory(device, bytes, &memory), DeviceStatus::out_of_memory);
    EXPECT_EQ(memory, nonsense);
}

}  // namespace tensorpool::testing
