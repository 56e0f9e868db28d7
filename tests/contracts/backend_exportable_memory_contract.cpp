// Contract: physical memory that other processes can open.

#include "contracts/backend_contract.hpp"
#include "platform/process/socket_files.hpp"

namespace tensorpool::testing {

TEST_P(BackendWithoutExportableMemory, ReportsThatItHasNoExportableMemory) {
    constexpr auto expected = DeviceStatus::not_supported;
    const auto nonsense = nonsense_handle<MemoryHandle>();
    MemoryHandle memory = nonsense;
    int file = -1;
    EXPECT_EQ(backend().create_exportable_memory(device, mib, &memory), expected);
    EXPECT_EQ(backend().export_memory(device, memory, &file), expected);
    EXPECT_EQ(backend().import_memory(device, file, &memory), expected);
    EXPECT_EQ(memory, nonsense);
    EXPECT_EQ(file, -1);
}

TEST_P(BackendWithExportableMemory, TwoHandlesOfOneMemoryShareItsContentAndOutliveEachOther) {
    const std::size_t bytes = abilities().granularity;
    void* addresses = nullptr;
    ASSERT_EQ(backend().reserve_addresses(device, 2 * bytes, &addresses), DeviceStatus::ok);
    auto* const at = static_cast<unsigned char*>(addresses);
    MemoryHandle memory = nullptr;
    MemoryHandle opened = nullptr;
    int file = -1;
    ASSERT_EQ(backend().create_exportable_memory(device, bytes, &memory), DeviceStatus::ok)
        << backend().last_error();
    ASSERT_EQ(backend().map_memory(device, at, bytes, memory), DeviceStatus::ok);
    ASSERT_EQ(backend().export_memory(device, memory, &file), DeviceStatus::ok)
        << backend().last_error();
    EXPECT_GE(file, 0);
    ASSERT_EQ(backend().import_memory(device, file, &opened), DeviceStatus::ok)
        << backend().last_error();
    ASSERT_EQ(backend().map_memory(device, at + bytes, bytes, opened), DeviceStatus::ok);
    const Bytes written = pattern(bytes);
    write(at, written);
    EXPECT_TRUE(read(at + bytes, bytes) == written);
    ASSERT_EQ(backend().unmap_memory(device, at, bytes), DeviceStatus::ok);
    ASSERT_EQ(backend().destroy_memory(device, memory), DeviceStatus::ok);
    EXPECT_TRUE(read(at + bytes, bytes) == written);
    EXPECT_EQ(backend().unmap_memory(device, at + bytes, bytes), DeviceStatus::ok);
    EXPECT_EQ(backend().destroy_memory(device, opened), DeviceStatus::ok);
    EXPECT_EQ(backend().release_addresses(device, addresses, 2 * bytes), DeviceStatus::ok);
    platform::close_file(file);
}

TEST_P(BackendWithExportableMemory, RejectsMemoryThatWasNotCreatedForIt) {
    const std::size_t bytes = abilities().granularity;
    MemoryHandle memory = nullptr;
    int file = -1;
    ASSERT_EQ(backend().create_memory(device, bytes, &memory), DeviceStatus::ok);
    expect_refused(backend().export_memory(device, memory, &file));
    EXPECT_EQ(file, -1);
    EXPECT_EQ(backend().destroy_memory(device, memory), DeviceStatus::ok);
    expect_refused(backend().import_memory(device, -1, &memory));
}

}  // namespace tensorpool::testing
